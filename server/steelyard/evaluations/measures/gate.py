"""The gate: whether a candidate holds up on held-out decisions against the model it would replace.

The closer look at each decision and outcome is in ``steelyard.evaluations.measures.gate_slices``.
Nothing missing, unpaired or not finite is ever judged: the gate raises, and the job has failed.

To pass, a candidate must be better on the new rows beyond noise; where that is undecided, it does
not pass. A gain is sure where the whole 95 % interval lies below 0 and no decision was broken. Where
some were, the interval alone will not do: the loss of a good model is carried by few mistakes. It
must then clear 0 by a margin, the sum of two allowances:

- for one mistake more than was seen, as in Laplace's rule of succession: one more context whose
  decisions came out otherwise than they did, as the two models' mean probabilities would have it;
- for few contexts, over which percentiles of a bootstrap lie too near: twice what Student's t
  distribution and the unbiased variance would add (Hesterberg, "What Teachers Should Know about the
  Bootstrap", The American Statistician, 2015, section 4.2). Twice, because they make up for few
  values of a normal distribution, and changes are skewed: many small gains, a few large falls.

A version of a dataset that corrects labels asks for no gain, as the old labels were wrong: all
decisions are then judged at once by their present labels, and the candidate must not be worse by
more than the allowance, beyond noise. The end of the interval that lies nearer to harm, with the
same margin for chance, must stay within it.

``tests/benchmarks/gate.py`` measures how often each rule errs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from msgspec import UNSET
from msgspec.structs import astuple, replace
from numpy.typing import NDArray

from steelyard.calibration.intervals import percentile_interval
from steelyard.evaluations.gate_wire import (
    BeforeAfter,
    Gate,
    GateChange,
    GateDeltas,
    GateGroup,
    GateSlice,
    JudgedOn,
    is_unchanged,
)
from steelyard.evaluations.measures.comparison import (
    Pairing,
    count_flips,
    pair_records,
    paired_ece,
)
from steelyard.evaluations.measures.gate_margin import change_of, harm_of, margin_of
from steelyard.evaluations.measures.gate_slices import (
    LEAST_CONTEXTS,
    MAX_LISTED,
    JudgedSlices,
    compared_measure,
    judge_slices,
)
from steelyard.evaluations.measures.records import Records, UnmeasurableError
from steelyard.evaluations.measures.sampling import LEVEL, Bootstrap, sum_by_context
from steelyard.evaluations.measures.several import several_labels
from steelyard.evaluations.wire import Change

Against = Literal["parent", "base"]

#: How much more margin no harm takes than a gain: of few easy decisions, 5.4 % passed else that were
#: worse by the allowance.
_NO_HARM_TIMES = 1.25
#: New evaluation decisions without which there is too little to judge.
NEEDED = 20
#: A sure worsening that nobody would notice: smaller than this, with no decision lost by it. Nats
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

#: Every reason, in the order of the rules.
REASONS = (
    TOO_FEW,
    NEW_WORSE,
    NO_GAIN,
    INCONCLUSIVE,
    EARLIER_WORSE,
    EARLIER_INCONCLUSIVE,
    DECISION_WORSE,
    OUTCOME_WORSE,
    CALIBRATION_WORSE,
    BELOW_BASELINE,
)

#: Slices that a sentence names.
_MAX_NAMED = 3


@dataclass(frozen=True, slots=True)
class Verdict:
    """The gate's verdict in wire form, and a sentence for each reason, for a person."""

    gate: Gate
    sentences: tuple[str, ...]


