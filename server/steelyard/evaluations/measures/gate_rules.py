"""The rules of the gate: each says why a candidate does not pass, in a sentence for a person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from steelyard.evaluations.gate_wire import GateChange, GateGroup, GateSlice, JudgedOn, is_unchanged
from steelyard.evaluations.measures.gate_margin import change_of, harm_of
from steelyard.evaluations.measures.gate_slices import LEAST_CONTEXTS, JudgedSlices
from steelyard.proof.rules import VerdictRule

#: New evaluation decisions without which there is too little to judge.
NEEDED = 20
#: The largest sure worsening that counts as none, where it loses no decision. Nats
#: of loss, or of a scaled reward of 0 to 1.
EQUIVALENCE = 0.01
#: How much worse the earlier decisions may become: nats of loss, or of a scaled reward of 0 to 1.
EARLIER_ALLOWANCE = 0.05
#: How much worse the calibration error may become.
ECE_ALLOWANCE = 0.05

TOO_FEW = "too_few_evaluation_decisions"
NEW_WORSE = "new_rows_worse"
NO_GAIN = "no_gain_on_new_rows"
INCONCLUSIVE = "inconclusive_on_new_rows"
EARLIER_WORSE = "earlier_rows_worse"
EARLIER_INCONCLUSIVE = "inconclusive_on_earlier_rows"
DECISION_WORSE = "decision_worse"
OUTCOME_WORSE = "outcome_worse"
CALIBRATION_WORSE = "calibration_worse"
BELOW_BASELINE = "below_text_baseline"

#: Slices that a sentence names.
_MAX_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class GateCase:
    """The gate's evidence: groups of decisions, calibration, slices, and the text baseline."""

    groups: dict[str, GateGroup]
    judged_on: JudgedOn
    needed: int
    ece: tuple[float, float] | None
    slices: JudgedSlices
    baseline: GateGroup | None

    @property
    def new(self) -> GateGroup:
        """The new decisions, of which there are enough where this is read."""
        return self.groups["new"]


def _too_few_new(case: GateCase) -> str | None:
    n = case.new.decisions if "new" in case.groups else 0
    if n >= case.needed:
        return None
    return f"There are {n} new evaluation decisions and {case.needed} are needed; add rows."


def _new_worse(case: GateCase) -> str | None:
    if harm_of(case.new).low <= 0:
        return None
    return f"The new rows became worse: {_describe(case.new)}."


def _no_gain(case: GateCase) -> str | None:
    if harm_of(case.new).change < 0:
        return None
    if is_unchanged(case.new):
        return "The new rows are answered as before: training changed nothing."
    return f"The new rows became no better: {_describe(case.new)}."


def _gain_is_unsure(case: GateCase) -> str | None:
    rise = harm_of(case.new)
    unsure = _why_unsure(case.new, rise) if rise.change < 0 else None
    return unsure and f"Whether the new rows became better cannot be told: {unsure}"


def _why_unsure(new: GateGroup, rise: GateChange) -> str | None:
    """Return why a gain may be chance, or give None where it is sure."""
    if new.contexts < LEAST_CONTEXTS:
        return (
            f"they are on {new.contexts} contexts and {LEAST_CONTEXTS} are needed; add rows on "
            "other contexts."
        )
    if rise.high >= 0:
        return f"{_describe(new)}, an interval that holds 0; add rows."
    margin = new.margin if isinstance(new.margin, float) else 0.0
    if rise.high + margin >= 0:
        return (
            f"{_describe(new)}, which clears 0 by less than the margin of {margin:.4f} that "
            f"{new.flips.broken} broken decisions ask for; add rows."
        )
    return None


def _too_few(case: GateCase) -> str | None:
    n = case.groups["earlier"].decisions if "earlier" in case.groups else 0
    if n >= case.needed:
        return None
    return f"There are {n} evaluation decisions in all and {case.needed} are needed; add rows."


def _harm_is_unsure(case: GateCase) -> str | None:
    group = case.groups["earlier"]
    few = group.contexts < LEAST_CONTEXTS
    margin = group.margin if isinstance(group.margin, float) else 0.0
    if not few and harm_of(group).high + margin <= EARLIER_ALLOWANCE:
        return None
    more = (
        f"they are on {group.contexts} contexts and {LEAST_CONTEXTS} are needed; add rows on other "
        "contexts."
        if few
        else f"{_describe(group)}, and with the margin of {margin:.4f} for chance it may be worse "
        f"by more than {EARLIER_ALLOWANCE}; add evaluation rows."
    )
    return f"Whether the rows became worse cannot be told: {more}"


