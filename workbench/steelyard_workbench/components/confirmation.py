"""A question before something is done: what it does, in full, and a button that does it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable, Viewer

from steelyard_workbench.problems import problem_of
from steelyard_workbench.states import failed


class Confirmation(Viewer):
    """A dialog that asks before something is done.

    Parameters
    ----------
    title : str
        The question.
    *content : Viewable
        What would happen.
    action : str
        Label of the button that does it.
    act : callable
        A coroutine function that does it and gives whether the dialog has served; what it raises
        is shown in the dialog, which stays.
    typed : str
        What a person must type before the button works; nothing when empty.
    is_harmful : bool, default False
        Whether what it does cannot be undone.
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
        super().__init__()
        self._title = title
        self._act = act
        self._typed = typed
        self._is_acting = False
        self.entry = pmui.TextInput(
            label=f"Type {typed} to confirm", visible=bool(typed), sizing_mode="stretch_width"
        )
        self.entry.param.watch(self._fit, "value_input")
        self.button = pmui.Button(
            label=action,
            variant="contained",
            color="danger" if is_harmful else "primary",
            disabled=bool(typed),
        )
        self.button.on_click(self.confirm)
        self.cancel = pmui.Button(label="Leave it", variant="outlined")
        self.cancel.on_click(lambda _: self.close())
        self.problem = pn.Column(sizing_mode="stretch_width")
        self.dialog = pmui.Dialog(
            *content,
            self.entry,
            self.problem,
            pmui.Row(self.button, self.cancel),
            title=title,
            open=True,
            width_option="md",
        )

    def __panel__(self) -> Viewable:
        return self.dialog

    def close(self) -> None:
        """Leave everything as it is."""
        self.dialog.open = False

    async def confirm(self, *_: Any) -> None:
        """Do it, unless it is being done or what must be typed was not."""
        if self._is_acting or (self._typed and self.entry.value_input != self._typed):
            return
        # A second click may have been on its way before the browser heard of the first.
        self._is_acting = self.button.disabled = True
        try:
            has_served = await self._act()
        except Exception as error:  # noqa: BLE001  whatever it is, the person is told
            self.problem[:] = [failed(problem_of(error, self._title.rstrip("?")))]
            has_served = False
        finally:
            self._is_acting = False
        self._fit()
        if has_served:
            self.close()

    def _fit(self, *_: Any) -> None:
        is_missing = bool(self._typed) and self.entry.value_input != self._typed
        self.button.disabled = self._is_acting or is_missing
