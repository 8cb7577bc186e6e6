"""Jobs of prompt tuning: started, followed, stopped, and their doubted labels dismissed.

A job is queued by a row of the state, with its price held; the job runtime finds it there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import msgspec
from sqlalchemy import Connection, Row

from steelyard import errors
from steelyard.caller import Caller
from steelyard.datasets.access import require_dataset
from steelyard.datasets.definitions import (
    MAX_ROWS,
    MIN_ROWS,
    MIN_ROWS_PER_OUTCOME,
    Definition,
    readiness_of_decision,
)
from steelyard.datasets.doubts import Doubt
from steelyard.datasets.service import DatasetService
from steelyard.datasets.store import mark_dataset_used
from steelyard.datasets.version_service import DatasetAt
from steelyard.datasets.wire import DecisionReadiness, ReadinessReason
from steelyard.decisions.tokens import count_input_tokens
from steelyard.evaluations.models import EvaluatedModel, EvaluatedModels
from steelyard.house import House
from steelyard.job_frame.queue import JobQueue
from steelyard.jobs.failures import failure_of
from steelyard.ledger.money import to_usd
from steelyard.operations.idempotency import SECONDS_A_DAY
from steelyard.operations.write import Write
from steelyard.prompt_tuning import store as rows
from steelyard.prompt_tuning import wire
from steelyard.prompt_tuning.reading import read_decision, rows_asking
from steelyard.prompt_tuning.search_state import decode_search, progress_of
from steelyard.serving.registry import HostedModel
from steelyard.wire.decoding import decoder_of
from steelyard.wire.filling import filled
from steelyard.wire.violations import BODY, Violations, show

#: A job costs as much as asking the model so many times about each of its rows.
CALLS_PER_ROW: dict[wire.Effort, int] = {"standard": 16, "thorough": 48}

_REFUSALS: dict[ReadinessReason, tuple[type[errors.SteelyardError], str]] = {
    "conflicting_decision": (
        errors.ConflictingDecisionError,
        "Training rows word {} in more than one way; word it alike in all of them.",
    ),
    "structured_wording": (
        errors.StructuredWordingError,
        "The wording of {} is not plain text; give its question and its descriptions as text.",
    ),
    "too_few_rows": (
        errors.TooFewRowsError,
        f"{{}} has {{n}} training rows, and prompt tuning needs {MIN_ROWS}; add rows.",
    ),
    "too_many_rows": (
        errors.TooManyTuningRowsError,
        f"{{}} has {{n}} training rows, and prompt tuning takes {MAX_ROWS}; make a dataset of fewer.",
    ),
    "too_few_per_outcome": (
        errors.TooFewPerOutcomeError,
        f"Each outcome of {{}} needs {MIN_ROWS_PER_OUTCOME} training rows; add rows for {{fewest}}.",
    ),
    "unbalanced_split": (
        errors.UnbalancedSplitError,
        "No evaluation row asks {}; add some, for a rewrite is proved on them.",
    ),
}

_decode_result = decoder_of(wire.TuningResult).decode


class PromptTunings(JobQueue[wire.PromptTuningJob, wire.PromptTuningPage]):
    """The prompt-tuning jobs of every account."""

    jobs = rows.JOBS
    page_type = wire.PromptTuningPage

    def __init__(
        self,
        house: House,
        datasets: DatasetService,
        models: EvaluatedModels,
        default: HostedModel,
    ) -> None:
        super().__init__(house)
        self._datasets = datasets
        self._models, self._counter = models, default.decide.tokenizer
        self._default_model = default.name

    async def create(self, write: Write, request: wire.CreatePromptTuning) -> wire.PromptTuningJob:
        """Queue the tuning of a decision's wording and reserve its price, in one transaction."""
        await self._writes.replay_known(write)
        caller = write.caller
        at = await self._datasets.dataset_at(caller, request.dataset_id)
        model = await self._models.find(caller, request.model or self._default_model)
        if at.method != "sft":
            raise errors.SupervisionMismatchError(
                "The dataset has rewards, and prompt tuning needs targets; take a dataset with "
                "targets.",
                path=(*BODY, "dataset_id"),
            )
        definitions = await asyncio.to_thread(self._datasets.definitions, at)
        readiness = _choose(definitions, request.decision)
        price_nano = await self._price(caller, at, readiness.decision, model, request.effort)

        def work(connection: Connection) -> wire.PromptTuningJob:
            require_dataset(connection, caller.account_id, at.dataset_id, is_new_work=True)
            self._models.require_ready(connection, caller.account_id, [model.id])
            self.check_order(
                connection,
                caller.account_id,
                price_nano,
                request.max_price_usd,
                "The prompt tuning",
            )
            row = self.add(
                connection,
                write,
                dataset_id=at.dataset_id,
                dataset_version=at.version,
                model=model.label,
                model_id=model.id,
                model_sha256=model.evaluation_key,
                decision=readiness.decision["id"],
                asked=msgspec.json.encode(readiness.decision),
                effort=request.effort,
                price_nano=price_nano,
            )
            mark_dataset_used(connection, at.dataset_id, row.created_at)
            return self.to_wire(row)

        return await self.queue(write, work, window_s=SECONDS_A_DAY)

    @staticmethod
    def to_wire(row: Row[Any]) -> wire.PromptTuningJob:
        """Return a job as the wire has it."""
        search = None if row.search is None else decode_search(row.search)
        error = failure_of(row)
        is_run = row.status in ("running", "cancelling")
        return filled(
            wire.PromptTuningJob,
            row,
            object="prompt_tuning.job",
            price_usd=to_usd(row.price_nano),
            progress=progress_of(search, row.effort) if is_run else None,
            result=None if row.result is None else _decode_result(row.result),
            error=None if error is None else error.message,
            error_code=None if error is None else error.code,
            label_issues_dismissed_at=row.dismissed_at,
        )

    async def change(
        self, write: Write, job_id: str, request: wire.ChangePromptTuning
    ) -> wire.PromptTuningJob:
        """Dismiss a job's doubts of labels, or take that back."""

        def work(connection: Connection) -> wire.PromptTuningJob:
            row = self.jobs.require(connection, write.caller, job_id)
            if row.status != "succeeded":
                raise errors.TuningNotSucceededError(
                    f"The prompt tuning is {row.status}; only one that succeeded has label issues."
                )
            if (row.dismissed_at is not None) != request.label_issues_dismissed:
                at = self._now()
                dismissed_at = at if request.label_issues_dismissed else None
                only_if = ("succeeded",)
                self.jobs.move(
                    connection,
                    row.id,
                    "succeeded",
                    at=row.updated_at,
                    only_if=only_if,
                    dismissed_at=dismissed_at,
                )
            return self.to_wire(self.jobs.require(connection, write.caller, job_id))

        return await self._writes.once(write, work)

    @staticmethod
    def doubts_on(connection: Connection, dataset_id: str) -> list[Doubt]:
        """Return the doubted labels of a dataset that were not dismissed, those of the newest job first."""
        return [
            Doubt(
                int(issue.row.removeprefix("r")), row.decision, issue.reason, row.id, row.updated_at
            )
            for row in rows.succeeded_on(connection, dataset_id)
            for issue in _decode_result(row.result).label_issues
        ]

    async def _price(
        self,
        caller: Caller,
        at: DatasetAt,
        sent: Any,
        model: EvaluatedModel,
        effort: wire.Effort,
    ) -> int:
        prices = await self._models.prices_of(caller.account_id, [model.id])
        if not (token_nano := prices.get(model.id, 0)):
            return 0
        tokens = await asyncio.to_thread(self._count_tokens, at, sent, model.thought_tokens)
        return tokens * CALLS_PER_ROW[effort] * token_nano

    def _count_tokens(self, at: DatasetAt, sent: Any, most_written: int) -> int:
        """Return the most tokens of asking the decision of every row once; it blocks."""
        decision = read_decision(sent)
        rows, _ = rows_asking(self._datasets.side_rows(at, "training"), decision)
        each = count_input_tokens(self._counter, "", [decision]) + most_written
        return len(rows) * each + sum(map(self._counter.count, rows.contexts))


