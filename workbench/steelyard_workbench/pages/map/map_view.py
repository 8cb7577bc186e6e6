"""A finished map: its points, their colours, and actions on the selected ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import panel as pn
import panel_material_ui as pmui
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

from steelyard.client import Client
from steelyard.datasets.filters import MAX_PLACES
from steelyard.datasets.wire import Example
from steelyard.evaluations.wire import Evaluation
from steelyard.maps.wire import DatasetMap, MapPoints, MapValues
from steelyard_workbench.kit.basics import Boxed, action_button, small_text, stack
from steelyard_workbench.kit.components import figures
from steelyard_workbench.kit.components.choices import Choice, Choices
from steelyard_workbench.kit.components.side_by_side import side_by_side
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.tasks import Scope, Task, Write
from steelyard_workbench.kit.views import loading
from steelyard_workbench.pages.map.colouring import (
    COLOURS_BY,
    OF_ANSWERS,
    ColourBy,
    Colouring,
    colour,
)
from steelyard_workbench.parts.datasets.row_table import show_row
from steelyard_workbench.parts.evaluations.listing import options_of
from steelyard_workbench.parts.review.row_filter import RowFilter, write_query
from steelyard_workbench.parts.review.sending import draft_of, open_draft

_BY: dict[str, ColourBy] = {by.capitalize(): by for by in COLOURS_BY}
_MOST_EVALUATIONS = 50
_DETAIL_WIDTH = 360
_NO_EVALUATION = "Evaluate a model on the dataset to colour rows by its errors and its confidence."
TITLE = "Rows by likeness"
#: Pixels of the figure, and of a point: fewer the more there are.
_HEIGHT = 600
_LEAST, _MOST = 3.0, 9.0
#: Points that are drawn while the figure is moved: drawing more takes a processor, where there is
#: no graphics card, longer than a frame.
_MOVING = 4_000
#: Draws a few points in the place of all, or all again. Without a graphics card, copying WebGL's canvas
#: into the figure's takes longer than a frame, and BokehJS copies it for hidden glyphs too: the few
#: are of a glyph that it draws without WebGL, and that of all needs no copy while hidden.
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


@dataclass(frozen=True, slots=True)
class Mapped:
    """A map with its points, and their possible colours."""

    map: DatasetMap
    points: MapPoints
    decisions: list[str]
    evaluations: list[Evaluation]


def fetch_mapped(client: Client, dataset_map: DatasetMap, *, has_answers: bool) -> Mapped:
    """Return the parts to show of a finished map, with models' answers where the role may see them."""
    facets = client.datasets.facets(dataset_map.dataset_id, version=dataset_map.dataset_version)
    listed: Iterable[Evaluation] = ()
    if has_answers:
        listed = client.evaluations.list(dataset_map.dataset_id, status="succeeded")
    return Mapped(
        dataset_map,
        client.maps.points(dataset_map.id),
        sorted(facets["expected"]),
        list(islice(listed, _MOST_EVALUATIONS)),
    )


