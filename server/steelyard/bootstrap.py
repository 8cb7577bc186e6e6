"""The composition root: builds services from settings. The only place that names engines.

A deployment is a loaded model, the queue before it and the service that answers: what a process
has that calls ``steelyard.decide``, and nothing is kept there. A server has more: a state, and every
base model that the settings name.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import functools
import hashlib
import logging
import os
import re
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from steelyard.calibration.temperature import TemperatureTable
from steelyard.decisions.tokens import TokenCounter
from steelyard.scoring.batching import Batcher
from steelyard.scoring.protocol import Scorer
from steelyard.services.answers import AnswerService
from steelyard.services.decide import DecideService
from steelyard.settings import (
    InvalidSettingError,
    Settings,
    frames_url_of,
    home_of,
    jobs_url_of,
    read_settings,
    state_url_of,
)

if TYPE_CHECKING:
    from steelyard.api.services import ApiServices
    from steelyard.billing.prices import Prices
    from steelyard.jobs.workflows import JobRuntime
    from steelyard.services.evaluation_rows import FrozenDataset
    from steelyard.services.models import HostedModel, ModelRegistry
    from steelyard.storage.frames.store import FrameStore

_log = logging.getLogger(__name__)

#: The engine that is a test double.
HASHING = "hashing"
#: Names that clients of TypeSafe's use for the default model; no other model may have one.
_RESERVED_PREFIX = "jev"
_MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_SHIPPED = "The base model that ships with Steelyard."
_DOUBLE = "A test double: its answers are fixed and mean nothing."


class LoadedModel(Protocol):
    """What a loader gives: a scorer and what belongs to it."""

    @property
    def scorer(self) -> Scorer:
        """Gives logits."""
        ...

    @property
    def tokenizer(self) -> TokenCounter:
        """Counts input tokens."""
        ...

    @property
    def temperatures(self) -> TemperatureTable:
        """Turns logits into calibrated probabilities."""
        ...

    @property
    def card(self) -> Path | None:
        """The model card, when there is one."""
        ...

    @property
    def manifest(self) -> Mapping[str, Any]:
        """Name, version, and the files with their hashes."""
        ...


@dataclass(frozen=True, slots=True)
class ModelDouble:
    """The hashing scorer in the shape of a loaded model; its answers mean nothing."""

    scorer: Scorer
    tokenizer: TokenCounter
    temperatures: TemperatureTable = field(default_factory=TemperatureTable)
    card: Path | None = None
    manifest: Mapping[str, Any] = field(default_factory=dict)


#: Loads a model: the engine's name, and its threads or ``None``.
ModelLoader = Callable[[str, int | None], LoadedModel]
#: Loads a model of the setting ``base_models``: name, folder or ``hashing``, engine, threads.
NamedModelLoader = Callable[[str, str, str, int | None], LoadedModel]


@dataclass(frozen=True, slots=True)
class Deployment:
    """A model that is loaded and answers.

    Parameters
    ----------
    answers : steelyard.services.answers.AnswerService
        Answers requests.
    model : LoadedModel
        What answers them.
    settings : steelyard.settings.Settings
        What it was built from.
    """

    answers: AnswerService
    model: LoadedModel
    settings: Settings

    @property
    def model_name(self) -> str:
        """Name of the model, as in answers."""
        return self.model.scorer.name

    @property
    def engine(self) -> str:
        """Engine and precision."""
        return self.model.scorer.engine


@contextmanager
def open_deployment(
    settings: Settings | None = None, *, load_model: ModelLoader | None = None
) -> Iterator[Deployment]:
    """Load a model and give what answers with it; closes both at the end.

    Parameters
    ----------
    settings : Settings, optional
        The environment's when left out.
    load_model : callable, optional
        Called with the engine and the threads instead of loading what they name.

    Raises
    ------
    steelyard.errors.EngineUnavailableError
        When the model cannot be loaded.
    """
    deployment, batcher = _build(settings or read_settings(), load_model or load_named_model)
    try:
        yield deployment
    finally:
        batcher.close()
        deployment.model.scorer.close()


def load_named_model(engine: str, threads: int | None) -> LoadedModel:
    """Load the shipped model on an engine, or the test double.

    Raises
    ------
    steelyard.errors.EngineUnavailableError
        When the model's files or the engine are missing.
    """
    if engine == HASHING:
        from steelyard.scoring.hashing import HashingScorer, WordCounter

        return ModelDouble(HashingScorer(), WordCounter())
    from steelyard.scoring.assets import load_base_model

    return load_base_model(engine=engine, threads=threads)


def load_further_model(name: str, source: str, engine: str, threads: int | None) -> LoadedModel:
    """Load a model of the setting ``base_models``.

    Parameters
    ----------
    name : str
        The name that requests give.
    source : str
        A folder, or ``hashing``.
    engine : str
        As the setting; a folder's own choice where that is ``hashing``.
    threads : int or None
        Threads of a pass.

    Raises
    ------
    steelyard.errors.EngineUnavailableError
        When the model's files or the engine are missing.
    """
    if source == HASHING:
        from steelyard.scoring.hashing import HashingScorer, WordCounter

        return ModelDouble(HashingScorer(name, name=name), WordCounter())
    from steelyard.scoring.assets import AUTO, load_base_model

    chosen = AUTO if engine == HASHING else engine
    return load_base_model(engine=chosen, threads=threads, folder=Path(source).expanduser())


def parse_base_models(text: str) -> dict[str, str]:
    """Read the setting ``base_models``: name to folder, or to ``hashing``.

    Raises
    ------
    steelyard.settings.InvalidSettingError
        When an entry is not of the form, or a name is taken or cannot be one.

    Examples
    --------
    >>> parse_base_models("small=/srv/models/small, double=hashing")
    {'small': '/srv/models/small', 'double': 'hashing'}
    """
    sources: dict[str, str] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, _, source = (part.strip() for part in entry.partition("="))
        if not _MODEL_NAME.fullmatch(name) or not source:
            raise _bad_base_model(entry, "write NAME=FOLDER or NAME=hashing")
        if name in sources:
            raise _bad_base_model(entry, f"name {name!r} once")
        if name.startswith(_RESERVED_PREFIX):
            raise _bad_base_model(entry, f"choose a name that starts other than {name[:3]!r}")
        sources[name] = source
    return sources


def _bad_base_model(entry: str, needed: str) -> InvalidSettingError:
    return InvalidSettingError(
        f"The setting base_models (STEELYARD_BASE_MODELS) has the entry {entry[:80]!r}; {needed}."
    )


@contextmanager
def open_service(
    settings: Settings | None = None,
    *,
    load_model: ModelLoader | None = None,
    load_further: NamedModelLoader | None = None,
) -> Iterator[ApiServices]:
    """Open the state, load every model, and give what an HTTP application answers with.

    Parameters
    ----------
    settings : Settings, optional
        The environment's when left out.
    load_model : callable, optional
        Called with the engine and the threads instead of loading what they name.
    load_further : callable, optional
        Called for each model of ``base_models`` instead of ``load_further_model``.

    Raises
    ------
    steelyard.errors.EngineUnavailableError
        When a model cannot be loaded.
    steelyard.errors.StorageUnavailableError
        When the state cannot be opened.
    steelyard.settings.InvalidSettingError
        When a setting cannot be used.
    """
    from steelyard.api.services import ApiServices
    from steelyard.billing.prices import Prices
    from steelyard.jobs.child import WorkerChild
    from steelyard.services.accounts import AccountService, effective_limits
    from steelyard.services.allowance import RequestLimits, TokenAllowance
    from steelyard.services.dataset_ingest import RowBounds
    from steelyard.services.dataset_rows import DatasetRows
    from steelyard.services.datasets import DatasetService
    from steelyard.services.decisions import DecisionService
    from steelyard.services.discovery import DiscoveryService, PublishedLimits
    from steelyard.services.evaluation_figures import EvaluationFigures
    from steelyard.services.evaluations import EvaluationService
    from steelyard.services.feedback import FeedbackService
    from steelyard.services.openai_decisions import OpenAIDecisionService
    from steelyard.services.operations import LEASE_GRACE_S, KeyedWrites, OperationLog
    from steelyard.services.rate_windows import RateWindows
    from steelyard.services.sweep import Sweeper
    from steelyard.services.systemone import SystemOneService
    from steelyard.storage.state import open_state
    from steelyard.storage.state.evaluations import has_unfinished

    settings = settings or read_settings()
    prices = Prices.parse(settings.prices)
    sources = parse_base_models(settings.base_models)
    has_accounts = settings.accounts == "on"
    with ExitStack() as closing:
        state = open_state(state_url_of(settings))
        closing.callback(state.close)
        models = _open_models(
            settings,
            prices,
            sources,
            load_model or load_named_model,
            load_further or load_further_model,
            closing,
        )
        shared = home_of(settings) / "rates.sqlite" if settings.workers > 1 else None
        windows = RateWindows(shared)
        closing.callback(windows.close)
        allowance = TokenAllowance(windows, settings.tokens_per_minute)
        operations = OperationLog(
            state, accounts_enabled=has_accounts, lease_s=settings.deadline_s + LEASE_GRACE_S
        )
        decisions = DecisionService(
            models,
            operations,
            allowance,
            deadline_s=settings.deadline_s,
            stores_by_default=settings.store == "on",
        )
        limits = PublishedLimits(
            body_bytes=settings.body_bytes,
            dataset_bytes=settings.upload_bytes,
            dataset_min_rows=settings.dataset_min_rows,
            dataset_rows=settings.dataset_rows,
            requests_per_minute=settings.requests_per_minute,
            tokens_per_minute=settings.tokens_per_minute,
        )
        store = _open_frames(settings, "datasets")
        datasets = DatasetService(
            state,
            store,
            KeyedWrites(state),
            bounds=RowBounds(settings.dataset_min_rows, settings.dataset_rows),
        )
        sweeper = Sweeper(
            state, operations, retention_days=settings.retention_days, further=[datasets.sweep]
        )
        closing.callback(sweeper.close)
        worker = WorkerChild(
            dataclasses.asdict(settings), functools.partial(state.read_now, has_unfinished)
        )
        if settings.jobs == "on":
            worker.start()
            closing.callback(worker.close)
        evaluations = EvaluationService(
            state,
            KeyedWrites(state),
            datasets,
            models,
            count_decisions=functools.partial(_count_decisions, store),
            max_queue=settings.job_queue,
            max_queue_per_account=settings.job_queue_per_account,
            wake=worker.wake,
        )
        datasets.register_reader(evaluations.reader_of)
        yield ApiServices(
            settings=settings,
            decisions=decisions,
            feedback=FeedbackService(KeyedWrites(state), retention_days=settings.retention_days),
            models=models,
            discovery=DiscoveryService(models, limits),
            accounts=AccountService(
                state, accounts_enabled=has_accounts, limits=effective_limits(settings)
            ),
            systemone=SystemOneService(decisions, models),
            openai_decisions=OpenAIDecisionService(decisions),
            datasets=datasets,
            evaluations=evaluations,
            evaluation_figures=EvaluationFigures(
                evaluations, _open_frames(settings, "evaluations")
            ),
            dataset_rows=DatasetRows(
                datasets,
                store,
                embed=models.default.embed,
                scorer=models.default.evaluation_key,
            ),
            allowance=allowance,
            limits=RequestLimits(
                windows,
                per_minute=settings.requests_per_minute,
                public_per_minute=settings.public_requests_per_minute,
            ),
            state=state,
        )


@contextmanager
def open_worker(
    settings: Settings | None = None,
    *,
    load_model: ModelLoader | None = None,
    load_further: NamedModelLoader | None = None,
) -> Iterator[JobRuntime]:
    """Open what jobs need, and run them until the end of the block.

    Parameters
    ----------
    settings, load_model, load_further
        As for ``open_service``; of the server whose jobs these are.

    Raises
    ------
    steelyard.errors.EngineUnavailableError, steelyard.errors.StorageUnavailableError
        When a model cannot be loaded, or the state cannot be opened.
    steelyard.settings.InvalidSettingError
        When a setting cannot be used.
    RuntimeError
        When the process runs jobs already.
    """
    from steelyard.billing.prices import Prices
    from steelyard.jobs.workflows import JobRuntime
    from steelyard.services.dataset_ingest import RowBounds
    from steelyard.services.datasets import DatasetService
    from steelyard.services.evaluation_runs import EvaluationRuns
    from steelyard.services.operations import KeyedWrites
    from steelyard.storage.state import open_state

    settings = settings or read_settings()
    with ExitStack() as closing:
        state = open_state(state_url_of(settings))
        closing.callback(state.close)
        models = _open_models(
            settings,
            Prices.parse(settings.prices),
            parse_base_models(settings.base_models),
            load_model or load_named_model,
            load_further or load_further_model,
            closing,
        )
        datasets = DatasetService(
            state,
            _open_frames(settings, "datasets"),
            KeyedWrites(state),
            bounds=RowBounds(settings.dataset_min_rows, settings.dataset_rows),
        )
        runs = EvaluationRuns(state, _open_frames(settings, "evaluations"), datasets, models)

        def are_alive(instances: Collection[str]) -> set[str]:
            return state.write_now(
                lambda connection: {one for one in instances if state.is_alive(connection, one)}
            )

        url = jobs_url_of(settings)
        yield closing.enter_context(
            JobRuntime(url, executor=state.instance, are_alive=are_alive, work=[runs])
        )


def _count_decisions(store: FrameStore, at: FrozenDataset) -> int:
    from steelyard.storage.frames.scanning import load_definitions

    return sum(definition.evaluation for definition in load_definitions(store, at.manifest))


def _open_frames(settings: Settings, name: str) -> FrameStore:
    from steelyard.storage.frames.store import open_store

    try:
        return open_store(f"{frames_url_of(settings)}/{name}")
    except ValueError as error:
        raise InvalidSettingError(
            f"The setting frames_url (STEELYARD_FRAMES_URL) cannot be used: {error}"
        ) from error


def _open_models(
    settings: Settings,
    prices: Prices,
    sources: Mapping[str, str],
    load_model: ModelLoader,
    load_further: NamedModelLoader,
    closing: ExitStack,
) -> ModelRegistry:
    from steelyard.services.models import ModelRegistry

    threads = settings.threads or None
    shipped = load_model(settings.engine, threads)
    hosted = [_host(shipped.scorer.name, shipped, _SHIPPED, settings, prices, closing)]
    for name, source in sources.items():
        if name == hosted[0].name:
            raise _bad_base_model(f"{name}={source}", f"{name!r} is the model that ships")
        model = load_further(name, source, settings.engine, threads)
        hosted.append(_host(name, model, f"A base model named {name}.", settings, prices, closing))
    unknown = sorted(prices.by_model.keys() - {model.name for model in hosted})
    if unknown:
        _log.warning("The setting prices names models that are not here: %s.", ", ".join(unknown))
    return ModelRegistry(hosted)


def _host(
    name: str,
    model: LoadedModel,
    description: str,
    settings: Settings,
    prices: Prices,
    closing: ExitStack,
) -> HostedModel:
    from steelyard.services.models import HostedModel

    queue = Batcher(model.scorer, max_queue=settings.max_queue)
    closing.callback(_close_model, queue, model.scorer, settings.shutdown_s)
    is_double = not model.manifest
    decide = DecideService(
        model_name=name, temperatures=model.temperatures, tokenizer=model.tokenizer
    )
    return HostedModel(
        decide,
        queue,
        engine=model.scorer.engine,
        description=_DOUBLE if is_double else model.manifest.get("description", description),
        release_date=_release_date(model),
        price_nano=prices.of(name),
        evaluation_key=_identity(name, model),
        embed=getattr(model.scorer, "embed", None),
    )


def _close_model(queue: Batcher, scorer: Scorer, timeout_s: float) -> None:
    if queue.close(timeout_s):
        scorer.close()
    else:
        # Closing an engine under the call that hangs in it would be worse than leaving it.
        _log.warning("The engine of %s did not end its last call; it is left.", scorer.name)


def _release_date(model: LoadedModel) -> dt.date:
    """Give the manifest's ``release_date``, or the day on which the model's files were written."""
    try:
        return dt.date.fromisoformat(str(model.manifest.get("release_date", "")))
    except ValueError:
        file = model.card if model.card is not None and model.card.exists() else Path(__file__)
        return dt.datetime.fromtimestamp(file.stat().st_mtime, dt.UTC).date()


def _identity(name: str, model: LoadedModel) -> str:
    """Give a hash of what decides a model's answers: its files, its engine, its calibration."""
    manifest = model.manifest or {"name": name}
    decisive = {key: manifest.get(key) for key in ("name", "files", "tokenizer", "temperatures")}
    parts = {**decisive, "engine": model.scorer.engine}
    return hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()


class _Default:
    """The process's deployment. A forked child makes its own: threads do not survive a fork."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self._lock = threading.Lock()
        self._deployment: Deployment | None = None

    def get(self) -> Deployment:
        with self._lock:
            if self._deployment is None:
                self._deployment, _ = _build(read_settings(), load_named_model)
            return self._deployment


_default = _Default()
os.register_at_fork(after_in_child=_default.forget)


def default_deployment() -> Deployment:
    """Give this process's deployment, built from the environment at the first call."""
    return _default.get()


def _build(settings: Settings, load_model: ModelLoader) -> tuple[Deployment, Batcher]:
    model = load_model(settings.engine, settings.threads or None)
    batcher = Batcher(model.scorer, max_queue=settings.max_queue)
    decide = DecideService(
        model_name=model.scorer.name,
        temperatures=model.temperatures,
        tokenizer=model.tokenizer,
    )
    answers = AnswerService(decide, batcher, deadline_s=settings.deadline_s)
    return Deployment(answers, model, settings), batcher