def judge(
    before: Records,
    after: Records,
    *,
    against: Against,
    is_new: Sequence[bool] | NDArray[np.bool_],
    judged_on: JudgedOn = "new",
    baseline: Records | None = None,
    needed: int = NEEDED,
    bootstrap: Bootstrap | None = None,
) -> Verdict:
    """Judge a candidate on held-out decisions.

    Parameters
    ----------
    before, after : Records
        The held-out decisions as the predecessor and as the candidate scored them: the same
        decisions, none missing on either side.
    is_new : sequence of bool
        For each decision of ``after``, whether it or its label came since the family last trained;
        earlier models were judged on the others. All of a first model's are new.
    judged_on : {"new", "all"}, default "new"
        What decides: a gain on the new decisions, or that all together did not become worse. With
        "all" they make one group, ``earlier``, and no gain is asked for.
    baseline : Records, optional
        The same held-out decisions as the text baseline scored them, trained on the rows that the
        candidate was; without it the candidate is not compared with one.
    needed : int, default 20
        Decisions, new ones or of all, without which the gate fails for want of evidence; at least 1.

    Returns
    -------
    Verdict
        With rewards, ``scaled_reward`` is compared instead of ``loss``, decisions whose outcomes
        all earn the same are left out, and calibration is not judged.

    Raises
    ------
    UnmeasurableError
        When a decision is unpaired, with the predecessor or with the baseline, or a figure is not
        finite.
    ValueError
        When ``needed`` is less than 1, or ``is_new`` is not one flag for each decision.
    """
    if needed < 1:
        msg = f"needed must be at least 1; it is {needed}."
        raise ValueError(msg)
    if len(is_new) != len(after):
        msg = f"is_new has {len(is_new)} flags for {len(after)} decisions."
        raise ValueError(msg)
    pairing = _pair_all(before, after, "predecessor")
    bootstrap = bootstrap or Bootstrap()
    is_for_gain = np.asarray(is_new, dtype=bool)[pairing.after_rows] & (judged_on == "new")
    groups: dict[str, GateGroup] = {}
    for name, chosen in (("new", is_for_gain), ("earlier", ~is_for_gain)):
        part = pairing.take(np.flatnonzero(chosen))
        group = _gate_group(part, bootstrap)
        if group is not None:
            groups[name] = group
        if group is not None and (name == "new" or judged_on == "all"):
            times = _NO_HARM_TIMES if judged_on == "all" else 1.0
            margin = times * margin_of(before, after, part, group)
            groups[name] = replace(group, margin=margin)
    ece_pair = paired_ece(pairing)
    old_ece, new_ece = ece_pair or (None, None)
    text = None
    if baseline is not None:
        text = _gate_group(_pair_all(baseline, after, "text baseline"), bootstrap)
    _check_finite([*groups.values(), *([] if text is None else [text])], ece_pair or ())
    slices = judge_slices(pairing, after)
    decided = _gain_reasons if judged_on == "new" else _no_harm_reasons
    sentences = decided(groups, needed)
    if TOO_FEW not in sentences:
        earlier = "The rows" if judged_on == "all" else "The earlier rows"
        sentences |= _earlier_reason(groups.get("earlier"), earlier)
        sentences |= _calibration_reason(ece_pair)
    if TOO_FEW not in sentences:
        sentences |= _slice_reasons(slices)
        if not _is_better_reward(groups, sentences):
            sentences |= _baseline_reason(text)
    sentences = {reason: sentences[reason] for reason in REASONS if reason in sentences}
    shown = (slices.by_decision[:MAX_LISTED], slices.by_outcome[:MAX_LISTED])
    gate = Gate(
        passed=not sentences,
        against=against,
        reasons=list(sentences),
        groups=groups,
        deltas=GateDeltas(
            **{name: change_of(group).change for name, group in groups.items()},
            ece=None if ece_pair is None else ece_pair[1] - ece_pair[0],
        ),
        ece=BeforeAfter(before=old_ece, after=new_ece),
        judged_on=judged_on,
        by_decision=list(shown[0]),
        by_outcome=list(shown[1]),
        unlisted=len(slices.by_decision) + len(slices.by_outcome) - sum(map(len, shown)),
        baseline=UNSET if text is None else text,
        several=several_labels(pairing, after, bootstrap) or UNSET,
    )
    return Verdict(gate, tuple(sentences.values()))


