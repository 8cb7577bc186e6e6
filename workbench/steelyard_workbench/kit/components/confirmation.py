"""A question before an action: its effect, in full, and a button that does it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import panel_material_ui as pmui
import param
from panel.viewable import Viewable

from steelyard_workbench.kit.basics import Boxed, action_button, stack
from steelyard_workbench.kit.components.unseen import FirstField
from steelyard_workbench.kit.tasks import Write


class Confirmation(Boxed):
    """A dialog that asks before something is done; ``act`` returns whether it may close.

    ``typed``: the text that a person must type before the button works; nothing when empty.
    """

    def __init__(
        self,
        title: str,
        *content: Viewable,
        action: str,
        act: Callable[[], Awaitable[bool]],
        typed: str = "",
        is_harmful: bool = False,
    ) -> None:
        self._act = act
        self._typed = typed
        self.entry = pmui.TextInput(
            label=f"Type {typed} to confirm", visible=bool(typed), sizing_mode="stretch_width"
        )
        self.button = pmui.Button(
            label=action,
            variant="contained",
            color="danger" if is_harmful else "primary",
            disabled=bool(typed),
        )
        self.cancel = action_button("Leave it", lambda _: self.close())
        self.problem = stack()
        what = title[0].lower() + title[1:].rstrip("?")
        self.confirm = Write(self._confirm, f"Not done: {what}.", self.problem)
        self.button.on_click(self.confirm.on_event)
        self._box = self.dialog = pmui.Dialog(
            *content,
            self.entry,
            self.problem,
            pmui.Row(self.button, self.cancel),
            title=title,
            open=True,
            width_option="md",
        )
        if self.dialog.select(lambda part: isinstance(part, pmui.TextInput) and part.visible):
            self.dialog.insert(-2, FirstField())
        super().__init__()

    def close(self) -> None:
        """Leave everything as it is."""
        self.dialog.open = False

    async def _confirm(self) -> None:
        if not self._is_missing and await self._act():
            self.close()

    @property
    def _is_missing(self) -> bool:
        """Whether the confirming text is missing."""
        return bool(self._typed) and self.entry.value_input != self._typed

    @param.depends("entry.value_input", "confirm.is_running", watch=True)
    def _fit(self) -> None:
        self.button.disabled = self.confirm.is_running or self._is_missing
