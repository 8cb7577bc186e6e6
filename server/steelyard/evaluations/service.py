"""The evaluations use cases: ask for them, follow them, stop them.

An evaluation is queued by a row of the state; the job runtime finds it there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence, Set
from typing import Any

from msgspec import UNSET
from sqlalchemy import Connection, Row

from steelyard import errors
from steelyard.caller import Caller
from steelyard.datasets.access import require_dataset, unknown_dataset
from steelyard.datasets.frames.scanning import load_definitions
from steelyard.datasets.labels import SUPERVISION_OF
from steelyard.datasets.service import DatasetService
from steelyard.datasets.store import find_dataset, mark_dataset_used
from steelyard.datasets.version_service import DatasetAt
from steelyard.evaluations import partitions, wire
from steelyard.evaluations import store as rows
from steelyard.evaluations.models import EvaluatedModel, EvaluatedModels
from steelyard.evaluations.queries_wire import CreateEvaluation, EvaluationsQuery
from steelyard.house import House
from steelyard.job_frame.queue import JobQueue
from steelyard.operations.write import Write
from steelyard.storage.pages import OrderedPage
from steelyard.storage.rows import lock_account
from steelyard.wire.decoding import decoder_of
from steelyard.wire.jobs import UNFINISHED
from steelyard.wire.violations import BODY, Violations

_decode_metrics = decoder_of(wire.EvaluationMetrics).decode
_decode_error = decoder_of(wire.EvaluationError).decode


class EvaluationService(JobQueue[wire.Evaluation, wire.EvaluationPage]):
    """The evaluations of every account."""

    jobs = rows.EVALUATIONS
    page_type = wire.EvaluationPage
    bound = "{}"

    def __init__(
        self,
        house: House,
        datasets: DatasetService,
        models: EvaluatedModels,
    ) -> None:
        super().__init__(house)
        self._datasets = datasets
        self._models = models
        self._dataset_files = house.frames("datasets")
        self.partition_rows = partitions.PARTITION_ROWS

    async def create(self, write: Write, request: CreateEvaluation) -> wire.EvaluationSubmission:
        """Queue evaluations of models on a dataset's evaluation rows."""
        return await self._submit(write, request, is_anew=False)

    async def create_anew(
        self, write: Write, request: CreateEvaluation
    ) -> wire.EvaluationSubmission:
        """Queue evaluations of models on a dataset's evaluation rows, of rows that are scored too."""
        return await self._submit(write, request, is_anew=True)

    async def _submit(
        self, write: Write, request: CreateEvaluation, *, is_anew: bool
    ) -> wire.EvaluationSubmission:
        await self._writes.replay_known(write)
        caller = write.caller
        models = await self._find_models(caller, request.models)
        at = await self._datasets.dataset_at(caller, request.dataset_id)
        if at.split.evaluation == 0:
            raise errors.TooFewRowsError(
                "The dataset has no evaluation rows; add rows, and some are put aside for "
                "evaluation.",
                path=(*BODY, "dataset_id"),
            )
        definitions = await asyncio.to_thread(load_definitions, self._dataset_files, at.manifest)
        n_decisions = sum(definition.evaluation for definition in definitions)
        if not is_anew:
            wordings = {each.fingerprint for each in definitions if each.evaluation}
            for model in models:
                await self._check_task(caller, model, at, wordings)

        def work(connection: Connection) -> wire.EvaluationSubmission:
            # In the transaction, so that no dataset is deleted under an evaluation that waits.
            require_dataset(connection, caller.account_id, at.dataset_id, is_new_work=True)
            lock_account(connection, caller.account_id)
            scored = {
                model.id: None
                if is_anew
                else rows.find_scored(
                    connection,
                    caller.account_id,
                    at.dataset_id,
                    at.evaluation_sha256,
                    model.evaluation_key,
                )
                for model in models
            }
            missing = [model for model in models if scored[model.id] is None]
            # A rollback may have discarded a model since its name was resolved.
            self._models.require_ready(
                connection, caller.account_id, [model.id for model in missing]
            )
            self.check_room(connection, caller.account_id, len(missing))
            if missing:
                mark_dataset_used(connection, at.dataset_id, self._now())
            for model in models:
                row = scored[model.id]
                if row is None:
                    scored[model.id] = self._queue(connection, write, at, model, n_decisions)
                elif row.named is None and model.named is not None:
                    scored[model.id] = rows.set_named(connection, row.id, model.named)
            return wire.EvaluationSubmission(
                dataset_id=at.dataset_id,
                data=[self.to_wire(row) for row in scored.values() if row is not None],
                queued=len(missing),
                reused=len(models) - len(missing),
            )

        submission = await self.queue(write, work)
        for model in models:
            if model.named is not None:
                self._models.note_use(caller.account_id, model.named)
        return submission

    def read_page(
        self, connection: Connection, account_id: str, query: EvaluationsQuery
    ) -> OrderedPage:
        """Return the rows of a page of a dataset's evaluations."""
        if find_dataset(connection, account_id, query.dataset_id) is None:
            raise unknown_dataset(query.dataset_id)
        return rows.page_of_dataset(connection, account_id, query)

    async def find(
        self, caller: Caller, evaluation_id: str, *, with_dataset: bool = False
    ) -> Row[Any]:
        """Return an evaluation's row."""

        def work(connection: Connection) -> Row[Any]:
            row = self.jobs.require(connection, caller, evaluation_id)
            if with_dataset:
                require_dataset(connection, caller.account_id, row.dataset_id)
            return row

        return await self._state.read(work)

    def stop(self, connection: Connection, row: Row[Any]) -> None:
        """Stop an evaluation that has not ended; its predictions are kept."""
        status = partitions.status_once_stopped(connection, self._state, row)
        self.jobs.move(connection, row.id, status, at=self._now(), only_if=UNFINISHED)

    async def retry(self, write: Write, evaluation_id: str) -> wire.Evaluation:
        """Resume an evaluation that failed or was cancelled; its stored predictions stay."""
        caller = write.caller
        evaluation = await self.find(caller, evaluation_id)
        current_key = await self._models.key_of(caller.account_id, evaluation.model_id)

        def work(connection: Connection) -> wire.Evaluation:
            lock_account(connection, caller.account_id)
            row = self.jobs.require(connection, caller, evaluation_id)
            if row.status not in rows.RETRYABLE:
                raise errors.EvaluationNotRetryableError(
                    f"The evaluation is {row.status}; only one that failed or was cancelled can be "
                    "retried."
                )
            require_dataset(connection, caller.account_id, row.dataset_id, is_new_work=True)
            if current_key != row.model_sha256:
                raise errors.ModelUnavailableError(
                    f"The model {row.model_label} that the evaluation began with is no longer "
                    "here; start a new evaluation."
                )
            # A rollback may have discarded the model since it was looked up.
            self._models.require_ready(connection, caller.account_id, [row.model_id])
            self.check_room(connection, caller.account_id)
            self.jobs.move(
                connection,
                row.id,
                "queued",
                at=self._now(),
                only_if=rows.RETRYABLE,
                generation=row.generation,
                error=None,
                attempt=1,
                runner=None,
            )
            rows.set_generation(connection, row.id, row.generation + 1)
            partitions.free(connection, row.id)
            mark_dataset_used(connection, row.dataset_id, self._now())
            return self.to_wire(self.jobs.require(connection, caller, row.id))

        return await self.queue(write, work)

    async def _find_models(self, caller: Caller, names: Sequence[str]) -> list[EvaluatedModel]:
        violations = Violations()
        models: dict[str, EvaluatedModel] = {}
        for index, name in enumerate(names):
            if not name.strip():
                violations.add((*BODY, "models", index), "is blank; name a model.", "blank")
                continue
            model = await self._models.find(caller, name)
            models.setdefault(model.id, model)
        violations.raise_if_any()
        return list(models.values())

    async def _check_task(
        self, caller: Caller, model: EvaluatedModel, at: DatasetAt, wordings: Set[str]
    ) -> None:
        """Refuse a model that was trained on labels of the other kind, or on other decisions."""
        training, path = model.training, (*BODY, "models")
        if training is None:
            return
        if training.method != at.method:
            raise errors.SupervisionMismatchError(
                f"{model.label} was trained on {SUPERVISION_OF[training.method]}, and the rows of "
                f"{at.dataset_id} have {SUPERVISION_OF[at.method]}; evaluate it on rows that have "
                f"{SUPERVISION_OF[training.method]}.",
                path=path,
            )
        if training.dataset_id == at.dataset_id:
            return
        try:
            trained = await self._datasets.dataset_at(
                caller, training.dataset_id, training.dataset_version, is_new_work=False
            )
        except errors.DatasetDeletedError:
            return  # what it was asked is unknown then
        known = await asyncio.to_thread(load_definitions, self._dataset_files, trained.manifest)
        if wordings.isdisjoint(each.fingerprint for each in known):
            raise errors.TaskMismatchError(
                f"{model.label} was trained on none of the decisions of {at.dataset_id} as they are "
                "worded there, and would answer as its base model; evaluate that, or use the "
                "wording that it was trained on.",
                path=path,
            )

    def _queue(
        self,
        connection: Connection,
        write: Write,
        at: DatasetAt,
        model: EvaluatedModel,
        n_decisions: int,
    ) -> Row[Any]:
        row = self.add(
            connection,
            write,
            dataset_id=at.dataset_id,
            dataset_version=at.version,
            dataset_sha256=at.sha256,
            evaluation_sha256=at.evaluation_sha256,
            method=at.method,
            model_id=model.id,
            model_sha256=model.evaluation_key,
            model_label=model.label,
            model_name=model.family,
            version=model.version,
            training_job_id=model.job_id,
            named=model.named,
            evaluation_rows=at.split.evaluation,
            decisions=n_decisions,
        )
        partitions.split(connection, row.id, at.split.evaluation, self.partition_rows)
        return row

    @staticmethod
    def to_wire(row: Row[Any]) -> wire.Evaluation:
        """Return an evaluation as the wire has it."""
        values = {name: row._mapping[name] for name in wire.Evaluation.__struct_fields__}
        values["named"] = UNSET if row.named is None else row.named
        values["metrics"] = None if row.metrics is None else _decode_metrics(row.metrics)
        values["error"] = None if row.error is None else _decode_error(row.error)
        return wire.Evaluation(**values)
