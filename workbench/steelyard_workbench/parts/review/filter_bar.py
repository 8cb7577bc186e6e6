"""The bar above rows: words, an outcome, a side and a length, with the filters as chips."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import panel_material_ui as pmui
import param

from steelyard_workbench.kit.basics import Boxed, filter_fields, stack
from steelyard_workbench.kit.components.choices import Choice, Choices
from steelyard_workbench.parts.review.row_filter import SIDES, OnFilter, RowFilter

_ANY = "any"
#: Fields that Enter leaves, so that the keys that follow are for the rows (see key_capture.js).
_SEARCHING = ["steelyard-searching"]


class FilterBar(Boxed):
    """Fields that choose rows."""

    def __init__(self, row_filter: RowFilter, on_filter: OnFilter) -> None:
        self.chosen = row_filter
        self._on_filter = on_filter
        self._is_filling = False
        self._choices: dict[str, tuple[str, Sequence[str]]] = {}
        self._names: dict[tuple[str, str], str] = {}
        self._words = pmui.TextInput(
            label="Words (key /)",
            placeholder="Enter searches",
            width=190,
            size="small",
            css_classes=_SEARCHING,
        )
        self.outcome = pmui.Select(
            label="Right answer", options=[_ANY], value=_ANY, width=150, size="small"
        )
        self._side = pmui.Select(
            label="For",
            options={_ANY: _ANY, **{word: side for side, word in SIDES.items()}},
            width=125,
            size="small",
        )
        self._at_least = pmui.TextInput(
            label="Characters from", width=135, size="small", css_classes=_SEARCHING
        )
        self._at_most = pmui.TextInput(
            label="Characters up to", width=145, size="small", css_classes=_SEARCHING
        )
        length = pmui.Button(label="Length", variant="outlined", size="small")
        length.on_click(lambda _: self._show_length(not self._at_least.visible))
        super().__init__()
        self.chips = Choices([], layout="row", is_small=True)
        self._box = stack(
            # The names of fields stand above their edge.
            filter_fields(
                self._words, self.outcome, self._side, length, self._at_least, self._at_most
            ),
            self.chips,
            margin=(8, 0, 0, 0),
        )
        self._fill()

    def focus(self) -> None:
        """Put the cursor into the words."""
        self._words.focus()

    def show(self, row_filter: RowFilter) -> None:
        """Show a filter that was chosen elsewhere."""
        self.chosen = row_filter
        self._fill()

    def offer(self, outcomes: Mapping[str, Mapping[str, Sequence[str]]]) -> None:
        """Offer the outcomes of decisions, with the version's outcomes that are under each."""
        self._choices = {
            f"{decision} is {name}": (decision, members)
            for decision, names in outcomes.items()
            for name, members in names.items()
        }
        self._names = {
            (decision, member): name
            for decision, names in outcomes.items()
            for name, members in names.items()
            for member in members
        }
        self._is_filling = True
        self.outcome.options = [_ANY, *self._choices]
        self._is_filling = False
        self._show_chips()

    def choose(self, row_filter: RowFilter) -> None:
        """Choose a filter, as the person does."""
        if row_filter != self.chosen:
            self.show(row_filter)
            self._on_filter(row_filter)

    def _fill(self) -> None:
        self._is_filling = True
        try:
            self._words.value = self._words.value_input = self.chosen.words
            self.outcome.value = _ANY
            self._side.value = self.chosen.side or _ANY
            for field, count in (
                (self._at_least, self.chosen.at_least),
                (self._at_most, self.chosen.at_most),
            ):
                text = "" if count is None else str(count)
                field.param.update(value=text, value_input=text, error_state=False)
            self._show_length()
        finally:
            self._is_filling = False
        self._show_chips()

    def _show_length(self, is_open: bool = False) -> None:
        """Show the fields of the length, which are rarely needed: open, or where one is filled."""
        self._at_least.visible = self._at_most.visible = is_open or bool(
            self._at_least.value or self._at_most.value
        )

    def _show_chips(self) -> None:
        parts = self.chosen.parts_under(self._names)
        self.chips.offer(
            [
                Choice(f"{text}  ✕", partial(self.choose, rest), look="outlined")
                for text, rest in parts
            ]
        )

    @param.depends("_words.value", "_side.value", "_at_least.value", "_at_most.value", watch=True)
    def _on_field(self) -> None:
        if not self._is_filling:
            side = self._side.value
            self.choose(
                replace(
                    self.chosen,
                    words=(self._words.value or "").strip(),
                    side="" if side == _ANY else side,
                    at_least=_count(self._at_least, self.chosen.at_least),
                    at_most=_count(self._at_most, self.chosen.at_most),
                )
            )

    @param.depends("outcome.value", watch=True)
    def _on_outcome(self) -> None:
        if not self._is_filling and self.outcome.value in self._choices:
            decision, members = self._choices[self.outcome.value]
            self.choose(self.chosen.with_expected(decision, *members))


def _count(field: Any, before: int | None) -> int | None:
    """Read a number of characters; other text is marked, and changes nothing."""
    text = (field.value or "").strip()
    field.error_state = bool(text) and not text.isdecimal()
    if field.error_state:
        return before
    return int(text) if text else None
