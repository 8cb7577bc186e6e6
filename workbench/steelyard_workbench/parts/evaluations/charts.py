"""Charts of an evaluation's measures; the page and the report draw the same ones.

Every mark has its number of decisions and its interval at hand, and calls with its place when it is
clicked, so that the decisions behind it can be shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, FixedTicker, LinearAxis, Span

from steelyard.client.display_evaluations import MEASURES, change_of, measure_of
from steelyard.client.plots import shown_outcomes
from steelyard.evaluations.wire import (
    ComparisonTable,
    ConfusionMatrix,
    CostCurve,
    CoveragePoint,
    DecisionMeasures,
    EvaluationDetail,
    SliceTable,
)
from steelyard.wire.measures import Measure, ReliabilityRow
from steelyard_workbench.kit.components import figures
from steelyard_workbench.kit.theme import BLUE, GREEN, GREY, ORANGE
from steelyard_workbench.kit.words import cut, measure_text, named_text, percent_text

Open = Callable[[int], None]
#: Measures that are better when they are smaller.
FALLING = frozenset({"loss", "brier", "ece"})
#: Title of how often contexts do not say.
UNSTATED = "not said in the text"
#: Title of how far people agree, who labelled the same rows apart.
PEOPLE = "people agree on"
#: What each measure is called, with its unit.
TITLES = {
    "accuracy": "share right",
    "loss": "loss",
    "brier": "squared miss",
    "ece": "gap between sure and right",
    "expected_reward": "expected reward",
    "scaled_reward": "scaled reward",
    "picked_best": "picked the best",
}
#: Slices of fewer decisions are drawn in grey: their intervals are as wide as the chart.
FEW = 30
#: Slices of fewer decisions have no figure: it would say more than they can.
FEWEST = 10
#: What is said wherever many slices are shown.
CHANCE = (
    "Each interval is for its slice alone: of twenty slices like all the others, about one stands "
    "out by chance."
)
#: The most rows of a forest plot.
MOST_SLICES = 40
_LONGEST_NAME = 44
_TEXT = {
    "text_align": "center",
    "text_baseline": "middle",
    "text_font_size": "12px",
    "text_color": "ink",
    "nonselection_text_alpha": 1.0,
}
_TOOLTIPS = [
    ("right", "@target"),
    ("answered", "@top"),
    ("n", "@count{0,0}"),
    ("share of the line", "@share{0.0%}"),
]
_FAINTEST, _FULLEST = (0xEA, 0xF3, 0xFB), (0x00, 0x45, 0x6B)


@dataclass(frozen=True, slots=True)
class ForestRow:
    """One line of a forest plot."""

    name: str
    value: float
    #: Ends of the 95 % interval.
    low: float | None
    high: float | None
    n: int
    #: The property and the value that cut it out; empty for none.
    by: str = ""
    of: str = ""

    @property
    def is_small(self) -> bool:
        """Whether so few decisions are in it that it says little."""
        return self.n < FEW

    @property
    def is_measured(self) -> bool:
        """Whether enough decisions are in it to give a figure."""
        return self.n >= FEWEST


def reliability_chart(
    rows: Sequence[ReliabilityRow], open_: Open | None = None, *, people: Measure | None = None
) -> Any:
    """Draw accuracy against promise, a point for each bin with decisions, and how far people agree."""
    filled = _filled_bins(rows)
    source = ColumnDataSource(
        {
            "x": [rows[i].mean_top_probability for i in filled],
            **figures.interval_columns([row.accuracy for row in rows if row.n and row.accuracy]),
            "bin": [bin_name(rows[i]) for i in filled],
        }
    )
    chart = figures.plot(
        "How often it is right against how sure it is",
        "mean probability of the answer",
        "share right, with 95 % intervals",
        height=360,
        x_range=(0, 1.02),
        y_range=(-0.03, 1.03),  # whole marks at both ends
    )
    chart.line(
        [0, 1], [0, 1], color=GREY, line_dash="dashed", legend_label="as right as it is sure"
    )
    figures.intervals(chart, source, base="x", low="low", high="high")
    if people is not None:
        label = f"{PEOPLE} {percent_text(people.value)}"
        chart.line([0, 1], [people.value] * 2, color=GREEN, width=2, legend_label=label)
    points = chart.scatter(
        "x", "value", source=source, size=11, color=BLUE, legend_label="bin of decisions"
    )
    figures.legend_below(chart)
    tooltips = [
        ("promised", "@bin"),
        ("mean", "@x{0.000}"),
        ("accuracy", "@value{0.000} (@interval)"),
        ("n", "@n{0,0}"),
    ]
    figures.explain(chart, tooltips, marks=points, source=source, open_=open_, places=filled)
    return chart


def bin_counts_chart(rows: Sequence[ReliabilityRow], open_: Open | None = None) -> Any:
    """Draw how many decisions each bin has; as ``reliability_chart``."""
    filled = _filled_bins(rows)
    centres = [(rows[i].low + rows[i].high) / 2 for i in filled]
    source = ColumnDataSource(
        {"x": centres, "n": [rows[i].n for i in filled], "bin": [bin_name(rows[i]) for i in filled]}
    )
    chart = figures.plot(
        "",
        "decisions in each bin of promised probability",
        "decisions",
        height=150,
        x_range=(0, 1.02),
    )
    bars = chart.vbar("x", top="n", width=0.09, source=source, color=BLUE)
    chart.y_range.start = 0
    chart.xaxis.ticker = FixedTicker(ticks=centres)
    chart.xaxis.major_label_overrides = {
        centre: f"{rows[i].n:,}" for centre, i in zip(centres, filled, strict=True)
    }
    tooltips = [("promised", "@bin"), ("n", "@n{0,0}")]
    figures.explain(chart, tooltips, marks=bars, source=source, open_=open_, places=filled)
    return chart


def bin_name(row: ReliabilityRow) -> str:
    """Return the name of a bin.

    >>> bin_name(ReliabilityRow(low=0.3, high=0.4, n=0, mean_top_probability=None, accuracy=None))
    '0.3 to 0.4'
    """
    return f"{row.low:.1f} to {row.high:.1f}"


def coverage_chart(
    points: Sequence[CoveragePoint], *, at: float | None = None, open_: Open | None = None
) -> Any:
    """Draw the share answered and its quality, by the threshold for abstaining."""
    name = coverage_measure(points)
    measures = [(i, measure_or_none(getattr(point, name))) for i, point in enumerate(points)]
    known = [(i, measure) for i, measure in measures if measure is not None]
    source = ColumnDataSource(
        {
            "x": [points[i].threshold for i, _ in known],
            **figures.interval_columns([measure for _, measure in known]),
            "coverage": [points[i].coverage for i, _ in known],
        }
    )
    chart = figures.plot(
        "Answered, and how well, by threshold",
        "abstain when the top probability is below",
        f"share answered; {TITLES[name]} of those",
        height=320,
        x_range=(0, 1),
    )
    if name != "expected_reward":
        chart.y_range.start, chart.y_range.end = 0, 1.02
    dots = _line(chart, source, TITLES[name])
    chart.step(
        "x",
        "coverage",
        source=source,
        color=ORANGE,
        width=2,
        line_dash="dashed",
        mode="after",
        legend_label="share answered",
    )
    figures.legend_below(chart)
    tooltips = [
        ("threshold", "@x{0.00}"),
        ("share answered", "@coverage{0.0%}"),
        (TITLES[name], "@value{0.000} (@interval)"),
        ("n", "@n{0,0}"),
    ]
    _mark_threshold(chart, at)
    places = [i for i, _ in known]
    figures.explain(chart, tooltips, marks=dots, source=source, open_=open_, places=places)
    return chart


def coverage_measure(points: Sequence[CoveragePoint]) -> str:
    """Return the name of the measure of the answered decisions."""
    return next(
        (
            name
            for name in ("accuracy", "scaled_reward", "expected_reward")
            if isinstance(getattr(points[0], name), Measure)
        ),
        "accuracy",
    )


def cost_chart(
    curve: CostCurve, *, x: str, at: float | None = None, open_: Open | None = None
) -> Any:
    """Draw the mean cost by threshold, with the best one marked."""
    measures = [
        (i, measure_or_none(point.cost_in_all) or measure_or_none(point.cost))
        for i, point in enumerate(curve.points)
    ]
    points = [(i, measure) for i, measure in measures if measure is not None]
    source = ColumnDataSource(
        {
            "x": [curve.points[i].threshold for i, _ in points],
            **figures.interval_columns([measure for _, measure in points]),
            "coverage": [curve.points[i].coverage for i, _ in points],
        }
    )
    chart = figures.plot(
        "Expected cost of a decision by threshold",
        x,
        "mean cost, with its 95 % interval",
        height=320,
        x_range=(0, 1),
    )
    dots = _line(chart, source, "mean cost")
    best = [
        (i, measure) for i, measure in points if curve.points[i].threshold == curve.best_threshold
    ]
    chart.scatter(
        [curve.best_threshold for _ in best],
        [measure.value for _, measure in best],
        marker="diamond",
        size=16,
        color=GREEN,
        legend_label=f"cheapest: {curve.best_threshold:.2f}",
    )
    if isinstance(curve.calibrated_threshold, float):
        chart.line(
            [curve.calibrated_threshold] * 2,
            [0, max((measure.value for _, measure in points), default=1.0)],
            color=ORANGE,
            line_dash="dashed",
            width=2,
            legend_label=f"cheapest if as sure as it is right: {curve.calibrated_threshold:.2f}",
        )
    figures.legend_below(chart)
    tooltips = [
        ("threshold", "@x{0.00}"),
        ("mean cost", "@value{0.0000} (@interval)"),
        ("acted on", "@coverage{0.0%}"),
        ("n", "@n{0,0}"),
    ]
    _mark_threshold(chart, at)
    places = [i for i, _ in points]
    figures.explain(chart, tooltips, marks=dots, source=source, open_=open_, places=places)
    return chart


def _line(chart: Any, source: ColumnDataSource, name: str) -> Any:
    """Draw values by threshold in the band of their intervals; return their dots."""
    chart.varea("x", "low", "high", source=source, color=BLUE, alpha=0.2)
    chart.line("x", "value", source=source, color=BLUE, width=2, legend_label=name)
    return chart.scatter("x", "value", source=source, size=6, color=BLUE)


def _mark_threshold(chart: Any, at: float | None) -> None:
    if at is not None:
        chart.add_layout(Span(location=at, dimension="height", line_color=GREY, line_width=2))


def forest_chart(
    rows: Sequence[ForestRow],
    *,
    title: str,
    x: str,
    reference: float | None = None,
    people: Measure | None = None,
    open_: Open | None = None,
) -> Any:
    """Draw values with intervals, the first at the top, their numbers, and how far people agree."""
    places = list(range(len(rows) - 1, -1, -1))
    measures = [Measure(value=row.value, low=row.low, high=row.high, n=row.n) for row in rows]
    source = ColumnDataSource(
        {
            "y": places,
            "name": [row.name for row in rows],
            **figures.interval_columns(measures),
            "color": [GREY if row.is_small else BLUE for row in rows],
        }
    )
    ceiling = [] if people is None else [people.value]
    marked = [] if reference is None else [reference]
    chart = figures.plot(
        title,
        x,
        "",
        height=90 + 26 * max(1, len(rows)) + 40 * len(ceiling),
        x_range=figures.room_for([*source.data["low"], *source.data["high"], *ceiling, *marked]),
        y_range=(-0.7, len(rows) - 0.3),
    )
    for value in ceiling:
        label = f"{PEOPLE} {percent_text(value)}"
        chart.line([value] * 2, [-0.7, len(rows) - 0.3], color=GREEN, width=2, legend_label=label)
        figures.legend_below(chart)
    for value in marked:
        chart.add_layout(
            Span(location=value, dimension="height", line_color=GREY, line_dash="dashed")
        )
    figures.intervals(chart, source, base="y", low="low", high="high", dimension="width")
    points = chart.scatter("value", "y", source=source, size=11, color="color")
    ticker = FixedTicker(ticks=places)
    chart.yaxis.ticker = ticker
    chart.yaxis.major_label_overrides = {
        place: cut(row.name, _LONGEST_NAME) for place, row in zip(places, rows, strict=True)
    }
    counts = LinearAxis(
        ticker=ticker,
        major_label_overrides={
            place: f"n = {row.n:,}" for place, row in zip(places, rows, strict=True)
        },
    )
    chart.add_layout(counts, "right")
    chart.min_border_right = 70
    chart.ygrid.visible = False
    chart.toolbar_location = "above"
    tooltips = [("", "@name"), (x, "@value{0.0000} (@interval)"), ("n", "@n{0,0}")]
    figures.explain(chart, tooltips, marks=points, source=source, open_=open_)
    return chart


def slice_rows(
    measure: str, tables: Sequence[SliceTable], decisions: Sequence[DecisionMeasures] = ()
) -> list[ForestRow]:
    """Return every slice that has a measure, the worst first by the unlucky end of its interval."""
    cut = [("decision", decision.decision_id, decision.metrics) for decision in decisions]
    cut += [(table.by, slice_.value, slice_.metrics) for table in tables for slice_ in table.slices]
    rows = []
    for by, of, metrics in cut:
        if (measured := measure_of(metrics, measure)) is not None:
            rows.append(
                ForestRow(
                    f"{by} = {of}", measured.value, measured.low, measured.high, measured.n, by, of
                )
            )
    return sorted(rows, key=lambda row: _badness(row, measure))


def slice_text(row: ForestRow) -> str:
    """Return the measure of a slice with its interval, or that it has too few decisions.

    >>> slice_text(ForestRow("tier = gold", 1.0, 0.44, 1.0, 3))
    'too few (n = 3)'
    """
    if not row.is_measured:
        return f"too few (n = {row.n:,})"
    return measure_text(Measure(value=row.value, low=row.low, high=row.high, n=row.n))


def sliced_changes(measure: str, tables: Sequence[ComparisonTable]) -> list[ForestRow]:
    """Return the change of a measure in every slice, the worst first."""
    rows = []
    for by, slice_ in ((table.by, slice_) for table in tables for slice_ in table.slices):
        if (changed := change_of(slice_.metrics, measure)) is not None:
            name = f"{by} = {slice_.value}"
            rows.append(
                ForestRow(
                    name, changed.change, changed.low, changed.high, changed.n, by, slice_.value
                )
            )
    return sorted(rows, key=lambda row: _badness(row, measure))


def _badness(row: ForestRow, measure: str) -> tuple[bool, float, str]:
    """Return the sort key of rows: small ones last, then the worst that the interval allows."""
    if measure in FALLING:
        worst = -(row.value if row.high is None else row.high)
    else:
        worst = row.value if row.low is None else row.low
    return row.is_small, worst, row.name


def _filled_bins(rows: Sequence[ReliabilityRow]) -> list[int]:
    return [i for i, row in enumerate(rows) if row.n and row.accuracy]


def measure_or_none(measure: object) -> Measure | None:
    """Return a measure, and ``None`` of anything else."""
    return measure if isinstance(measure, Measure) else None


def headline_of(detail: EvaluationDetail, people: Measure | None = None) -> list[tuple[str, str]]:
    """Return the leading figures of an evaluation with their titles, as they read."""
    measures = [(name, TITLES[name], measure_of(detail.overall, name)) for name in MEASURES]
    measures.insert(1, ("accuracy", PEOPLE, people))
    measures.append(("accuracy", UNSTATED, detail.unstated_rate))
    measures += [
        ("accuracy", f"decided by {step}", share) for step, share in detail.decided_by.items()
    ]
    return [(title, named_text(name, measure)) for name, title, measure in measures if measure]


def confusion_chart(
    decision_id: str, matrix: ConfusionMatrix, open_: Callable[[str, str], None] | None = None
) -> Any:
    """Draw right outcomes against answered ones; ``open_`` is called with both of a cell."""
    places = shown_outcomes(matrix)
    names = [matrix.outcomes[i] for i in places]
    cells = [
        (target, top, matrix.counts[i][j], sum(matrix.counts[i]))
        for i, target in zip(places, names, strict=True)
        for j, top in zip(places, names, strict=True)
    ]
    shares = [count / total if total else 0.0 for _, _, count, total in cells]
    targets, tops, counts, _ = zip(*cells, strict=True)
    source = ColumnDataSource(
        {
            "target": targets,
            "top": tops,
            "count": counts,
            "share": shares,
            "text": [
                f"{count:,}\n{percent_text(share)}" if count else ""
                for count, share in zip(counts, shares, strict=True)
            ],
            "fill": [figures.blend(share, _FAINTEST, _FULLEST) for share in shares],
            "ink": [_ink(share) for share in shares],
            "edge": [3 if target == top else 0.5 for target, top, *_ in cells],
        }
    )
    chart = figures.plot(
        f"{decision_id}: right answer (line) against the model's (column)",
        "answered",
        "right",
        height=110 + 46 * len(names),
        x_range=names,
        y_range=list(reversed(names)),
    )
    look = {"fill_color": "fill", "line_color": GREY, "line_width": "edge"}
    size = {"width": 1, "height": 1}
    chart.rect("top", "target", source=source, nonselection_fill_alpha=0.55, **look, **size)
    chart.text("top", "target", text="text", source=source, **_TEXT)
    chart.xaxis.major_label_orientation = 0.6
    chart.grid.visible = False
    chart.hover.tooltips = _TOOLTIPS
    if open_ is not None:
        figures.on_tap(chart, source, lambda cell: open_(cells[cell][0], cells[cell][1]))
    return chart


def _ink(share: float) -> str:
    """Return black or white, whichever has the contrast of 4.5 to 1 on a cell of that share."""
    # Relative luminance as WCAG 2.2 defines it; at 0.179 both have the same contrast.
    channels = np.array([a + (b - a) * share for a, b in zip(_FAINTEST, _FULLEST, strict=True)])
    linear = ((channels / 255 + 0.055) / 1.055) ** 2.4
    return "#ffffff" if float(linear @ np.array([0.2126, 0.7152, 0.0722])) < 0.179 else "#000000"