def _pair_all(before: Records, after: Records, whose: str) -> Pairing:
    pairing = pair_records(before, after)
    if pairing.n_unpaired_before or pairing.n_unpaired_after:
        raise UnmeasurableError(
            f"{pairing.n_unpaired_before} decisions of the {whose} and "
            f"{pairing.n_unpaired_after} of the candidate have no counterpart; score both on the "
            "same held-out rows."
        )
    return pairing


def _percentile_change(pairing: Pairing, name: str, bootstrap: Bootstrap) -> Change | None:
    """Return a measure's change with percentiles over contexts; None where nothing is counted.

    These are the interval that the rules and their allowances were measured with.
    """
    counted = pairing.after.counted[name]
    n = int(counted.sum())
    if n == 0:
        return None
    old, new = pairing.before.values[name][counted], pairing.after.values[name][counted]
    sums = sum_by_context(np.stack([new - old, np.ones(n)], axis=1), pairing.context_codes[counted])
    low = high = None
    if len(sums) > 1:
        drawn = bootstrap.totals(sums)
        interval = percentile_interval(drawn[:, 0] / drawn[:, 1], level=LEVEL)
        low, high = interval.low, interval.high
    before, after = float(old.mean()), float(new.mean())
    return Change(before=before, after=after, change=after - before, low=low, high=high, n=n)


def _gate_group(pairing: Pairing, bootstrap: Bootstrap) -> GateGroup | None:
    """Compare one group; None when it has no decision to compare."""
    if not len(pairing):
        return None
    name = compared_measure(pairing.after)
    compared = _percentile_change(pairing, name, bootstrap)
    if compared is None:
        return None
    counted = np.flatnonzero(pairing.after.counted[name])
    compared_pairs = pairing.take(counted)
    right = compared_pairs.after.right
    figures: dict[str, Any] = {
        name: GateChange(
            before=compared.before,
            after=compared.after,
            change=compared.change,
            # Over one context every resample is the sample itself.
            low=compared.change if compared.low is None else compared.low,
            high=compared.change if compared.high is None else compared.high,
        ),
        right: BeforeAfter(
            before=float(compared_pairs.before.values[right].mean()),
            after=float(compared_pairs.after.values[right].mean()),
        ),
    }
    return GateGroup(
        decisions=len(compared_pairs),
        contexts=len(np.unique(compared_pairs.context_codes)),
        flips=count_flips(compared_pairs.before, compared_pairs.after),
        **figures,
    )


def _check_finite(groups: list[GateGroup], ece: tuple[float, ...]) -> None:
    figures = [figure for group in groups for figure in astuple(change_of(group))]
    if not all(map(math.isfinite, (*figures, *ece))):
        raise UnmeasurableError("A figure of the gate is not finite; score the rows again.")


def _gain_reasons(groups: dict[str, GateGroup], needed: int) -> dict[str, str]:
    """Return why the new decisions are not surely better, with sentences."""
    new = groups.get("new")
    n_new = 0 if new is None else new.decisions
    if new is None or n_new < needed:
        # Too little to judge: the other rules would judge by chance.
        sentence = f"There are {n_new} new evaluation decisions and {needed} are needed; add rows."
        return {TOO_FEW: sentence}
    sentences: dict[str, str] = {}
    rise = harm_of(new)
    if rise.low > 0:
        sentences[NEW_WORSE] = f"The new rows became worse: {_describe(new)}."
    if rise.change >= 0:
        sentences[NO_GAIN] = (
            "The new rows are answered as before: training changed nothing."
            if is_unchanged(new)
            else f"The new rows became no better: {_describe(new)}."
        )
    elif unsure := _why_unsure(new, rise):
        sentences[INCONCLUSIVE] = f"Whether the new rows became better cannot be told: {unsure}"
    return sentences


