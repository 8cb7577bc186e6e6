"""The decisions that rows ask: read once, named by a fingerprint of their wording.

A *task* is the list of decisions of one row; most rows of a dataset share a few.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from steelyard.datasets.canonical import canonical_json, compact_json, digest
from steelyard.decisions.kinds import Decision


class AskedDecision(Struct, frozen=True, kw_only=True):
    """One decision of a task."""

    id: str
    fingerprint: bytes
    json: str
    outcomes: tuple[str, ...]
    is_plain: bool


class Task(Struct, frozen=True, kw_only=True):
    """The decisions of a row."""

    json: str
    decisions: tuple[AskedDecision, ...]
    digest: bytes

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of the decisions, in order."""
        return tuple(decision.id for decision in self.decisions)

    @property
    def outcomes(self) -> dict[str, tuple[str, ...]]:
        """Names of the outcomes by decision id."""
        return {decision.id: decision.outcomes for decision in self.decisions}


def fingerprint(decision: Decision) -> bytes:
    """Return the SHA-256 of a decision's wording; its id and its policy are no part of it."""
    wording = [
        decision.kind,
        decision.question,
        decision.outcomes.names,
        decision.outcomes.descriptions,
    ]
    return digest(canonical_json(wording))


def make_task(items: Sequence[Mapping[str, Any]], decisions: Sequence[Decision]) -> Task:
    """Make the task of valid decisions."""
    task_decisions = tuple(
        AskedDecision(
            id=decision.id,
            fingerprint=fingerprint(decision),
            json=compact_json(item),
            outcomes=decision.outcomes.names,
            is_plain=_is_plain(decision),
        )
        for item, decision in zip(items, decisions, strict=True)
    )
    identities = sorted((decision.id, decision.fingerprint.hex()) for decision in task_decisions)
    return Task(
        json=compact_json(list(items)),
        decisions=task_decisions,
        digest=digest(canonical_json(identities)),
    )


def _is_plain(decision: Decision) -> bool:
    described = decision.outcomes.descriptions
    return isinstance(decision.question, str) and all(
        description is None or isinstance(description, str) for description in described
    )
