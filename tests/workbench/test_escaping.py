"""Text of data, people and the address is shown as it is: no tag of it, and no Markdown."""

from __future__ import annotations

import html
from types import SimpleNamespace

import msgspec
import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

import panel as pn
import panel_material_ui as pmui

import steelyard
from steelyard.datasets.wire import Example
from steelyard.errors import NotFoundError
from steelyard_workbench.frame.app import App
from steelyard_workbench.kit.components.plain_markdown import draw_plain_markdown
from steelyard_workbench.kit.problems import Problem
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.views import failed, verdict
from steelyard_workbench.kit.words import escape_markdown
from steelyard_workbench.pages.datasets.page import DatasetsPage
from steelyard_workbench.pages.families.page import FamiliesPage
from steelyard_workbench.pages.live.page import LivePage
from steelyard_workbench.parts.live.view import AnswerFilter, View, to_text
from support.families.told_families import in_turn, make_client

NASTY = '<img src=x onerror="alert(1)"> **x**'
QUESTION = {"id": NASTY, "question": NASTY, "outcomes": ["a", "b"]}


@pytest.fixture(autouse=True, scope="module")
def plain():
    """Markdown as the app draws it."""
    draw_plain_markdown()


def drawn(shown):
    """The HTML of every text that is shown, as the browser gets it."""
    told = [one._transform_object(one.object) for one in shown.select(pn.pane.Markdown)]
    told += [one._process_param_change({"object": one.object}) for one in shown.select(pmui.Alert)]
    found = [html.unescape(one["object"]) for one in told]
    return "\n".join([*found, *(one.object for one in shown.select(pn.pane.HTML))])


def of_a_family_of_the_address():
    error = NotFoundError(f"There is no family {NASTY}.")
    page = FamiliesPage(Session(make_client(families_get=in_turn(error)), family=NASTY))
    page.open()
    return page.__panel__()


def of_a_page_of_the_address():
    app = App(SimpleNamespace())
    app.session.page = NASTY
    return app.place


def of_rows_of_the_address():
    view = View(rows=AnswerFilter(name=NASTY, abstained=True))
    with steelyard.embed(engine="hashing") as server:
        page = LivePage(Session(server.client, query=to_text(view)))
        page.open()
        return page.__panel__()


def of_a_dataset():
    with steelyard.embed(engine="hashing") as server:
        rows = [
            {
                "context": f"{NASTY} {n}",
                "decisions": [QUESTION | {"id": "team"}],
                "targets": {"team": "a"},
            }
            for n in range(12)
        ]
        made = server.client.datasets.create(NASTY, rows)
        page = DatasetsPage(Session(server.client, page="datasets", dataset=made.id))
        page.open()
        page.on_key("next", 1)
        return page.__panel__()


def of_a_row():
    from steelyard_workbench.parts.datasets.row_table import show_row

    row = {"context": NASTY, "decisions": [QUESTION], "targets": {NASTY: {"a": 1.0}}}
    return show_row(0, "training", msgspec.convert(row, Example))


def of_a_refusal():
    return failed(Problem(f"{NASTY} could not be had.", NASTY, "invalid", details=(NASTY,)))


@pytest.mark.parametrize(
    "show",
    [
        of_a_family_of_the_address,
        of_a_page_of_the_address,
        of_rows_of_the_address,
        of_a_dataset,
        of_a_row,
        of_a_refusal,
    ],
)
def test_visible_texts_hold_no_tag(show):
    told = drawn(show())
    assert "&lt;img" in told
    assert "**x**" in told
    assert "<img" not in told
    assert "<strong>x</strong>" not in told


def test_markdown_of_the_workbench_itself_is_drawn():
    told = drawn(pn.Column(verdict("good", "Done.", "**now** `a_b`")))
    assert "<strong>Done.</strong> <strong>now</strong> <code>a_b</code>" in told


@pytest.mark.parametrize("make", [pmui.Typography, pn.pane.Markdown, pmui.Alert])
def test_no_html_link_or_image_comes_from_markdown_that_was_not_escaped(make):
    text = "<b>a</b> [b](http://away.org) ![c](http://away.org/c.png) <http://d.org> www.e.org"
    told = drawn(pn.Column(make(object=text)))
    assert "&lt;b&gt;" in told
    for tag in ("<b>", "<a ", "<img"):
        assert tag not in told


@pytest.mark.parametrize(
    "text",
    ["a_b_c", "- a", "1. a", "# a", "> a", "= a", "a | b", "[x]: y", "a\n\n    b", "&amp;", "\\*"],
)
def test_an_escaped_text_reads_as_it_was(text):
    told = drawn(pn.Column(pmui.Typography(escape_markdown(text))))
    assert told.strip() == f"<p>{html.escape(' '.join(text.split()))}</p>"
