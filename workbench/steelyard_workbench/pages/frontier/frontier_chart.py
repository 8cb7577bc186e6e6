"""The models of a dataset as points: the quality of each against its price or time."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from bokeh.models import ColumnDataSource, NumeralTickFormatter

from steelyard.evaluations.frontier_wire import FrontierMeasure, FrontierPoint
from steelyard_workbench.kit.components import figures
from steelyard_workbench.kit.theme import BLUE, SERIES
from steelyard_workbench.kit.words import SHARES, named_text

#: The measures, with their units.
MEASURES: dict[str, FrontierMeasure] = {
    "Share right": "accuracy",
    "Loss": "log_loss",
    "Expected cost": "expected_cost",
}
_Y = {"accuracy": "share right", "log_loss": "loss", "expected_cost": "expected cost"}
#: What stands against the measure, with its unit.
AXES = {"price": "USD of 1,000 decisions", "latency": "time of an answer, ms"}
_UNKNOWN = {"price": "price not known", "latency": "time not known"}


def place_of(point: FrontierPoint, axis: str) -> float | None:
    """Return where a point stands on an axis; ``None`` where that is not known."""
    if axis == "latency":
        return point.latency_ms
    return None if point.price_usd_per_1000 is None else float(point.price_usd_per_1000)


def number_text(place: float | None) -> str:
    """Return a place on an axis as it is read; ``—`` where it is not known."""
    return "—" if place is None else f"{place:,.4g}"


def best_so_far(
    places: Sequence[tuple[float, float]], *, is_falling: bool
) -> list[tuple[float, float]]:
    """Return the places that none beats in both axes, from the cheapest on.

    >>> best_so_far([(2, 0.9), (1, 0.7), (3, 0.8), (1, 0.6)], is_falling=False)
    [(1, 0.7), (2, 0.9)]
    """
    sign = 1.0 if is_falling else -1.0
    best: list[tuple[float, float]] = []
    for x, y in sorted(places, key=lambda place: (place[0], sign * place[1])):
        if not best or sign * y < sign * best[-1][1]:
            best.append((x, y))
    return best


def frontier_chart(
    points: Sequence[FrontierPoint],
    measure: FrontierMeasure,
    axis: str,
    open_: Callable[[str], None],
) -> Any:
    """Draw the points, those without a place left of the axis and hollow; a click opens an evaluation."""
    known = [x for point in points if (x := place_of(point, axis)) is not None]
    low, high = figures.room_for(known)
    drawn = [(place_of(point, axis), point) for point in points]
    source = _source_of(drawn, measure, axis, left_of=(low, high))
    made = figures.plot(
        "",
        AXES[axis],
        f"{_Y[measure]}, with 95 % intervals",
        height=330 + 24 * len(points),
        x_range=figures.room_for(source.data["x"]),
        y_range=figures.room_for([*source.data["low"], *source.data["high"]]),
    )
    made.xaxis.bounds = made.xgrid.bounds = low, high
    if measure in SHARES:
        made.yaxis.formatter = NumeralTickFormatter(format="0 %")
    _draw_best(made, [(x, point.estimate.value) for x, point in drawn if x is not None], measure)
    figures.intervals(made, source, base="x", low="low", high="high")
    marks = made.scatter(
        "x",
        "value",
        source=source,
        marker="marker",
        size="size",
        color="color",
        fill_alpha="fill",
        legend_field="model",
        name="models",
    )
    figures.legend_below(made)
    made.hover.renderers = [marks]
    made.hover.tooltips = [
        ("", "@model"),
        (_Y[measure], "@told"),
        (AXES[axis], "@place"),
        ("", "@state"),
    ]
    figures.on_tap(made, source, lambda place: open_(drawn[place][1].evaluation))
    return made


def _source_of(
    drawn: Sequence[tuple[float | None, FrontierPoint]],
    measure: FrontierMeasure,
    axis: str,
    *,
    left_of: tuple[float, float],
) -> ColumnDataSource:
    """Return the points with their marks; those without a place stand left of the axis."""
    low, high = left_of
    # Beside each other, left of the axis: intervals at one place cannot be told apart.
    beside = (low - n * (high - low) / 16 for n in itertools.count(1))
    estimates = [point.estimate for _, point in drawn]
    return ColumnDataSource(
        {
            "x": [next(beside) if x is None else x for x, _ in drawn],
            **figures.interval_columns(estimates),
            "model": [
                point.model + (f", {_UNKNOWN[axis]}" if x is None else "") for x, point in drawn
            ],
            "place": [number_text(x) for x, _ in drawn],
            "fill": [0.0 if x is None else 1.0 for x, _ in drawn],
            "told": [named_text(measure, estimate) for estimate in estimates],
            "marker": ["circle" if point.dominated else "diamond" for _, point in drawn],
            "size": [9 if point.dominated else 15 for _, point in drawn],
            "color": [SERIES[place % len(SERIES)] for place in range(len(drawn))],
            "state": [
                "better on nothing" if point.dominated else "not beaten" for _, point in drawn
            ],
        }
    )


def _draw_best(chart: Any, places: Sequence[tuple[float, float]], measure: FrontierMeasure) -> None:
    """Draw the best that can be had for as much or less."""
    line = best_so_far(places, is_falling=measure != "accuracy")
    if line:
        # On to the dearest point: until there nothing better can be had.
        line.append((max(x for x, _ in places), line[-1][1]))
        chart.step(
            [x for x, _ in line],
            [y for _, y in line],
            mode="after",
            color=BLUE,
            line_dash="dashed",
            legend_label="the best for as much or less",
        )
