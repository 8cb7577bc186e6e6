"""The gate: whether a candidate holds up on held-out decisions against the model it would replace.

Here: the comparison, the rules and their reasons, in words for programs and for people. Not here:
what happens then (a model joins its family or not), nor which decisions are held out.

Nothing missing, unpaired or not finite is ever judged: the gate raises, and the job has failed.
"""

from __future__ import annotations

import math
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from steelyard.evaluation.comparison import (
    Pairing,
    count_flips,
    measure_changes,
    pair_records,
    paired_ece,
)
from steelyard.evaluation.records import Records, UnmeasurableError
from steelyard.evaluation.sampling import Bootstrap
from steelyard.wire.evaluations import (
    BeforeAfter,
    Gate,
    GateChange,
    GateDeltas,
    GateGroup,
)

Against = Literal["parent", "base"]

#: New evaluation decisions without which there is too little to judge.
NEEDED = 20
#: How much worse the earlier decisions may become: nats of loss, or of a scaled reward of 0 to 1.
EARLIER_ALLOWANCE = 0.05
#: How much worse the calibration error may become.
ECE_ALLOWANCE = 0.05

TOO_FEW = "too_few_evaluation_decisions"
NEW_WORSE = "new_rows_worse"
NO_GAIN = "no_gain_on_new_rows"
EARLIER_WORSE = "earlier_rows_worse"
CALIBRATION_WORSE = "calibration_worse"

