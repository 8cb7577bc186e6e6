"""Which model of a route decides, at which cost and quality: computed from its models' answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.calibration.intervals import mean_interval
from steelyard.calibration.metrics import LEAST_PROBABILITY
from steelyard.ledger.money import NANO
from steelyard.serving.routed.figures import Figures
from steelyard.wire.measures import Measure

Numbers = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Answers:
    """One model's answers to labelled decisions; arrays of shape (n_decisions,).

    ``right`` is 1 where the top outcome is the target's likeliest, ``loss`` the log loss in nats.
    """

    model: str
    #: Nano-USD per input token.
    price_nano: int
    p_top: Numbers
    right: Numbers
    loss: Numbers
    #: Tokens that it wrote before it answered.
    written: Numbers


@dataclass(frozen=True, slots=True)
class Side:
    """Labelled decisions of some rows, as each model of a route answered them.

    ``rows`` has each decision's row, counted from 0, ``decision_tokens`` its own input tokens, and
    ``context_tokens``, of shape (n_rows,), those that a row's decisions share.
    """

    rows: NDArray[np.int64]
    context_tokens: Numbers
    decision_tokens: Numbers
    models: tuple[Answers, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def tokens(self, mask: Mask) -> Numbers:
        """Return the input tokens of asking one model some decisions: a context with its first."""
        places = np.flatnonzero(mask)
        return self.tokens_in_order(places, len(self))

    def price_nano(self, model: Answers, mask: Mask) -> Numbers:
        """Return the price of asking a model some decisions, by decision."""
        return model.price_nano * (self.tokens(mask) + np.where(mask, model.written, 0.0))

    def tokens_in_order(self, places: NDArray[np.int64], n: int) -> Numbers:
        """Return the input tokens that each decision adds when they are asked in an order."""
        tokens = np.zeros(n)
        tokens[places] = self.decision_tokens[places]
        _, firsts = np.unique(self.rows[places], return_index=True)
        tokens[places[firsts]] += self.context_tokens[self.rows[places[firsts]]]
        return tokens


def deciders(side: Side, thresholds: Sequence[float]) -> NDArray[np.int64]:
    """Return the place of the model that decides each decision.

    One whose top probability is below a model's threshold goes to the next; the last model's answer
    stands.
    """
    who = np.zeros(len(side), dtype=np.int64)
    goes_on = np.ones(len(side), dtype=bool)
    for place, threshold in enumerate(thresholds):
        goes_on &= side.models[place].p_top < threshold
        who[goes_on] = place + 1
    return who


def route_figures(side: Side, name: str, thresholds: Sequence[float]) -> Figures:
    """Return how good a route is."""
    who = deciders(side, thresholds)
    everything = np.arange(len(side))
    cost = sum(
        (side.price_nano(model, who >= place) for place, model in enumerate(side.models)),
        start=np.zeros(len(side)),
    )
    return _figures(
        side,
        name,
        np.stack([model.right for model in side.models])[who, everything],
        np.stack([model.loss for model in side.models])[who, everything],
        cost,
        who > 0,
    )


def model_figures(side: Side, model: Answers) -> Figures:
    """Return how good a model is that decides alone."""
    cost = side.price_nano(model, np.ones(len(side), dtype=bool))
    return _figures(side, model.model, model.right, model.loss, cost, None)


def _figures(
    side: Side, name: str, right: Numbers, loss: Numbers, cost: Numbers, escalated: Mask | None
) -> Figures:
    return Figures(
        name=name,
        accuracy=_mean(side, right, most=1.0),
        log_loss=_mean(side, loss, most=_greatest_loss(side, loss)),
        share_escalated=None
        if escalated is None
        else _mean(side, escalated.astype(np.float64), most=1.0),
        price_usd_per_1000=_mean(side, cost * 1000 / NANO),
    )


def _greatest_loss(side: Side, loss: Numbers) -> float:
    """Return the loss of the surest answer, had it been wrong."""
    surest = max(float(model.p_top.max()) for model in side.models)
    return max(float(loss.max()), -math.log(max(1.0 - surest, LEAST_PROBABILITY)))


def _mean(side: Side, values: Numbers, most: float = math.inf) -> Measure:
    """Return a mean with its interval over rows: the decisions of one stand or fall together."""
    within = mean_interval(values, clusters=side.rows, least=0.0, most=most)
    return Measure(
        value=float(values.mean()),
        low=None if within is None else within.low,
        high=None if within is None else within.high,
        n=len(values),
    )