def _no_harm_reasons(groups: dict[str, GateGroup], needed: int) -> dict[str, str]:
    """Return why the decisions of all rows may have become worse, with sentences."""
    group = groups.get("earlier")
    n = 0 if group is None else group.decisions
    if group is None or n < needed:
        sentence = f"There are {n} evaluation decisions in all and {needed} are needed; add rows."
        return {TOO_FEW: sentence}
    few = group.contexts < LEAST_CONTEXTS
    margin = group.margin if isinstance(group.margin, float) else 0.0
    if not few and harm_of(group).high + margin <= EARLIER_ALLOWANCE:
        return {}
    more = (
        f"they are on {group.contexts} contexts and {LEAST_CONTEXTS} are needed; add rows on other "
        "contexts."
        if few
        else f"{_describe(group)}, and with the margin of {margin:.4f} for chance it may be worse "
        f"by more than {EARLIER_ALLOWANCE}; add evaluation rows."
    )
    return {EARLIER_INCONCLUSIVE: f"Whether the rows became worse cannot be told: {more}"}


def _earlier_reason(earlier: GateGroup | None, rows: str) -> dict[str, str]:
    if earlier is None:
        return {}
    rise = harm_of(earlier)
    lost = earlier.flips.broken > earlier.flips.fixed
    if rise.low > (0.0 if lost else EQUIVALENCE) or rise.change > EARLIER_ALLOWANCE:
        return {EARLIER_WORSE: f"{rows} became worse: {_describe(earlier)}."}
    return {}


def _calibration_reason(ece: tuple[float, float] | None) -> dict[str, str]:
    if ece is None or ece[1] <= ece[0] + ECE_ALLOWANCE:
        return {}
    sentence = (
        f"The calibration error rose from {ece[0]:.3f} to {ece[1]:.3f}, by more than "
        f"{ECE_ALLOWANCE}."
    )
    return {CALIBRATION_WORSE: sentence}


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


def _slice_reasons(slices: JudgedSlices) -> dict[str, str]:
    """Return the reasons that lie in one decision or outcome."""
    sentences = {}
    for reason, kind, judged in (
        (DECISION_WORSE, "decision", slices.by_decision),
        (OUTCOME_WORSE, "outcome", slices.by_outcome),
    ):
        worse = [judged_slice for judged_slice in judged if judged_slice.worse]
        if worse:
            named = "; ".join(_describe_slice(judged_slice) for judged_slice in worse[:_MAX_NAMED])
            more = len(worse) - _MAX_NAMED
            others = f"; and {more} more" if more > 0 else ""
            kinds = kind if len(worse) == 1 else f"{kind}s"
            sentences[reason] = f"{len(worse)} {kinds} became worse: {named}{others}."
    return sentences


def _describe_slice(gate_slice: GateSlice) -> str:
    where = f"decision {gate_slice.decision_id!r}"
    if isinstance(gate_slice.outcome, str):
        where = f"{where} where {gate_slice.outcome!r} is right"
    return f"{where}, {_describe(gate_slice)}"


def _is_better_reward(groups: dict[str, GateGroup], sentences: dict[str, str]) -> bool:
    """Return whether a candidate surely earns more than its predecessor and breaks no decision.

    Such a candidate may serve even when the text baseline earns as much.
    """
    return (
        not sentences.keys() & {NEW_WORSE, NO_GAIN, INCONCLUSIVE}
        and "new" in groups
        and all(isinstance(group.scaled_reward, GateChange) for group in groups.values())
        and not any(group.flips.broken for group in groups.values())
    )


def _baseline_reason(text: GateGroup | None) -> dict[str, str]:
    if text is None or harm_of(text).low <= 0 or harm_of(text).change <= EQUIVALENCE:
        return {}
    sentence = f"The candidate is worse than the text baseline, from which {_describe(text)}."
    return {BELOW_BASELINE: sentence}


def _describe(group: GateGroup | GateSlice) -> str:
    compared = change_of(group)
    name = "loss" if isinstance(group.loss, GateChange) else "scaled reward"
    return (
        f"{name} went from {compared.before:.4f} to {compared.after:.4f} on {group.decisions} "
        f"decisions, a change of {compared.change:+.4f} "
        f"(95 % interval {compared.low:+.4f} to {compared.high:+.4f})"
    )
