"""The title of a page, which is the thing that is open on it, and the tabs of its section."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

import panel as pn
import panel_material_ui as pmui
import param

from steelyard.client import Client
from steelyard.errors import SteelyardError
from steelyard_workbench.frame.navigation import DATASETS, entry_of, first_page, tabs_for
from steelyard_workbench.kit.basics import Boxed, action_button, html_pane, small_text, stack
from steelyard_workbench.kit.scheduling import until_shown
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.tasks import Task
from steelyard_workbench.kit.theme import TITLE, token
from steelyard_workbench.kit.words import cut
from steelyard_workbench.parts.datasets.names import dataset_name

#: Characters of a title.
_MOST = 80
_TITLE = f"font-size:{TITLE};font-weight:700;line-height:1.2;letter-spacing:-0.01em;margin:0;overflow-wrap:anywhere"
_TABS = {
    "minHeight": "36px",
    "borderBottom": f"1px solid {token('line')}",
    "& .MuiTab-root": {"minHeight": "36px", "minWidth": 0, "padding": "6px 12px"},
}


@dataclass(frozen=True, slots=True)
class _Thing:
    """A kind of thing that a page can open: its field of the session, its name, and the way to the list."""

    field: str
    #: Returns the name of a thing by its id; without it the id is one.
    name: Callable[[Client, str], str] | None = None
    #: The button above the title, and the page that it opens; empty for none.
    all_title: str = ""
    all_page: str = ""
    #: Whether it has tabs of its own, in place of those of the section.
    has_tabs: bool = False


def _evaluation_name(client: Client, id_: str) -> str:
    evaluation = client.evaluations.get(id_)
    name = evaluation.named or evaluation.model_label
    return f"{name} on {dataset_name(client, evaluation.dataset_id)}"


_DATASET = _Thing("dataset", dataset_name, "All datasets", DATASETS)
#: By page.
_THINGS: dict[str, _Thing] = {
    DATASETS: _DATASET,
    "versions": _DATASET,
    "map": _DATASET,
    "review": _Thing(
        "draft",
        lambda client, id_: dataset_name(client, client.drafts.get(id_).dataset_id),
        "All rows",
        DATASETS,
        has_tabs=True,
    ),
    "labeling": _Thing(
        "labeling",
        lambda client, id_: client.labeling.get(id_).name,
        "All labeling jobs",
        "labeling",
    ),
    "families": _Thing("family", None, "All model lines", "families"),
    "decisions": _Thing("named", None, "All decisions", "decisions"),
    "evaluations": _Thing("evaluation", _evaluation_name, "All evaluations", "evaluations"),
    "tuning": _Thing(
        "tuning",
        lambda client, id_: f"Wording of {client.prompt_tuning.get(id_).decision}",
        "All prompt-tuning jobs",
        "tuning",
    ),
}


class Heading(Boxed):
    """The title and the tabs of the page that is open; both stand before the page has loaded."""

    #: The title as the browser's tab has it; empty where it is the product's name.
    in_browser = param.String()

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._names: dict[tuple[str, str], str] = {}
        self.up = action_button(
            "", self._on_up, variant="text", size="small", margin=(0, 2), visible=False
        )
        self.title = html_pane("", margin=(2, 10))
        self.tabs = pmui.TabMenu(
            items=[],
            variant="scrollable",
            sx=_TABS,
            sizing_mode="stretch_width",
            margin=(0, 10, 8, 10),
        )
        self.tabs.on_click(self._on_tab)
        self.summary = small_text("", visible=False)
        self._box = stack(self.title)
        self.show = Task(self._show)
        fields = sorted({thing.field for thing in _THINGS.values()} | {"dataset"})
        session.param.watch(self.show.on_event, ["page", "who", *fields])

    @property
    def is_visible(self) -> bool:
        """Whether it is there; a sign-in, say, has a title of its own."""
        return bool(self._box.visible)

    @is_visible.setter
    def is_visible(self, is_visible: bool) -> None:
        self._box.visible = is_visible

    def open_section(self, name: str) -> None:
        """Open the first page of a section; in that section already, open the list of its things."""
        session = self._session
        here = entry_of(session.page)
        thing = _THINGS.get(session.page)
        if here is None or here.section != name or here.slug == "home":
            session.open(first_page(session.who, name))
        elif thing is not None and getattr(session, thing.field):
            self._leave(thing)
        else:
            session.open(first_page(session.who, name), dataset="", version=0)

    def describe(self, summary: str) -> None:
        """Show a sentence about the page, as long as nothing is open on it."""
        self.summary.object = summary
        self.summary.visible = bool(summary) and not self._open_thing()
        self._draw()

    def refresh(self) -> None:
        """Show the title and the tabs of the open page."""
        self.show.start()

    def _on_up(self, _: object) -> None:
        thing = _THINGS.get(self._session.page)
        if thing is not None:
            self._leave(thing)

    def _leave(self, thing: _Thing) -> None:
        nothing: dict[str, Any] = {thing.field: ""}
        if thing.field == "dataset":
            nothing["version"] = 0
        self._session.open(thing.all_page or self._session.page, **nothing)

    def _on_tab(self, item: dict[str, str] | None) -> None:
        if item is not None and item["slug"] != self._session.page:
            self._session.open(item["slug"])

    def _open_thing(self) -> str:
        """Return the id of the open thing; empty without one."""
        thing = _THINGS.get(self._session.page)
        return "" if thing is None else getattr(self._session, thing.field)

    async def _show(self) -> None:
        session = self._session
        thing, id_ = _THINGS.get(session.page), self._open_thing()
        if thing is None or not id_:
            self._write("", None)
            return
        key = (session.page, id_)
        self._write(self._names.get(key, "" if thing.name else id_), thing)
        if thing.name is None:
            return
        try:
            name = await asyncio.to_thread(thing.name, session.client, id_)
        except SteelyardError:
            name = id_  # the page itself reports the problem
        self._names[key] = name
        await until_shown()
        self._write(name, thing)

    def _write(self, name: str, thing: _Thing | None) -> None:
        session = self._session
        entry = entry_of(session.page)
        title = cut(name or ("Steelyard" if entry is None else entry.title), _MOST)
        tabs = tabs_for(session.who, session.page)
        with pn.io.hold():
            self.in_browser = "" if entry is None and not name else title
            self.title.object = f'<h1 style="{_TITLE}">{escape(title)}</h1>'
            self.summary.visible = bool(self.summary.object) and thing is None
            self.up.visible = thing is not None and bool(thing.all_title)
            if thing is not None and thing.all_title:
                self.up.label = thing.all_title
            rows = {DATASETS: "Rows"} if session.dataset else {}
            items = [{"label": rows.get(tab.slug, tab.title), "slug": tab.slug} for tab in tabs]
            if self.tabs.items != items:
                self.tabs.items = items
            slugs = [tab.slug for tab in tabs]
            self.tabs.active = slugs.index(session.page) if session.page in slugs else None
            # A single tab leads nowhere.
            self.tabs.visible = len(tabs) > 1 and not (thing is not None and thing.has_tabs)
            self._draw()

    def _draw(self) -> None:
        """Draw the visible parts only: the browser makes a React root of each."""
        parts = [self.up, self.title, self.tabs, self.summary]
        visible = [part for part in parts if part.visible]
        if visible != list(self._box):
            self._box[:] = visible