def _choose(definitions: Iterable[Definition], decision: str | None) -> DecisionReadiness:
    """Return the decision to tune, or refuse it."""
    all_definitions = list(definitions)
    names = sorted(
        {definition.id for definition in all_definitions if definition.training}
        or {definition.id for definition in all_definitions}
    )
    if decision is None:
        if len(names) != 1:
            violations = Violations()
            listed = ", ".join(map(show, names[:8])) or "none"
            violations.add((*BODY, "decision"), f"is missing; the rows ask {listed}.", "missing")
            violations.raise_if_any()
        decision = names[0]
    ready = readiness_of_decision(all_definitions, decision)
    if ready is None and any(definition.id == decision for definition in all_definitions):
        raise errors.UnbalancedSplitError(
            f"No training row asks {show(decision)}; add some, for a rewrite is made of them."
        )
    if ready is None:
        raise errors.NotFoundError(
            f"No row of the dataset asks {show(decision)}; they ask "
            f"{', '.join(map(show, names[:8]))}."
        )
    if ready.reason is not None:
        refusal, message = _REFUSALS[ready.reason]
        fewest = ", ".join(
            show(name) for name, count in ready.labels.items() if count < MIN_ROWS_PER_OUTCOME
        )
        raise refusal(message.format(show(decision), n=ready.rows, fewest=fewest))
    return ready
