"""The pages, by section of the menu; each is imported when it is first needed."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, replace
from types import ModuleType

from panel.viewable import Viewable

from steelyard.people.roles import ROLES, Role
from steelyard.people.wire import CurrentSession
from steelyard_workbench.kit.basics import action_button
from steelyard_workbench.kit.page import Page
from steelyard_workbench.kit.session import Session, role_of
from steelyard_workbench.kit.views import empty

#: By slug the shape of a page's ``skeleton``, where it is other than fields above a table.
_SHAPES = {
    "home": "134 24 64 210*4 210*4",
    "playground": "420*2",
    "decisions": "36 84 200*4 200*4",
    "live": "36*4 82*4 128 420",
    "map": "36*3 520",
    "models": "200 190*4",
    "evaluations": "36*3 58 58 300",
    "compare": "36*3 176 220",
    "frontier": "36*3 380",
}
_TABLE = "36*3 44 44 44 44 44 44"
#: The page of the signed-in user, also without an account.
ACCOUNT = "account"
#: The page that is both the list of datasets and the rows of one.
DATASETS = "datasets"
_WORKERS: frozenset[Role] = frozenset(("owner", "developer"))
_REVIEWERS: frozenset[Role] = _WORKERS | {"reviewer"}
_PAYERS: frozenset[Role] = _WORKERS | {"billing"}
_EVERYBODY: frozenset[Role] = frozenset(ROLES)


@dataclass(frozen=True, slots=True)
class MenuSection:
    """A word of the menu, which has one or more pages as tabs."""

    name: str
    title: str
    icon: str


#: The menu.
SECTIONS: tuple[MenuSection, ...] = (
    MenuSection("home", "Home", "home"),
    MenuSection("ask", "Ask", "question_answer"),
    MenuSection("data", "Data", "storage"),
    MenuSection("models", "Models", "hub"),
    MenuSection("watch", "Watch", "monitor_heart"),
    MenuSection("settings", "Settings", "settings"),
)


@dataclass(frozen=True, slots=True)
class PageEntry:
    """A page: its slug, which names its module and its class, its title, and the section's name."""

    slug: str
    title: str
    section: str
    #: The roles whose members see it, of those who are signed in to an account.
    roles: frozenset[Role]
    #: Whether it is in no menu of a browser without a signed-in user.
    needs_sign_in: bool = False
    #: Whether only operators see it, whatever their role.
    is_for_operators: bool = False

    @property
    def shape(self) -> str:
        """The shape of its skeleton."""
        return _SHAPES.get(self.slug, _TABLE)

    def is_for(self, who: CurrentSession | None) -> bool:
        """Whether a person sees it."""
        if who is None:
            return not self.needs_sign_in
        if self.is_for_operators:
            return who.user.is_operator
        return role_of(who) in self.roles or self.slug == ACCOUNT


#: The one table of pages, sections and roles.
ENTRIES: tuple[PageEntry, ...] = (
    PageEntry("home", "Home", "home", _EVERYBODY),
    PageEntry("playground", "Playground", "ask", _WORKERS),
    PageEntry("decisions", "Decisions", "ask", _WORKERS),
    PageEntry("live", "Live", "ask", _WORKERS),
    PageEntry(DATASETS, "Datasets", "data", _REVIEWERS),
    PageEntry("versions", "Versions", "data", _REVIEWERS),
    PageEntry("map", "Map", "data", _REVIEWERS),
    PageEntry("review", "Review", "data", _REVIEWERS),
    PageEntry("labeling", "Labeling", "data", _REVIEWERS),
    PageEntry("models", "All models", "models", _WORKERS),
    PageEntry("families", "Model lines", "models", _WORKERS),
    PageEntry("evaluations", "Evaluations", "models", _WORKERS),
    PageEntry("compare", "Compare", "models", _WORKERS),
    PageEntry("frontier", "Quality and price", "models", _WORKERS),
    PageEntry("tuning", "Prompt tuning", "models", _WORKERS),
    PageEntry("alarms", "Alarms", "watch", _WORKERS),
    PageEntry("webhooks", "Webhooks", "watch", _WORKERS),
    PageEntry("jobs", "Jobs", "watch", _WORKERS),
    PageEntry("usage", "Usage and billing", "watch", _PAYERS, needs_sign_in=True),
    PageEntry("settings", "Settings", "settings", _WORKERS),
    PageEntry(ACCOUNT, "Account", "settings", _EVERYBODY, needs_sign_in=True),
    PageEntry(
        "operator", "Operator", "settings", frozenset(), needs_sign_in=True, is_for_operators=True
    ),
)


def sections_for(who: CurrentSession | None) -> list[MenuSection]:
    """Return the menu of a person: the sections that have a page for them."""
    titles: dict[str, list[str]] = {}
    for entry in entries_for(who):
        titles.setdefault(entry.section, []).append(entry.title)
    # A section of one page has its name: it has no tabs.
    return [
        replace(section, title=titles[section.name][0])
        if len(titles[section.name]) == 1
        else section
        for section in SECTIONS
        if section.name in titles
    ]


def tabs_for(who: CurrentSession | None, slug: str) -> list[PageEntry]:
    """Return the tabs beside a page: the pages of its section that a person sees."""
    here = entry_of(slug)
    if here is None or not here.section:
        return []
    return [entry for entry in entries_for(who) if entry.section == here.section]


def entries_for(who: CurrentSession | None) -> list[PageEntry]:
    """Return the pages that a user sees, or a browser without sign-in."""
    return [entry for entry in ENTRIES if entry.is_for(who)]


def first_page(who: CurrentSession | None, section: str) -> str:
    """Return the slug of the first page of a section that a person sees; Home where there is none."""
    return next((entry.slug for entry in entries_for(who) if entry.section == section), "home")


def entry_of(slug: str) -> PageEntry | None:
    """Return the entry of a page; ``None`` when there is no such page."""
    return next((entry for entry in ENTRIES if entry.slug == slug), None)


def import_pages() -> None:
    """Import every page now, so that the first visit does not wait for it."""
    for entry in ENTRIES:
        _module_of(entry)


def make_page(slug: str, session: Session) -> Page:
    """Make a page; raise ``KeyError`` when there is none of that slug."""
    entry = entry_of(slug)
    if entry is None:
        raise KeyError(slug)
    if session.who is not None and not entry.is_for(session.who):
        return NotYours(session, entry.title)
    page: Page = getattr(_module_of(entry), f"{slug.capitalize()}Page")(session)
    return page


class NotYours(Page):
    """In place of a page that a person's role does not use."""

    slug = "not-yours"

    def __init__(self, session: Session, title: str) -> None:
        self._role = session.role
        self.title = title  # type: ignore[misc]
        super().__init__(session)

    def build(self) -> list[Viewable]:
        """Return the next steps."""
        first = entries_for(self.session.who)[0]
        go = action_button(
            f"Go to {first.title}", lambda _: self.session.open(first.slug), variant="contained"
        )
        text = f"Your role in this account, {self._role}, does not use this page. An owner changes roles."
        if self._role is None:
            text = (
                "Who is in no account does not use this page. An owner of an account invites you."
            )
        return [empty(text, go)]


def _module_of(entry: PageEntry) -> ModuleType:
    return importlib.import_module(f"steelyard_workbench.pages.{entry.slug}.page")
