"""Set up judges and connected models of a running server: check, calibrate, and use in a route."""

from __future__ import annotations

import asyncio
import datetime as dt
import fnmatch
import logging
import re
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import msgspec

from steelyard import errors
from steelyard.caller import Caller
from steelyard.datasets.row_service import DatasetRows
from steelyard.datasets.service import DatasetService
from steelyard.models import judge_wire
from steelyard.models.setup_run import Outcome, SetupRun, each_side, rows_of_side
from steelyard.models.setups import LastSetups, ModelSetups
from steelyard.models.thinking import effect_of
from steelyard.scoring.entailment.folder import GRAPH, read_folder
from steelyard.scoring.shipped import default_name
from steelyard.serving.auto import auto_route, completed
from steelyard.serving.connected.calibrating import LabelledAnswers, ask_rows, calibrate
from steelyard.serving.connected.checking import check_model
from steelyard.serving.connected.declared import (
    ConnectedModel,
    ModelsFile,
    Thinking,
    check_name,
)
from steelyard.serving.judge.catalogue import CatalogueEntry, read_catalogue
from steelyard.serving.judge.checkup import examine_judge
from steelyard.serving.judge.download import pull
from steelyard.serving.judge.gguf import read_header
from steelyard.serving.judge_setting import CONCURRENCY, CONTEXT_TOKENS, TIMEOUT_S
from steelyard.serving.reader.catalogue import (
    SHIPPED,
    SHIPPED_MEASURED,
    ReaderEntry,
    read_readers,
)
from steelyard.serving.reader.declaring import WIRE, declare_reader, folder_of
from steelyard.serving.reader.download import pull_reader
from steelyard.serving.registry import HostedModel, ModelRegistry
from steelyard.settings import InvalidSettingError, Settings, home_of
from steelyard.wire.filling import filled
from steelyard.wire.violations import BODY

_log = logging.getLogger(__name__)

#: Where downloads go, in the home, and where a person puts other files.
_FOLDER = "models"
#: Characters of a file's name that no model's name has.
_NO_NAME = re.compile(r"[^A-Za-z0-9._-]+")
#: Seconds until the server has a model that was connected, which it looks for once a second.
_APPEARS_S = 5.0


