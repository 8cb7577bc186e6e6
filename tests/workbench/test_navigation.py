"""The table of pages: a page that is in it is in the menu, the search, the tabs and the window."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

import panel as pn
import panel_material_ui as pmui

from steelyard_workbench.frame import navigation
from steelyard_workbench.frame.app import App
from steelyard_workbench.frame.finding import find_pages
from steelyard_workbench.kit.page import Page
from support.browser.shown_parts import texts
from support.families.told_families import make_client


class ForestPage(Page):
    """A made-up page."""

    slug = "forest"
    title = "Forest"
    summary = "Counts trees."

    def build(self):
        self.name_of_tree = pmui.TextInput(label="Tree")
        self.rare = pmui.Accordion(("Rare trees", self.name_of_tree))
        return [pn.pane.Markdown("Three oaks."), self.rare]


def test_a_made_up_page_is_found_wherever_pages_are_listed(monkeypatch):
    app = App(make_client())
    module = "steelyard_workbench.pages.forest.page"
    monkeypatch.setitem(sys.modules, module, SimpleNamespace(ForestPage=ForestPage))
    forest = navigation.PageEntry("forest", "Forest", "watch", frozenset({"owner"}))
    monkeypatch.setattr(navigation, "ENTRIES", (*navigation.ENTRIES, forest))
    assert navigation.entry_of("forest") is forest
    assert navigation.tabs_for(None, "alarms")[-1] is forest
    assert [hit.goes for hit in find_pages("fores")] == [{"page": "forest"}]
    app.session.page = "forest"
    shown = texts(app.view())
    assert all(text in shown for text in ("Forest", "Counts trees.", "Three oaks."))
    # Nothing can be entered while the server is away.
    for is_connected in (False, True):
        app.session.is_connected = is_connected
        assert app.page.name_of_tree.disabled is not is_connected
        assert app.page.rare.disabled == []
