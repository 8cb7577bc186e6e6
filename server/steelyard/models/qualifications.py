"""Qualify judges on rows that people labelled, and list their qualifications."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs
from sqlalchemy import Connection, func, insert, select

from steelyard import errors
from steelyard.calibration.temperature import TemperatureTable
from steelyard.caller import Caller
from steelyard.datasets.row_service import DatasetRows
from steelyard.datasets.service import DatasetService
from steelyard.families.lineage_store import LineageStore
from steelyard.house import House
from steelyard.ids import new_id
from steelyard.models.judge_setup import JudgeSetup
from steelyard.models.judge_wire import Judge
from steelyard.models.qualification_wire import (
    MIN_LABELS,
    JudgeIdentity,
    Qualification,
    QualificationList,
    QualifyJudge,
)
from steelyard.models.qualifying import (
    changes_between,
    doubt_of,
    figures_of,
    identity_of,
    kin_of,
    labelled,
    origins_of_labels,
    origins_of_model,
    wordings_by_id,
    wordings_of,
)
from steelyard.models.setup_run import Outcome, SetupRun, rows_of_side
from steelyard.models.setups import ModelSetups
from steelyard.models.tables import judge_qualifications
from steelyard.serving.connected.calibrating import ask_rows
from steelyard.serving.connected.files import in_place
from steelyard.settings import home_of
from steelyard.wire.decoding import decoder_of

_decode = decoder_of(Qualification).decode
#: Rows of a dataset among which those with labels by people are sought.
_MOST_LOOKED = 20_000


class Qualifications:
    """The qualifications of the connected models of this server."""

    def __init__(
        self,
        house: House,
        judges: JudgeSetup,
        datasets: DatasetService,
        rows: DatasetRows,
        setups: ModelSetups,
        lineages: LineageStore,
    ) -> None:
        self._lineages = lineages
        self._state, self._now = house.state, house.now
        self._floor = house.settings.judge_floor
        self._home: Path = home_of(house.settings)
        self._judges, self._datasets, self._rows, self._setups = judges, datasets, rows, setups

    async def list(self, name: str) -> QualificationList:
        """Return a judge's qualifications, with its changes since each."""
        identities = await asyncio.to_thread(self._identities)
        stored = await self._state.read(lambda connection: _of_judge(connection, name))
        if not stored and name not in identities:
            raise errors.NotFoundError(f"No model {name!r} is connected; connect it first.")
        now = identities.get(name)
        data = [
            structs.replace(each, voided_by=changes_between(each.identity, now)) for each in stored
        ]
        is_qualified = bool(data) and data[0].passed and not data[0].voided_by
        return QualificationList(data=data, is_qualified=is_qualified)

    async def doubts(self, decisions: Sequence[Any] = ()) -> dict[str, str]:
        """Return why connected models are not to be relied on for ``decisions``, of those that are not."""
        identities = await asyncio.to_thread(self._identities)
        wordings = set(wordings_by_id(decisions).values()) if decisions else set()
        reasons: dict[str, str] = {}
        stored = await self._state.read(_by_judge)
        for name, identity in identities.items():
            doubt = doubt_of(stored.get(name, []), identity, wordings)
            if doubt is not None:
                reasons[name] = doubt
        routes = (await asyncio.to_thread(self._setups.declared)).routes if reasons else {}
        for name, route in routes.items():
            # A route answers by any of its models.
            doubtful = [
                f"of {model}, {reasons[model]}" for model in route.models if model in reasons
            ]
            if doubtful:
                reasons[name] = doubtful[0]
        return reasons

    async def kin(
        self, account_id: str, names: Collection[str], judged: Collection[str]
    ) -> Sequence[str]:
        """Return a sentence on each model that is of the same origin as one that it judges."""
        identities = await asyncio.to_thread(self._identities)
        lineage = (await self._lineages.read(account_id)).lineage

        def origins(name: str) -> set[str]:
            family = lineage.families.get(name)
            adapter = name if family is None else family.served
            if adapter in lineage.models:
                name = lineage.models[adapter].base
            elif family is not None:
                name = family.base
            return origins_of_model(name, identities.get(name))

        return [
            f"{name}: it judges {other}, and both are of {min(shared)}; they err alike."
            for name in names
            for other in judged
            if (shared := origins(name) & origins(other))
        ]

    async def qualify(self, caller: Caller, name: str, request: QualifyJudge) -> Judge:
        """Begin to ask a connected model the held-out rows that people labelled."""
        await asyncio.to_thread(self._judges.connected, name)
        dataset = await self._datasets.get(caller, request.dataset_id)
        await self._setups.begin(
            caller, "qualify", name, request, dataset_id=dataset.id, version=dataset.version
        )
        return await self._judges.get(name)

    def run_qualification(self, run: SetupRun) -> Outcome:
        """Ask a connected model the held-out rows that people labelled."""
        name, request = run.row.name, run.request(QualifyJudge)
        model = self._judges.connected(name)
        side = list(rows_of_side(self._rows, run, "evaluation", _MOST_LOOKED))
        rows = list(labelled(side, request.labelled_by))[: request.rows]
        identities = self._identities()
        scored, failures = ask_rows(
            run.asking(self._judges.hosted(name).queue.submit),
            rows,
            model.timeout_s,
            lambda done: run.report(done, len(rows)),
            at_once=model.concurrency,
        )
        if len(scored.kinds) < MIN_LABELS:
            origins = origins_of_labels(side)
            raise errors.InvalidRequestError(_too_few(len(scored.kinds), failures, origins))
        calibration = model.calibration
        table = TemperatureTable(None if calibration is None else calibration.temperatures)
        figures = figures_of(scored, table)
        qualification = Qualification(
            id=new_id("qual"),
            judge=name,
            number=0,
            created_at=self._now(),
            dataset_id=run.row.dataset_id,
            dataset_version=run.row.dataset_version,
            identity=identities[name],
            wordings=wordings_of(rows),
            labelled_by=sorted(set(request.labelled_by)),
            contexts=len(rows),
            failures=sum(failures.values()),
            agreement=figures.agreement,
            accuracy=figures.accuracy,
            log_loss=figures.log_loss,
            floor=self._floor,
            passed=figures.agreement.value >= self._floor,
            kin=kin_of(name, identities),
        )
        return Outcome(
            write=partial(_add, account_id=run.row.account_id, qualification=qualification)
        )

    def _identities(self) -> dict[str, JudgeIdentity]:
        files = self._setups.declarations.files()
        return {
            name: identity_of(
                in_place(model, files.get(name, {}), self._home),
                self._home,
                self._judges.provider_model(name),
            )
            for name, model in self._judges.all_connected().items()
        }


