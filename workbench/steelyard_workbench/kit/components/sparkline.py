"""A line of a few values, as high as the text beside it: a picture that a screen reader reads."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import panel as pn

_WIDTH, _HEIGHT, _EDGE = 120, 24, 3


def sparkline(values: Sequence[float], label: str) -> pn.pane.HTML:
    """Return values from left to right as an inline picture in the colour of the text.

    Parameters
    ----------
    values : sequence of float
        Two or more.
    label : str
        What the picture says, in words.
    """
    low, spread = min(values), max(values) - min(values)
    across, up = (_WIDTH - 2 * _EDGE) / (len(values) - 1), _HEIGHT - 2 * _EDGE
    heights = [(value - low) / spread if spread else 0.5 for value in values]
    points = [
        (_EDGE + place * across, _HEIGHT - _EDGE - height * up)
        for place, height in enumerate(heights)
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    x, y = points[-1]
    return pn.pane.HTML(
        f'<svg role="img" aria-label="{escape(label)}" width="{_WIDTH}" height="{_HEIGHT}" '
        f'viewBox="0 0 {_WIDTH} {_HEIGHT}"><title>{escape(label)}</title>'
        f'<polyline points="{line}" fill="none" stroke="currentColor" stroke-width="1.5"/>'
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="currentColor"/></svg>',
        margin=(0, 10),
    )
