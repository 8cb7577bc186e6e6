"""Figures of answers: Bokeh's, each of which a cell shows as a small picture that needs no network.

``bokeh.io.show`` or a Panel app draws the same figure live. Bokeh is loaded by the drawing call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import UNSET

from steelyard.client.display_gates import intervals_of
from steelyard.client.drawings import DrawnSeries, draw_cells, draw_intervals, draw_plane
from steelyard.evaluations.gate_wire import Gate, measure_of
from steelyard.evaluations.wire import (
    ConfusionMatrix,
    CostCurve,
    CoveragePoint,
    DecisionMeasures,
    EvaluationDetail,
)
from steelyard.wire.measures import Measure
from steelyard.wire.requirements import required_for
from steelyard.wire.shown import to_plots

#: The most outcomes of a confusion matrix that are drawn.
MOST_OUTCOMES = 20
_GREY, _ORANGE = "#888888", "#d55e00"


class EvaluationPlots:
    """Plots of an evaluation's detail, as Bokeh figures."""

    def __init__(self, detail: EvaluationDetail) -> None:
        self._detail = detail

    def reliability(self) -> Any:
        """Draw the share that was right by the probability that was promised."""
        rows = self._detail.reliability
        if rows is UNSET:
            raise ValueError("Rows with rewards have no reliability; draw thresholds() instead.")
        points = [
            (row.mean_top_probability, *_ends(row.accuracy))
            for row in rows
            if row.mean_top_probability is not None and row.accuracy is not None
        ]
        ideal = [(0.0, 0.0, 0.0, 0.0), (1.0, 1.0, 1.0, 1.0)]
        return _plane(
            DrawnSeries(
                label="bins of decisions, with 95 % intervals", points=points, is_line=False
            ),
            DrawnSeries(label="perfectly calibrated", points=ideal, color=_GREY, is_dashed=True),
            title="Does it know how sure to be?",
            across="probability of the likeliest outcome",
            up="share that was right",
            top=1.0,
        )

    def thresholds(self, decision: str | None = None) -> Any:
        """Draw how much is answered, and how well, by the probability to abstain below.

        Parameters
        ----------
        decision : str, optional
            One decision; all together when left out.
        """
        points = self._detail.coverage_curve
        if decision is not None:
            own = _decision(self._detail, decision).coverage_curve
            points = points if own is UNSET else own
        name = _measured(points)
        measured = [
            (point.threshold, *_ends(measure))
            for point in points
            if isinstance(measure := getattr(point, name), Measure)
        ]
        shares = [(point.threshold, point.coverage) for point in points]
        answered = [(at, share, share, share) for at, share in shares]
        label = name.replace("_", " ")
        return _plane(
            DrawnSeries(label=f"{label} of those answered, 95 % interval", points=measured),
            DrawnSeries(label="share answered", points=answered, color=_ORANGE, is_dashed=True),
            title=f"Answered, and how well{'' if decision is None else f': {decision}'}",
            across="probability to abstain below",
            up=f"{label}, share answered",
            top=1.0 if name == "accuracy" else None,
        )

    def confusion(self, decision: str | None = None) -> Any:
        """Draw which outcome was answered where which was right.

        Parameters
        ----------
        decision : str, optional
            May be left out where there is one alone.
        """
        known = {
            by_decision.decision_id: by_decision.confusion
            for by_decision in self._detail.decisions
            if isinstance(by_decision.confusion, ConfusionMatrix)
        }
        chosen = next(iter(known)) if decision is None and len(known) == 1 else decision
        if chosen not in known:
            raise ValueError(f"Say which decision: {', '.join(known) or 'none has a matrix'}.")
        matrix = known[chosen]
        places = shown_outcomes(matrix)
        names = [matrix.outcomes[i] for i in places]
        counts = [[matrix.counts[i][j] for j in places] for i in places]
        title = f"{chosen}: right (line), answered (column)"
        return _bokeh().cells(names, counts, title, draw_cells(names, counts, title=title))


def shown_outcomes(matrix: ConfusionMatrix) -> list[int]:
    """Return the places of the outcomes that are drawn: the most frequent, in their own order."""
    weight = [
        sum(line) + sum(column)
        for line, column in zip(matrix.counts, zip(*matrix.counts, strict=True), strict=True)
    ]
    most = sorted(range(len(weight)), key=lambda place: -weight[place])[:MOST_OUTCOMES]
    return sorted(most)


@to_plots.register
def _(detail: EvaluationDetail) -> EvaluationPlots:
    return EvaluationPlots(detail)


@to_plots.register
def _(curve: CostCurve) -> Callable[[], Any]:
    def plot() -> Any:
        """Draw a decision's cost by threshold."""
        points = [
            (point.threshold, *_ends(point.cost))
            for point in curve.points
            if point.cost is not None
        ]
        best = [point for point in points if point[0] == curve.best_threshold]
        return _plane(
            DrawnSeries(label="mean cost, 95 % interval", points=points, color=_ORANGE),
            DrawnSeries(label=f"cheapest: {curve.best_threshold:.2f}", points=best, is_line=False),
            title="What it costs",
            across="threshold",
            up="mean cost of a decision",
        )

    return plot


@to_plots.register
def _(gate: Gate) -> Callable[[], Any]:
    def plot() -> Any:
        """Draw the changes that the gate judged on one number line."""
        lines = list(intervals_of(gate))
        if not lines:
            raise ValueError("The gate compared too few decisions to draw; add evaluation rows.")
        measure = measure_of(gate)
        unit = f"change of {measure.replace('_', ' ')} with its 95 % interval"
        drawn = draw_intervals(lines, unit=unit, fall_is_good=measure == "loss")
        return _bokeh().changes(lines, unit, drawn)

    return plot


def _plane(*series: DrawnSeries, title: str, across: str, up: str, top: float | None = None) -> Any:
    drawn = draw_plane(series, title=title, across=across, up=up, top=top)
    return _bokeh().plane(series, title, across, up, drawn)


def _bokeh() -> Any:
    """Return the module that makes figures; raises where Bokeh is not installed."""
    with required_for("A figure"):
        from steelyard.client import bokeh_figures  # noqa: PLC0415  who draws nothing needs none
    return bokeh_figures


def _decision(detail: EvaluationDetail, name: str) -> DecisionMeasures:
    known = {decision.decision_id: decision for decision in detail.decisions}
    if name not in known:
        raise ValueError(f"No decision is called {name!r}; choose among {', '.join(known)}.")
    return known[name]


def _measured(points: list[CoveragePoint]) -> str:
    return (
        "accuracy"
        if any(isinstance(point.accuracy, Measure) for point in points)
        else ("expected_reward")
    )


def _ends(measure: Measure) -> tuple[float, float, float]:
    """Return a measure and the ends of its interval, which are itself where it has none."""
    low = measure.value if measure.low is None else measure.low
    return measure.value, low, measure.value if measure.high is None else measure.high
