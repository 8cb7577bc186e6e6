"""Charts of live decisions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bokeh.models import BoxAnnotation, ColumnDataSource

from steelyard.decision_log.wire import DecisionSummary
from steelyard_workbench.kit.components import figures
from steelyard_workbench.kit.theme import BLUE, ORANGE, YELLOW


def unit_of(bucket_s: int) -> str:
    """Return a stretch of time in words."""
    for seconds, singular, plural in ((3600, "hour", "hours"), (60, "minute", "minutes")):
        if bucket_s % seconds == 0:
            n = bucket_s // seconds
            return singular if n == 1 else f"{n} {plural}"
    return f"{bucket_s} seconds"


def rate_chart(
    summary: DecisionSummary,
    open_: Callable[[int], None] | None = None,
    bands: Sequence[tuple[float, float]] = (),
) -> Any:
    """Draw decisions a minute over the window, those that abstained on top; bands are times."""
    buckets, source = summary.buckets, _source_of(summary)
    chart = figures.plot(
        f"Decisions a minute, a bar for each {unit_of(summary.bucket_s)}",
        "time, UTC",
        "decisions a minute",
        height=260,
        x_axis_type="datetime",
        x_range=(buckets[0].start * 1000, (buckets[-1].start + summary.bucket_s) * 1000),
    )
    chart.vbar_stack(
        ["acted", "abstained"],
        x="at",
        width=summary.bucket_s * 1000 * 0.86,
        source=source,
        color=[BLUE, ORANGE],
        # Told apart without colour too.
        hatch_pattern=[" ", "/"],
        hatch_color="#ffffff",
        hatch_alpha=0.8,
        line_color=None,
        legend_label=["acted", "abstained"],
    )
    for since, until in bands:
        chart.add_layout(
            BoxAnnotation(
                left=since * 1000,
                right=until * 1000,
                level="underlay",
                fill_color=YELLOW,
                fill_alpha=0.2,
                line_color=YELLOW,
            )
        )
    chart.y_range.start = 0
    if not any(bucket.decisions for bucket in buckets):
        chart.y_range.end = 1
    figures.legend_below(chart, "horizontal")
    chart.hover.tooltips = [
        ("from", "@start{%H:%M:%S}"),
        ("decisions", "@n{0,0}"),
        ("abstained", "@n_abstained{0,0}"),
        ("with feedback", "@n_told{0,0}"),
    ]
    chart.hover.formatters = {"@start": "datetime"}
    if open_ is not None:
        figures.on_tap(chart, source, open_)
    return chart


def _source_of(summary: DecisionSummary) -> ColumnDataSource:
    buckets, minutes = summary.buckets, summary.bucket_s / 60
    return ColumnDataSource(
        {
            "at": [(bucket.start + summary.bucket_s / 2) * 1000 for bucket in buckets],
            "start": [bucket.start * 1000 for bucket in buckets],
            "acted": [(bucket.decisions - bucket.abstained) / minutes for bucket in buckets],
            "abstained": [bucket.abstained / minutes for bucket in buckets],
            "n": [bucket.decisions for bucket in buckets],
            "n_abstained": [bucket.abstained for bucket in buckets],
            "n_told": [bucket.with_feedback for bucket in buckets],
        }
    )
