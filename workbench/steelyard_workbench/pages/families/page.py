"""Families: model lines by name, the gate of every model, and changes to a family."""

from __future__ import annotations

from typing import Any

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.datasets.wire import Dataset
from steelyard.families.wire import Family, FamilyList
from steelyard_workbench.kit.basics import action_button, stack
from steelyard_workbench.kit.components.mark_table import mark_table
from steelyard_workbench.kit.page import Loaded, Page
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.views import empty, heading, verdict
from steelyard_workbench.kit.words import ago, escape_markdown
from steelyard_workbench.pages.evaluations.page import offered_datasets
from steelyard_workbench.pages.families.one_family import OneFamily
from steelyard_workbench.pages.families.start_form import FamilyForm
from steelyard_workbench.parts.datasets.names import no_datasets
from steelyard_workbench.parts.datasets.next_steps import START
from steelyard_workbench.parts.families.labels import (
    CONTINUE,
    continue_of,
    continue_text,
    move_text,
    right_of_gate,
    switch_text,
)


class FamiliesPage(Page):
    """The families, or one of them."""

    slug = "families"
    title = "Model lines"
    summary = "Models under one name: each newer one passed a check before it answers."
    watched = ("family",)
    look_ms = 3000

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.one: OneFamily | None = None

    def open(self) -> None:
        """Show the families, or the one that the address names, and look after it."""
        super().open()
        if self.one is not None:
            if self.session.view == CONTINUE:
                self.session.view = ""  # asked once, and not whenever the page is shown again
                self.one.arrive.scope = self.visit
                self.one.arrive.start()
        else:
            self._poller.stop()

    def build(self) -> list[Viewable]:
        """Return the list and the form of a new family, or one family."""
        if self.session.family:
            self.one = OneFamily(self.session)
            self.part(self.one.loaded)
            return [self.one]
        self.one = None
        self.families = Loaded("The model lines", self.client.families.list, self.show_list)
        self.datasets = Loaded("The datasets", self._growable, self.show_start, n_lines=2)
        every = [self.part(self.families)]
        start = [heading("Start a model line"), self.part(self.datasets)]
        return [*start, *every] if self.session.view == START else [*every, *start]

    def on_key(self, action: str, _: int) -> bool:
        """Close the question that is open, or go through the held-out rows."""
        if action == "close" and self.one is not None:
            self.one.close_dialog()
            return True
        rows = None if self.one is None else self.one.rows
        return rows is not None and rows.on_key(action)

    def on_session(self, *_: Any) -> None:
        """Show the family that is chosen now, or all."""
        self.open()

    def show_list(self, families: FamilyList) -> Viewable:
        """Show the families whose name contains the search."""
        if not families.data:
            return empty(
                "**No model lines yet.** Train one on your own rows: programs ask it by its name, and "
                "each newer version passes a check before it answers."
            )
        search = pmui.TextInput(label="Find by name", width=260)
        place = stack()

        def fill(text: str) -> None:
            matching = [family for family in families.data if text.lower() in family.id]
            place[:] = self._table(matching)
            if not matching:
                clear = action_button(
                    "Clear the search",
                    lambda _: search.param.update(value="", value_input=""),
                    variant="contained",
                )
                named = escape_markdown(text)
                none_match = f"0 of {len(families.data)} model lines have “{named}” in their name."
                place[:] = [empty(none_match, clear)]

        pn.bind(fill, search.param.value_input, watch=True)
        fill("")
        return stack(search, place)

    def show_start(self, datasets: list[Dataset]) -> Viewable:
        """Show the form of a new family."""
        if not datasets:
            return no_datasets(self.session, "A model line grows on the training rows of one.")
        choose = self.session.param.update
        self.form = FamilyForm(
            self.client,
            datasets,
            self.session.dataset,
            lambda job: choose(family=job.family or "", job=""),
            self.visit,
        )
        return self.form.__panel__()

    def _table(self, families: list[Family]) -> list[Viewable]:
        """Return the model lines with the served model of each, and those that wait to move."""
        choose = self.session.param.update
        lines = mark_table(
            ("model line", "answers", "right", "used", "next"),
            [
                (
                    family.id,
                    _serves(family),
                    _right(family),
                    ago(family.used_at),
                    continue_text(continue_of(family)),
                )
                for family in families
            ],
            label="Model lines",
            open_=lambda place: choose(family=families[place].id, job=""),
            opens="Open it",
            links=[self.session.address("families", family=family.id) for family in families],
        )
        waiting = [
            verdict("unsure", f"{family.id} waits to move.", move_text(family.move))
            for family in families
            if family.move is not None
        ]
        return [lines, *waiting] if families else []

    def _growable(self) -> list[Dataset]:
        datasets = offered_datasets(self.client, self.session.dataset)
        return [dataset for dataset in datasets if not dataset.evaluation_only]

    async def look(self) -> None:
        """Bring the family that is shown up to date."""
        if self.one is not None and self.session.is_connected:
            await self.one.look()


def _serves(family: Family) -> str:
    """Return in words which model of a line answers."""
    if family.served is None:
        return "no model yet"
    served = family.served.ref
    return served if family.switched_on else f"{switch_text(family)}; {served} once it is on"


def _right(family: Family) -> str:
    """Return how often the model that answers is right on rows that it never saw, before and now."""
    gate = None if family.served is None else family.served.gate
    right = None if gate is None else right_of_gate(gate)
    return "" if right is None else f"{right} of {right.n_answers:,} answers"
