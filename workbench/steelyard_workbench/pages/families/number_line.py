"""Changes on one number line: the 95 % interval of each against 0 and against the margin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bokeh.models import ColumnDataSource, Span

from steelyard_workbench.kit.components import figures
from steelyard_workbench.kit.theme import BLUE, GREY, ORANGE

_ROW = 34
_MOST_LABEL = 40


@dataclass(frozen=True, slots=True)
class Line:
    """One change, after minus before, with its 95 % interval."""

    label: str
    change: float
    low: float
    high: float
    n: int
    limit: float | None = None
    is_worse: bool = False


def number_line(
    title: str,
    lines: Sequence[Line],
    *,
    measure: str,
    fall_is_good: bool,
    open_: Callable[[int], None],
) -> Any:
    """Draw changes, the first at the top; clicking one opens the rows behind it."""
    places = [float(len(lines) - i) for i in range(len(lines))]
    side = "left" if fall_is_good else "right"
    chart = figures.plot(
        title,
        f"change of {measure} with its 95 % interval; {side} of 0 is better",
        "",
        height=90 + _ROW * max(1, len(lines)),
        x_range=_range(lines),
        y_range=(0.4, len(lines) + 0.6),
    )
    source = ColumnDataSource(
        {
            "y": places,
            "x": [line.change for line in lines],
            "low": [line.low for line in lines],
            "high": [line.high for line in lines],
            "n": [line.n for line in lines],
            "name": [line.label for line in lines],
            "color": [ORANGE if line.is_worse else BLUE for line in lines],
            "marker": ["inverted_triangle" if line.is_worse else "circle" for line in lines],
        }
    )
    figures.intervals(chart, source, base="y", low="low", high="high", dimension="width")
    marks = chart.scatter(
        x="x", y="y", size=11, marker="marker", color="color", line_color=GREY, source=source
    )
    limits = [(line.limit, y) for line, y in zip(lines, places, strict=True) if line.limit]
    if limits:
        look = {"line_color": GREY, "line_width": 2.5, "line_dash": "dotted"}
        x, low = [x for x, _ in limits], [y - 0.35 for _, y in limits]
        chart.segment(x0=x, x1=x, y0=low, y1=[y + 0.35 for _, y in limits], **look)
    chart.add_layout(Span(location=0, dimension="height", line_color=GREY, line_width=1.5))
    chart.yaxis.ticker = places
    chart.yaxis.major_label_overrides = {
        place: _tick(line) for place, line in zip(places, lines, strict=True)
    }
    chart.ygrid.visible = False
    tooltips = [
        ("", "@name"),
        ("change", "@x{+0.0000} (@low{+0.0000} to @high{+0.0000})"),
        ("decisions", "@n{0,0}"),
    ]
    figures.explain(chart, tooltips, marks=marks, source=source, open_=open_)
    return chart


def _range(lines: Sequence[Line]) -> tuple[float, float]:
    """Return a range with 0, every interval and every limit in it, and some room beside them."""
    ends = [0.0, *(end for line in lines for end in (line.low, line.high, line.limit or 0.0))]
    room = 0.06 * (max(ends) - min(ends)) or 0.01
    return min(ends) - room, max(ends) + room


def _tick(line: Line) -> str:
    label = line.label if len(line.label) <= _MOST_LABEL else f"{line.label[:_MOST_LABEL]}…"
    worse = ", worse" if line.is_worse else ""
    return f"{label} (n = {line.n:,}{worse})"
