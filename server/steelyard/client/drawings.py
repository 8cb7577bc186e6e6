"""Small drawings for notebooks, as SVG inside the page: no script, no file, every text escaped.

Lines and texts take the page's own colour, so that they are seen on light and on dark; the meaning of a
colour is also said in words beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

_BLUE, _GREEN, _RED = "#2f6f9f", "#2e8b57", "#c0392b"
_GREY = "rgba(128,128,128,0.6)"
#: Characters of an outcome's name beside a matrix.
_MOST_NAME = 18
_DASHES = ' stroke-dasharray="3 2"'
_FONT = 'font-family="sans-serif" font-size="11" fill="currentColor"'


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnInterval:
    """A change with its 95 % interval, in the drawing's unit, as a line of it."""

    label: str
    change: float
    low: float
    high: float


def draw_intervals(intervals: Sequence[DrawnInterval], *, unit: str, fall_is_good: bool) -> str:
    """Draw changes, at least one, on one number line with zero on it and its unit below."""
    left, width, row = 110, 330, 22
    low = min(0.0, *(interval.low for interval in intervals))
    high = max(0.0, *(interval.high for interval in intervals))
    span = high - low or 1.0
    low, high = low - span * 0.08, high + span * 0.08

    def x(value: float) -> float:
        return left + (value - low) / (high - low) * width

    bottom = row * len(intervals) + 6
    parts = [
        _line(left, bottom, left + width, bottom),
        _line(x(0), 2, x(0), bottom + 4, is_dashed=True),
        _text(x(0), bottom + 16, "0", "middle"),
    ]
    for number, interval in enumerate(intervals):
        y = row * number + 13
        color = _color_of(interval, fall_is_good=fall_is_good)
        parts += [
            _text(left - 8, y + 4, interval.label, "end"),
            _line(x(interval.low), y, x(interval.high), y, color=color, width=2),
            _line(x(interval.low), y - 4, x(interval.low), y + 4, color=color, width=2),
            _line(x(interval.high), y - 4, x(interval.high), y + 4, color=color, width=2),
            _circle(x(interval.change), y, 4, color, fill=color),
            _text(left + width + 8, y + 4, f"{interval.change:+.4f}", "start"),
        ]
    better = ("left", "right")[not fall_is_good]
    parts.append(_text(left + width / 2, bottom + 30, f"{unit}; {better} of 0 is better", "middle"))
    description = "; ".join(
        f"{interval.label}: {interval.change:+.4f}, 95 % interval {interval.low:+.4f} to {interval.high:+.4f}"
        for interval in intervals
    )
    return _svg(left + width + 70, bottom + 36, description, parts)


