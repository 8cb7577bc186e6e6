"""The decisions of a dataset: every wording, how often it is asked, and whether it can be tuned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import Raw, Struct

from steelyard.datasets.wire import DecisionReadiness, PromptTuningReadiness, ReadinessReason
from steelyard.wire.limits import ROW_LIMITS
from steelyard.wire.violations import show

#: The list of decisions that can be tuned is at most this long as JSON, in bytes.
MAX_READINESS_BYTES = 64 * 1024
#: How many training rows prompt tuning needs, in all and of each outcome, and the most it takes.
MIN_ROWS, MAX_ROWS = ROW_LIMITS["prompt_tuning_min_rows"], ROW_LIMITS["prompt_tuning_rows"]
MIN_ROWS_PER_OUTCOME = 5


class Definition(Struct, frozen=True, kw_only=True):
    """One wording of one decision."""

    id: str
    fingerprint: str
    decision: Raw
    outcomes: tuple[str, ...]
    is_plain: bool
    training: int
    evaluation: int
    expected: dict[str, int]


def fingerprints_by_id(definitions: Iterable[Definition]) -> dict[str, set[bytes]]:
    """Return the wordings of each decision id, as ``RowReader`` takes them."""
    known: dict[str, set[bytes]] = {}
    for definition in definitions:
        known.setdefault(definition.id, set()).add(bytes.fromhex(definition.fingerprint))
    return known


def decisions_by_id(definitions: Iterable[Definition]) -> dict[str, dict[str, object]]:
    """Return the decisions that have one wording, by id, as ``CsvReader`` takes them."""
    worded = _by_id(definitions)
    return {
        id_: msgspec.json.decode(wordings[0].decision)
        for id_, wordings in worded.items()
        if len(wordings) == 1
    }


def refused_in_csv(definitions: Iterable[Definition], *, has_rewards: bool) -> dict[str, str]:
    """Return why CSV cannot have rows of some decisions, by id, as ``CsvReader`` takes it."""
    worded = _by_id(definitions)
    if has_rewards:
        why = "The dataset has rewards, and CSV has targets alone; send JSON Lines."
        return dict.fromkeys(worded, why)
    return {
        id_: f"The dataset words {show(id_)} in more than one way; send such rows as JSON Lines."
        for id_, wordings in worded.items()
        if len(wordings) > 1
    }


def readiness_of(definitions: Iterable[Definition]) -> PromptTuningReadiness:
    """Return which decisions of the training rows prompt tuning can tune, and why it cannot others."""
    decisions = [
        _readiness(wordings)
        for wordings in _by_id(definitions).values()
        if any(wording.training for wording in wordings)
    ]
    decisions.sort(
        key=lambda decision: (
            decision.reason is not None,
            -decision.rows,
            str(decision.decision["id"]),
        )
    )
    listed: list[DecisionReadiness] = []
    n_bytes = 2
    for decision in decisions:
        n_bytes += len(msgspec.json.encode(decision)) + 1
        if n_bytes > MAX_READINESS_BYTES:
            break
        listed.append(decision)
    return PromptTuningReadiness(decisions=listed, unlisted=len(decisions) - len(listed))


def readiness_of_decision(
    definitions: Iterable[Definition], decision_id: str
) -> DecisionReadiness | None:
    """Return whether prompt tuning can tune a decision; ``None`` where no training row asks it."""
    wordings = [wording for wording in definitions if wording.id == decision_id]
    return _readiness(wordings) if any(wording.training for wording in wordings) else None


def _by_id(definitions: Iterable[Definition]) -> dict[str, list[Definition]]:
    worded: dict[str, list[Definition]] = {}
    for definition in definitions:
        worded.setdefault(definition.id, []).append(definition)
    return worded


def _readiness(wordings: Sequence[Definition]) -> DecisionReadiness:
    trained = [wording for wording in wordings if wording.training]
    most = max(trained, key=lambda wording: wording.training)
    labels = dict.fromkeys(most.outcomes, 0)
    for wording in trained:
        for outcome, count in wording.expected.items():
            labels[outcome] = labels.get(outcome, 0) + count
    return DecisionReadiness(
        decision=msgspec.json.decode(most.decision),
        outcomes=list(most.outcomes),
        rows=sum(wording.training for wording in trained),
        labels=labels,
        reason=_reason(trained, wordings, labels),
    )


def _reason(
    trained: Sequence[Definition], wordings: Sequence[Definition], labels: Mapping[str, int]
) -> ReadinessReason | None:
    n_rows = sum(wording.training for wording in trained)
    reasons: tuple[tuple[ReadinessReason, bool], ...] = (
        ("conflicting_decision", len(trained) > 1),
        ("structured_wording", not all(wording.is_plain for wording in trained)),
        ("too_few_rows", n_rows < MIN_ROWS),
        ("too_many_rows", n_rows > MAX_ROWS),
        ("too_few_per_outcome", min(labels.values()) < MIN_ROWS_PER_OUTCOME),
        ("unbalanced_split", not any(wording.evaluation for wording in wordings)),
    )
    return next((reason for reason, holds in reasons if holds), None)
