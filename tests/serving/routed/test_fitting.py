"""Thresholds of routes, held against every route there is on a few decisions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from steelyard.errors import InvalidRequestError
from steelyard.serving.routed.fitting import Bound, fit_thresholds
from steelyard.serving.routed.walking import (
    Answers,
    Side,
    deciders,
    model_figures,
    route_figures,
)

N = 24


def make_side(n_models=2, prices=(1, 10, 100), seed=0, n=N, values=8):
    """Two decisions a row; few different probabilities, so that many are equal."""
    rng = np.random.default_rng(seed)
    models = []
    for place in range(n_models):
        p_top = rng.integers(1, values + 1, n) / values
        right = (rng.random(n) < p_top ** (1 / (place + 1))).astype(float)
        written = rng.integers(0, 30, n).astype(float)
        models.append(Answers(f"m{place}", prices[place], p_top, right, rng.random(n), written))
    tokens = rng.integers(1, 20, n).astype(float)
    return Side(np.arange(n) // 2, np.full((n + 1) // 2, 50.0), tokens, tuple(models))


def every_route(side):
    """Return the figures of every route whose thresholds are observed probabilities."""
    choices = [sorted({0.0, 1.0, *model.p_top.tolist()}) for model in side.models[:-1]]
    found = []
    for thresholds in itertools.product(*choices):
        who = deciders(side, thresholds)
        figures = route_figures(side, "r", thresholds)
        found.append((figures, float(who.sum()), thresholds))
    return found


@pytest.mark.parametrize("n_models", [2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_no_route_is_cheaper_and_as_accurate(n_models, seed):
    side = make_side(n_models, seed=seed)
    routes = every_route(side)
    for wanted in (0.5, 0.7, max(one.accuracy.value for one, _, _ in routes)):
        fitted = route_figures(side, "r", fit_thresholds(side, Bound("accuracy", wanted)))
        assert fitted.accuracy.value >= wanted - 1e-9
        best = min(
            one.price_usd_per_1000.value
            for one, _, _ in routes
            if one.accuracy.value >= wanted - 1e-9
        )
        assert fitted.price_usd_per_1000.value == pytest.approx(best)


@pytest.mark.parametrize("n_models", [2, 3])
@pytest.mark.parametrize("kind", ["price", "share"])
@pytest.mark.parametrize("seed", range(4))
def test_no_route_within_the_bound_is_more_accurate(kind, n_models, seed):
    side = make_side(n_models, seed=seed)
    routes = every_route(side)

    def held(figures):
        return figures.price_usd_per_1000 if kind == "price" else figures.share_escalated

    bounds = sorted({held(one).value for one, _, _ in routes})
    for most in bounds[:: max(1, len(bounds) // 6)]:
        fitted = route_figures(side, "r", fit_thresholds(side, Bound(kind, most)))
        assert held(fitted).value <= most + 1e-9
        best = max(one.accuracy.value for one, _, _ in routes if held(one).value <= most + 1e-9)
        assert fitted.accuracy.value == pytest.approx(best)


def test_without_prices_the_fewest_questions_are_cheapest():
    side = make_side(prices=(0, 0))
    wanted = 0.7
    fitted = deciders(side, fit_thresholds(side, Bound("accuracy", wanted)))
    fewest = min(n for one, n, _ in every_route(side) if one.accuracy.value >= wanted - 1e-9)
    assert fitted.sum() == fewest


def test_each_model_is_paid_for_its_own_decisions_and_their_context():
    side = make_side(prices=(1, 10))
    who = deciders(side, (0.6,))
    expected = 0.0
    for row in range(N // 2):
        own = [place for place in range(N) if side.rows[place] == row]
        asked = [place for place in own if who[place] == 1]
        for model, of in zip(side.models, (own, asked), strict=True):
            tokens = 50 + sum(side.decision_tokens[of]) + sum(model.written[of]) if of else 0
            expected += model.price_nano * tokens
    figures = route_figures(side, "r", (0.6,))
    assert figures.price_usd_per_1000.value == pytest.approx(expected / N * 1e-6)
    assert figures.share_escalated.value == pytest.approx((who > 0).mean())
    for one in (figures.accuracy, figures.log_loss, figures.price_usd_per_1000):
        assert one.low <= one.value <= one.high
        assert one.n == N


def test_a_route_that_keeps_everything_is_its_first_model():
    side = make_side()
    route, alone = route_figures(side, "m0", (0.0,)), model_figures(side, side.models[0])
    assert alone.share_escalated is None
    assert (route.accuracy, route.log_loss) == (alone.accuracy, alone.log_loss)
    assert route.price_usd_per_1000 == alone.price_usd_per_1000


def test_a_probability_on_the_threshold_stays():
    side = make_side()
    assert (deciders(side, (0.5,)) == (side.models[0].p_top < 0.5)).all()


@pytest.mark.parametrize(
    ("side", "bound", "match"),
    [
        (make_side(n=18), Bound("accuracy", 0.5), "18; add rows"),
        (make_side(), Bound("accuracy", 1.01), "the best have"),
        (make_side(), Bound("price", 0.0), "the first model alone costs"),
    ],
    ids=["few decisions", "accuracy", "price"],
)
def test_a_bound_that_cannot_be_kept_is_reported(side, bound, match):
    with pytest.raises(InvalidRequestError, match=match):
        fit_thresholds(side, bound)


def test_many_decisions_over_four_models_are_fitted():
    side = make_side(4, prices=(1, 10, 100, 1000), n=2_000, values=100_000)
    thresholds = fit_thresholds(side, Bound("share", 0.5))
    assert len(thresholds) == 3
    assert route_figures(side, "r", thresholds).share_escalated.value <= 0.5
