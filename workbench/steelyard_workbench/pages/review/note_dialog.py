"""Writing a note on a row."""

from __future__ import annotations

from collections.abc import Callable

import panel as pn
import panel_material_ui as pmui

from steelyard.review.wire import MAX_NOTE, DraftRow
from steelyard_workbench.kit.basics import action_button
from steelyard_workbench.kit.components.drawn_dialog import DrawnDialog
from steelyard_workbench.kit.problems import typed


class NoteDialog(DrawnDialog):
    """Asks for the note of a row; ``on_note`` is called with both, and an empty note removes it."""

    def __init__(self, on_note: Callable[[DraftRow, str], None]) -> None:
        self._on_note = on_note
        self._row: DraftRow | None = None
        self._text = pmui.TextAreaInput(
            label="Note", rows=4, max_length=MAX_NOTE, sizing_mode="stretch_width"
        )
        save = action_button("Save the note", lambda _: self.save(), variant="contained")
        cancel = action_button("Cancel", lambda _: self.close())
        super().__init__("Note", self._text, pn.Row(save, cancel), width=480, has_field=True)

    def ask(self, row: DraftRow) -> None:
        """Ask for the note of a row."""
        self._row = row
        note = row.now.note or ""
        self._text.param.update(value=note, value_input=note)
        self.open(f"Note on row {row.row}")

    def write(self, text: str) -> None:
        """Take a text that was typed."""
        self._text.param.update(value=text, value_input=text)

    def save(self) -> None:
        """Save the note."""
        row, text = self._row, typed(self._text)
        self.close()
        if row is not None and text != (row.now.note or ""):
            self._on_note(row, text)
