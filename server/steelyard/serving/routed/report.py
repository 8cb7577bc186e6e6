"""The worth of a route on rows that its thresholds were not chosen on."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

from steelyard.errors import InvalidRequestError
from steelyard.serving.connected.declared_route import DeclaredRoute
from steelyard.serving.routed.figures import CertifiedAccuracy, Figures
from steelyard.serving.routed.fitting import MIN_DECISIONS
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


def check_held_out(held_out: Side) -> None:
    """Raise ``InvalidRequestError`` where there are too few decisions to judge a route on."""
    if len(held_out) < MIN_DECISIONS:
        raise InvalidRequestError(
            f"A route is judged on {MIN_DECISIONS} labelled decisions for evaluation, and there are "
            f"{len(held_out)}; add rows."
        )


def report_on(
    name: str,
    route: DeclaredRoute,
    training: Side,
    held_out: Side,
    failures: Counter[str],
    certified: CertifiedAccuracy | None = None,
) -> RouteReport:
    """Return how good a route is on both sides of a dataset."""
    check_held_out(held_out)
    thresholds = [step.threshold for step in route.steps[:-1]]
    return RouteReport(
        name=name,
        route=route,
        training=route_figures(training, name, thresholds),
        held_out=[
            route_figures(held_out, name, thresholds),
            *(model_figures(held_out, model) for model in held_out.models),
        ],
        failures=failures,
        certified=certified,
    )
