"""Thresholds of a route: the cheapest that are right often enough, or the best within a bound."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from steelyard.errors import InvalidRequestError
from steelyard.ledger.money import NANO
from steelyard.serving.routed.walking import Mask, Numbers, Side

#: Decisions below which nothing is fitted.
MIN_DECISIONS = 20
#: Most combinations of the thresholds before the last one.
_MAX_OUTER = 1_000
#: What a bound may be missed by: sums of fractions are not exact.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Bound:
    """The bound on thresholds: the least accuracy, or the highest price or share.

    A price is in USD for 1,000 decisions; the share is of decisions that the first model does not
    decide.
    """

    kind: Literal["accuracy", "price", "share"]
    value: float


@dataclass(frozen=True, slots=True)
class _Sweep:
    """Every last threshold under given ones before it; arrays of shape (n_options,).

    All figures are means over all decisions: ``right``, ``price`` (USD for 1,000 decisions),
    ``escalated`` (decisions that the first model does not decide) and ``asked`` (questions to
    further models).
    """

    before: tuple[float, ...]
    last: Numbers
    right: Numbers
    price: Numbers
    escalated: Numbers
    calls: Numbers


def fit_thresholds(side: Side, bound: Bound) -> tuple[float, ...]:
    """Return a threshold for every model but the last.

    All thresholds that tell two observed top probabilities apart are tried; of those before the
    last of three or more models, at most a thousand combinations at even quantiles.
    """
    _check_size(side)
    best: tuple[tuple[float, ...], tuple[float, ...]] | None = None
    reached: list[float] = []
    for sweep in _sweeps(side):
        measured, fitting = _bounded_figure(sweep, bound), np.flatnonzero(_fits(sweep, bound))
        reached.append(float(measured.max() if bound.kind == "accuracy" else measured.min()))
        if not len(fitting):
            continue
        keys = _keys(sweep, bound)
        # The last key of a lexsort is the first to sort by.
        first = fitting[np.lexsort([key[fitting] for key in reversed(keys)])[0]]
        option = tuple(float(key[first]) for key in keys), (*sweep.before, float(sweep.last[first]))
        best = option if best is None else min(best, option)
    if best is None:
        raise _unreachable(bound, reached)
    return best[1]


def frontier_thresholds(side: Side, most: int) -> list[tuple[float, ...]]:
    """Return thresholds that none beat at their price, the most accurate first, ``most`` at most."""
    _check_size(side)
    bound = Bound("accuracy", 0.0)
    options = sorted(
        (*keys, *sweep.before, last)
        for sweep in _sweeps(side)
        for *keys, last in zip(
            *(key.tolist() for key in _keys(sweep, bound)), sweep.last.tolist(), strict=True
        )
    )
    frontier, best = [], -1.0
    for _, _, wrong, *thresholds in options:
        if -wrong > best:
            best = -wrong
            frontier.append(tuple(thresholds))
    frontier.reverse()
    steps = np.linspace(0, len(frontier) - 1, min(most, len(frontier))).round().astype(int)
    return [frontier[step] for step in steps]


def _check_size(side: Side) -> None:
    if len(side) < MIN_DECISIONS:
        raise InvalidRequestError(
            f"A route needs {MIN_DECISIONS} labelled decisions for training, and there are "
            f"{len(side)}; add rows."
        )


def _fits(sweep: _Sweep, bound: Bound) -> Mask:
    measured = _bounded_figure(sweep, bound)
    if bound.kind == "accuracy":
        return measured >= bound.value - _ROUNDING
    return measured <= bound.value + _ROUNDING


def _bounded_figure(sweep: _Sweep, bound: Bound) -> Numbers:
    return {"accuracy": sweep.right, "price": sweep.price, "share": sweep.escalated}[bound.kind]


def _keys(sweep: _Sweep, bound: Bound) -> list[Numbers]:
    """Return the sort keys of the options, the first key first."""
    right, price, calls = (
        np.round(column, 9) for column in (sweep.right, sweep.price, sweep.calls)
    )
    return [price, calls, -right] if bound.kind == "accuracy" else [-right, price, calls]


def _unreachable(bound: Bound, reached: Sequence[float]) -> InvalidRequestError:
    if bound.kind == "accuracy":
        return InvalidRequestError(
            f"No thresholds have an accuracy of {bound.value:g} on the training rows; the best have "
            f"{max(reached):.4f}. Ask for less, or name a better model."
        )
    # A share of 0 can always be kept.
    return InvalidRequestError(
        f"No thresholds cost {bound.value:g} USD for 1,000 decisions or less; the first model alone "
        f"costs {min(reached):.6g}. Allow more, or begin with a cheaper model."
    )


def _sweeps(side: Side) -> Iterator[_Sweep]:
    outer = side.models[:-2]
    most = int(_MAX_OUTER ** (1 / len(outer))) if outer else 1
    choices = [_thresholds(np.unique(model.p_top), most) for model in outer]
    for before in itertools.product(*choices):
        yield _sweep(side, before)


def _thresholds(observed: Numbers, most: int) -> list[float]:
    """Return 0, every value between two that were observed, and 1; or as many at quantiles."""
    every = np.concatenate([[0.0], _between(observed[:-1], observed[1:]), [1.0]])
    if len(every) > most:
        every = every[np.linspace(0, len(every) - 1, most).round().astype(np.int64)]
    return [float(threshold) for threshold in every]


def _between(low: Numbers, high: Numbers) -> Numbers:
    """Return thresholds that are above the lower and not above the higher probability."""
    middle = (low + high) / 2
    return np.where(middle > low, middle, high)


def _sweep(side: Side, before: tuple[float, ...]) -> _Sweep:
    n, inner, last = len(side), side.models[-2], side.models[-1]
    reaching = np.ones(n, dtype=bool)
    right, cost, calls, escalated = 0.0, 0.0, 0.0, 0.0
    for place, threshold in enumerate(before):
        model = side.models[place]
        goes_on = reaching & (model.p_top < threshold)
        right += float(model.right[reaching & ~goes_on].sum())
        cost += float(side.price_nano(model, reaching).sum())
        calls += float(goes_on.sum())
        escalated = float(goes_on.sum()) if place == 0 else escalated
        reaching = goes_on
    cost += float(side.price_nano(inner, reaching).sum())
    right += float(inner.right[reaching].sum())

    places = np.flatnonzero(reaching)
    order = places[np.argsort(inner.p_top[places], kind="stable")]
    p_top = inner.p_top[order]
    # After so many decisions, in order of their top probability, lies a threshold.
    ends = np.flatnonzero(np.append(p_top[1:] > p_top[:-1], p_top[-1:] < 1.0)) + 1
    following = np.append(p_top, 1.0)[ends]
    tokens = side.tokens_in_order(order, n)[order] + last.written[order]

    def up_to(values: Numbers) -> Numbers:
        return np.concatenate([[0.0], np.cumsum(values)[ends - 1]])

    n_on = np.concatenate([[0.0], ends.astype(np.float64)])
    return _Sweep(
        before=before,
        last=np.concatenate([[0.0], _between(p_top[ends - 1], following)]),
        right=(right + up_to(last.right[order] - inner.right[order])) / n,
        price=(cost + last.price_nano * up_to(tokens)) * 1000 / NANO / n,
        escalated=(n_on if not before else np.full(len(n_on), escalated)) / n,
        calls=(calls + n_on) / n,
    )
