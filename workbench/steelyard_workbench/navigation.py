"""The pages, in the order of the menu; each is imported by whoever first needs it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from steelyard.people.wire import CurrentSession
from steelyard_workbench.page import Page
from steelyard_workbench.session import Session, role_of


@dataclass(frozen=True, slots=True)
class Entry:
    """A page in the menu: its slug, its title, its icon's name, and where its class is.

    Parameters
    ----------
    is_for : callable, optional
        Whether it is in the menu of somebody who is signed in; such a page is in nobody else's.
    """

    slug: str
    title: str
    icon: str
    place: str
    is_for: Callable[[CurrentSession], bool] | None = None


ENTRIES: tuple[Entry, ...] = (
    Entry("home", "Home", "home", "home:HomePage"),
    Entry("datasets", "Datasets", "storage", "datasets:DatasetsPage"),
    Entry("versions", "Versions", "call_split", "versions:VersionsPage"),
    Entry("map", "Map", "scatter_plot", "map:MapPage"),
    Entry("labeling", "Labeling", "label", "labeling:LabelingPage"),
    Entry("review", "Review", "fact_check", "review:ReviewPage"),
    Entry("tuning", "Prompt tuning", "edit_note", "tuning:TuningPage"),
    Entry("families", "Families", "timeline", "families:FamiliesPage"),
    Entry("jobs", "Jobs", "schedule", "jobs:JobsPage"),
    Entry("evaluations", "Evaluations", "query_stats", "evaluations:EvaluationsPage"),
    Entry("compare", "Compare", "compare_arrows", "compare:ComparePage"),
    Entry("live", "Live", "monitor_heart", "live:LivePage"),
    Entry("playground", "Playground", "play_arrow", "playground:PlaygroundPage"),
    Entry("settings", "Settings", "settings", "settings:SettingsPage"),
    Entry("account", "Account", "people", "account:AccountPage", lambda _: True),
    Entry(
        "usage", "Usage and billing", "payments", "usage:UsagePage",
        lambda who: role_of(who) in {"owner", "developer", "billing"},
    ),
    Entry(
        "operator", "Operator", "admin_panel_settings", "operator:OperatorPage",
        lambda who: who.user.is_operator,
    ),
)  # fmt: skip


def entries_for(who: CurrentSession | None) -> list[Entry]:
    """Return the pages in the menu of somebody, or of a browser in which nobody signs in."""
    return [
        entry
        for entry in ENTRIES
        if entry.is_for is None or (who is not None and entry.is_for(who))
    ]


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
    name = entry.place.partition(":")[2]
    found = getattr(importlib.import_module(_module_of(entry)), name)
    page: Page = found(session)
    return page


def _module_of(entry: Entry) -> str:
    return f"steelyard_workbench.pages.{entry.place.partition(':')[0]}"
