"""The feedback use case: the real outcome, stored with its decision."""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from sqlalchemy import Connection

from steelyard.caller import Caller
from steelyard.decision_log import store
from steelyard.decision_log.wire import SUM_TOLERANCE, FeedbackRequest, FeedbackResponse
from steelyard.errors import NotFoundError
from steelyard.operations.idempotency import SECONDS_A_DAY, KeyedWrites
from steelyard.operations.write import Write
from steelyard.wire.violations import BODY, Path, Violations, refusal, show

#: Names that a message lists.
_SHOWN_NAMES = 10

#: Returns an account's decision that has left the state for a file, by its id.
FindArchived: TypeAlias = Callable[[str, str], Awaitable[store.StoredDecision | None]]


class FeedbackService:
    """Records observed outcomes of stored decisions."""

    def __init__(
        self,
        writes: KeyedWrites,
        *,
        retention_days: float,
        find_archived: FindArchived | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._writes = writes
        self._find_archived = find_archived
        self._retention_s = retention_days * SECONDS_A_DAY
        self._now = now

    async def record(self, write: Write, request: FeedbackRequest) -> FeedbackResponse:
        """Record the outcome; a second report on the same decision replaces the first.

        A decision that has left the state for a file comes back, and stays with its feedback.
        """
        now, account_id = self._now(), write.caller.account_id
        source = _source(write.caller, request)

        def work(
            connection: Connection, archived: store.StoredDecision | None = None
        ) -> FeedbackResponse:
            oldest = now - self._retention_s
            if archived is None:
                stored = store.find_decision(connection, account_id, request.decision_id, oldest)
            else:
                # Another report may have brought it back meanwhile.
                current = store.look_for(connection, account_id, archived.id, oldest)
                stored = current or archived
                if current is None:
                    store.insert_decision(connection, archived)
            observed = _observe(request.outcomes, stored.outcome_names)
            recorded = store.put_feedback(
                connection, stored.id, observed, recorded_at=now, source=source
            )
            return FeedbackResponse(decision_id=stored.id, recorded=recorded)

        try:
            return await self._writes.once(write, work)
        except NotFoundError:
            if self._find_archived is None:
                raise
            # Looked for only now, and not in the write: a file takes longer than a row.
            answer = await self._find_archived(account_id, request.decision_id)
            if answer is None:
                raise
        return await self._writes.once(write, partial(work, archived=answer))


def _source(caller: Caller, request: FeedbackRequest) -> store.FeedbackSource | None:
    """Return where a report comes from; ``None`` where it does not say."""
    if request.by is None:
        if request.who is not None:
            message = "goes with by; say where the labels came from."
            raise refusal((*BODY, "who"), message, "refused")
        return None
    user = None if caller.session is None else caller.session.user_id
    return store.FeedbackSource(request.by, request.who or user or caller.key_id)


def _observe(
    outcomes: Mapping[str, str | Mapping[str, float]], names: Mapping[str, Sequence[str]]
) -> dict[str, str | dict[str, float]]:
    """Check a report against its decisions; return it with probabilities that sum to 1."""
    violations = Violations()
    observed: dict[str, str | dict[str, float]] = {}
    for decision_id, outcome in outcomes.items():
        path = (*BODY, "outcomes", decision_id)
        if decision_id not in names:
            violations.add(
                path,
                f"is about no decision of this answer; it has {_listed(list(names))}.",
                "unknown_decision",
            )
        elif isinstance(outcome, str):
            _check_name(outcome, names[decision_id], path, violations)
            observed[decision_id] = outcome
        else:
            observed[decision_id] = _distribution(outcome, names[decision_id], path, violations)
    violations.raise_if_any()
    return observed


def _distribution(
    outcome: Mapping[str, float], names: Sequence[str], path: Path, violations: Violations
) -> dict[str, float]:
    for name in outcome:
        _check_name(name, names, path, violations)
    total = math.fsum(outcome.values())
    if abs(total - 1) > SUM_TOLERANCE:
        violations.add(
            path,
            f"has probabilities that sum to {total:.6g}; give ones that sum to 1.",
            "not_a_distribution",
        )
        return {}
    # In the outcomes' order: of equal probabilities the first counts, here as in datasets.
    return {name: outcome[name] / total for name in names if name in outcome}


def _check_name(name: str, names: Sequence[str], path: Path, violations: Violations) -> None:
    if name not in names:
        violations.add(
            path,
            f"names {show(name)}, which is no outcome of this decision; it has {_listed(names)}.",
            "unknown_outcome",
        )


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(show(name) for name in names[:_SHOWN_NAMES])
    return shown if len(names) <= _SHOWN_NAMES else f"{shown} and {len(names) - _SHOWN_NAMES} more"
