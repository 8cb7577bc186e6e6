"""A gate's verdict on the pages: passed, failed or inconclusive, and the rows that would settle it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from msgspec import UNSET

from steelyard.evaluations.gate_wire import Gate, GateGroup, GateSlice, paired_change
from steelyard.evaluations.measures.gate_rules import (
    EARLIER_INCONCLUSIVE,
    INCONCLUSIVE,
    NEEDED,
    TOO_FEW,
)
from steelyard.evaluations.measures.gate_slices import LEAST_CONTEXTS
from steelyard_workbench.kit.theme import Status

#: Reasons that say that nothing is proven, rather than that the model is worse.
_UNSURE = frozenset({INCONCLUSIVE, EARLIER_INCONCLUSIVE, TOO_FEW})


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """A verdict as it is shown."""

    status: Status
    #: One of "passed", "failed", "inconclusive".
    word: str
    #: What would settle an inconclusive one, as a sentence; empty for the others.
    settles: str = ""


def verdict_of(gate: Gate, *, needed: int = NEEDED) -> GateVerdict:
    """Return how a gate decided."""
    if gate.passed:
        return GateVerdict("good", "passed")
    if not set(gate.reasons) <= _UNSURE:
        return GateVerdict("bad", "failed")
    return GateVerdict("unsure", "inconclusive", _what_settles(gate, needed))


def is_fall_good(group: GateGroup | GateSlice) -> bool:
    """Whether less is better, as of a loss."""
    return group.loss is not UNSET


def decisions_to_settle(group: GateGroup) -> int | None:
    """Estimate how many more decisions would prove a gain of the size seen.

    The interval narrows with the square root of the decisions. The margin that it must clear where
    decisions were broken narrows with their number.

    It is 0 when the gain is proven, and ``None`` when there is none, which no number would prove.
    """
    change = paired_change(group)
    if change is None:
        return None
    gain, reach = -change.change, change.high - change.change
    if not is_fall_good(group):
        gain, reach = change.change, change.change - change.low
    margin = group.margin if isinstance(group.margin, float) and group.flips.broken else 0.0
    if gain <= 0:
        return None
    if reach + margin < gain:
        return 0
    # How much narrower the interval must become: the positive root of margin r² + reach r = gain.
    narrower = (
        gain / reach
        if margin <= 0
        else (math.sqrt(reach**2 + 4 * margin * gain) - reach) / (2 * margin)
    )
    return math.ceil(group.decisions / narrower**2) - group.decisions


def _what_settles(gate: Gate, needed: int) -> str:
    is_all = gate.judged_on == "all"
    new = gate.groups.get("earlier" if is_all else "new")
    kind = "" if is_all else "new "
    if TOO_FEW in gate.reasons:
        n = 0 if new is None else new.decisions
        return (
            f"It needs {needed} {kind}decisions for the check and had {n}: add "
            f"{max(needed - n, 1)} or more, and continue."
        )
    if new is not None and new.contexts < LEAST_CONTEXTS:
        return (
            f"It needs {LEAST_CONTEXTS} different {kind}texts and had {new.contexts}: add rows on "
            "other texts, and continue."
        )
    if is_all:
        return "More rows for the check would settle it."
    more = None if new is None else decisions_to_settle(new)
    if not more:
        return "More new rows for the check would settle it."
    return (
        f"About {_rounded(more):,} more new decisions for the check would settle it, if the gain "
        "stays as large as it is."
    )


def _rounded(n: int) -> int:
    """Round an estimate up to two digits, which is as much as it knows."""
    unit = 10 ** max(len(str(n)) - 2, 0)
    return math.ceil(n / unit) * unit
