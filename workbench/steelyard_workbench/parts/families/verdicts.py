"""A gate's verdict on the pages: passed, failed or inconclusive, and the rows that would settle it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from msgspec import UNSET

from steelyard.evaluations.gate_wire import Gate, GateGroup, GateSlice, paired_change
from steelyard.evaluations.measures.gate_rules import (
    BELOW_BASELINE,
    CALIBRATION_WORSE,
    DECISION_WORSE,
    EARLIER_INCONCLUSIVE,
    EARLIER_WORSE,
    INCONCLUSIVE,
    NEEDED,
    NEW_WORSE,
    NO_GAIN,
    OUTCOME_WORSE,
    TOO_FEW,
)
from steelyard.evaluations.measures.gate_slices import LEAST_CONTEXTS
from steelyard.families.fine_tune_wire import Job
from steelyard.named.comparing import FEWER_RIGHT, FEWER_RIGHT_RULES, MORE_WRONG
from steelyard_workbench.kit.theme import Status
from steelyard_workbench.kit.words import everyday

#: Reasons that say that nothing is proven, rather than that the model is worse.
_UNSURE = frozenset({INCONCLUSIVE, EARLIER_INCONCLUSIVE, TOO_FEW})
#: By reason the same without figures, which stand in the sentences under *Details*.
_PLAIN = {
    TOO_FEW: "There are too few rows for the check to tell.",
    NEW_WORSE: "On the new rows its probabilities are worse than before.",
    NO_GAIN: "It answers the new rows no better than before.",
    INCONCLUSIVE: "On the new rows it may be better or worse than before.",
    EARLIER_WORSE: "It is less sure of right answers than before, or surer of wrong ones.",
    EARLIER_INCONCLUSIVE: "It may be better or worse than before: more rows for the check would settle it.",
    DECISION_WORSE: "It answers one of the questions worse than before.",
    OUTCOME_WORSE: "It finds one of the answers less well than before.",
    CALIBRATION_WORSE: "How sure it is says less than before about how often it is right.",
    BELOW_BASELINE: "Counting words alone answers better than it does.",
    MORE_WRONG: "It takes more wrong actions than before.",
    FEWER_RIGHT: "It takes fewer right actions than before.",
    FEWER_RIGHT_RULES: "Its rules take fewer right actions than before.",
}


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


def plain_reasons(reasons: Sequence[str], sentences: Sequence[str]) -> list[str]:
    """Return the reasons of a verdict in everyday words, without figures."""
    pairs = zip_longest(reasons, sentences, fillvalue="")
    return [_PLAIN.get(reason) or everyday(sentence) for reason, sentence in pairs]


def why_of(job: Job) -> str:
    """Return why a fine-tune made no model, in everyday words; empty where nothing is said."""
    if job.gate is not None and job.gate.reasons:
        return " ".join(plain_reasons(job.gate.reasons, job.gate.sentences))
    return everyday(job.reason or ("" if job.error is None else job.error.message))


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
