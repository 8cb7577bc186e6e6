"""The head of a review, with actions on the whole of it, and the dialog of a row's note."""

from __future__ import annotations

from collections.abc import Callable

import panel as pn
import panel_material_ui as pmui

from steelyard.review.wire import MAX_NOTE, MAX_REVIEWER, Draft, DraftRow
from steelyard_workbench.kit.basics import Boxed, action_button
from steelyard_workbench.kit.components.dialogs import DrawnDialog
from steelyard_workbench.kit.problems import typed


class DeskHead(Boxed):
    """Names the draft and its reviewer; changes the view, seals, and leaves.

    The name of a signed-in user stays; ``on_reviewer`` is called with another, empty for none.
    ``on_outcomes`` and ``on_seal`` are left out where the user's role does not allow it.
    """

    def __init__(
        self,
        draft: Draft,
        reviewer: str,
        *,
        is_signed_in: bool = False,
        on_reviewer: Callable[[str], None],
        on_turn: Callable[[], None],
        on_outcomes: Callable[[], None] | None = None,
        on_seal: Callable[[], None] | None,
        on_leave: Callable[[], None],
    ) -> None:
        super().__init__()
        self._on_reviewer = on_reviewer
        self._named = reviewer
        name = pmui.TextInput(
            label="Your name",
            value=reviewer,
            max_length=MAX_REVIEWER,
            width=180,
            size="small",
            disabled=is_signed_in,
        )
        pn.bind(self._on_name, name, watch=True)
        self._toggle = action_button("", lambda _: on_turn(), size="small")
        outcomes = action_button(
            "Answers",
            lambda _: on_outcomes and on_outcomes(),
            size="small",
            visible=on_outcomes is not None,
        )
        self._seal = action_button(
            "Finish this version…",
            lambda _: on_seal and on_seal(),
            variant="contained",
            size="small",
            visible=on_seal is not None,
        )
        leave = action_button("Other reviews", lambda _: on_leave(), variant="text", size="small")
        title = f"Version {draft.dataset_version} · {draft.rows:,} rows"
        self._box = pn.FlexBox(
            pmui.Typography(title, variant="body1"),
            name,
            self._toggle,
            outcomes,
            self._seal,
            leave,
            align_items="center",
            margin=(8, 0, 0, 0),
        )

    def show_view(self, *, is_bulk: bool) -> None:
        """Offer the view that is not shown."""
        self._toggle.label = f"{'Focus' if is_bulk else 'Bulk'} view (b)"

    def forbid(self) -> None:
        """Disable the seal."""
        self._seal.disabled = True

    def _on_name(self, entered: str | None) -> None:
        name = (entered or "").strip()
        if name != self._named:
            self._named = name
            self._on_reviewer(name)


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
