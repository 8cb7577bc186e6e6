"""Outcomes of a column or of a decision: rows, names, descriptions, and merged spellings."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable, Viewer

from steelyard.client.tables import OutcomeEdit, propose_same
from steelyard_workbench.kit.basics import action_button, small_text, stack
from steelyard_workbench.kit.theme import token

#: Pixels of the fields of a value, and of all fields before they are scrolled.
_ROW_HEIGHT, _MOST_HEIGHT = 54, 460
#: The most values whose fields are shown; further ones stay as they are.
MOST_SHOWN = 60


def _text_field(label: str, text: str, *, most: int, width: int) -> pmui.TextInput:
    return pmui.TextInput(label=label, value=text, max_length=most, width=width, size="small")


class OutcomeEditor(Viewer):
    """Edits outcomes: names, descriptions and merges.

    ``counts``: values of the column to their rows, the most first. ``on_change`` is called when a
    person changed something. ``edits``: earlier edits of values. ``is_open`` says whether the fields
    are shown at first.
    """

    def __init__(
        self,
        column: str,
        counts: Mapping[str, int],
        on_change: Callable[[], None],
        *,
        edits: Mapping[str, OutcomeEdit] | None = None,
        is_open: bool = False,
    ) -> None:
        super().__init__()
        self._counts, self._on_change = counts, on_change
        self._is_filling = False
        values = list(counts)[:MOST_SHOWN]
        edit_of = {value: OutcomeEdit(value) for value in values} | dict(edits or {})
        self.names = {
            value: _text_field(f"Name of {value}", edit_of[value].name, most=100, width=200)
            for value in values
        }
        self.descriptions = {
            value: _text_field(
                f"What {value} means", edit_of[value].description, most=500, width=300
            )
            for value in values
        }
        self.same = {
            value: pmui.Select(
                label=f"{value} is the same as",
                options={"—": "", **{other: other for other in values if other != value}},
                value=edit_of[value].same_as if edit_of[value].same_as in values else "",
                width=220,
                size="small",
            )
            for value in values
        }
        self.proposed = {
            value: first
            for value, first in propose_same(counts).items()
            if value in self.same and first in self.same
        }
        self.merge = action_button(
            "", lambda _: self.take_proposal(), variant="contained", size="small"
        )
        rows = [self._row(value) for value in values]
        rest = len(counts) - len(values)
        text = f"{rest:,} further values stay as they are."
        self._box = pmui.Details(
            # The labels of the first fields stand above their frames.
            stack(*rows, margin=(8, 0, 0, 0)),
            small_text(text, visible=rest > 0),
            title=f"Answers of {column}: {len(counts):,}",
            collapsed=not is_open,
            # Few outcomes are seen at once, many are scrolled through.
            scrollable_height=min(_MOST_HEIGHT, 30 + _ROW_HEIGHT * len(rows)),
            margin=(5, 10),
            sizing_mode="stretch_width",
            sx={"&&": {"backgroundColor": token("surface"), "backgroundImage": "none"}},
        )
        self._offer = pn.Row(self.merge, visible=bool(self.proposed))
        self._describe()

    def _row(self, value: str) -> pn.FlexBox:
        fields = (self.names[value], self.descriptions[value], self.same[value])
        for widget in fields:
            pn.bind(self._changed, widget, watch=True)
        number = small_text(f"{self._counts[value]:,} rows", width=90)
        return pn.FlexBox(fields[0], number, *fields[1:], align_items="center")

    def __panel__(self) -> Viewable:
        return stack(self._offer, self._box)

    @property
    def edits(self) -> dict[str, OutcomeEdit]:
        """The edits of each value."""
        return {
            value: OutcomeEdit(
                str(self.names[value].value),
                str(self.descriptions[value].value),
                str(self.same[value].value),
            )
            for value in self.names
        }

    def take_proposal(self) -> None:
        """Merge every variant as proposed."""
        self._is_filling = True
        for value, first in self.proposed.items():
            self.same[value].value = first
        self._is_filling = False
        self._changed()

    def _changed(self, *_: object) -> None:
        if self._is_filling:
            return
        self._describe()
        self._on_change()

    def _describe(self) -> None:
        undescribed = [value for value in self.proposed if not self.same[value].value]
        n_outcomes = len(self._counts) - len(self.proposed)
        variants = "1 variant" if len(undescribed) == 1 else f"{len(undescribed):,} variants"
        self.merge.label = f"Merge {variants}: {n_outcomes:,} answers stay"
        self._offer.visible = bool(undescribed)
