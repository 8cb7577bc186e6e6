"""The contexts that two versions of a named decision are compared on; it blocks."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from steelyard.datasets.rows import hash_context
from steelyard.datasets.service import DatasetService
from steelyard.datasets.version_service import DatasetAt
from steelyard.decision_log.store import (
    AnswerCriteria,
    ObservedDecision,
    count_answers,
    page_answers,
    with_text,
)
from steelyard.decisions.kinds import Decision
from steelyard.named.comparison_wire import RecordedAnswer
from steelyard.storage import State
from steelyard.wire.violations import BODY, Violations

#: Stored decisions that are read at a time.
_PAGE = 200

Labels = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Case:
    """A context, and the labels of decisions about it where they are known."""

    key: str
    context: Any
    labels: Labels
    #: The stored decision that it is of.
    source: str = ""
    #: By decision, the outcome that was recorded elsewhere, and its probability.
    recorded: Mapping[str, tuple[str, float]] | None = None
    #: Values of fields that came with the context, or the metadata of a row.
    fields: Mapping[str, Any] = field(default_factory=dict)


def cases_of_rows(
    datasets: DatasetService, at: DatasetAt, decisions: Collection[str], most: int
) -> list[Case]:
    """Return held-out rows that label one of the decisions, the same ones each time."""

    def read() -> Iterator[Case]:
        for row in datasets.evaluation_rows(at):
            labels = {
                name: label
                for name, label in (row.targets or {}).items()
                if name in decisions and label
            }
            if labels and not row.images:
                yield Case(row.context_sha256, row.context, labels, fields=row.metadata or {})

    return heapq.nsmallest(most, read(), key=lambda case: case.key)


def cases_of_recorded(
    answers: Sequence[RecordedAnswer], decisions: Sequence[Decision]
) -> list[Case]:
    """Return the contexts of answers recorded elsewhere, or refuse those that a version cannot give."""
    outcomes = {decision.id: decision.outcomes.names for decision in decisions}
    contexts: dict[str, Any] = {}
    by_context: dict[str, dict[str, tuple[str, float]]] = {}
    violations = Violations()
    for place, each in enumerate(answers):
        name = each.decision or (decisions[0].id if len(decisions) == 1 else "")
        path = (*BODY, "recorded", place)
        if name not in outcomes:
            violations.add(
                (*path, "decision"), f"is none of {', '.join(outcomes)}; name one.", "unknown"
            )
        elif each.answer not in outcomes[name]:
            known = ", ".join(outcomes[name])
            violations.add((*path, "answer"), f"is none of the outcomes {known}.", "unknown")
        else:
            key = hash_context(each.context).hex()
            contexts[key] = each.context
            probability = 1.0 if each.probability is None else each.probability
            by_context.setdefault(key, {})[name] = (each.answer, probability)
    violations.raise_if_any()
    return [Case(key, contexts[key], {}, recorded=recorded) for key, recorded in by_context.items()]


def cases_of_stored(
    state: State, account_id: str, name: str, *, until: float, most: int, since: float = 0.0
) -> list[Case]:
    """Return the newest stored decisions of every version that have a text, with their outcomes."""
    cases: list[Case] = []
    after = None
    while len(cases) < most:
        query = AnswerCriteria(
            account_id=account_id, named=name, since=since, until=until, after=after
        )
        limit = min(_PAGE, most - len(cases))
        page = state.read_now(
            lambda connection: page_answers(connection, query, limit, with_text())  # noqa: B023
        )
        cases += map(_case, page)
        if len(page) < limit:
            break
        after = page[-1].place
    return cases


def count_without_text(
    state: State, account_id: str, name: str, *, since: float, until: float
) -> int:
    """Return how many stored decisions of every version have no text, which makes no case of them."""
    query = AnswerCriteria(account_id=account_id, named=name, since=since, until=until)
    return state.read_now(lambda connection: count_answers(connection, query, ~with_text()))


def without_trained_labels(
    datasets: DatasetService, at: DatasetAt, cases: Sequence[Case]
) -> list[Case]:
    """Return cases without the labels of contexts that are training rows.

    A family has learned these by heart; its answers to them say nothing of new contexts.
    """
    labelled = {case.key for case in cases if case.labels}
    trained = {
        row.context_sha256
        for row in datasets.side_rows(at, "training")
        if row.context_sha256 in labelled
    }
    return [replace(case, labels={}) if case.key in trained else case for case in cases]


def _case(stored: ObservedDecision) -> Case:
    request = msgspec.json.decode(stored.decision.request)
    context, fields = request["context"], request.get("fields", {})
    labels = {
        name: {outcome: 1.0} if isinstance(outcome, str) else outcome
        for name, outcome in stored.outcomes.items()
    }
    return Case(hash_context(context).hex(), context, labels, stored.decision.id, fields=fields)
