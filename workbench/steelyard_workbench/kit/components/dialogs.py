"""Dialogs that are drawn when they are opened, and the question before an action: its effect, in full."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

import panel as pn
import panel_material_ui as pmui
import param
from panel.viewable import Viewable

from steelyard_workbench.kit.basics import Boxed, action_button, stack
from steelyard_workbench.kit.components.unseen import FirstField
from steelyard_workbench.kit.tasks import Write


class DrawnDialog(Boxed):
    """A dialog, made again each time.

    One that is drawn closed with its page misses that it was opened while the page is still being
    drawn; and its contents keep the colours of the theme that was on then.

    ``width``: pixels of its contents. ``has_field``: it is opened to type into, so its first field
    has the focus then.
    """

    def __init__(
        self,
        title: str,
        *content: Viewable,
        draw: Callable[[], Iterable[Viewable]] = tuple,
        width: int | None = None,
        has_field: bool = False,
    ) -> None:
        super().__init__()
        self._draw = draw
        self._title, self._content, self._width = title, content, width
        self._has_field = has_field
        self._dialog = pmui.Dialog(open=False)
        self._box = pn.Column(margin=0)

    @property
    def is_open(self) -> bool:
        """Whether it is shown."""
        return bool(self._dialog.open)

    def open(self, title: str = "") -> None:
        """Show it, under another title if one is given."""
        focus = [FirstField()] if self._has_field else []
        self._dialog = pmui.Dialog(
            pn.Column(*self._content, *self._draw(), *focus, width=self._width),
            title=title or self._title,
            open=True,
        )
        self._box[:] = [self._dialog]

    def close(self) -> None:
        """Show it no more."""
        self._dialog.open = False


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
