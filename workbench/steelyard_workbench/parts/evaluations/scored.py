"""An evaluation that succeeded, and the filter of its scored decisions: set by a chart, a link or a person."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import msgspec
from msgspec import UNSET

from steelyard.client.evaluation_calls import RecordFilters
from steelyard.evaluations.queries_wire import RecordOrder
from steelyard.evaluations.wire import Evaluation, EvaluationDetail, EvaluationRecord
from steelyard.review.duties_wire import PeopleAgreement
from steelyard.wire.decoding import convert
from steelyard.wire.measures import Measure
from steelyard_workbench.parts.datasets.questions import as_text

#: Its name in the address, beside the fields of other pages.
_KEY = "records"


@dataclass(frozen=True, slots=True)
class Scored:
    """An evaluation that succeeded, with its measures."""

    evaluation: Evaluation
    detail: EvaluationDetail
    dataset_name: str
    others: list[Evaluation]
    #: How far people agree on the rows of its version, where that is known.
    people: PeopleAgreement | None = None

    @property
    def ceiling(self) -> Measure | None:
        """The share of answers in which people agree, beside the accuracy where there is one."""
        has_accuracy = isinstance(self.detail.overall.accuracy, Measure)
        return self.people.agreement if self.people is not None and has_accuracy else None


def right_outcomes(record: EvaluationRecord) -> list[str]:
    """Return the outcomes with the largest target or reward; one with targets."""
    if isinstance(record.targets, dict):
        return [max(record.targets, key=record.targets.__getitem__)]
    rewards = record.rewards if isinstance(record.rewards, dict) else {}
    best = max(rewards.values(), default=0.0)
    return [name for name, reward in rewards.items() if reward == best]


def context_text(record: EvaluationRecord) -> str:
    """Return the context of a record; JSON when it is no text."""
    if record.context is UNSET:
        return "(not here any more)"
    return as_text(record.context)


@dataclass(frozen=True, slots=True)
class RecordChoice:
    """Scored decisions that all of this holds for; the worst of all of them by default."""

    #: Id of the decision; empty for every one. So for the others.
    decision: str = ""
    wrong: bool = False
    #: The right outcome, and the answered one.
    target: str = ""
    top: str = ""
    p_from: float | None = None
    p_to: float | None = None
    slice_by: str = ""
    slice: str = ""
    order: RecordOrder = "loss"

    @property
    def is_all(self) -> bool:
        """Whether every scored decision is looked at, in whatever order."""
        return self == RecordChoice(order=self.order)

    def client_filters(self) -> RecordFilters:
        """Return the filter as arguments of the client."""
        return {
            "decision": self.decision or None,
            "wrong": self.wrong,
            "target": self.target or None,
            "top": self.top or None,
            "p_from": self.p_from,
            "p_to": self.p_to,
            "slice_by": self.slice_by or None,
            "slice": self.slice if self.slice_by else None,
            "order": self.order,
        }

    def words(self) -> str:
        """Return it in words, as after ``decisions:``; empty when it is all.

        >>> RecordChoice(decision="team", wrong=True, p_from=0.5, p_to=0.6).words()
        'decision team, answered wrong, top probability above 0.5 and up to 0.6'
        """
        parts = []
        if self.decision:
            parts.append(f"decision {self.decision}")
        if self.wrong:
            parts.append("answered wrong")
        if self.target:
            parts.append(f"right is {self.target}")
        if self.top:
            parts.append(f"answered {self.top}")
        ends = [f"above {self.p_from:g}"] if self.p_from is not None else []
        ends += [f"up to {self.p_to:g}"] if self.p_to is not None else []
        if ends:
            parts.append(f"top probability {' and '.join(ends)}")
        if self.slice_by:
            parts.append(f"{self.slice_by} is {self.slice}")
        return ", ".join(parts)


def filter_from(query: str) -> RecordChoice:
    """Read the filter in an address; unreadable parts are ignored."""
    try:
        state = msgspec.json.decode(query)[_KEY]
        return convert({**state}, RecordChoice)
    except (msgspec.MsgspecError, KeyError, TypeError, IndexError):
        return RecordChoice()


def query_of(choice: RecordChoice) -> str:
    """Return a filter for the address; empty for the default."""
    default = RecordChoice()
    state: dict[str, Any] = {
        field.name: getattr(choice, field.name)
        for field in fields(choice)
        if getattr(choice, field.name) != getattr(default, field.name)
    }
    return msgspec.json.encode({_KEY: state}).decode() if state else ""
