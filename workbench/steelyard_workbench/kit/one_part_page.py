"""A page that has one part at a time: a list, or the selected item."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard_workbench.kit.basics import stack
from steelyard_workbench.kit.loaded import Loaded
from steelyard_workbench.kit.page import Page
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.tasks import Write


class OnePartPage(Page):
    """Shows ``content``, with the part ``shown``, anew whenever a watched field of the session changes."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.shown: Loaded[Any] | None = None

    def content(self) -> list[Viewable]:
        """Return the list, or the selected item, with ``shown`` in it."""
        raise NotImplementedError

    def build(self) -> list[Viewable]:
        """Return the selected item."""
        self._body = stack(*self.content())
        return [self._body]

    def on_session(self, *events: Any) -> None:
        """Show the present selection."""
        del events
        self.begin_visit()
        self._body[:] = self.content()
        for part in list(self.parts):
            part.start()

    def button(
        self,
        label: str,
        act: Callable[[], Any],
        place: pn.Column,
        *,
        variant: str = "outlined",
        refused: str = "",
    ) -> pmui.Button:
        """Return a button that asks the server for something once, and then shows the part anew.

        ``act`` runs in a thread; ``place`` is where a failure is shown, and ``refused`` is for ``Write``.
        """

        async def do() -> None:
            await asyncio.to_thread(act)
            if self.shown is not None:
                await self.shown.refresh(quietly=True)

        button = pmui.Button(label=label, variant=variant)
        write = Write(do, f"{label}: not done:", place, refused=refused, scope=self.visit)
        button.on_click(write.on_event)
        return button
