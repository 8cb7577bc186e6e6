"""Labels in a review: those that the version has, and new ones held against what a row asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from steelyard.datasets.frames.pages import StoredRow
from steelyard.datasets.labels import SUPERVISION_OF, Supervision, read_labels
from steelyard.datasets.rows import read_task
from steelyard.datasets.version_service import Labels, StoredExample, decode_example
from steelyard.datasets.wire import Side
from steelyard.review.log import EntryBody, merge_labels
from steelyard.review.wire import Edit
from steelyard.wire.methods import Method
from steelyard.wire.violations import Path, Violations, show

#: Lists of decisions whose outcomes are kept at hand.
_KEPT_TASKS = 1024
#: Labels this near are the same.
_SAME = 1e-9


@dataclass(frozen=True, slots=True)
class Originals:
    """Some rows of a version."""

    rows: Mapping[int, tuple[Side, StoredExample]]
    supervision: Supervision

    @classmethod
    def read(cls, found: Sequence[StoredRow], method: Method) -> Originals:
        """Read stored rows."""
        rows = {row.index: (row.side, decode_example(row.json)) for row in found}
        return cls(rows, SUPERVISION_OF[method])

    def labels_now(self, place: int, relabelled: Mapping[str, Mapping[str, float]]) -> Labels:
        """Return a row's labels with what was relabelled."""
        found = self.rows.get(place)
        return merge_labels({} if found is None else found[1].labels, relabelled)


def read_relabels(
    edit: Edit, originals: Originals, path: Path, found: Violations
) -> EntryBody | None:
    """Hold an edit against the row that it is about.

    ``None`` when something was found.
    """
    known = originals.rows.get(edit.row)
    if known is None:
        found.add((*path, "row"), f"is {edit.row}; the version has no such row.", "unknown")
        return None
    if edit.action != "relabel" or edit.decision is None:
        return EntryBody(note=edit.note)
    row = known[1]
    outcomes = outcomes_of(msgspec.json.encode(row.decisions))
    if edit.decision not in outcomes:
        found.add(
            (*path, "decision"), f"is {show(edit.decision)}, which the row does not ask.", "unknown"
        )
        return None
    field, value = _value_of(edit)
    if (field == "rewards") != (originals.supervision == "rewards"):
        wanted = (
            "rewards, an object from every outcome to its reward"
            if originals.supervision == "rewards"
            else "outcome, or targets"
        )
        found.add((*path, field), f"is not what the rows have; give {wanted}.", "refused")
        return None
    return read_label(
        originals.supervision,
        edit.decision,
        value,
        outcomes[edit.decision],
        path=(*path, field),
        found=found,
        known=row.labels.get(edit.decision),
        note=edit.note,
    )


def read_label(
    supervision: Supervision,
    decision: str,
    value: Any,
    outcomes: tuple[str, ...],
    *,
    path: Path,
    found: Violations,
    known: Mapping[str, float] | None = None,
    note: str | None = None,
) -> EntryBody | None:
    """Read a new label of one decision."""
    wrong = Violations()
    labels = read_labels(supervision, {decision: value}, {decision: outcomes}, wrong)
    for violation in wrong.listed:
        told = violation.message.partition(" ")[2]
        # The path of a label starts at the body and its field, and then names the decision.
        found.add((*path, *violation.path[3:]), told, violation.type)
    if labels is None:
        return None
    given = labels.by_decision()[decision]
    top = next(name for name, is_top in zip(labels.outcomes, labels.tops, strict=True) if is_top)
    is_same = known is not None and _are_same(given, known)
    return EntryBody(decision=decision, labels=None if is_same else given, outcome=top, note=note)


@lru_cache(_KEPT_TASKS)
def outcomes_of(decisions: bytes) -> dict[str, tuple[str, ...]]:
    """Return the outcomes of stored decisions, JSON, by decision id."""
    sent = {"decisions": msgspec.json.decode(decisions)}
    _, outcomes = read_task(sent, Violations())
    return {id_: names for id_, names in outcomes.items() if names is not None}


def _value_of(edit: Edit) -> tuple[str, Any]:
    if edit.rewards is not None:
        return "rewards", edit.rewards
    return ("outcome", edit.outcome) if edit.targets is None else ("targets", edit.targets)


def _are_same(one: Mapping[str, float], other: Mapping[str, float]) -> bool:
    names = {*one, *other}
    return all(abs(one.get(name, 0.0) - other.get(name, 0.0)) <= _SAME for name in names)
