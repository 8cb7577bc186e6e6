"""The gate: whether a candidate holds up on held-out decisions against the model it would replace.

The closer look at each decision and outcome is in ``steelyard.evaluations.measures.gate_slices``.
Nothing missing, unpaired or not finite is ever judged: the gate raises, and the job has failed.

To pass, a candidate must be better on the new rows beyond noise; where that is undecided, it does
not pass. A gain is sure where the whole 95 % interval lies below 0 and no decision was broken. Where
some were, the interval alone will not do: the loss of a good model is carried by few mistakes. It
must then clear 0 by a margin, the sum of two allowances:

- for one mistake more than was seen, as in Laplace's rule of succession: one more context whose
  decisions came out otherwise than they did, as the two models' mean probabilities would have it;
- for few contexts, over which percentiles of a bootstrap lie too near: twice the correction by
Student's t distribution and the unbiased variance (Hesterberg, "What Teachers Should Know about the
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

from steelyard.evaluations import gate_wire
from steelyard.evaluations.measures import comparison, gate_slices
from steelyard.evaluations.measures.gate_margin import change_of, margin_of
from steelyard.evaluations.measures.gate_rules import NEEDED, RULES, GateCase
from steelyard.evaluations.measures.records import Records, UnmeasurableError
from steelyard.evaluations.measures.several import several_labels
from steelyard.proof.differences import Bootstrap
from steelyard.proof.rules import reasons_of

Against = Literal["parent", "base"]

#: How much more margin no harm takes than a gain: of few easy decisions, 5.4 % passed else that were
#: worse by the allowance.
_NO_HARM_TIMES = 1.25


@dataclass(frozen=True, slots=True)
class Verdict:
    """The gate's verdict in wire form, and a sentence for each reason, for a person."""

    gate: gate_wire.Gate
    sentences: tuple[str, ...]


def judge(
    before: Records,
    after: Records,
    *,
    against: Against,
    is_new: Sequence[bool] | NDArray[np.bool_],
    judged_on: gate_wire.JudgedOn = "new",
    baseline: Records | None = None,
    needed: int = NEEDED,
    bootstrap: Bootstrap | None = None,
) -> Verdict:
    """Judge a candidate on held-out decisions.

    With rewards, ``scaled_reward`` is compared instead of ``loss``, decisions whose outcomes all
    earn the same are left out, and calibration is not judged.

    Parameters
    ----------
    before, after
        The same held-out decisions as the predecessor and as the candidate scored them.
    is_new
        For each decision of ``after``, whether it or its label came since the family last trained;
        earlier models were judged on the others. All of a first model's are new.
    judged_on
        The rows that decide: a gain on the new decisions, or that all together did not become
        worse. With "all" they make one group, ``earlier``, and no gain is asked for.
    baseline
        The same decisions as the text baseline scored them, trained on the rows that the candidate
        was; without it the candidate is not compared with one.
    needed
        Decisions, new ones or of all, without which the gate fails for want of evidence.

    Raises
    ------
    UnmeasurableError
        When a decision is unpaired, with the predecessor or with the baseline, or a figure is not
        finite.
    ValueError
        When ``needed`` is less than 1, or ``is_new`` is not one flag for each decision.
    """
    if needed < 1:
        raise ValueError(f"needed must be at least 1; it is {needed}.")
    if len(is_new) != len(after):
        raise ValueError(f"is_new has {len(is_new)} flags for {len(after)} decisions.")
    pairing = _pair_all(before, after, "predecessor")
    bootstrap = bootstrap or Bootstrap()
    case = GateCase(
        groups=_groups_of(before, after, pairing, is_new, judged_on, bootstrap),
        judged_on=judged_on,
        needed=needed,
        ece=comparison.paired_ece(pairing),
        slices=gate_slices.judge_slices(pairing, after),
        baseline=None
        if baseline is None
        else _gate_group(_pair_all(baseline, after, "text baseline"), bootstrap),
    )
    _check_finite(case)
    reasons = reasons_of(RULES[judged_on], case)
    gate = _gate_of(case, list(reasons), against, several_labels(pairing, after, bootstrap))
    return Verdict(gate, tuple(reasons.values()))