#: Every reason, in the order of the rules.
REASONS = (TOO_FEW, NEW_WORSE, NO_GAIN, EARLIER_WORSE, CALIBRATION_WORSE)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the gate found.

    Parameters
    ----------
    gate : steelyard.wire.evaluations.Gate
        As the wire shows it.
    sentences : tuple of str
        One a reason, in the same order, for a person.
    """

    gate: Gate
    sentences: tuple[str, ...]


def judge(
    before: Records,
    after: Records,
    *,
    against: Against,
    new_contexts: AbstractSet[str],
    earlier_contexts: AbstractSet[str] = frozenset(),
    needed: int = NEEDED,
    bootstrap: Bootstrap | None = None,
) -> Verdict:
    """Judge a candidate on held-out decisions.

    Parameters
    ----------
    before, after : Records
        The held-out decisions as the predecessor and as the candidate scored them: the same
        decisions, none missing on either side.
    against : {"parent", "base"}
        What the predecessor is.
    new_contexts : set of str
        Contexts added since the family last trained.
    earlier_contexts : set of str, optional
        Contexts earlier models were judged on; a first model has none. The two sets have nothing in
        common and name exactly the contexts of the records.
    needed : int, default 20
        New decisions without which the gate fails for want of evidence; at least 1.
    bootstrap : Bootstrap, optional
        With the job's seed.

    Returns
    -------
    Verdict
        With rewards, ``scaled_reward`` is compared instead of ``loss``, decisions whose outcomes
        all earn the same are left out, and calibration is not judged.

    Raises
    ------
    UnmeasurableError
        When a decision is unpaired, a context has no record or no group or is in both, or a figure
        is not finite.
    ValueError
        When ``needed`` is less than 1.
    """
    if needed < 1:
        msg = f"needed must be at least 1; it is {needed}."
        raise ValueError(msg)
    pairing = pair_records(before, after)
    if pairing.n_unpaired_before or pairing.n_unpaired_after:
        raise UnmeasurableError(
            f"{pairing.n_unpaired_before} decisions of the predecessor and "
            f"{pairing.n_unpaired_after} of the candidate have no counterpart; score both on the "
            "same held-out rows."
        )
    names = after.contexts[pairing.after_rows].tolist()
    _check_contexts(set(names), new_contexts, earlier_contexts)
    bootstrap = bootstrap or Bootstrap()
    is_new = np.array([name in new_contexts for name in names], dtype=bool)
    groups: dict[str, GateGroup] = {}
    for name, chosen in (("new", is_new), ("earlier", ~is_new)):
        group = _gate_group(pairing.take(np.flatnonzero(chosen)), bootstrap)
        if group is not None:
            groups[name] = group
    found = paired_ece(pairing)
    ece = BeforeAfter(before=None, after=None) if found is None else BeforeAfter(
        before=found[0], after=found[1]
    )  # fmt: skip
    _check_finite(groups, found or ())
    sentences = _reasons(groups, found, needed)
    gate = Gate(
        passed=not sentences,
        against=against,
        reasons=list(sentences),
        groups=groups,
        deltas=GateDeltas(
            **{name: _compared(group).change for name, group in groups.items()},
            ece=None if found is None else found[1] - found[0],
        ),
        ece=ece,
    )
    return Verdict(gate, tuple(sentences.values()))


def _check_contexts(
    scored: AbstractSet[str], new: AbstractSet[str], earlier: AbstractSet[str]
) -> None:
    if new & earlier:
        raise UnmeasurableError(
            f"{len(new & earlier)} contexts are both new and earlier; put each in one group."
        )
    if missing := (new | earlier) - scored:
        raise UnmeasurableError(
            f"{len(missing)} held-out contexts have no scored decision; score them all."
        )
    if strange := scored - new - earlier:
        raise UnmeasurableError(
            f"{len(strange)} scored contexts are neither new nor earlier; put each in one group."
        )


def _gate_group(pairing: Pairing, bootstrap: Bootstrap) -> GateGroup | None:
    """Compare one group; None when it has no decision to compare."""
    if not len(pairing):
        return None
    has_targets = pairing.after.right == "accuracy"
    name = "loss" if has_targets else "scaled_reward"
    compared = measure_changes(pairing, [name], bootstrap).get(name)
    if compared is None:
        return None
    counted = np.flatnonzero(pairing.after.counted[name])
    kept = pairing.take(counted)
    right = kept.after.right
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
            before=float(kept.before.values[right].mean()),
            after=float(kept.after.values[right].mean()),
        ),
    }
    return GateGroup(
        decisions=len(kept),
        contexts=len(np.unique(kept.context_codes)),
        flips=count_flips(kept.before, kept.after),
        **figures,
    )


def _compared(group: GateGroup) -> GateChange:
    compared = group.loss if isinstance(group.loss, GateChange) else group.scaled_reward
    if not isinstance(compared, GateChange):
        raise UnmeasurableError("A group of the gate has no figure to compare.")
    return compared


def _check_finite(groups: dict[str, GateGroup], ece: tuple[float, ...]) -> None:
    figures = list(ece)
    for group in groups.values():
        compared = _compared(group)
        figures += [
            compared.before, compared.after, compared.change, compared.low, compared.high
        ]  # fmt: skip
    if not all(map(math.isfinite, figures)):
        raise UnmeasurableError("A figure of the gate is not finite; score the rows again.")


def _reasons(
    groups: dict[str, GateGroup], ece: tuple[float, float] | None, needed: int
) -> dict[str, str]:
    """Give each reason that holds with its sentence; none when the candidate passes."""
    new, earlier = groups.get("new"), groups.get("earlier")
    n_new = 0 if new is None else new.decisions
    if new is None or n_new < needed:
        # Too little to judge: the other rules would judge by chance.
        sentence = f"There are {n_new} new evaluation decisions and {needed} are needed; add rows."
        return {TOO_FEW: sentence}
    found: dict[str, str] = {}
    rise = _harm(new)
    if rise.low > 0:
        found[NEW_WORSE] = f"The new rows became worse: {_describe(new)}."
    if rise.change >= 0:
        found[NO_GAIN] = f"The new rows became no better: {_describe(new)}."
    if earlier is not None:
        rise = _harm(earlier)
        if rise.low > 0 or rise.change > EARLIER_ALLOWANCE:
            found[EARLIER_WORSE] = f"The earlier rows became worse: {_describe(earlier)}."
    if ece is not None and ece[1] > ece[0] + ECE_ALLOWANCE:
        found[CALIBRATION_WORSE] = (
            f"The calibration error rose from {ece[0]:.3f} to {ece[1]:.3f}, by more than "
            f"{ECE_ALLOWANCE}."
        )
    return found


def _harm(group: GateGroup) -> GateChange:
    """Give a group's change with worse counted up, whichever measure it is of."""
    compared = _compared(group)
    if isinstance(group.loss, GateChange):
        return compared
    return GateChange(
        before=-compared.before,
        after=-compared.after,
        change=-compared.change,
        low=-compared.high,
        high=-compared.low,
    )


def _describe(group: GateGroup) -> str:
    compared = _compared(group)
    name = "loss" if isinstance(group.loss, GateChange) else "scaled reward"
    return (
        f"{name} went from {compared.before:.4f} to {compared.after:.4f} on {group.decisions} "
        f"decisions, a change of {compared.change:+.4f} "
        f"(95 % interval {compared.low:+.4f} to {compared.high:+.4f})"
    )