class MapView(Viewer):
    """The map, with its colours at its top and the selected rows beside it."""

    def __init__(self, session: Session, mapped: Mapped, scope: Scope | None = None) -> None:
        super().__init__()
        self.session, self.mapped = session, mapped
        self._scope = scope or Scope()
        self.selected: list[int] = []
        colours = {
            word: by
            for word, by in _BY.items()
            if by not in OF_ANSWERS or session.may_change  # who reviews sees no model's answers
        }
        by: ColourBy = session.view if session.view in colours.values() else "label"
        self.by = pmui.Select(label="Colour by", options=colours, value=by, width=160, size="small")
        self._decision = pmui.Select(
            label="Decision",
            options=mapped.decisions,
            width=220,
            size="small",
            value=_known_or_first(session.decision, mapped.decisions),
        )
        evaluations = options_of(
            mapped.evaluations, lambda each: f"{each.model_label}, version {each.dataset_version}"
        )
        self._evaluation = pmui.Select(
            label="Evaluation",
            options=evaluations,
            width=300,
            size="small",
            value=_known_or_first(session.evaluation, list(evaluations.values())),
        )
        self._problem = stack()
        self.colouring = colour("side", mapped.points, None)
        self.chart = MapChart(mapped.points, self.colouring, self._on_selected)
        self._legend = Choices([], layout="row", is_small=True)
        self.recolour = Task(self._recolour, "Not coloured:", self._problem, scope=self._scope)
        self.send = Write(
            self._send,
            "Not sent to review:",
            self._problem,
            refused="Send to review",
            scope=self._scope,
        )
        self.review_button = action_button(
            "", self.send.on_event, variant="contained", visible=False
        )
        self._clear = action_button(
            "Clear the selection", lambda _: self.chart.select([]), variant="text", visible=False
        )
        self._limit = small_text("", visible=False)
        self._detail = pn.Column(width=_DETAIL_WIDTH, visible=False)
        self.open_row = Task(
            self._open_row, "Could not load the row.", self._detail, scope=self._scope
        )
        pn.bind(self._on_choice, self.by, self._decision, self._evaluation, watch=True)
        self._fit_choices()
        self._show_legend()

    def __panel__(self) -> Viewable:
        dataset_map = self.mapped.map
        text = f"{dataset_map.points:,} rows of version {dataset_map.dataset_version}, laid out by {dataset_map.model}."
        if dataset_map.points < dataset_map.rows:
            text = (
                f"{dataset_map.points:,} of the {dataset_map.rows:,} rows of version {dataset_map.dataset_version}, "
                f"taken at even distances, laid out by {dataset_map.model}."
            )
        text += (
            " Rows near each other are alike; directions, and distances between clusters, mean "
            "little. Draw around rows to choose them; the wheel zooms, and a click opens one."
        )
        return stack(
            small_text(text),
            pn.FlexBox(self.by, self._decision, self._evaluation, align_items="center"),
            *(
                []
                if self.mapped.evaluations or not self.session.may_change
                else [small_text(_NO_EVALUATION)]
            ),
            self._legend,
            # As high without them: points that were drawn around stay where they are.
            pn.FlexBox(
                self.review_button,
                self._clear,
                self._limit,
                align_items="center",
                styles={"min-height": "46px"},
            ),
            self._problem,
            side_by_side(self.chart, self._detail),
        )

    @property
    def rows(self) -> list[int]:
        """Places in the dataset of the rows that are selected, as many as a review takes."""
        index, places = self.mapped.points.index, self.selected
        if len(places) > MAX_PLACES:
            places = [places[n * len(places) // MAX_PLACES] for n in range(MAX_PLACES)]
        return sorted(index[place] for place in places)

    # Colours

    def _on_choice(self, *_: Any) -> None:
        self.session.param.update(
            view=self.by.value,
            decision=self._decision.value or "",
            evaluation=self._evaluation.value or "",
        )
        self._fit_choices()
        self.recolour.start()

    def _fit_choices(self) -> None:
        """Show the choices that the colour is of."""
        by = self.by.value
        self._decision.visible = by != "side" and bool(self.mapped.decisions)
        self._evaluation.visible = by in OF_ANSWERS and bool(self.mapped.evaluations)

    async def _recolour(self) -> None:
        by: ColourBy = self.by.value
        values: MapValues | None = None
        decision, evaluation = self._decision.value, self._evaluation.value
        if by != "side" and decision and (evaluation or by not in OF_ANSWERS):
            values = await asyncio.to_thread(
                self.session.client.maps.values,
                self.mapped.map.id,
                decision,
                evaluation=evaluation if by in OF_ANSWERS else None,
            )
        self._problem[:] = []
        self.colouring = colour(by, self.mapped.points, values)
        self.chart.colour(self.colouring)
        self._show_legend()

    def _show_legend(self) -> None:
        """Show each group with its colour and its number; a press selects it."""
        groups = zip(
            self.colouring.names, self.colouring.colors, self.colouring.counts, strict=True
        )
        self._legend.offer(
            [
                Choice(
                    f"{name} ({count:,})",
                    partial(self._select_group, group),
                    look="text",
                    colour=color,
                )
                for group, (name, color, count) in enumerate(groups)
                if count
            ]
        )

    def _select_group(self, group: int) -> None:
        self.chart.select(self.colouring.members(group))

    # The rows that are selected

    def _on_selected(self, places: Sequence[int]) -> None:
        self.selected = list(places)
        n = len(self.selected)
        self._clear.visible = n > 0
        self.review_button.visible = n > 0 and self.session.may_change
        rows = "this row" if n == 1 else f"these {min(n, MAX_PLACES):,} rows"
        self.review_button.label = f"Review {rows}"
        self._limit.visible = n > MAX_PLACES
        self._limit.object = f"Of {n:,} that are selected: a review takes {MAX_PLACES:,} at a time."
        if n == 1:
            self._detail[:] = [loading(6, "The row")]
            self._detail.visible = True
            self.open_row.start(self.mapped.points.index[self.selected[0]])
        else:
            self.open_row.drop()
            self._detail.visible = False
            self._detail[:] = []

    async def _open_row(self, index: int) -> None:
        dataset_map = self.mapped.map
        page = await asyncio.to_thread(
            self.session.client.datasets.search,
            dataset_map.dataset_id,
            where={"type": "index", "at_least": index, "below": index + 1},
            version=dataset_map.dataset_version,
            limit=1,
        )
        row: Example = page.data[0]
        place = self.mapped.points.index.index(index)
        side = "evaluation" if self.mapped.points.is_evaluation[place] else "training"
        self._detail[:] = [show_row(index, side, row)]

    async def _send(self) -> None:
        dataset_map, rows = self.mapped.map, tuple(self.rows)
        draft = await asyncio.to_thread(
            draft_of, self.session.client, dataset_map.dataset_id, dataset_map.dataset_version
        )
        if not self._scope.say_if_ended(f"The review {draft.name} has the rows that were chosen."):
            open_draft(self.session, draft, query=write_query(RowFilter(places=rows), "all"))


def _known_or_first(requested: str, names: list[str]) -> str | None:
    return requested if requested in names else next(iter(names), None)


class MapChart(Boxed):
    """The figure; ``on_selected`` is called with the places of the selected points."""

    def __init__(
        self, points: MapPoints, colouring: Colouring, on_selected: Callable[[list[int]], None]
    ) -> None:
        super().__init__()
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
        self.source.selected.on_change("indices", lambda _name, _old, new: on_selected(sorted(new)))
        self.figure = chart
        self._box = stack(figures.show(chart))

    def colour(self, colouring: Colouring) -> None:
        """Colour the points by other groups."""
        columns = {"color": colouring.pixels(), "told": list(colouring.descriptions)}
        figures.change(self.figure, lambda: self.source.data.update(columns))

    def select(self, places: Sequence[int]) -> None:
        """Select points."""
        figures.change(self.figure, lambda: self.source.selected.update(indices=list(places)))


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