def _gate_of(
    case: GateCase, reasons: list[str], against: Against, several: gate_wire.SeveralLabels | None
) -> gate_wire.Gate:
    """Return the differences as the wire has them."""
    old_ece, new_ece = case.ece or (None, None)
    slices = case.slices
    shown = (
        slices.by_decision[: gate_slices.MAX_LISTED],
        slices.by_outcome[: gate_slices.MAX_LISTED],
    )
    return gate_wire.Gate(
        passed=not reasons,
        against=against,
        reasons=reasons,
        groups=case.groups,
        deltas=gate_wire.GateDeltas(
            **{name: change_of(group).change for name, group in case.groups.items()},
            ece=None if case.ece is None else case.ece[1] - case.ece[0],
        ),
        ece=gate_wire.BeforeAfter(before=old_ece, after=new_ece),
        judged_on=case.judged_on,
        by_decision=list(shown[0]),
        by_outcome=list(shown[1]),
        unlisted=len(slices.by_decision) + len(slices.by_outcome) - sum(map(len, shown)),
        baseline=UNSET if case.baseline is None else case.baseline,
        several=several or UNSET,
    )


def _groups_of(
    before: Records,
    after: Records,
    pairing: comparison.Pairing,
    is_new: Sequence[bool] | NDArray[np.bool_],
    judged_on: gate_wire.JudgedOn,
    bootstrap: Bootstrap,
) -> dict[str, gate_wire.GateGroup]:
    """Return the groups that have decisions; the one that decides has a margin."""
    is_for_gain = np.asarray(is_new, dtype=bool)[pairing.after_rows] & (judged_on == "new")
    groups = {}
    for name, chosen in (("new", is_for_gain), ("earlier", ~is_for_gain)):
        part = pairing.take(np.flatnonzero(chosen))
        group = _gate_group(part, bootstrap)
        if group is not None and (name == "new" or judged_on == "all"):
            times = _NO_HARM_TIMES if judged_on == "all" else 1.0
            group = replace(group, margin=times * margin_of(before, after, part, group))
        if group is not None:
            groups[name] = group
    return groups


def _pair_all(before: Records, after: Records, whose: str) -> comparison.Pairing:
    pairing = comparison.pair_records(before, after)
    if pairing.n_unpaired_before or pairing.n_unpaired_after:
        raise UnmeasurableError(
            f"{pairing.n_unpaired_before} decisions of the {whose} and "
            f"{pairing.n_unpaired_after} of the candidate have no counterpart; score both on the "
            "same held-out rows."
        )
    return pairing


def _gate_group(pairing: comparison.Pairing, bootstrap: Bootstrap) -> gate_wire.GateGroup | None:
    """Compare one group; None when it has no decision to compare."""
    if not len(pairing):
        return None
    name = gate_slices.compared_measure(pairing.after)
    compared_pairs = pairing.counted_by(name)
    if not len(compared_pairs):
        return None
    # These are the percentiles that the rules and their allowances were measured with.
    compared = compared_pairs.paired([name]).percentile_difference(bootstrap)
    right = compared_pairs.after.right
    figures: dict[str, Any] = {
        name: gate_wire.GateChange(
            before=compared.before,
            after=compared.after,
            change=compared.change,
            # Over one context every resample is the sample itself.
            low=compared.change if compared.low is None else compared.low,
            high=compared.change if compared.high is None else compared.high,
        ),
        right: gate_wire.BeforeAfter(
            before=float(compared_pairs.before.values[right].mean()),
            after=float(compared_pairs.after.values[right].mean()),
        ),
    }
    return gate_wire.GateGroup(
        decisions=len(compared_pairs),
        contexts=len(np.unique(compared_pairs.context_codes)),
        flips=comparison.count_flips(compared_pairs.before, compared_pairs.after),
        **figures,
    )


def _check_finite(case: GateCase) -> None:
    groups = [*case.groups.values(), *([] if case.baseline is None else [case.baseline])]
    figures = [figure for group in groups for figure in astuple(change_of(group))]
    if not all(map(math.isfinite, (*figures, *(case.ece or ())))):
        raise UnmeasurableError("A figure of the gate is not finite; score the rows again.")