def draw_curve(points: Sequence[tuple[float, float]], *, across: str, up: str) -> str:
    """Draw a curve, of at least one point, with its first and last value."""
    left, top, width, height = 60, 8, 380, 110
    xs, ys = [point[0] for point in points], [point[1] for point in points]
    wide, tall = (max(xs) - min(xs)) or 1.0, (max(ys) - min(ys)) or 1.0

    def place(point: tuple[float, float]) -> tuple[float, float]:
        x, y = point
        return (
            left + (x - min(xs)) / wide * width,
            top + height - (y - min(ys)) / tall * height,
        )

    bottom = top + height
    parts = [
        _line(left, bottom, left + width, bottom),
        _line(left, top, left, bottom),
        f'<polyline points="{_path([*map(place, points)])}" fill="none" stroke="{_BLUE}" stroke-width="1.5"></polyline>',
        _circle(*place(points[-1]), 3, _BLUE, fill=_BLUE),
        _text(left - 6, top + 8, f"{max(ys):.3g}", "end"),
        _text(left - 6, bottom, f"{min(ys):.3g}", "end"),
        _text(left, bottom + 14, f"{min(xs):g}", "start"),
        _text(left + width, bottom + 14, f"{max(xs):g}", "end"),
        _text(left + width / 2, bottom + 14, f"{up} by {across}", "middle"),
    ]
    description = f"{up} by {across}: {ys[0]:.4g} at {xs[0]:g}, {ys[-1]:.4g} at {xs[-1]:g}"
    return _svg(left + width + 12, bottom + 20, description, parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnModel:
    """A model on the drawing of a lineage: full where it is served, and faint where it is gone."""

    label: str
    note: str = ""
    is_served: bool = False
    is_gone: bool = False


def draw_line(stops: Sequence[DrawnModel]) -> str:
    """Draw models, at least one, in a row, oldest first."""
    gap, y = 76, 30
    parts = []
    for number, stop in enumerate(stops):
        x = 40 + gap * number
        if number:
            parts.append(_line(x - gap + 9, y, x - 9, y))
        fill = _BLUE if stop.is_served else "none"
        color = _GREY if stop.is_gone else _BLUE
        parts += [
            _circle(x, y, 8, color, fill=fill, is_dashed=stop.is_gone),
            _text(x, y + 24, stop.label, "middle"),
            _text(x, y - 14, stop.note, "middle"),
        ]
    description = ", ".join(f"{stop.label} {stop.note}".strip() for stop in stops)
    return _svg(80 + gap * (len(stops) - 1), y + 34, description, parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnSeries:
    """Points on a plane as x, y and the ends of y's 95 % interval: joined by a line, or each alone."""

    label: str
    points: Sequence[tuple[float, float, float, float]]
    color: str = _BLUE
    is_line: bool = True
    is_dashed: bool = False


def draw_plane(
    series: Sequence[DrawnSeries], *, title: str, across: str, up: str, top: float | None = None
) -> str:
    """Draw series over x from 0 to 1, with their intervals; y goes from 0 to ``top`` or the largest."""
    left, above, width, height = 52, 26, 380, 240
    most = (
        top or max((point[3] for plotted in series for point in plotted.points), default=0.0) or 1.0
    )

    def place(x: float, y: float) -> tuple[float, float]:
        return left + x * width, above + height - min(y, most) / most * height

    bottom = above + height
    parts = [_text(left, 14, title, "start"), _line(left, above, left, bottom)]
    for step in range(6):
        x, y = left + step / 5 * width, bottom - step / 5 * height
        parts += [
            _line(left, y, left + width, y, is_dashed=step > 0),
            _text(left - 6, y + 4, f"{step / 5 * most:.3g}", "end"),
            _text(x, bottom + 15, f"{step / 5:.1f}", "middle"),
        ]
    for number, plotted in enumerate(series):
        parts += _series(plotted, place)
        y = bottom + 50 + 16 * number
        parts += [
            _line(
                left,
                y - 4,
                left + 22,
                y - 4,
                color=plotted.color,
                width=2,
                is_dashed=plotted.is_dashed,
            ),
            _text(left + 28, y, plotted.label, "start"),
        ]
    parts.append(_text(left + width / 2, bottom + 31, f"{up}, by {across}", "middle"))
    description = f"{title}: {up}, by {across}. {'; '.join(plotted.label for plotted in series)}"
    return _svg(left + width + 12, bottom + 40 + 16 * len(series), description, parts)


def _series(series: DrawnSeries, place: Callable[[float, float], tuple[float, float]]) -> list[str]:
    """Return the marks of a series: a band and a line, or a point with a whisker each."""
    parts = []
    dots = [place(x, y) for x, y, _, _ in series.points]
    ends = [(place(x, low), place(x, high)) for x, _, low, high in series.points]
    if series.is_line:
        band = [high for _, high in ends] + [low for low, _ in reversed(ends)]
        dashes = _DASHES if series.is_dashed else ""
        style = f'fill="none" stroke="{series.color}" stroke-width="2"{dashes}'
        parts += [
            f'<polygon points="{_path(band)}" fill="{series.color}" fill-opacity="0.2"></polygon>',
            f'<polyline points="{_path(dots)}" {style}></polyline>',
        ]
    else:
        for (x, y), ((_, low), (_, high)) in zip(dots, ends, strict=True):
            parts += [
                _line(x, low, x, high, color=series.color, width=2),
                _circle(x, y, 4, series.color, fill=series.color),
            ]
    return parts


def draw_cells(names: Sequence[str], counts: Sequence[Sequence[int]], *, title: str) -> str:
    """Draw a matrix of counts; a cell is the fuller the larger its share of its line."""
    side, left, above = 46, 130, 26
    width, bottom = side * len(names), above + side * len(names)
    parts = [_text(8, 14, title, "start")]
    for i, (name, line) in enumerate(zip(names, counts, strict=True)):
        y = above + side * i
        x = left + side * (i + 0.5)
        turned = f'<g transform="rotate(35 {x:.1f} {bottom + 14})">'
        parts += [
            _text(left - 8, y + side / 2 + 4, _cut(name), "end"),
            f"{turned}{_text(x, bottom + 14, _cut(name), 'start')}</g>",
        ]
        for j, count in enumerate(line):
            # A full cell is not opaque: the page's own ink stays readable on it, light and dark.
            share = count / (sum(line) or 1) * 0.55
            style = f'fill="{_BLUE}" fill-opacity="{share:.2f}" stroke="{_GREY}"'
            x = left + side * j
            parts += [
                f'<rect x="{x}" y="{y}" width="{side}" height="{side}" {style}></rect>',
                _text(x + side / 2, y + side / 2 + 4, f"{count:,}", "middle"),
            ]
    return _svg(left + width + 90, bottom + 90, title, parts)


def _cut(name: str) -> str:
    return name if len(name) <= _MOST_NAME else f"{name[: _MOST_NAME - 1]}…"


def _path(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def _color_of(interval: DrawnInterval, *, fall_is_good: bool) -> str:
    is_better, is_worse = interval.high < 0, interval.low > 0
    if not fall_is_good:
        is_better, is_worse = is_worse, is_better
    return _GREEN if is_better else _RED if is_worse else _BLUE


def _line(
    x1: float,
    y1: float,
    x2: float,
    y2: float,
    *,
    color: str = _GREY,
    width: float = 1,
    is_dashed: bool = False,
) -> str:
    dashes = _DASHES if is_dashed else ""
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}" '
        f'stroke-width="{width:g}"{dashes}></line>'
    )


def _circle(
    x: float, y: float, radius: float, color: str, *, fill: str, is_dashed: bool = False
) -> str:
    dashes = _DASHES if is_dashed else ""
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" fill="{fill}" stroke="{color}" '
        f'stroke-width="2"{dashes}></circle>'
    )


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {_FONT}>{escape(text)}</text>'


def _svg(width: float, height: float, description: str, parts: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width:g}" '
        f'height="{height:g}" viewBox="0 0 {width:g} {height:g}" '
        f'style="max-width:100%"><title>{escape(description)}</title>{"".join(parts)}</svg>'
    )