def _earlier_worse(case: GateCase) -> str | None:
    earlier = case.groups.get("earlier")
    if earlier is None:
        return None
    rise = harm_of(earlier)
    lost = earlier.flips.broken > earlier.flips.fixed
    if rise.low <= (0.0 if lost else EQUIVALENCE) and rise.change <= EARLIER_ALLOWANCE:
        return None
    rows = "The rows" if case.judged_on == "all" else "The earlier rows"
    return f"{rows} became worse: {_describe(earlier)}."


def _calibration_worse(case: GateCase) -> str | None:
    if case.ece is None or case.ece[1] <= case.ece[0] + ECE_ALLOWANCE:
        return None
    return (
        f"The calibration error rose from {case.ece[0]:.3f} to {case.ece[1]:.3f}, by more than "
        f"{ECE_ALLOWANCE}."
    )


def _decision_worse(case: GateCase) -> str | None:
    return _describe_worse("decision", case.slices.by_decision)


def _outcome_worse(case: GateCase) -> str | None:
    return _describe_worse("outcome", case.slices.by_outcome)


def _describe_worse(kind: str, judged: Sequence[GateSlice]) -> str | None:
    worse = [judged_slice for judged_slice in judged if judged_slice.worse]
    if not worse:
        return None
    named = "; ".join(_describe_slice(judged_slice) for judged_slice in worse[:_MAX_NAMED])
    more = len(worse) - _MAX_NAMED
    others = f"; and {more} more" if more > 0 else ""
    kinds = kind if len(worse) == 1 else f"{kind}s"
    return f"{len(worse)} {kinds} became worse: {named}{others}."


def _describe_slice(gate_slice: GateSlice) -> str:
    where = f"decision {gate_slice.decision_id!r}"
    if isinstance(gate_slice.outcome, str):
        where = f"{where} where {gate_slice.outcome!r} is right"
    return f"{where}, {_describe(gate_slice)}"


def _below_baseline(case: GateCase) -> str | None:
    text = case.baseline
    if text is None or harm_of(text).low <= 0 or harm_of(text).change <= EQUIVALENCE:
        return None
    if _is_better_reward(case):
        return None
    return f"The candidate is worse than the text baseline, from which {_describe(text)}."


def _is_better_reward(case: GateCase) -> bool:
    """Return whether a candidate surely earns more than its predecessor and breaks no decision.

    Such a candidate may serve even when the text baseline earns as much.
    """
    return (
        "new" in case.groups
        and not any(rule(case) for rule in (_new_worse, _no_gain, _gain_is_unsure))
        and all(isinstance(group.scaled_reward, GateChange) for group in case.groups.values())
        and not any(group.flips.broken for group in case.groups.values())
    )


def _describe(group: GateGroup | GateSlice) -> str:
    compared = change_of(group)
    name = "loss" if isinstance(group.loss, GateChange) else "scaled reward"
    return (
        f"{name} went from {compared.before:.4f} to {compared.after:.4f} on {group.decisions} "
        f"decisions, a change of {compared.change:+.4f} "
        f"(95 % interval {compared.low:+.4f} to {compared.high:+.4f})"
    )


_NEW = (
    VerdictRule(TOO_FEW, _too_few_new, ends=True),
    VerdictRule(NEW_WORSE, _new_worse),
    VerdictRule(NO_GAIN, _no_gain),
    VerdictRule(INCONCLUSIVE, _gain_is_unsure),
    VerdictRule(EARLIER_WORSE, _earlier_worse),
)
_ALL = (
    VerdictRule(TOO_FEW, _too_few, ends=True),
    VerdictRule(EARLIER_WORSE, _earlier_worse),
    VerdictRule(EARLIER_INCONCLUSIVE, _harm_is_unsure),
)
_ANY = (
    VerdictRule(DECISION_WORSE, _decision_worse),
    VerdictRule(OUTCOME_WORSE, _outcome_worse),
    VerdictRule(CALIBRATION_WORSE, _calibration_worse),
    VerdictRule(BELOW_BASELINE, _below_baseline),
)
#: By the rule that decides: a gain on the new decisions, or no fall of all together.
RULES: dict[JudgedOn, tuple[VerdictRule[GateCase], ...]] = {
    "new": (*_NEW, *_ANY),
    "all": (*_ALL, *_ANY),
}
#: Every reason, in the order of the rules.
REASONS = tuple(dict.fromkeys(rule.code for rules in (_NEW, _ALL, _ANY) for rule in rules))
