"""Bokeh figures that show themselves in a cell as a picture: scripts in it would make it megabytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bokeh.plotting import figure

from steelyard.client.drawings import DrawnInterval, DrawnSeries

_BLUE, _GREY = "#0072b2", "#888888"


def plane(series: Sequence[DrawnSeries], title: str, across: str, up: str, drawn: str) -> figure:
    """Return series over a plane, with their intervals."""
    made = _figure(title, drawn, x_axis_label=across, y_axis_label=up, width=520, height=400)
    for curve in series:
        x, y, low, high = ([point[at] for point in curve.points] for at in range(4))
        style = {"color": curve.color, "legend_label": curve.label}
        if curve.is_line:
            made.varea(x, low, high, fill_color=curve.color, fill_alpha=0.2)
            made.line(x, y, line_dash="dashed" if curve.is_dashed else "solid", width=2, **style)
        else:
            made.segment(x, low, x, high, color=curve.color, width=2)
            made.scatter(x, y, size=9, **style)
    made.add_layout(made.legend[0], "below")
    return made


def cells(names: Sequence[str], counts: Sequence[Sequence[int]], title: str, drawn: str) -> figure:
    """Return a matrix of counts."""
    side = 160 + 46 * len(names)
    made = _figure(
        title,
        drawn,
        x_range=list(names),
        y_range=list(reversed(names)),
        height=side,
        width=max(side, 480),
    )
    drawn_cells = [
        (right, answered, count, count / (sum(line) or 1))
        for right, line in zip(names, counts, strict=True)
        for answered, count in zip(names, line, strict=True)
    ]
    rights, answereds, numbers, shares = (list(column) for column in zip(*drawn_cells, strict=True))
    made.rect(
        answereds,
        rights,
        1,
        1,
        fill_color=_BLUE,
        line_color=_GREY,
        fill_alpha=[share * 0.55 for share in shares],
    )
    texts = [f"{number:,}" for number in numbers]
    made.text(answereds, rights, texts, text_align="center", text_baseline="middle")
    made.xaxis.major_label_orientation = 0.6
    made.grid.visible = False
    return made


def changes(lines: Sequence[DrawnInterval], unit: str, drawn: str) -> figure:
    """Return changes with their intervals on one number line, the first at the top."""
    names = [line.label for line in lines]
    made = _figure(
        "", drawn, x_axis_label=unit, y_range=names[::-1], width=520, height=90 + 40 * len(names)
    )
    made.segment([line.low for line in lines], names, [line.high for line in lines], names, width=2)
    made.scatter([line.change for line in lines], names, size=9, color=_BLUE)
    made.vspan(0, line_color=_GREY, line_dash="dashed")
    return made


def _figure(title: str, drawn: str, **given: Any) -> figure:
    made = figure(title=title, toolbar_location="right", **given)
    made.toolbar.logo = None
    # On the figure and not on a class of its own, which would take the place of Bokeh's wherever
    # figures are read.
    vars(made)["_repr_html_"] = lambda: drawn
    return made
