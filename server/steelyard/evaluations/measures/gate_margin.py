"""The margin by which the gate wants a gain to clear 0 where it is not sure; see ``gate``."""

from __future__ import annotations

import numpy as np

from steelyard.evaluations.gate_wire import GateChange, GateGroup, GateSlice
from steelyard.evaluations.measures.comparison import Pairing
from steelyard.evaluations.measures.gate_slices import compared_measure
from steelyard.evaluations.measures.records import Records, UnmeasurableError
from steelyard.proof.margins import few_contexts

#: As the loss has it: a probability counts as this at least.
_LEAST_PROBABILITY = 1e-6


def margin_of(before: Records, after: Records, pairing: Pairing, group: GateGroup) -> float:
    """Return the margin of a group: 0 for a sure gain."""
    if is_sure_gain(group):
        return 0.0
    harm = harm_of(group)
    few = few_contexts(harm.change, harm.high, group.contexts)
    return _unseen_mistake(before, after, pairing) + few


def is_sure_gain(group: GateGroup) -> bool:
    """Return whether the whole interval is a gain, and no decision was broken."""
    return harm_of(group).high < 0 and group.flips.broken == 0


def _unseen_mistake(before: Records, after: Records, pairing: Pairing) -> float:
    """Return how much one more changed context would add to the mean change.

    Otherwise: the right outcome changes places with another, which is drawn from the mean of the
    two models' probabilities. A gain is not counted on: 0 at least.
    """
    name = compared_measure(pairing.after)
    counted = np.flatnonzero(pairing.after.counted[name])
    left, right = pairing.before_rows[counted], pairing.after_rows[counted]
    sizes = after.sizes[right]
    total = 0.0
    for size in np.unique(sizes):
        chosen = np.flatnonzero(sizes == size)
        places = np.arange(size)
        old = before.probabilities[before.offsets[left[chosen], None] + places]
        new = after.probabilities[after.offsets[right[chosen], None] + places]
        worth = after.labels[after.offsets[right[chosen], None] + places]
        if name == "loss":
            old, new = np.maximum(old, _LEAST_PROBABILITY), np.maximum(new, _LEAST_PROBABILITY)
            harm = np.log(old) - np.log(new)
        else:
            harm = old - new
            # Halved first, so that the distance of two rewards stays a number.
            worth = worth / 2 - worth.min(axis=1, keepdims=True) / 2
            worth /= worth.max(axis=1, keepdims=True)
        rows = np.arange(len(chosen))
        best = worth.argmax(axis=1)
        otherwise = np.maximum((old + new) / 2, _LEAST_PROBABILITY)
        otherwise[rows, best] = 0.0
        otherwise /= otherwise.sum(axis=1, keepdims=True)
        swapped = (worth[rows, best, None] - worth) * (harm - harm[rows, best, None])
        total += float((worth * harm).sum() + (otherwise * swapped).sum())
    n_contexts = len(np.unique(pairing.context_codes[counted]))
    return max(0.0, total / len(counted) / n_contexts)


def harm_of(group: GateGroup) -> GateChange:
    """Return a group's change with worse counted up, whichever measure it is of."""
    compared = change_of(group)
    if isinstance(group.loss, GateChange):
        return compared
    return GateChange(
        before=-compared.before,
        after=-compared.after,
        change=-compared.change,
        low=-compared.high,
        high=-compared.low,
    )


def change_of(group: GateGroup | GateSlice) -> GateChange:
    """Return the change that the gate judges a group by."""
    compared = group.loss if isinstance(group.loss, GateChange) else group.scaled_reward
    if not isinstance(compared, GateChange):
        raise UnmeasurableError("A group of the gate has no figure to compare.")
    return compared
