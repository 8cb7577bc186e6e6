"""The words of a decision: the parts that prompt tuning may change, and the fixed parts.

The kind of a decision, its outcomes' names and their order stay, so that targets, policies and
callers' code go on as they are. Its question and the description of each outcome may change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from steelyard.decisions.kinds import Decision, Outcomes
from steelyard.prompt_tuning.wire import PartChange


class Wording(msgspec.Struct, frozen=True, kw_only=True):
    """A question, and a description of each outcome; ``None`` where there is none."""

    question: str
    descriptions: tuple[str | None, ...]

    def describing(self, outcome: int, description: str | None) -> Wording:
        """Return the wording with another description of one outcome."""
        changed = list(self.descriptions)
        changed[outcome] = description
        return msgspec.structs.replace(self, descriptions=tuple(changed))


def wording_of(decision: Decision) -> Wording:
    """Return the words of a decision whose wording is plain text."""
    return Wording(
        question=str(decision.question),
        descriptions=tuple(
            None if description is None or not str(description).strip() else str(description)
            for description in decision.outcomes.descriptions
        ),
    )


def reworded(decision: Decision, wording: Wording) -> Decision:
    """Return a decision in other words."""
    return Decision(
        id=decision.id,
        kind=decision.kind,
        question=wording.question,
        outcomes=Outcomes(decision.outcomes.names, wording.descriptions),
    )


def as_sent(sent: Mapping[str, Any], names: Sequence[str], wording: Wording) -> dict[str, Any]:
    """Return a decision as a request sends it, in other words.

    >>> sent = {"id": "kind", "kind": "single", "question": "?", "outcomes": ["a", "b"]}
    >>> wording = Wording(question="Which?", descriptions=("first", None))
    >>> as_sent(sent, ("a", "b"), wording)["outcomes"]
    {'a': 'first', 'b': None}
    """
    changed = {**sent, "question": wording.question}
    described = any(description is not None for description in wording.descriptions)
    if sent.get("kind") == "ordinal":
        changed["rubric"] = [description or "" for description in wording.descriptions]
    elif described:
        changed["outcomes"] = dict(zip(names, wording.descriptions, strict=True))
    elif isinstance(sent.get("outcomes"), Mapping):
        changed["outcomes"] = list(names)
    return changed


def changes_between(decision: Decision, before: Wording, after: Wording) -> list[PartChange]:
    """Return every part that differs, the question first."""
    changes = []
    if before.question != after.question:
        changes.append(PartChange(part="question", before=before.question, after=after.question))
    pairs = zip(decision.outcomes.names, before.descriptions, after.descriptions, strict=True)
    for place, (name, old, new) in enumerate(pairs):
        if old != new:
            part = f"level:{place}" if decision.kind == "ordinal" else f"outcome:{name}"
            changes.append(PartChange(part=part, before=old or "", after=new or ""))
    return changes
