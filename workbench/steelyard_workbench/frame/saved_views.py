"""Saved views: save the present page under a name, open one, and delete one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from html import escape
from itertools import islice

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable, Viewer

from steelyard.views.wire import View
from steelyard_workbench.kit.components.drawn_dialog import DrawnDialog
from steelyard_workbench.kit.components.numbers import ago
from steelyard_workbench.kit.loaded import Loaded
from steelyard_workbench.kit.problems import needed
from steelyard_workbench.kit.session import Session, address_of, checked_address
from steelyard_workbench.kit.states import empty
from steelyard_workbench.kit.tasks import Write

#: The most that an account has.
_MOST = 200
_LINK = "font-size:1rem;line-height:2.4;overflow-wrap:anywhere"


class SavedViews(Viewer):
    """The dialog of saved views.

    A view is a link: it can be opened in another tab, and copied for a colleague.
    """

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self.problem = pn.Column(sizing_mode="stretch_width")
        self.title = pmui.TextInput(
            label="Name of what is shown now", max_length=80, sizing_mode="stretch_width"
        )
        button = pmui.Button(label="Save this view", variant="contained", size="small")
        self.save = Write(self._save, "Not saved:", self.problem, refused="Save this view")
        self.delete = Write(self._delete, "Not deleted:", self.problem)
        button.on_click(self.save.on_event)
        self.part: Loaded[list[View]] = Loaded("The views", self._fetch, self._show)
        self._dialog = DrawnDialog(
            "Saved views",
            pn.Column(
                self.title,
                button,
                self.problem,
                self.part,
                sizing_mode="stretch_width",
                min_width=280,
            ),
            width=460,
            has_field=True,
        )

    def __panel__(self) -> Viewable:
        return self._dialog.__panel__()

    @property
    def is_open(self) -> bool:
        """Whether it is shown."""
        return self._dialog.is_open

    def open(self) -> None:
        """Show the views of the account."""
        self.problem[:] = []
        self._dialog.open()
        self.part.start()

    def close(self) -> None:
        """Show them no more."""
        self._dialog.close()

    def _fetch(self) -> list[View]:
        return list(islice(self._session.client.views.list(), _MOST))

    def _show(self, views: Sequence[View]) -> Viewable:
        if not views:
            return empty(
                "No views yet. Open a page with the filter, rows or figures that you come back to, "
                "and save it here: everybody of the account sees it."
            )
        return pn.Column(*map(self._line, views), sizing_mode="stretch_width")

    def _line(self, view: View) -> Viewable:
        # Its author may have written anything: only fields that the workbench knows are kept.
        address = escape(f"?{checked_address(view.address)}", quote=True)
        link = pn.pane.HTML(
            f'<div style="{_LINK}"><a href="{address}">{escape(view.name)}</a> · '
            f"{ago(view.created_at)}</div>",
            sizing_mode="stretch_width",
        )
        delete = pmui.Button(label="Delete", variant="text", color="danger", size="small")
        delete.description = f"Delete the view {view.name}"
        delete.on_click(lambda _: self.delete.start(view.id))
        return pn.Row(link, delete, sizing_mode="stretch_width")

    async def _save(self) -> None:
        name = needed(self.title, "Write a name for the view.")
        address = address_of(self._session)
        await asyncio.to_thread(self._session.client.views.save, name, address)
        self.problem[:] = []
        self.title.param.update(value="", value_input="")
        await self.part.refresh(quietly=True)

    async def _delete(self, view_id: str) -> None:
        await asyncio.to_thread(self._session.client.views.delete, view_id)
        self.problem[:] = []
        await self.part.refresh(quietly=True)
