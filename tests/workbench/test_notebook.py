"""``Workbench`` in a cell: its page, and the selection returned as frames."""

from __future__ import annotations

import json

import pytest

import steelyard

pytest.importorskip("panel", reason="needs the workbench extra")

from steelyard_workbench import Workbench
from steelyard_workbench.frame.app import App
from steelyard_workbench.parts.review.row_filter import RowFilter, write_query

ASKED = {"id": "team", "question": "Who?", "outcomes": ["billing", "shipping"]}
ROWS = [
    {
        "context": f"ticket {n} about {'money' if n % 2 else 'a parcel'}",
        "decisions": [ASKED],
        "targets": {"team": {"billing" if n % 2 else "shipping": 1.0}},
    }
    for n in range(40)
]


@pytest.fixture(scope="module")
def server():
    with steelyard.embed(engine="hashing") as running:
        yield running


@pytest.fixture(scope="module")
def dataset(server):
    return server.client.datasets.create("tickets", ROWS)


@pytest.fixture
def workbench(server, dataset):
    with Workbench(server, page="datasets", dataset=dataset.id) as shown:
        yield shown


def looked_at(workbench, **chosen):
    """Open something in a browser, as a reader would."""
    app = App(workbench.client)
    app.session.param.update(**chosen)
    workbench._served.opened(app)
    return app


def test_a_cell_shows_the_page_in_a_frame(workbench, dataset):
    shown = workbench._repr_html_()
    assert shown.startswith("<iframe ")
    assert f"{workbench.url}/?page=datasets&amp;dataset={dataset.id}" in shown
    assert repr(workbench).startswith("Workbench(url=")


def test_the_server_of_the_environment_is_shown(server, monkeypatch):
    monkeypatch.setenv("STEELYARD_URL", server.url)
    monkeypatch.setenv("STEELYARD_API_KEY", server.api_key or "")
    with Workbench() as shown:
        assert shown.server_url == server.url
        assert shown.client.datasets.list().data is not None
    monkeypatch.setenv("STEELYARD_URL", "http://127.0.0.1:9")
    with Workbench(server.url) as shown:
        assert shown.server_url == server.url


def test_before_a_browser_opens_it_nothing_is_chosen(workbench):
    assert workbench.session is None
    assert workbench.selection.height == 0
    assert workbench.filter == {}
    assert workbench.rows().height == 0


def test_selected_rows_come_back_as_a_frame(workbench, dataset):
    looked_at(workbench, dataset=dataset.id, selected=[7, 2, 7])
    frame = workbench.selection
    assert frame["row"].to_list() == [2, 7]
    pages = workbench.client.datasets.rows(dataset.id, limit=40).data
    assert frame["context"].to_list() == [pages[2].context, pages[7].context]
    assert json.loads(frame["labels"][0]) == pages[2].targets


def test_the_filter_comes_back_and_finds_its_rows(workbench, dataset):
    where = {"type": "expected", "decision": "team", "outcome": "billing"}
    query = write_query(RowFilter(words="money", expected=(("team", "billing"),)), "all")
    looked_at(workbench, page="review", dataset=dataset.id, query=query)
    assert workbench.filter == {"where": where, "text": "money"}
    found = workbench.rows()
    assert found.height == 20
    assert all("money" in context for context in found["context"])


def test_two_on_one_server_do_not_see_each_others_choice(server, workbench, dataset):
    with Workbench(server) as other:
        looked_at(other, dataset=dataset.id, selected=[1])
        looked_at(workbench, dataset=dataset.id, selected=[5])
        assert other.selection["row"].to_list() == [1]
        assert workbench.selection["row"].to_list() == [5]
        assert other.url != workbench.url


def test_a_choice_that_no_page_has_is_refused(server):
    with pytest.raises(TypeError, match="'colour'"):
        Workbench(server, colour="red")


def test_one_of_its_own_ends_with_it(tmp_path):
    shown = Workbench(home=tmp_path)
    assert shown.client.health().status == "ok"
    shown.stop()
    assert not shown._own.is_running


