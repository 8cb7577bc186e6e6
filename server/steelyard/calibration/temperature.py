"""Temperature scaling: from logits to calibrated probabilities, and the fit of a temperature.

One temperature for each kind of decision and number of outcomes, fitted on tasks that the scorer
did not learn from. Not here: the temperature that a caller asks for
(``steelyard.decisions.answer``).

References
----------
C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger. On Calibration of Modern Neural Networks. ICML, 2017.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: Groups of decisions by their number of outcomes: name, and the largest number in the group.
BUCKETS: tuple[tuple[str, float], ...] = (
    ("2", 2),
    ("3-5", 5),
    ("6-12", 12),
    ("13-40", 40),
    ("41+", math.inf),
)
#: Bounds of a fitted temperature; a fit that runs into one says the logits carry no evidence, or
#: that the sample is too small and easy to tell how sure to be.
MIN_FITTED, MAX_FITTED = 0.05, 20.0

_SUM_TOLERANCE = 1e-3
_MAX_STEPS = 100
_STEP_TOLERANCE = 1e-10


def outcome_bucket(n_outcomes: int) -> str:
    """Return the name of the group that a number of outcomes, 2 or more, belongs to.

    >>> [outcome_bucket(n) for n in (2, 3, 5, 77)]
    ['2', '3-5', '3-5', '41+']
    """
    if n_outcomes < BUCKETS[0][1]:
        raise ValueError(f"A decision has 2 outcomes or more, not {n_outcomes}.")
    return next(name for name, largest in BUCKETS if n_outcomes <= largest)


class TemperatureTable:
    """Temperatures by kind and by number of outcomes; immutable.

    They are finite and above 0, by kind and then by bucket (``"2"``, ``"3-5"``, ``"6-12"``,
    ``"13-40"``, ``"41+"``), else ``ValueError``. A missing one is 1.

    >>> table = TemperatureTable({"single": {"3-5": 2.0}})
    >>> table.temperature("single", 4), table.temperature("single", 6)
    (2.0, 1.0)
    """

    def __init__(self, temperatures: Mapping[str, Mapping[str, float]] | None = None) -> None:
        known = {name for name, _ in BUCKETS}
        self._temperatures: dict[str, dict[str, float]] = {}
        for kind, by_bucket in (temperatures or {}).items():
            for bucket, temperature in by_bucket.items():
                if bucket not in known:
                    raise ValueError(
                        f"{bucket!r} is not a group of outcome counts; use one of {sorted(known)}."
                    )
                # What was read from a file may be anything, and true is an integer to Python.
                value: object = temperature
                is_number = isinstance(value, int | float) and not isinstance(value, bool)
                if not is_number or not 0 < temperature < math.inf:
                    raise ValueError(
                        f"The temperature of {kind}, {bucket} outcomes is {temperature!r}; it must "
                        "be a finite number above 0."
                    )
            self._temperatures[kind] = {name: float(value) for name, value in by_bucket.items()}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> TemperatureTable:
        """Read a table from the dict of ``to_dict``; ``ValueError`` when it is no such thing."""
        temperatures = value.get("temperatures")
        if not isinstance(temperatures, Mapping) or not all(
            isinstance(by_bucket, Mapping) for by_bucket in temperatures.values()
        ):
            raise ValueError("A temperature table is an object with the field 'temperatures'.")
        return cls(temperatures)

    def to_dict(self) -> dict[str, Any]:
        """Return the table as JSON values."""
        return {"temperatures": {kind: dict(row) for kind, row in self._temperatures.items()}}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TemperatureTable):
            return NotImplemented
        return self._temperatures == other._temperatures

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"TemperatureTable({self._temperatures!r})"

    def temperature(self, kind: str, n_outcomes: int) -> float:
        """Return the temperature of a decision; 1 where none was fitted."""
        return self._temperatures.get(kind, {}).get(outcome_bucket(n_outcomes), 1.0)

    def log_probabilities(self, logits: ArrayLike, kind: str) -> NDArray[np.float64]:
        """Return the calibrated log probabilities of one decision's logits, of shape (n_outcomes,).

        In outcome order, as the logits are; their exponentials sum to 1 within 1e-12. Raise
        ``ValueError`` when the logits are not one row of finite numbers.
        """
        row = np.asarray(logits, dtype=np.float64)
        # A row is short: the wrappers of NumPy's methods cost more than their ufuncs.
        if row.ndim != 1 or not np.logical_and.reduce(np.isfinite(row)):
            raise ValueError("The logits of a decision must be one row of finite numbers.")
        scaled = row / self.temperature(kind, row.size)
        scaled -= np.maximum.reduce(scaled)
        normalised: NDArray[np.float64] = scaled - np.log(np.add.reduce(np.exp(scaled)))
        return normalised

    def probabilities(self, logits: ArrayLike, kind: str) -> NDArray[np.float64]:
        """Return the calibrated probabilities of one decision: ``softmax(logits / temperature)``.

        Each in 0 to 1, and their sum 1 within 1e-12; otherwise as ``log_probabilities``.
        """
        weights = np.exp(self.log_probabilities(logits, kind))
        weights /= np.add.reduce(weights)
        return weights


def softmax(logits: ArrayLike) -> NDArray[np.float64]:
    """Return the probabilities of one decision's logits, of shape (n_outcomes,), not scaled."""
    row = np.asarray(logits, dtype=np.float64)
    weights = np.exp(row - row.max())
    probabilities: NDArray[np.float64] = weights / weights.sum()
    return probabilities


