"""Labels in a review: those of the version, and new ones checked against a row's decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import msgspec

from steelyard.datasets.frames.pages import StoredRow
from steelyard.datasets.labels import SUPERVISION_OF, Supervision, read_labels
from steelyard.datasets.rows import read_task
from steelyard.datasets.version_service import Labels, StoredExample, decode_example
from steelyard.datasets.wire import Side
from steelyard.review.log import EntryBody, merge_labels
from steelyard.review.outcomes import OutcomeNames, Renamings, rename_decisions, rename_labels
from steelyard.review.wire import Edit
from steelyard.wire.methods import Method
from steelyard.wire.violations import Path, Violations, show

#: Lists of decisions whose outcomes are kept at hand.
_CACHED_TASKS = 1024
#: Labels this near are the same.
_SAME = 1e-9


@dataclass(frozen=True, slots=True)
class Originals:
    """Some rows of a version."""

    rows: Mapping[int, tuple[Side, StoredExample]]
    supervision: Supervision
    #: What the draft calls outcomes, under which ``rows`` have theirs.
    renamings: Renamings = field(default_factory=dict)
    #: Outcomes of the decisions that are renamed, as the version has them, by row and decision.
    stored_outcomes: Mapping[int, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)

    @classmethod
    def read(
        cls, stored_rows: Sequence[StoredRow], method: Method, renamings: Renamings | None = None
    ) -> Originals:
        """Read stored rows, their outcomes under the names that a draft has for them."""
        rows = {row.index: (row.side, decode_example(row.json)) for row in stored_rows}
        if not renamings:
            return cls(rows, SUPERVISION_OF[method])
        stored = {
            place: outcomes_of(msgspec.json.encode(row.decisions))
            for place, (_, row) in rows.items()
        }
        renamed = {place: (side, _rename(row, renamings)) for place, (side, row) in rows.items()}
        return cls(renamed, SUPERVISION_OF[method], renamings, stored)

    def labels_now(self, place: int, relabelled: Mapping[str, Mapping[str, float]]) -> Labels:
        """Return a row's labels with later relabelling, as the log has it."""
        row = self.rows.get(place)
        labels = {} if row is None else row[1].labels
        return merge_labels(labels, rename_labels(relabelled, self.renamings))

    def stored_name(self, place: int, decision: str, outcome: str) -> str:
        """Return the version's name of an outcome that a row asks for."""
        names = self.renamings.get(decision)
        outcomes = self.stored_outcomes.get(place, {}).get(decision, ())
        return outcome if names is None else names.stored_name(outcome, outcomes) or outcome

    def outcomes_now(self, outcomes: Mapping[str, str]) -> dict[str, str]:
        """Return outcomes by decision under the draft's names, of the version's."""
        return {
            decision: self.renamings[decision].name_of(outcome)
            if decision in self.renamings
            else outcome
            for decision, outcome in outcomes.items()
        }

    def store(self, place: int, body: EntryBody) -> EntryBody:
        """Return an entry for a row under the version's names, which the log has."""
        names = self.renamings.get(body.decision or "")
        outcomes = self.stored_outcomes.get(place, {}).get(body.decision or "", ())
        return body if names is None else store_body(body, names, outcomes)


def read_relabels(
    edit: Edit, originals: Originals, path: Path, violations: Violations
) -> EntryBody | None:
    """Hold an edit against the row that it is about; ``None`` when something was found."""
    known = originals.rows.get(edit.row)
    if known is None:
        violations.add((*path, "row"), f"is {edit.row}; the version has no such row.", "unknown")
        return None
    if edit.action != "relabel" or edit.decision is None:
        return EntryBody(note=edit.note)
    row = known[1]
    outcomes = outcomes_of(msgspec.json.encode(row.decisions))
    if edit.decision not in outcomes:
        violations.add(
            (*path, "decision"), f"is {show(edit.decision)}, which the row does not ask.", "unknown"
        )
        return None
    name, value = _value_of(edit)
    if (name == "rewards") != (originals.supervision == "rewards"):
        accepted = (
            "rewards, an object from every outcome to its reward"
            if originals.supervision == "rewards"
            else "outcome, or targets"
        )
        violations.add((*path, name), f"is not what the rows have; give {accepted}.", "refused")
        return None
    body = read_label(
        originals.supervision,
        edit.decision,
        value,
        outcomes[edit.decision],
        path=(*path, name),
        violations=violations,
        known=row.labels.get(edit.decision),
        note=edit.note,
    )
    return None if body is None else originals.store(edit.row, body)


def read_label(
    supervision: Supervision,
    decision: str,
    value: Any,
    outcomes: tuple[str, ...],
    *,
    path: Path,
    violations: Violations,
    known: Mapping[str, float] | None = None,
    note: str | None = None,
) -> EntryBody | None:
    """Read a new label of one decision."""
    own_violations = Violations()
    labels = read_labels(supervision, {decision: value}, {decision: outcomes}, own_violations)
    for violation in own_violations.listed:
        message = violation.message.partition(" ")[2]
        # The path of a label starts at the body and its field, and then names the decision.
        violations.add((*path, *violation.path[3:]), message, violation.type)
    if labels is None:
        return None
    given = labels.by_decision()[decision]
    top = next(name for name, is_top in zip(labels.outcomes, labels.tops, strict=True) if is_top)
    is_same = known is not None and _are_same(given, known)
    return EntryBody(decision=decision, labels=None if is_same else given, outcome=top, note=note)


@lru_cache(_CACHED_TASKS)
def outcomes_of(decisions: bytes) -> dict[str, tuple[str, ...]]:
    """Return the outcomes of stored decisions, JSON, by decision id."""
    sent = {"decisions": msgspec.json.decode(decisions)}
    _, outcomes = read_task(sent, Violations())
    return {id_: names for id_, names in outcomes.items() if names is not None}


def store_body(body: EntryBody, names: OutcomeNames, outcomes: tuple[str, ...]) -> EntryBody:
    """Return an entry with labels under the version's names, of which a row has ``outcomes``."""
    labels = None if body.labels is None else names.store_values(body.labels, outcomes)
    return msgspec.structs.replace(body, labels=labels)


def _rename(row: StoredExample, renamings: Renamings) -> StoredExample:
    return msgspec.structs.replace(
        row,
        decisions=rename_decisions(row.decisions, renamings),
        targets=None if row.targets is None else rename_labels(row.targets, renamings),
        rewards=None if row.rewards is None else rename_labels(row.rewards, renamings),
    )


def _value_of(edit: Edit) -> tuple[str, Any]:
    if edit.rewards is not None:
        return "rewards", edit.rewards
    return ("outcome", edit.outcome) if edit.targets is None else ("targets", edit.targets)


def _are_same(first: Mapping[str, float], second: Mapping[str, float]) -> bool:
    names = {*first, *second}
    return all(abs(first.get(name, 0.0) - second.get(name, 0.0)) <= _SAME for name in names)