def test_the_row_that_is_read_is_the_selection(workbench, dataset):
    app = looked_at(workbench, page="datasets", dataset=dataset.id)
    app.page.open()
    app.page.rows.table.step(1)
    app.page.rows.table.step(1)
    assert workbench.selection["row"].to_list() == [1]
    app.page.rows.close()
    assert workbench.selection.height == 0


def test_a_row_that_was_read_is_no_selection_once_the_page_is_left(workbench, dataset):
    app = looked_at(workbench, page="datasets", dataset=dataset.id)
    app.page.rows.table.step(1)
    assert workbench.selection["row"].to_list() == [0]
    app.session.page = "home"
    assert workbench.selection.height == 0


def test_a_selection_in_an_app_of_the_cell_is_returned(workbench, dataset, monkeypatch):
    monkeypatch.setattr("steelyard_workbench.notebook.prepare", lambda **_: None)
    workbench.inline()
    session = workbench.session
    assert (session.page, session.dataset) == ("datasets", dataset.id)
    session.selected = [3]
    assert workbench.selection["context"].to_list() == [ROWS[3]["context"]]
    browser = looked_at(workbench, page="home")  # whatever was opened last
    assert workbench.session is browser.session


def test_apps_of_the_cell_that_are_at_hand_are_bounded(workbench, monkeypatch):
    monkeypatch.setattr("steelyard_workbench.notebook.prepare", lambda **_: None)
    monkeypatch.setattr(App, "view", lambda _: None)
    for page in ["home"] * 20 + ["settings"]:
        workbench._chosen = {"page": page}
        workbench.inline()
    assert len(workbench._served.apps) == 16
    assert workbench.session.page == "settings"


def test_the_decision_that_is_read_of_an_evaluation_is_a_row_of_its_version(server, workbench):
    made = server.client.datasets.create("sides", ROWS)
    held_out = server.client.datasets.rows(made.id, partition="evaluation", limit=40).data
    places = [[row["context"] for row in ROWS].index(row.context) for row in held_out]
    # Sides are drawn with each dataset's own id: the first row that is not at its own place.
    at, place = next(pair for pair in enumerate(places) if pair[0] != pair[1])
    [scored] = server.client.evaluations.create(made.id, "hashing").data
    server.client.evaluations.wait(scored.id)
    # A later version, which no longer holds that row.
    draft = server.client.drafts.create(made.id)
    server.client.drafts.edit(draft.id, [{"row": place, "action": "exclude", "seen": 0}])
    server.client.drafts.seal(draft.id, "version")
    [record] = server.client.evaluations.records_page(scored.id, limit=1, offset=at).data
    app = looked_at(workbench, page="evaluations", dataset=made.id, evaluation=scored.id)
    app.session.selected = [record.row]  # as reading the decision does
    frame = workbench.selection
    assert record.row == at
    assert frame["row"].to_list() == [place]
    assert frame["context"].to_list() == [ROWS[place]["context"]]


def test_places_are_those_of_the_dataset_where_rows_were_taken_out(server, workbench):
    made = server.client.datasets.create("shorter", ROWS)
    draft = server.client.drafts.create(made.id)
    server.client.drafts.edit(draft.id, [{"row": 0, "action": "exclude", "seen": 0}])
    server.client.drafts.seal(draft.id, "version")
    looked_at(workbench, dataset=made.id, selected=[3])
    frame = workbench.selection
    assert (frame["row"].to_list(), frame["context"].to_list()) == ([3], [ROWS[3]["context"]])


@pytest.mark.slow
def test_selections_on_other_pages_filter_no_rows(workbench, dataset):
    query = '{"words": "money"}'
    looked_at(workbench, page="live", dataset=dataset.id, query=query)
    assert workbench.filter == {}
    looked_at(workbench, page="evaluations", dataset=dataset.id, query=query)
    assert workbench.filter["wrong"] is False