class JudgeSetup:
    """Does the work of ``steelyard model pull``, ``check`` and ``calibrate`` in the server.

    Safe to use from several threads. A download that was interrupted goes on where it stopped.
    """

    def __init__(
        self,
        settings: Settings,
        models: ModelRegistry,
        datasets: DatasetService,
        rows: DatasetRows,
        setups: ModelSetups,
    ) -> None:
        self._settings, self._models = settings, models
        self._datasets, self._rows = datasets, rows
        self._home = home_of(settings)
        self._setups = setups

    async def list(self) -> judge_wire.JudgeList:
        """Return the connected models and the readers and judges of the catalogue."""
        return await asyncio.to_thread(self._list)

    async def download(self, caller: Caller, name: str) -> judge_wire.Judge:
        """Begin to download a model of the catalogue, or go on with it; a reader is then connected."""
        _entry(name)
        await self._setups.begin(caller, "download", name)
        return await self.get(name)

    def run_download(self, run: SetupRun) -> Outcome:
        """Download a model of the catalogue."""
        name, total = run.row.name, 0
        entry, hub = _entry(name), self._settings.model_hub

        def begin(size: int) -> None:
            nonlocal total
            total = size

        def advance(done: int) -> None:
            run.report(done, total)

        if isinstance(entry, ReaderEntry):
            folder = folder_of(self._home, entry)
            pull_reader(entry, folder, hub, on_size=begin, on_bytes=advance)
            return Outcome(change=partial(declare_reader, name=name, folder=folder))
        pull(entry, self._home / _FOLDER, hub, on_size=begin, on_bytes=advance)
        return Outcome()

    async def stop(self, name: str) -> judge_wire.Judge:
        """Stop a model's work; the downloaded part stays, and the next download resumes it."""
        judge = await self.get(name)
        await self._setups.stop_all(name)
        return judge

    async def connect(self, name: str) -> judge_wire.Judge:
        """Connect a model whose file is here; requests may name it within a second."""
        await asyncio.to_thread(self._connect, name)
        return await self.get(name)

    async def disconnect(self, name: str) -> judge_wire.Judge:
        """Disconnect a model; its file and its stored answers stay."""
        judge = await self.get(name)
        await asyncio.to_thread(self._disconnect, judge)
        return msgspec.structs.replace(judge, connected=False)

    async def use_in_route(self, name: str, request: judge_wire.RouteJudge) -> judge_wire.Judge:
        """Use a connected model in a route, where the shipped model is unsure."""
        await asyncio.to_thread(self._use_in_route, name, request.route)
        return await self.get(name)

    async def think(self, name: str, request: judge_wire.ThinkJudge) -> judge_wire.Judge:
        """Set when a connected judge thinks; requests have it within a second."""
        await asyncio.to_thread(self._set_thinking, name, request)
        return await self.get(name)

    async def check(self, caller: Caller, name: str) -> judge_wire.Judge:
        """Begin to ask a connected model the fixed set of questions."""
        await asyncio.to_thread(self.connected, name)
        await self._setups.begin(caller, "check", name)
        return await self.get(name)

    def run_check(self, run: SetupRun) -> Outcome:
        """Ask a connected model the fixed set of questions."""
        name = run.row.name
        submit = run.asking(self.hosted(name).queue.submit)
        report = check_model(submit, self.connected(name).timeout_s)
        check = filled(judge_wire.JudgeCheck, report)
        if report.failures:
            run.save(result=msgspec.json.encode(check))
            raise errors.ModelUnavailableError(report.failures[0])
        return Outcome(result=check)

    async def calibrate(
        self, caller: Caller, name: str, request: judge_wire.CalibrateJudge
    ) -> judge_wire.Judge:
        """Begin to fit temperatures on a dataset; store them if they lower the held-out loss."""
        await asyncio.to_thread(self.connected, name)
        dataset = await self._datasets.get(caller, request.dataset_id)
        await self._setups.begin(
            caller, "calibrate", name, request, dataset_id=dataset.id, version=dataset.version
        )
        return await self.get(name)

    def run_calibration(self, run: SetupRun) -> Outcome:
        """Fit temperatures on a dataset, and store them if they lower the held-out loss."""
        name, request = run.row.name, run.request(judge_wire.CalibrateJudge)
        model = self.connected(name)
        lines = [
            rows_of_side(self._rows, run, side, request.rows) for side in ("training", "evaluation")
        ]
        scored: list[LabelledAnswers] = []
        failures: Counter[str] = Counter()
        for rows, on_row in each_side(lines, run.report):
            answered, failed = ask_rows(
                run.asking(self.hosted(name).queue.submit),
                rows,
                model.timeout_s,
                on_row,
                # One after another, the processor time of each is its own.
                at_once=model.concurrency if model.think is None else 1,
            )
            scored.append(answered)
            failures += failed
        calibration = calibrate(scored[0], scored[1], failures)
        result = filled(
            judge_wire.JudgeCalibration,
            calibration,
            dataset_id=run.row.dataset_id,
            version=run.row.dataset_version,
            in_use=calibration.is_better,
            thinking=None if model.think is None else effect_of(*scored),
        )
        if not calibration.is_better:
            return Outcome(result=result)
        add = partial(self._with_calibration, run=run, temperatures=calibration.temperatures)
        return Outcome(result=result, change=add)

    async def get(self, name: str) -> judge_wire.Judge:
        """Return a connected model, or one of the catalogue."""
        judges = await self.list()
        judge = next((judge for judge in judges.data if judge.name == name), None)
        if judge is None:
            raise errors.NotFoundError(
                f"No judge and no connected model is called {name[:60]!r}; GET /v1/judges lists them."
            )
        return judge

    def _list(self) -> judge_wire.JudgeList:
        declared, last, catalogue = self._declared(), self._setups.last(), _catalogue()
        files = self._files(declared)
        others = [
            name for name in dict.fromkeys([*declared.models, *files]) if name not in catalogue
        ]
        return judge_wire.JudgeList(
            data=[
                self._describe(name, files.get(name), declared, last)
                for name in (*others, *catalogue)
            ],
            runs_here=find_spec("xllamacpp") is not None,
            folder=str(self._home / _FOLDER),
        )

    def _describe(
        self,
        name: str,
        file: Path | None,
        declared: ModelsFile,
        last: LastSetups,
    ) -> judge_wire.Judge:
        model, entry = declared.models.get(name), _catalogue().get(name)
        measured = SHIPPED_MEASURED if name == SHIPPED else ""
        n_bytes = file.stat().st_size if file is not None and file.is_file() else 0
        is_reader = (
            isinstance(entry, ReaderEntry)
            or (model is not None and model.wire == WIRE)
            or (file is not None and file.is_dir())
        )
        problem = None
        if file is not None and model is None and not is_reader:
            seen, remedy = examine_judge(name, file, CONTEXT_TOKENS, CONCURRENCY)
            problem = None if remedy is None else f"{seen}. {remedy}"
        return judge_wire.Judge(
            name=name,
            kind="reader" if is_reader else "judge",
            repository=None if entry is None else entry.repository,
            licence=None if entry is None else entry.licence,
            bytes=(n_bytes if entry is None else entry.bytes) or None,
            context_tokens=None if entry is None else entry.context or None,
            measured=(measured if entry is None else entry.measured) or None,
            recommended=None if entry is None else entry.recommended or None,
            downloaded=file is not None or model is not None,
            connected=model is not None,
            wire=None if model is None else model.wire,
            calibrated=model is not None and model.calibration is not None,
            think=None
            if model is None or model.think is None
            else filled(judge_wire.JudgeThinking, model.think),
            routes=[route for route, steps in declared.routes.items() if name in steps.models],
            problem=problem,
            task=last.tasks.get(name),
            check=last.result(name, "check", judge_wire.JudgeCheck),
            calibration=last.result(name, "calibrate", judge_wire.JudgeCalibration),
        )

    def _declared(self) -> ModelsFile:
        """Return the declared models, with the shipped reader and the route auto."""
        return self._completed(self._setups.declared())

    def _completed(self, declared: ModelsFile) -> ModelsFile:
        return completed(declared, default_name(self._settings))

    def _files(self, declared: ModelsFile) -> dict[str, Path]:
        """Return the judges' files and readers' folders in the home, downloaded or put there, by name."""
        catalogue = _catalogue()
        try:
            listed = sorted((self._home / _FOLDER).iterdir())
        except OSError:
            listed = []
        files = {
            name: file
            for name, entry in catalogue.items()
            if (file := self._downloaded(entry, listed)) is not None
        }
        taken = {self._home / model.file for model in declared.models.values() if model.file}
        taken.update(files.values())
        for path in listed:
            is_reader = (path / GRAPH).is_file()
            name = _NO_NAME.sub("-", path.name if is_reader else path.stem).lstrip("-._")
            if name and (is_reader or path.suffix == ".gguf") and path not in taken:
                is_used = name in catalogue or self._models.find(name) is not None
                files[f"{name}-file" if is_used or name in declared.models else name] = path
        return files

    def _downloaded(
        self, entry: CatalogueEntry | ReaderEntry, listed: Sequence[Path]
    ) -> Path | None:
        """Return the downloaded file of an entry, whose name the catalogue may know in part."""
        if isinstance(entry, ReaderEntry):
            folder = folder_of(self._home, entry)
            return folder if folder.is_dir() else None
        pattern = Path(entry.file).name
        return next((file for file in listed if fnmatch.fnmatchcase(file.name, pattern)), None)

    def _connect(self, name: str) -> None:
        files = self._files(self._declared())
        if name not in files:
            _entry(name)
            raise errors.ModelUnavailableError(f"{name} is not downloaded yet; download it first.")
        file = files[name]
        try:
            if file.is_dir():
                read_folder(file)
                self._setups.change(partial(declare_reader, name=name, folder=file))
                return
            header = read_header(file)
        except InvalidSettingError as error:
            raise errors.ModelUnavailableError(f"{error} Get it again.") from error
        seen, remedy = examine_judge(name, file, CONTEXT_TOKENS, CONCURRENCY)
        if remedy is not None:
            raise errors.ModelUnavailableError(f"{seen}. {remedy}")
        model = ConnectedModel(
            wire="gguf",
            file=str(file),
            context_tokens=min(CONTEXT_TOKENS, header.context_tokens or CONTEXT_TOKENS),
            concurrency=CONCURRENCY,
            timeout_s=TIMEOUT_S,
            teacher=True,
            writer=True,
            added=dt.datetime.now(dt.UTC).date(),
        )

        def add(declared: ModelsFile) -> ModelsFile:
            if name in declared.routes:
                raise errors.ModelUnavailableError(
                    f"A route is named {name} already; remove the route, or give it another name."
                )
            return declared if name in declared.models else declared.with_model(name, model)

        self._setups.change(add)

    def _disconnect(self, judge: judge_wire.Judge) -> None:
        name = judge.name
        if judge.task is not None and judge.task.status == "running":
            raise errors.ModelUnavailableError(
                f"The {judge.task.kind} of {name} goes on; stop it, or wait until it has ended."
            )

        def take_away(declared: ModelsFile) -> ModelsFile:
            if name not in declared.models:
                raise errors.ModelUnavailableError(
                    f"{name} is not connected, or ships with Steelyard and stays."
                )
            for route, steps in declared.routes.items():
                if name in steps.models:
                    raise errors.ModelUnavailableError(
                        f"The combined model {route} asks {name}; remove that first."
                    )
            return declared.without(name)

        self._setups.change(take_away)

    def _use_in_route(self, name: str, route: str) -> None:
        self.connected(name)
        try:
            check_name(route)
        except InvalidSettingError as error:
            raise _refused_route(str(error), "invalid") from error
        walked = msgspec.structs.replace(
            auto_route(default_name(self._settings), None, name),
            added=dt.datetime.now(dt.UTC).date(),
        )
        is_answering = self._models.find(route) is not None

        def add(declared: ModelsFile) -> ModelsFile:
            if route in declared.models or (is_answering and route not in declared.routes):
                raise _refused_route(
                    "is the name of a model; choose another for the route.", "used"
                )
            return declared.with_route(route, walked)

        self._setups.change(add)

    def _set_thinking(self, name: str, request: judge_wire.ThinkJudge) -> None:
        think = (
            None if request.below is None else Thinking(below=request.below, tokens=request.tokens)
        )

        def change(declared: ModelsFile) -> ModelsFile:
            model = self.connected(name)
            if model.think == think:
                return declared
            # Temperatures were fitted on other answers.
            changed = msgspec.structs.replace(model, think=think, calibrations=())
            try:
                changed.check(name)
            except InvalidSettingError as error:
                raise errors.InvalidRequestError.at(
                    (*BODY, "below"), str(error), "invalid"
                ) from error
            return declared.with_model(name, changed)

        self._setups.change(change)

    def _with_calibration(
        self, declared: ModelsFile, run: SetupRun, temperatures: dict[str, dict[str, float]]
    ) -> ModelsFile:
        row = run.row
        model = self._completed(declared).models.get(row.name)
        if model is None:
            raise errors.NotFoundError(f"The model {row.name!r} was disconnected meanwhile.")
        calibrated = model.calibrated(row.dataset_id, row.dataset_version, temperatures)
        return declared.with_model(row.name, calibrated)

    def all_connected(self) -> dict[str, ConnectedModel]:
        """Return the connected models by name; it blocks."""
        return self._declared().models

    def connected(self, name: str) -> ConnectedModel:
        """Return a connected model; raise ``NotFoundError`` where none has the name."""
        model = self.all_connected().get(name)
        if model is None:
            raise errors.NotFoundError(f"No model {name!r} is connected; connect it first.")
        return model

    def provider_model(self, name: str) -> str:
        """Return the name that a connected model's server gave itself; empty before its first answer."""
        hosted = self._models.find(name)
        return "" if hosted is None else hosted.provider_model()

    def hosted(self, name: str) -> HostedModel:
        """Return a connected model as it answers, once the server has it; it blocks."""
        until = time.monotonic() + _APPEARS_S
        while (model := self._models.find(name)) is None:
            if time.monotonic() > until:
                raise errors.ModelUnavailableError(
                    f"The server does not have {name!r} yet; its log says why. Try again."
                )
            time.sleep(0.1)
        return model


def _refused_route(message: str, code: str) -> errors.InvalidRequestError:
    return errors.InvalidRequestError.at((*BODY, "route"), f"route {message}", code)


def _catalogue() -> dict[str, CatalogueEntry | ReaderEntry]:
    return {**read_readers(), **read_catalogue()}


def _entry(name: str) -> CatalogueEntry | ReaderEntry:
    catalogue = _catalogue()
    if name not in catalogue:
        raise errors.NotFoundError(
            f"No model of the catalogue is called {name!r}: {', '.join(catalogue)}."
        )
    return catalogue[name]
