"""Figures over time: a small chart for each, and every point opens the decisions behind it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from operator import attrgetter
from typing import Any

import panel as pn
import panel_material_ui as pmui
from bokeh.models import BoxAnnotation, ColumnDataSource, Legend, Span
from panel.viewable import Viewable

from steelyard.client import Client
from steelyard.decision_log.wire import DecisionSeries, SeriesPoint
from steelyard.errors import SteelyardError
from steelyard.wire.measures import Measure
from steelyard_workbench.kit.basics import Boxed, small_text, stack
from steelyard_workbench.kit.components import figures
from steelyard_workbench.kit.components.mark_table import mark_table
from steelyard_workbench.kit.page import Loaded
from steelyard_workbench.kit.theme import BLUE, GREEN, GREY, ORANGE, SERIES
from steelyard_workbench.kit.views import empty, heading
from steelyard_workbench.kit.words import measure_text
from steelyard_workbench.pages.live.charts import unit_of
from steelyard_workbench.pages.live.figures import clock, share_text, time_text, with_table
from steelyard_workbench.parts.evaluations.charts import measure_or_none
from steelyard_workbench.parts.live.view import AnswerFilter, View

#: Windows that can be chosen: seconds, and seconds of a point.
SPANS = {"last 24 hours": 86_400, "last 7 days": 604_800, "last 30 days": 2_592_000}
_WIDTHS = {86_400: 3600, 604_800: 21_600, 2_592_000: 86_400}
#: Seconds after which a series is fetched again, while the page is looked at.
_RENEW_S = 300.0
#: Two charts stand side by side beside the menu of a window of 1280 pixels.
_CHART_PX, _CHART_HEIGHT_PX = 490, 230
_MARKERS = ("circle", "square", "triangle", "diamond", "inverted_triangle", "hex", "star", "plus")
Open = Callable[[AnswerFilter], None]
Value = Callable[[SeriesPoint], Measure | None]


@dataclass(frozen=True, slots=True)
class Promise:
    """An evaluation's accuracy and Brier score, as a promise."""

    evaluation_id: str
    accuracy: Measure | None
    brier: Measure | None


@dataclass(frozen=True, slots=True)
class Fetched:
    """A series, and the evaluation of its model."""

    series: DecisionSeries
    promise: Promise | None


@dataclass(frozen=True, slots=True)
class _Line:
    """A figure of a chart."""

    name: str
    value: Value
    color: str
    marker: str = "circle"
    has_interval: bool = True


class OverTime(Boxed):
    """Decisions over time in the page's ``view``; ``open_`` gets the filter of those behind a point."""

    def __init__(self, client: Client, view: Callable[[], View], open_: Open) -> None:
        super().__init__()
        self._client, self._view, self._open = client, view, open_
        self._tables: set[str] = set()
        self._fetched_at = 0.0
        self.span = pmui.Select(label="Span", options=SPANS, value=86_400, width=180, size="small")
        self.part = Loaded("The figures over time", self._fetch, self._show, is_late=True)
        pn.bind(lambda _: self.part.start(), self.span, watch=True)
        self._box = stack(heading("Over time"), self.span, self.part)

    async def renew(self) -> None:
        """Fetch figures older than some minutes again; the present ones stay until then."""
        if time.monotonic() - self._fetched_at >= _RENEW_S:
            await self.part.refresh(quietly=True)

    def _fetch(self) -> Fetched:
        self._fetched_at = time.monotonic()
        view, span = self._view(), int(self.span.value)
        width, now = _WIDTHS[span], time.time()
        series = self._client.decision_series(
            since=math.floor((now - span) / width + 1) * width,
            bucket_s=width,
            model=view.model or None,
            named=view.named or None,
            decision=view.decision or None,
        )
        return Fetched(series, fetch_promise(self._client, view))

    def _show(self, fetched: Fetched) -> Viewable:
        series = fetched.series
        if not any(point.answers for point in series.data):
            span = next(name for name, seconds in SPANS.items() if seconds == self.span.value)
            return empty(f"No decision was stored in the {span}.")
        return stack(
            pn.FlexBox(*show_charts(fetched, self._open), gap="10px"),
            small_text(_notes(fetched)),
            with_table(
                "Show the figures over time as a table", _table(series, self._open), self._tables
            ),
        )


def fetch_promise(client: Client, view: View) -> Promise | None:
    """Return the measures of the evaluation that the model is watched by; ``None`` of several models."""
    try:
        watched = client.alarms.rules().watched
        compared = [
            watched_model
            for watched_model in watched
            if watched_model.reference is not None
            and watched_model.reference.evaluation_id is not None
            and view.model in {"", watched_model.model, watched_model.version}
        ]
        if len({watched_model.model for watched_model in compared}) != 1:
            return None
        # Numbers that answered last are first.
        of = compared[0].reference
        evaluation_id = "" if of is None else of.evaluation_id or ""
        detail = client.evaluations.detail(evaluation_id)
    except SteelyardError:
        return None  # the dataset, and its evaluations, may be gone
    measures = detail.overall
    if view.decision:
        metrics = [
            decision.metrics
            for decision in detail.decisions
            if decision.decision_id == view.decision
        ]
        if not metrics:
            return None
        measures = metrics[0]
    return Promise(
        evaluation_id, measure_or_none(measures.accuracy), measure_or_none(measures.brier)
    )


