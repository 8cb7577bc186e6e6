"""The head of a review: the draft, the reviewer, and actions on the whole of it."""

from __future__ import annotations

from collections.abc import Callable

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable, Viewer

from steelyard.review.wire import MAX_REVIEWER, Draft


class DeskHead(Viewer):
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
        self._toggle = pmui.Button(label="", variant="outlined", size="small")
        self._toggle.on_click(lambda _: on_turn())
        outcomes = pmui.Button(
            label="Answers", variant="outlined", size="small", visible=on_outcomes is not None
        )
        outcomes.on_click(lambda _: on_outcomes and on_outcomes())
        self._seal = pmui.Button(
            label="Finish this version…",
            variant="contained",
            size="small",
            visible=on_seal is not None,
        )
        self._seal.on_click(lambda _: on_seal and on_seal())
        leave = pmui.Button(label="Other reviews", variant="text", size="small")
        leave.on_click(lambda _: on_leave())
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

    def __panel__(self) -> Viewable:
        return self._box

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
