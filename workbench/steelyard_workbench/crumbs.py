"""Where somebody is: the page, and what is open on it, in the bar at the top."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable, Viewer

from steelyard.client import Client
from steelyard.errors import SteelyardError
from steelyard_workbench.escaping import escape_markdown
from steelyard_workbench.navigation import entry_of
from steelyard_workbench.session import Session
from steelyard_workbench.tasks import Task
from steelyard_workbench.theme import ON_BAR

_MOST = 48
_LINE = {"whiteSpace": "nowrap", "overflow": "hidden", "textOverflow": "ellipsis"}


@dataclass(frozen=True, slots=True)
class _Place:
    """What can be open on a page: its field of the session, and how it is called."""

    field: str
    name: Callable[[Client, str], str] | None = None


#: By page; where nothing gives a name, the field itself is one.
_PLACES: dict[str, _Place] = {
    "datasets": _Place("dataset", lambda client, id_: client.datasets.get(id_).name),
    "versions": _Place("dataset", lambda client, id_: client.datasets.get(id_).name),
    "review": _Place("dataset", lambda client, id_: client.datasets.get(id_).name),
    "families": _Place("family"),
    "evaluations": _Place(
        "evaluation", lambda client, id_: client.evaluations.get(id_).model_label
    ),
    "jobs": _Place("job"),
    "labeling": _Place("labeling"),
    "tuning": _Place("tuning"),
}


class Crumbs(Viewer):
    """The page as a button that goes to all of its things, and the name of the one that is open."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._all = pmui.Button(variant="text", size="small", margin=0, sx=ON_BAR)
        self._all.on_click(self._on_all)
        self._name = pmui.Typography("", variant="body2", margin=(0, 4), align="center", sx=_LINE)
        self._box = pn.Row(self._all, self._name, align="center", margin=0)
        self.show = Task(self._show)
        fields = sorted({place.field for place in _PLACES.values()})
        session.param.watch(self._on_place, ["page", *fields])
        self._write("")

    def __panel__(self) -> Viewable:
        return self._box

    def _on_all(self, _: object) -> None:
        place = _PLACES.get(self._session.page)
        if place is not None and getattr(self._session, place.field):
            nothing: dict[str, Any] = {place.field: ""}
            self._session.open(self._session.page, **nothing)

    def _on_place(self, *_: object) -> None:
        self.show.start()

    async def _show(self) -> None:
        place = _PLACES.get(self._session.page)
        chosen = "" if place is None else getattr(self._session, place.field)
        name = chosen
        if chosen and place is not None and place.name is not None:
            self._write("…")
            try:
                name = await asyncio.to_thread(place.name, self._session.client, chosen)
            except SteelyardError:
                name = chosen  # the page itself says what is wrong
        self._write(name)

    def _write(self, name: str) -> None:
        entry = entry_of(self._session.page)
        title = "Steelyard" if entry is None else entry.title
        cut = name if len(name) <= _MOST else f"{name[:_MOST]}…"
        with pn.io.hold():
            self._all.label = f"{title} /" if name else title
            self._name.object = escape_markdown(cut)
