"""The head of a review: the draft, the reviewer, and actions on the whole of it."""

from __future__ import annotations

from collections.abc import Callable

import panel as pn
import panel_material_ui as pmui

from steelyard.review.wire import MAX_REVIEWER, Draft
from steelyard_workbench.kit.basics import Boxed, action_button


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
