"""Versions in pictures: how their sides grew, and which labels went where."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bokeh.models import ColumnDataSource

from steelyard.datasets.wire import DatasetVersion
from steelyard_workbench.kit.components import figures
from steelyard_workbench.kit.components.bar_list import Bar, BarChart, BarList
from steelyard_workbench.kit.theme import BLUE, ORANGE
from steelyard_workbench.pages.versions.changes import Transition

#: Versions that are drawn, the newest.
MOST_VERSIONS = 30
#: Pixels of a cell, and the colours of the emptiest and the fullest one, as red, green and blue.
_CELL = 46
_PALE, _FULL = (0xDC, 0xEF, 0xFB), (0x56, 0xB4, 0xE9)


def draw_sides(versions: Sequence[DatasetVersion], open_: Callable[[int], None]) -> BarList:
    """Draw the rows of each side, a bar a version; a bar opens its version."""
    drawn = versions[:MOST_VERSIONS]
    most = max((version.rows for version in drawn), default=0) or 1
    bars: list[Bar] = []
    for version in drawn:
        sides = (version.split.training, version.split.evaluation)
        text = f"{sides[0]:,} + {sides[1]:,}"
        parts = [n / most for n in sides]
        bars.append({"name": f"version {version.version}", "parts": parts, "text": text})
    series = [("to train on", BLUE), ("for the check", ORANGE)]
    chart: BarChart = {"title": "Rows by side", "series": series, "bars": bars}
    return BarList([chart], lambda _, bar: open_(drawn[bar].version))


def draw_transitions(
    decision: str,
    counts: Mapping[Transition, int],
    open_: Callable[[Transition], None],
) -> Any:
    """Draw a matrix of the labels of one decision that changed; a cell opens its rows."""
    transitions = [transition for transition in counts if transition.decision == decision]
    outcomes = sorted(
        {name for transition in transitions for name in (transition.before, transition.after)}
    )
    most = max(counts[transition] for transition in transitions)
    source = ColumnDataSource(
        {
            "before": [transition.before for transition in transitions],
            "after": [transition.after for transition in transitions],
            "n": [counts[transition] for transition in transitions],
            "color": [_shade(counts[transition] / most) for transition in transitions],
        }
    )
    total = sum(counts[transition] for transition in transitions)
    chart = figures.plot(
        f"{decision}: texts whose label changed (n = {total:,})",
        "to",
        "from",
        height=130 + _CELL * len(outcomes),
        x_range=outcomes,
        y_range=list(reversed(outcomes)),
    )
    chart.rect(
        x="after",
        y="before",
        width=0.94,
        height=0.94,
        source=source,
        color="color",
        line_color=None,
    )
    # The cells are light in both themes, so that the numbers in them can be black.
    chart.text(
        x="after",
        y="before",
        text="n",
        source=source,
        text_align="center",
        text_baseline="middle",
        text_color="black",
    )
    chart.hover.tooltips = [("from", "@before"), ("to", "@after"), ("contexts", "@n{0,0}")]
    chart.xaxis.major_label_orientation = 0.6
    figures.on_tap(chart, source, lambda place: open_(transitions[place]))
    return chart


def _shade(share: float) -> str:
    """Return a colour between a pale and a full sky blue; ``share`` is 0 to 1."""
    mixed = (round(pale + (full - pale) * share) for pale, full in zip(_PALE, _FULL, strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)
