"""The pages, in the order of the menu; each is imported by whoever first needs it."""

from __future__ import annotations

import importlib
from dataclasses import dataclass

import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.people.roles import ROLES, Role
from steelyard.people.wire import CurrentSession
from steelyard_workbench.page import Page
from steelyard_workbench.session import Session, role_of
from steelyard_workbench.states import empty


@dataclass(frozen=True, slots=True)
class Entry:
    """A page in the menu: its slug, its title, its icon's name, and where its class is.

    Parameters
    ----------
    roles : frozenset of str
        Whose menu it is in, of those who are signed in to an account.
    needs_sign_in : bool, default False
        Whether it is in no menu of a browser in which nobody signs in.
    is_for_operators : bool, default False
        Whether it is in the menu of operators, whatever their role, and of nobody else.
    """

    slug: str
    title: str
    icon: str
    place: str
    roles: frozenset[Role]
    needs_sign_in: bool = False
    is_for_operators: bool = False

    def is_for(self, who: CurrentSession | None) -> bool:
        """Whether it is in somebody's menu."""
        if who is None:
            return not self.needs_sign_in
        if self.is_for_operators:
            return who.user.is_operator
        return role_of(who) in self.roles or self.slug == ACCOUNT


#: The page of whoever is signed in, also without an account.
ACCOUNT = "account"
_WORKERS: frozenset[Role] = frozenset(("owner", "developer"))
_REVIEWERS: frozenset[Role] = _WORKERS | {"reviewer"}
_PAYERS: frozenset[Role] = _WORKERS | {"billing"}
_EVERYBODY: frozenset[Role] = frozenset(ROLES)

#: The one table of pages and roles.
ENTRIES: tuple[Entry, ...] = (
    Entry("home", "Home", "home", "home:HomePage", _EVERYBODY),
    Entry("datasets", "Datasets", "storage", "datasets:DatasetsPage", _REVIEWERS),
    Entry("versions", "Versions", "call_split", "versions:VersionsPage", _REVIEWERS),
    Entry("map", "Map", "scatter_plot", "map:MapPage", _REVIEWERS),
    Entry("labeling", "Labeling", "label", "labeling:LabelingPage", _REVIEWERS),
    Entry("review", "Review", "fact_check", "review:ReviewPage", _REVIEWERS),
    Entry("tuning", "Prompt tuning", "edit_note", "tuning:TuningPage", _WORKERS),
    Entry("families", "Families", "timeline", "families:FamiliesPage", _WORKERS),
    Entry("jobs", "Jobs", "schedule", "jobs:JobsPage", _WORKERS),
    Entry(
        "evaluations", "Evaluations", "query_stats", "evaluations:EvaluationsPage", _WORKERS
    ),
    Entry("compare", "Compare", "compare_arrows", "compare:ComparePage", _WORKERS),
    Entry("live", "Live", "monitor_heart", "live:LivePage", _WORKERS),
    Entry("playground", "Playground", "play_arrow", "playground:PlaygroundPage", _WORKERS),
    Entry("settings", "Settings", "settings", "settings:SettingsPage", _WORKERS),
    Entry(ACCOUNT, "Account", "people", "account:AccountPage", _EVERYBODY, needs_sign_in=True),
    Entry(
        "usage", "Usage and billing", "payments", "usage:UsagePage", _PAYERS, needs_sign_in=True
    ),
    Entry(
        "operator", "Operator", "admin_panel_settings", "operator:OperatorPage", frozenset(),
        needs_sign_in=True, is_for_operators=True,
    ),
)  # fmt: skip


def entries_for(who: CurrentSession | None) -> list[Entry]:
    """Return the pages in the menu of somebody, or of a browser in which nobody signs in."""
    return [entry for entry in ENTRIES if entry.is_for(who)]


def entry_of(slug: str) -> Entry | None:
    """Return the entry of a page; ``None`` when there is no such page."""
    return next((entry for entry in ENTRIES if entry.slug == slug), None)


def import_pages() -> None:
    """Import every page now, so that the first visit does not wait for it."""
    for entry in ENTRIES:
        importlib.import_module(_module_of(entry))


def make_page(slug: str, session: Session) -> Page:
    """Make a page.

    Raises
    ------
    KeyError
        When there is no page of that slug.
    """
    entry = entry_of(slug)
    if entry is None:
        raise KeyError(slug)
    if session.who is not None and not entry.is_for(session.who):
        return NotYours(session, entry.title)
    name = entry.place.partition(":")[2]
    found = getattr(importlib.import_module(_module_of(entry)), name)
    page: Page = found(session)
    return page


class NotYours(Page):
    """In place of a page that somebody's role does not use."""

    slug = "not-yours"

    def __init__(self, session: Session, title: str) -> None:
        self._role = session.role or "user without an account"
        self.title = title  # type: ignore[misc]
        super().__init__(session)

    def build(self) -> list[Viewable]:
        """Return what to do instead."""
        first = entries_for(self.session.who)[0]
        go = pmui.Button(label=f"Go to {first.title}", variant="contained")
        go.on_click(lambda _: self.session.open(first.slug))
        text = f"Your role in this account, {self._role}, does not use this page. An owner changes roles."
        return [empty(text, go)]


def _module_of(entry: Entry) -> str:
    return f"steelyard_workbench.pages.{entry.place.partition(':')[0]}"
