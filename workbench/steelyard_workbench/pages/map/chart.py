"""The points of a map as a WebGL figure: panned, zoomed, described, clicked and lassoed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from bokeh.models import (
    BoxSelectTool,
    CDSView,
    ColumnDataSource,
    CustomJS,
    IndexFilter,
    LassoSelectTool,
    TapTool,
)
from panel.viewable import Viewable, Viewer

from steelyard.maps.wire import MapPoints
from steelyard_workbench.kit.basics import stack
from steelyard_workbench.kit.components import figures
from steelyard_workbench.pages.map.colouring import Colouring

TITLE = "Rows by likeness"
#: Pixels of the figure, and of a point: fewer the more there are.
_HEIGHT = 600
_LEAST, _MOST = 3.0, 9.0
#: Points that are drawn while the figure is moved: drawing more takes a processor, where there is
#: no graphics card, longer than a frame.
_MOVING = 4_000
#: Draws a few points in the place of all, or all again. Without a graphics card, copying WebGL's canvas
#: into the figure's takes longer than a frame, and BokehJS copies it for hidden glyphs too: the few
#: are of a glyph that it draws without WebGL, and that of all is told to need no copy while hidden.
_SWITCH = """
const view = Bokeh.index.find_one(every);
if (view != null && !Object.hasOwn(view, "has_webgl")) {
  Object.defineProperty(view, "has_webgl", {
    get() { return this.model.visible && this.glyph.has_webgl(); },
  });
}
every.visible = !moving;
few.visible = moving;
"""
#: Share of the points that the axes leave out at each end, and the room beside the others.
_OUTSIDE, _ROOM = 0.005, 0.05


class MapChart(Viewer):
    """The figure; ``on_selected`` is called with the places of the selected points."""

    def __init__(
        self,
        points: MapPoints,
        colouring: Colouring,
        on_selected: Callable[[list[int]], None],
    ) -> None:
        super().__init__()
        self._on_selected = on_selected
        self.source = ColumnDataSource(
            {
                "x": np.array(points.x, dtype=np.float32),
                "y": np.array(points.y, dtype=np.float32),
                "row": np.array(points.index, dtype=np.int32),
                "text": list(points.text),
                "color": colouring.pixels(),
                "told": list(colouring.descriptions),
            }
        )
        chart = figures.plot(
            TITLE,
            "",
            "",
            height=_HEIGHT,
            x_range=span_of(points.x),
            y_range=span_of(points.y),
            output_backend="webgl" if len(points.x) > _MOVING else "canvas",
            active_scroll="wheel_zoom",
        )
        # BokehJS would draw a tenth of the points while the figure is moved, in grey.
        chart.lod_threshold = None
        # The axes have no meaning: only nearness has.
        chart.axis.visible = chart.grid.visible = False
        size = float(np.clip(600 / np.sqrt(max(len(points.x), 1)), _LEAST, _MOST))
        marks = {
            "size": size,
            "fill_color": "color",
            "line_color": None,
            "fill_alpha": 0.8,
            "nonselection_fill_alpha": 0.1,
        }
        every = chart.scatter("x", "y", source=self.source, **marks)
        chart.hover.renderers = [every]
        _thin_while_moving(chart, every, self.source, marks, len(points.x))
        # A selection is drawn when the button is let go: each change on the way would be sent.
        lasso = LassoSelectTool(continuous=False, renderers=[every])
        chart.add_tools(lasso, BoxSelectTool(continuous=False, renderers=[every]))
        chart.select_one(TapTool).renderers = [every]
        chart.toolbar.active_drag = lasso
        chart.toolbar.autohide = False
        chart.hover.tooltips = [("row", "@row{0,0}"), ("", "@told"), ("", "@text")]
        self.source.selected.on_change("indices", self._selected)
        self.figure = chart
        self._pane = figures.show(chart)

    def __panel__(self) -> Viewable:
        return stack(self._pane)

    def colour(self, colouring: Colouring) -> None:
        """Colour the points by other groups."""
        columns = {"color": colouring.pixels(), "told": list(colouring.descriptions)}
        figures.change(self.figure, lambda: self.source.data.update(columns))

    def select(self, places: Sequence[int]) -> None:
        """Select points."""
        figures.change(self.figure, lambda: self.source.selected.update(indices=list(places)))

    def _selected(self, _: str, __: Sequence[int], new: Sequence[int]) -> None:
        self._on_selected(sorted(new))


def span_of(values: Sequence[float]) -> tuple[float, float]:
    """Return the ends of an axis: those of 99 % of the points, so that a few far ones shrink none.

    >>> span_of([0.0, 1.0])
    (-0.0445, 1.0445)
    >>> span_of([0.5])
    (-0.5, 1.5)
    """
    if not len(values):
        return -1.0, 1.0
    low, high = (float(end) for end in np.quantile(values, (_OUTSIDE, 1 - _OUTSIDE)))
    room = _ROOM * (high - low) if high > low else 1.0
    return round(low - room, 6), round(high + room, 6)


def _thin_while_moving(
    chart: Any, every: Any, source: ColumnDataSource, marks: dict[str, Any], n_points: int
) -> None:
    """Draw some of many points in the place of all while the figure is panned and zoomed."""
    if n_points <= _MOVING:
        return
    some = [place * n_points // _MOVING for place in range(_MOVING)]
    across = {"value": marks["size"], "units": "screen"}
    few = chart.ellipse(
        "x",
        "y",
        source=source,
        view=CDSView(filter=IndexFilter(some)),
        visible=False,
        width=across,
        height=across,
        **{name: value for name, value in marks.items() if name != "size"},
    )
    for event, moving in (("lodstart", True), ("lodend", False)):
        args = {"every": every, "few": few, "moving": moving}
        chart.js_on_event(event, CustomJS(args=args, code=_SWITCH))