def fit_temperature(logits: Sequence[ArrayLike], targets: Sequence[ArrayLike]) -> float:
    """Find the temperature, from 0.05 to 20, that gives soft targets the lowest mean log loss.

    Logits and targets are of shape (n_outcomes,), which may differ by decision. Targets are not
    negative and sum to 1 within 1e-3 (then normalised). 1 when no temperature is better than
    another, which is so when every decision's logits are all equal. Raise ``ValueError`` when there
    are no decisions, or logits and targets do not fit each other.

    Notes
    -----
    In the inverse temperature the loss is convex, so its derivative, the mean of the logits'
    expectation under the prediction less that under the target, rises; its root is found by
    Newton's method, which falls back to halving the bracket wherever a step would leave it.
    Decisions are stacked by their number of outcomes. Memory: two float64 for each outcome.

    References
    ----------
    C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger. On Calibration of Modern Neural Networks. ICML,
    2017.

    Examples
    --------
    >>> round(fit_temperature([[2.0, 0.0]] * 4, [[1, 0], [1, 0], [1, 0], [0, 1]]), 3)
    1.82
    """
    blocks = _stack(logits, targets)
    low, high = 1 / MAX_FITTED, 1 / MIN_FITTED
    if _slope(blocks, low)[0] >= 0:
        is_flat = all(np.ptp(rows, axis=1).max() == 0 for rows, _ in blocks)
        return 1.0 if is_flat else MAX_FITTED
    if _slope(blocks, high)[0] <= 0:
        return MIN_FITTED
    inverse = 1.0
    for _ in range(_MAX_STEPS):
        slope, curvature = _slope(blocks, inverse)
        low, high = (inverse, high) if slope < 0 else (low, inverse)
        proposed = inverse - slope / curvature if curvature > 0 else math.nan
        # The geometric middle halves the bracket on the scale that temperatures live on.
        following = proposed if low < proposed < high else math.sqrt(low * high)
        if abs(following - inverse) <= _STEP_TOLERANCE * inverse:
            break
        inverse = following
    return 1 / inverse


def fit_temperature_table(
    kinds: Sequence[str],
    logits: Sequence[ArrayLike],
    targets: Sequence[ArrayLike],
    *,
    min_decisions: int = 50,
) -> TemperatureTable:
    """Fit a temperature for each kind and bucket that has enough decisions.

    A bucket with fewer than ``min_decisions`` takes the temperature fitted on all decisions of its
    kind, so that every bucket of every kind has one. Arrays and errors are those of
    ``fit_temperature``.
    """
    if not len(kinds) == len(logits) == len(targets):
        raise ValueError("There must be as many kinds as logits and targets.")
    members: dict[str, list[int]] = defaultdict(list)
    for index, kind in enumerate(kinds):
        members[kind].append(index)
    table: dict[str, dict[str, float]] = {}
    for kind, indices in members.items():
        pooled = fit_temperature([logits[i] for i in indices], [targets[i] for i in indices])
        by_bucket: dict[str, list[int]] = defaultdict(list)
        for index in indices:
            by_bucket[outcome_bucket(np.size(logits[index]))].append(index)
        table[kind] = {name: pooled for name, _ in BUCKETS}
        for name, inside in by_bucket.items():
            if len(inside) >= min_decisions:
                table[kind][name] = fit_temperature(
                    [logits[i] for i in inside], [targets[i] for i in inside]
                )
    return TemperatureTable(table)


_Blocks = list[tuple[NDArray[np.float64], NDArray[np.float64]]]


def _stack(logits: Sequence[ArrayLike], targets: Sequence[ArrayLike]) -> _Blocks:
    """Stack decisions of equal size; logits are shifted so that the largest of each row is 0."""
    if len(logits) != len(targets) or len(logits) == 0:
        raise ValueError(
            f"There are {len(logits)} rows of logits and {len(targets)} of targets; give one of "
            "each per decision, and at least one decision."
        )
    rows: dict[int, list[NDArray[np.float64]]] = defaultdict(list)
    target_rows: dict[int, list[NDArray[np.float64]]] = defaultdict(list)
    for index, (row, target) in enumerate(zip(logits, targets, strict=True)):
        row_array = np.asarray(row, dtype=np.float64)
        target_array = np.asarray(target, dtype=np.float64)
        if row_array.ndim != 1 or row_array.shape != target_array.shape or row_array.size < 2:
            raise ValueError(
                f"Decision {index} has logits of shape {row_array.shape} and a target of shape "
                f"{target_array.shape}; both must be one row of the same 2 or more outcomes."
            )
        rows[row_array.size].append(row_array)
        target_rows[row_array.size].append(target_array)
    blocks: _Blocks = []
    for size, stacked in rows.items():
        block, target_block = np.stack(stacked), np.stack(target_rows[size])
        sums = target_block.sum(axis=1, keepdims=True)
        is_distribution = (target_block >= 0).all() and (abs(sums - 1) <= _SUM_TOLERANCE).all()
        if not is_distribution or not np.isfinite(block).all():
            raise ValueError(
                "Every target must be a distribution (not negative, summing to 1) and every logit "
                "finite."
            )
        blocks.append((block - block.max(axis=1, keepdims=True), target_block / sums))
    return blocks


def _slope(blocks: _Blocks, inverse: float) -> tuple[float, float]:
    """Return the loss's first and second derivative in the inverse temperature, summed over rows."""
    slope = curvature = 0.0
    for rows, targets in blocks:
        weights = np.exp(inverse * rows)
        weights /= weights.sum(axis=1, keepdims=True)
        means = (weights * rows).sum(axis=1)
        slope += float(means.sum() - (targets * rows).sum())
        curvature += float((weights * rows**2).sum() - (means**2).sum())
    return slope, curvature
