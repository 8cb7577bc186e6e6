"""A finished map: its points, their colours, and actions on the selected ones."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable, Viewer

from steelyard.client import Client
from steelyard.datasets.filters import MAX_PLACES
from steelyard.datasets.wire import Example
from steelyard.evaluations.wire import Evaluation
from steelyard.maps.wire import DatasetMap, MapPoints, MapValues
from steelyard_workbench.kit.basics import action_button, small_text, stack
from steelyard_workbench.kit.components.choices import Choice, Choices
from steelyard_workbench.kit.components.side_by_side import side_by_side
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.states import loading
from steelyard_workbench.kit.tasks import Scope, Task, Write
from steelyard_workbench.pages.map.chart import MapChart
from steelyard_workbench.pages.map.colouring import (
    COLOURS_BY,
    OF_ANSWERS,
    ColourBy,
    colour,
)
from steelyard_workbench.parts.datasets.row_detail import show_row
from steelyard_workbench.parts.evaluations.listing import options_of
from steelyard_workbench.parts.review.row_filter import RowFilter, write_query
from steelyard_workbench.parts.review.sending import draft_of

_BY: dict[str, ColourBy] = {by.capitalize(): by for by in COLOURS_BY}
_MOST_EVALUATIONS = 50
_DETAIL_WIDTH = 360
_NO_EVALUATION = "Evaluate a model on the dataset to colour rows by its errors and its confidence."


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
        evaluations = options_of(mapped.evaluations, _name_of)
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
        self.review_button = pmui.Button(label="", variant="contained", visible=False)
        self.send = Write(
            self._send,
            "Not sent to review:",
            self._problem,
            refused="Send to review",
            scope=self._scope,
        )
        self.review_button.on_click(self.send.on_event)
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
            self.session.open(
                "review",
                dataset=draft.dataset_id,
                version=draft.dataset_version,
                draft=draft.id,
                query=write_query(RowFilter(places=rows), "all"),
            )


def _known_or_first(requested: str, names: list[str]) -> str | None:
    return requested if requested in names else next(iter(names), None)


def _name_of(evaluation: Evaluation) -> str:
    return f"{evaluation.model_label}, version {evaluation.dataset_version}"