def show_charts(fetched: Fetched, open_: Open) -> list[Viewable]:
    """Show a chart for each figure that has points."""
    series, promise = fetched.series, fetched.promise
    accuracy = None if promise is None else promise.accuracy
    brier = None if promise is None else promise.brier
    rates = [_Line("abstained", attrgetter("abstain_rate"), ORANGE)]
    if any(point.escalation_rate and point.escalation_rate.value for point in series.data):
        rates.append(_Line("asked a further model", attrgetter("escalation_rate"), GREEN, "square"))
    times = [
        _Line("half within", attrgetter("latency_p50_ms"), BLUE, has_interval=False),
        _Line("95 % within", attrgetter("latency_p95_ms"), ORANGE, "square", has_interval=False),
    ]
    charts = [
        _chart(
            series,
            "Right on feedback",
            "share",
            [_Line("right", attrgetter("accuracy"), BLUE)],
            open_,
            has_feedback=True,
            band=accuracy,
        ),
        _chart(
            series,
            "Squared miss on feedback, less is better",
            "Squared miss",
            [_Line("Squared miss", attrgetter("brier"), BLUE)],
            open_,
            has_feedback=True,
            band=brier,
        ),
        _chart(series, "Shares of the answers", "share", _outcome_lines(series), open_),
        _chart(series, "Abstained or went on", "share", rates, open_),
        _chart(series, "Time to answer", "ms", times, open_),
        _cost_chart(series, open_),
    ]
    return [
        pn.Column(figures.show(chart), width=_CHART_PX) for chart in charts if chart is not None
    ]


def _chart(
    series: DecisionSeries,
    title: str,
    unit: str,
    lines: Sequence[_Line],
    open_: Open,
    *,
    has_feedback: bool = False,
    band: Measure | None = None,
) -> Any | None:
    """Draw lines over time; return ``None`` when no line has a point."""
    drawn_lines = [line for line in lines if any(line.value(point) for point in series.data)]
    if not drawn_lines:
        return None
    chart = _empty(series, title, unit)
    if band is not None:
        _draw_band(chart, band)
    legend = []
    for line in drawn_lines:
        points = [point for point in series.data if line.value(point) is not None]
        values = [measure for point in points if (measure := line.value(point)) is not None]
        source = ColumnDataSource(
            {
                "at": [(point.start + series.bucket_s / 2) * 1000 for point in points],
                "from": [clock(point.start) for point in points],
                **figures.interval_columns(values),
                "told": [_measure_in_words(measure, unit) for measure in values],
                "name": [line.name] * len(points),
            }
        )
        if line.has_interval:
            figures.intervals(chart, source, base="at", low="low", high="high")
        # A line is broken where a stretch has nothing.
        every = [(point.start + series.bucket_s / 2, line.value(point)) for point in series.data]
        drawn = chart.line(
            [at * 1000 for at, _ in every],
            [math.nan if measure is None else measure.value for _, measure in every],
            color=line.color,
            line_width=1.5,
        )
        marks = chart.scatter(
            "at", "value", source=source, marker=line.marker, color=line.color, size=8
        )
        legend.append((line.name, [drawn, marks]))
        chart.hover.renderers = [*_renderers(chart), marks]
        behind = [_rows_of(series, point, has_feedback) for point in points]
        figures.on_tap(chart, source, lambda place, behind=behind: open_(behind[place]))  # type: ignore[misc]
    if len(drawn_lines) > 1:
        chart.add_layout(Legend(items=legend, orientation="horizontal", ncols=4), "below")
    chart.hover.tooltips = [("", "@name"), ("from", "@from UTC"), ("", "@told")]
    chart.y_range.start = 0
    chart.y_range.end = 1 if unit == "share" else 1.05 * _most(drawn_lines, series, band)
    return chart


def _cost_chart(series: DecisionSeries, open_: Open) -> Any | None:
    costs = [Decimal(point.cost_usd or 0) for point in series.data]
    if not any(costs):
        return None
    chart = _empty(series, "Cost", "USD")
    source = ColumnDataSource(
        {
            "at": [(point.start + series.bucket_s / 2) * 1000 for point in series.data],
            "from": [clock(point.start) for point in series.data],
            "value": [float(cost) for cost in costs],
            "told": [f"{point.cost_usd} USD" for point in series.data],
        }
    )
    chart.vbar(x="at", top="value", width=series.bucket_s * 860, source=source, color=BLUE)
    chart.hover.tooltips = [("from", "@from UTC"), ("", "@told")]
    chart.y_range.start = 0
    figures.on_tap(chart, source, lambda place: open_(_rows_of(series, series.data[place])))
    return chart