def _too_few(n: int, failures: Mapping[str, int], origins: Mapping[str, int]) -> str:
    listed = ", ".join(f"{n:,} by {origin}" for origin, n in sorted(origins.items()))
    text = (
        f"A qualification needs {MIN_LABELS} held-out decisions that people labelled, and {n} were "
        f"answered; label more, or name further origins in labelled_by (rows with labels: {listed or 0})."
    )
    if failures:
        text += (
            f" {sum(failures.values())} rows failed, the first of them so: {next(iter(failures))}"
        )
    return text


def _of_judge(connection: Connection, name: str) -> list[Qualification]:
    of = judge_qualifications.c
    bodies = select(of.body).where(of.judge == name).order_by(of.number.desc())
    return [_decode(body) for body in connection.scalars(bodies)]


def _by_judge(connection: Connection) -> dict[str, list[Qualification]]:
    of, by_judge = judge_qualifications.c, defaultdict(list)
    stored = select(of.judge, of.body).order_by(of.number.desc())
    for row in connection.execute(stored):
        by_judge[row.judge].append(_decode(row.body))
    return by_judge


def _add(connection: Connection, account_id: str, qualification: Qualification) -> None:
    of = judge_qualifications.c
    last = connection.execute(
        select(func.max(of.number)).where(of.judge == qualification.judge)
    ).scalar()
    qualification = structs.replace(qualification, number=(last or 0) + 1)
    connection.execute(
        insert(judge_qualifications).values(
            id=qualification.id,
            account_id=account_id,
            judge=qualification.judge,
            number=qualification.number,
            created_at=qualification.created_at,
            body=msgspec.json.encode(qualification),
        )
    )
