"""Families on a real state, with engines and datasets that tests set, and short ways to use them."""

from __future__ import annotations

import asyncio
import functools
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import msgspec
from sqlalchemy import Connection

from steelyard.app.rooms import model_uses
from steelyard.caller import Caller
from steelyard.datasets.store import DatasetRow, insert_dataset
from steelyard.datasets.tables import datasets
from steelyard.errors import EngineUnavailableError, ModelWarmingError, NoNewDataError
from steelyard.evaluations.store import EVALUATIONS
from steelyard.families.fine_tune_wire import (
    JobError,
    JobLineage,
    JobSplit,
    ResolvedHyperparameters,
)
from steelyard.families.lineage.fees import Tariff
from steelyard.families.lineage.fine_tunes import fail_job, finish_job, start_job, stop_job
from steelyard.families.lineage.lineage import (
    FamilyModel,
    FineTune,
    Lineage,
    LineageRules,
    adapter_of,
)
from steelyard.families.lineage.plan import TuningPlan
from steelyard.families.lineage_store import Applied, Command, LineageStore
from steelyard.families.lineage_writes import LineageWrites
from steelyard.families.service import FamilyService
from steelyard.families.tables import fine_tunes
from steelyard.families.wire import ContinueRows, Family, LoadState
from steelyard.jobs.store import PendingJob, set_of_run, set_runner
from steelyard.models.service import FamilyModels, ResolvedModel
from steelyard.models.wire import DeleteModelQuery
from steelyard.operations.idempotency import KeyedWrites
from steelyard.serving.registry import ModelRegistry
from steelyard.storage import State
from support.accounts.operating import LOCAL, START, Clock
from support.families.lineage_cases import BASE, OTHER_BASE, make_gate, make_growth
from support.servers.calling import Sent, send_now
from support.servers.hosting import hosted


class FakeEngines:
    """Loads nothing: a test sets the models, loaded at once unless ``is_slow``."""

    def __init__(self) -> None:
        self.held: dict[str, LoadState] = {}
        self.is_slow = False
        self.broken: set[str] = set()
        self.room: dict[str, int] = {}
        self.loads: list[tuple[str, str]] = []
        self.pinned: frozenset[str] = frozenset()

    def states(self) -> Mapping[str, LoadState]:
        return dict(self.held)

    def warm_room(self) -> Mapping[str, int]:
        return dict(self.room)

    def load(self, model: FamilyModel, artifact_sha256: str) -> None:
        self.loads.append((model.adapter, artifact_sha256))
        if model.adapter in self.broken:
            self.held[model.adapter] = "failed"
        else:
            self.held[model.adapter] = "loading" if self.is_slow else "loaded"

    async def ensure(self, model: FamilyModel, artifact_sha256: str, wait_s: float) -> None:
        self.load(model, artifact_sha256)
        state = self.held[model.adapter]
        if state == "failed":
            raise EngineUnavailableError("It cannot be loaded.")
        if state == "loading":
            raise ModelWarmingError(f"It has not loaded after {wait_s} s.")

    def pin(self, adapters: Collection[str]) -> None:
        self.pinned = frozenset(adapters)

    def forget(self, adapter: str) -> None:
        self.held.pop(adapter, None)

    def finish_loading(self) -> None:
        self.held = dict.fromkeys(self.held, "loaded")