def _empty(series: DecisionSeries, title: str, unit: str) -> Any:
    first, last = series.data[0].start, series.data[-1].start + series.bucket_s
    return figures.plot(
        title,
        "",
        unit,
        height=_CHART_HEIGHT_PX,
        x_axis_type="datetime",
        x_range=(first * 1000, last * 1000),
        tools="hover,tap",
    )


def _draw_band(chart: Any, band: Measure) -> None:
    if band.low is not None and band.high is not None:
        chart.add_layout(
            BoxAnnotation(
                bottom=band.low,
                top=band.high,
                fill_color=GREEN,
                fill_alpha=0.18,
                line_color=None,
                level="underlay",
            )
        )
    chart.add_layout(
        Span(location=band.value, dimension="width", line_color=GREY, line_dash="dashed")
    )


def _renderers(chart: Any) -> list[Any]:
    renderers = chart.hover.renderers
    return list(renderers) if isinstance(renderers, list) else []


def _most(lines: Sequence[_Line], series: DecisionSeries, band: Measure | None) -> float:
    """Return the largest value that is drawn, ends of intervals included."""
    drawn = [measure for line in lines for point in series.data if (measure := line.value(point))]
    has_intervals = any(line.has_interval for line in lines)
    tops = [
        measure.high if has_intervals and measure.high is not None else measure.value
        for measure in drawn
    ]
    if band is not None:
        tops.append(band.value if band.high is None else band.high)
    return max(tops) or 1.0


def _rows_of(
    series: DecisionSeries, point: SeriesPoint, has_feedback: bool = False
) -> AnswerFilter:
    since = max(point.start, series.since)
    until = min(point.start + series.bucket_s, series.until)
    name = f"of {clock(since)} to {clock(until)} UTC"
    if has_feedback:
        return AnswerFilter(
            name=f"{name} with feedback", since=since, until=until, has_feedback=True
        )
    return AnswerFilter(name=name, since=since, until=until)


def _outcome_lines(series: DecisionSeries) -> list[_Line]:
    has_several = len({outcome.decision for outcome in series.outcomes}) > 1
    return [
        _Line(
            f"{outcome.decision}: {outcome.outcome}" if has_several else outcome.outcome,
            lambda point, place=place: point.outcomes[place],  # type: ignore[misc]
            SERIES[place % len(SERIES)],
            _MARKERS[place % len(_MARKERS)],
            has_interval=False,
        )
        for place, outcome in enumerate(series.outcomes)
    ]


def _table(series: DecisionSeries, open_: Open) -> Viewable:
    points = [point for point in series.data if point.answers or Decimal(point.cost_usd or 0)]
    columns = (
        "from, UTC",
        "answers",
        "right on feedback",
        "Squared miss",
        "abstained",
        "asked further",
        "half within",
        "95 % within",
        "USD",
        *(f"{outcome.decision}: {outcome.outcome}" for outcome in series.outcomes),
    )
    rows = [
        (
            clock(point.start),
            f"{point.answers:,}",
            _one_line(*share_text(point.accuracy)),
            "—" if point.brier is None else _measure_in_words(point.brier, "Squared miss"),
            _one_line(*share_text(point.abstain_rate)),
            _one_line(*share_text(point.escalation_rate)),
            _one_line(*time_text(point.latency_p50_ms)),
            _one_line(*time_text(point.latency_p95_ms)),
            point.cost_usd or "—",
            *("—" if share is None else f"{share.value:.1%}" for share in point.outcomes),
        )
        for point in points
    ]
    return mark_table(
        columns,
        rows,
        label=f"Figures by {unit_of(series.bucket_s)}",
        open_=lambda place: open_(_rows_of(series, points[place])),
        numbers=(1,),
    )


def _notes(fetched: Fetched) -> str:
    series, promise = fetched.series, fetched.promise
    every = (
        f"A point for each {unit_of(series.bucket_s)}, with 95 % intervals where they are drawn."
    )
    sentences = [every, "Times are UTC. Click a point to see its decisions below."]
    if series.is_sampled:
        read = sum(point.answers_read for point in series.data)
        n = sum(point.answers for point in series.data)
        sentences.append(f"Figures are of {read:,} of the {n:,} answers, evenly chosen.")
    if not any(point.accuracy for point in series.data):
        sentences.append("No feedback yet, so nothing says how often it is right.")
    elif promise is not None:
        sentences.append(
            f"Dashed lines and green bands are what the evaluation {promise.evaluation_id} measured."
        )
    if series.outcomes_left_out:
        sentences.append(f"{series.outcomes_left_out:,} answers that are rarer are left out.")
    return " ".join(sentences)


def _measure_in_words(measure: Measure, unit: str) -> str:
    if unit == "share":
        return _one_line(*share_text(measure))
    if unit == "ms":
        return _one_line(*time_text(measure))
    return measure_text(measure)


def _one_line(value: str, rest: str) -> str:
    return value if value == "—" else f"{value} ({rest})"
