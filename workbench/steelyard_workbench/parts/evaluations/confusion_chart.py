"""The chart of a confusion matrix; each cell can be clicked for the decisions behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource

from steelyard.client.plots import shown_outcomes
from steelyard.evaluations.wire import ConfusionMatrix
from steelyard_workbench.kit.components import figures
from steelyard_workbench.kit.components.numbers import percent_text
from steelyard_workbench.kit.theme import GREY

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


def confusion_chart(
    decision_id: str,
    matrix: ConfusionMatrix,
    open_: Callable[[str, str], None] | None = None,
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
            "fill": [_blend(share) for share in shares],
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


def _blend(share: float) -> str:
    mixed = (round(a + (b - a) * share) for a, b in zip(_FAINTEST, _FULLEST, strict=True))
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def _ink(share: float) -> str:
    """Return black or white, whichever has the contrast of 4.5 to 1 on a cell of that share."""
    # Relative luminance as WCAG 2.2 defines it; at 0.179 both have the same contrast.
    channels = np.array([a + (b - a) * share for a, b in zip(_FAINTEST, _FULLEST, strict=True)])
    linear = ((channels / 255 + 0.055) / 1.055) ** 2.4
    return "#ffffff" if float(linear @ np.array([0.2126, 0.7152, 0.0722])) < 0.179 else "#000000"