class FakePlans:
    """Datasets without rows: their newest version has the counts of rows to train on."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.tokens = 1_000

    async def growth(self, caller, basis, *, version=None, counted=True):  # type: ignore[no-untyped-def]
        del version
        row = self._row(caller, basis.dataset_id)
        new = 40 if row.version > (basis.trained_version or 0) else 0
        counts = {"rows": ContinueRows(new=new, earlier=0, evaluation=8)}
        if not counted:
            counts = {"rows": None, "evaluation_decisions": None}
        return make_growth(
            row.version,
            is_deleted=row.deleted_at is not None,
            is_archived=row.archived_at is not None,
            **counts,
        )

    async def plan(self, caller, basis, *, version=None, hyperparameters=None):  # type: ignore[no-untyped-def]
        row = self._row(caller, basis.dataset_id)
        version = version or row.version
        if version <= (basis.trained_version or 0):
            raise NoNewDataError("There are no new rows.")
        chosen = hyperparameters
        return TuningPlan(
            base=basis.base,
            is_move=basis.is_move,
            dataset_id=row.id,
            dataset_version=version,
            method=basis.method,
            hyperparameters=ResolvedHyperparameters(
                steps=20,
                learning_rate=1e-4,
                lora_rank=0,
                seed=0 if chosen is None or chosen.seed is None else chosen.seed,
            ),
            split=JobSplit(train_rows=40, validation_rows=8, trained_tokens=self.tokens),
            lineage=JobLineage(
                new_training=40, earlier_training=0, new_evaluation=8, earlier_evaluation=0
            ),
            rows=ContinueRows(new=40, earlier=0, evaluation=8),
            passes=8.0,
            growth=make_growth(row.version),
        )

    def _row(self, caller: Caller, dataset_id: str) -> Any:
        query = datasets.select().where(
            datasets.c.account_id == caller.account_id, datasets.c.id == dataset_id
        )
        return self.state.read_now(lambda connection: connection.execute(query).one())


_WRITES = {
    "start": "POST /v1/families",
    "continue_": "POST /v1/families/{family}/continue",
    "switch": "POST /v1/families/{family}/switch",
    "keep_warm": "POST /v1/families/{family}/keep-warm",
    "roll_back": "POST /v1/families/{family}/rollback",
    "delete": "DELETE /v1/families/{family}",
    "switch_model": "POST /v1/models/{model}/switch",
    "keep_model_warm": "POST /v1/models/{model}/keep-warm",
    "delete_model": "DELETE /v1/models/{model}",
}


class Kept:
    """One server process with families: its lineages and its service on a state."""

    def __init__(
        self,
        state: State,
        bases: ModelRegistry,
        *,
        clock: Clock | None = None,
        engines: FakeEngines | None = None,
        tariff: Tariff | None = None,
        **rules: Any,
    ) -> None:
        self.state = state
        self.clock = clock or Clock()
        self.engines = engines or FakeEngines()
        self.plans = FakePlans(state)
        self.wakes = 0
        self.lineages = LineageStore(
            state,
            lambda: LineageRules(base_models=frozenset(bases.names), **rules),
            engines=self.engines,
            wake=self._wake,
            uses=model_uses,
            now=self.clock,
        )
        writes = LineageWrites(self.lineages, KeyedWrites(state, now=self.clock), warm_wait_s=0.0)
        self.service = FamilyService(self.lineages, writes, self.plans, bases, tariff=tariff)
        self.family_models = FamilyModels(state, self.lineages, writes, bases)

    def _wake(self) -> None:
        self.wakes += 1

    def lineage(self, account: str = "local") -> Lineage:
        return self.lineages.read_now(account).lineage

    def add_dataset(self, dataset_id: str = "ds_1", *, account: str = "local") -> str:
        row = DatasetRow(
            id=dataset_id,
            account_id=account,
            name="tickets",
            version=1,
            created_at=self.clock.at,
            used_at=None,
            archived_at=None,
            deleted_at=None,
            receipt=None,
        )
        self.state.write_now(lambda connection: insert_dataset(connection, row))
        return dataset_id

    def grow_dataset(self, dataset_id: str = "ds_1", **values: Any) -> None:
        """Add a version of a dataset, or other values."""
        values = values or {"version": datasets.c.version + 1}
        query = datasets.update().where(datasets.c.id == dataset_id).values(**values)
        self.state.write_now(lambda connection: connection.execute(query))

    def post(
        self,
        what: str,
        *names: str,
        key: str | None = None,
        caller: Caller = LOCAL,
        **body: Any,
    ) -> Sent:
        """Call a route of the service that writes."""
        route = _WRITES[what]
        parts = re.findall(r"{(\w+)}", route)
        services: dict[type, Any] = {FamilyService: self.service, FamilyModels: self.family_models}
        path = dict(zip(parts, names, strict=True))
        query = DeleteModelQuery(**body) if what == "delete_model" else None
        sent = None if query else body
        return send_now(route, services, sent, caller=caller, key=key, query=query, **path)

    def told(self, what: str, *names: str, **given: Any) -> dict[str, Any]:
        told: dict[str, Any] = msgspec.json.decode(self.post(what, *names, **given).body)
        return told

    def start(self, name: str = "router", dataset_id: str = "ds_1", **given: Any) -> str:
        """Start a family; gives the id of its fine-tune."""
        told = self.told("start", family=name, dataset_id=dataset_id, **given)
        return str(told["id"])

    def resume(self, name: str = "router", **given: Any) -> str:
        """Continue a family; gives the id of the fine-tune."""
        return str(self.told("continue_", name, **given)["id"])

    def run(self, job_id: str, *, account: str = "local") -> None:
        """Take a fine-tune, as a trainer does."""
        self._write(
            account,
            lambda lineage, conditions: start_job(lineage, job_id, conditions),
            lambda connection: set_runner(connection, fine_tunes, self.claimed(job_id, account)),
        )

    def finish(self, job_id: str, *, passed: bool = True, account: str = "local") -> None:
        """Train and judge a fine-tune."""
        results = functools.partial(
            set_of_run,
            table=fine_tunes,
            job=self.claimed(job_id, account),
            artifact_sha256=artifact_of(job_id),
            records_sha256="r" * 64,
            curve=b"[]",
        )
        self._write(
            account,
            lambda lineage, conditions: finish_job(
                lineage, job_id, make_gate(passed), {"accuracy": 0.9}, conditions
            ),
            results,
        )

    def claimed(self, job_id: str, account: str = "local", **changed: Any) -> PendingJob:
        """A fine-tune as the process that runs it knows it."""
        job = PendingJob(
            id=job_id,
            account_id=account,
            status="queued",
            created_at=self.clock.at,
            generation=1,
            attempt=1,
            runner=self.state.instance,
        )
        return replace(job, **changed)

    def _write(self, account: str, command: Command, first: Callable[[Connection], object]) -> None:
        def work(connection: Connection) -> Applied:
            first(connection)
            return self.lineages.apply_in(connection, account, command)

        self.lineages.follow(self.state.write_now(work))

    def fail(self, job_id: str) -> None:
        error = JobError(code="internal_error", message="It failed.")
        self.lineages.apply_now(
            "local", lambda lineage, conditions: fail_job(lineage, job_id, error, conditions)
        )

    def stop(self, job_id: str) -> None:
        """Record that the trainer of a cancelled fine-tune stopped."""
        self.lineages.apply_now(
            "local", lambda lineage, conditions: stop_job(lineage, job_id, conditions)
        )

    def grow(self, name: str = "router", n_models: int = 1) -> None:
        """Start or continue a family until it has so many models."""
        while (n := len(self.models(name))) < n_models:
            if n:
                self.grow_dataset()
            job_id = self.resume(name) if name in self.lineage().families else self.start(name)
            self.run(job_id)
            self.finish(job_id)
            self.service.tick()

    def train(self, job_id: str, *, passed: bool = True) -> None:
        """Take, train and judge a fine-tune."""
        self.run(job_id)
        self.finish(job_id, passed=passed)

    def tick_after(self, seconds: float) -> None:
        """Move the clock on, and run the server's timed work."""
        self.clock.at += seconds
        self.service.tick()

    def get(self, name: str = "router") -> Family:
        return asyncio.run(self.service.get(LOCAL, name))

    def resolve(self, name: str) -> ResolvedModel:
        return asyncio.run(self.family_models.resolve(LOCAL, name))

    def evaluate(
        self, adapter: str, evaluation_id: str = "eval_1", *, status: str | None = None
    ) -> None:
        """Queue an evaluation of a model, or one that runs nowhere."""

        def work(connection: Connection) -> None:
            values = dict.fromkeys(
                ("dataset_sha256", "evaluation_sha256", "model_sha256"), "0" * 64
            ) | {
                "id": evaluation_id,
                "account_id": "local",
                "dataset_id": "ds_1",
                "dataset_version": 1,
                "method": "sft",
                "model_id": adapter,
                "model_label": "router@1",
                "created_at": START,
                "updated_at": START,
                "evaluation_rows": 8,
                "decisions": 8,
            }
            EVALUATIONS.add(connection, values)
            if status is not None:
                runner = self.state.instance
                queued = ("queued",)
                EVALUATIONS.move(
                    connection, evaluation_id, status, at=START, only_if=queued, runner=runner
                )

        self.state.write_now(work)

    def models(self, name: str = "router") -> list[str]:
        family = self.lineage().families.get(name)
        return [] if family is None else list(family.models)

    def job(self, job_id: str) -> FineTune:
        return self.lineage().jobs[job_id]

    def served(self, name: str = "router") -> str | None:
        """Number of the model that a family serves."""
        lineage = self.lineage()
        adapter = lineage.families[name].served
        return None if adapter is None else lineage.models[adapter].ref


def artifact_of(job_id: str) -> str:
    return adapter_of(job_id).ljust(64, "0")


@contextmanager
def base_models() -> Iterator[ModelRegistry]:
    """Two base models, the first of them the default."""
    with hosted(BASE, price_nano=3) as (first, _), hosted(OTHER_BASE) as (second, _):
        yield ModelRegistry([first, second])
