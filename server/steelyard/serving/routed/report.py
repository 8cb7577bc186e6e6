"""The worth of a route on rows that its thresholds were not chosen on."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable

from msgspec import Struct

from steelyard.errors import InvalidRequestError
from steelyard.serving.connected.declared_route import DeclaredRoute, RouteStep
from steelyard.serving.routed.certifying import certify_route, explain_failure
from steelyard.serving.routed.figures import CertifiedAccuracy, Figures
from steelyard.serving.routed.fitting import MIN_DECISIONS, Bound, fit_thresholds
from steelyard.serving.routed.walking import Side, model_figures, route_figures


class RouteReport(Struct, frozen=True, kw_only=True):
    """A route, and how good it is."""

    name: str
    route: DeclaredRoute
    #: On the rows that its thresholds were chosen on.
    training: Figures
    #: On the others: the route, then each of its models alone.
    held_out: list[Figures]
    #: Messages of rows that failed, and how many had each.
    failures: dict[str, int]
    #: What the held-out rows certify of it; none where it was not fitted to an accuracy.
    certified: CertifiedAccuracy | None = None


def fit_route(
    name: str,
    dataset: str,
    version: int,
    bound: Bound,
    sides: tuple[Side, Side],
    failures: Counter[str],
    *,
    confidence: float,
    on_uncertified: Callable[[str], object],
) -> RouteReport:
    """Return the route of thresholds that keep a bound on training rows, judged on the others.

    An accuracy is certified by those; ``on_uncertified`` is called with why it is not, and may raise.
    """
    training, evaluation = sides
    thresholds: tuple[float, ...] = ()
    certified = None
    if bound.kind == "accuracy":
        _check_held_out(evaluation)
        test = certify_route(training, evaluation, accuracy=bound.value, confidence=confidence)
        thresholds, certified = test.thresholds, test.certified
        if certified is None:
            n_rows = len(evaluation.context_tokens)
            on_uncertified(explain_failure(test, n_rows, bound.value, confidence))
    if certified is None:
        thresholds = fit_thresholds(training, bound)
    _check_held_out(evaluation)
    steps = tuple(
        RouteStep(model=answers.model, threshold=threshold)
        for answers, threshold in zip(training.models, [*thresholds, 0.0], strict=True)
    )
    today = dt.datetime.now(dt.UTC).date()
    return RouteReport(
        name=name,
        route=DeclaredRoute(steps=steps, dataset=dataset, version=version, added=today),
        training=route_figures(training, name, thresholds),
        held_out=[
            route_figures(evaluation, name, thresholds),
            *(model_figures(evaluation, model) for model in evaluation.models),
        ],
        failures=failures,
        certified=certified,
    )


def _check_held_out(held_out: Side) -> None:
    if len(held_out) < MIN_DECISIONS:
        raise InvalidRequestError(
            f"A route is judged on {MIN_DECISIONS} labelled decisions for evaluation, and there are "
            f"{len(held_out)}; add rows."
        )
