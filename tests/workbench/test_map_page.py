"""The Map page: a map is asked for, coloured, and its rows are chosen for a review."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

import steelyard
from steelyard.app.job_runtime import open_worker
from steelyard.maps.wire import MapPoints, MapValues
from support.browser.shown_parts import buttons, choose, named, texts
from support.servers.live_server import live_server

pytest.importorskip("panel", reason="needs the workbench extra")

from steelyard_workbench.kit.session import Session
from steelyard_workbench.pages.map import map_view
from steelyard_workbench.pages.map.colouring import colour
from steelyard_workbench.pages.map.page import MapPage
from steelyard_workbench.parts.review.row_filter import RowFilter, read_query, write_query

TEAM = {"id": "team", "question": "Which team?", "outcomes": ["money", "parcel"]}
SAID = ("my card was charged twice", "the courier lost a box")


def rows(n, start=0):
    return [
        {
            "context": f"{SAID[k % 2]}, ticket {k}",
            "decisions": [TEAM],
            "targets": {"team": {TEAM["outcomes"][k % 2]: 1.0}},
        }
        for k in range(start, start + n)
    ]


@pytest.fixture(scope="module")
def server():
    with live_server(jobs="off", dataset_min_rows=1) as running:
        yield running


@pytest.fixture(scope="module")
def client(server):
    with steelyard.connect(server.url) as client:
        yield client


@pytest.fixture(scope="module")
def mapped(server, client):
    """A dataset with a map, and an evaluation."""
    dataset = client.datasets.create("tickets", training=rows(30), evaluation=rows(10, start=30))
    with open_worker(server.services.settings):
        for one in client.evaluations.create(dataset.id, ["hashing"]).data:
            client.evaluations.wait(one, timeout_s=120, progress=False)
        client.maps.wait(client.maps.create(dataset.id), timeout_s=120, progress=False)
    return dataset


def opened(client, **chosen):
    page = MapPage(Session(client, page="map", **chosen))
    page.open()
    return page


def test_a_map_is_asked_for_followed_stopped_and_asked_for_again(client, mapped):
    page = opened(client)
    # Without a choice it begins with the newest dataset that has a map.
    assert page.view is not None
    [field] = named(page.__panel__(), "Dataset")
    assert field.value == mapped.id
    dataset = client.datasets.create("others", rows(8))
    page.session.dataset = dataset.id
    assert "No map of this version yet." in texts(page.__panel__())
    buttons(page.__panel__())["Lay out the rows"].clicks += 1
    [found] = client.maps.list(dataset_id=dataset.id)
    assert found.status == "queued"
    assert "It waits for its turn." in texts(page.__panel__())
    buttons(page.__panel__())["Cancel"].clicks += 1
    assert "The map is cancelled." in texts(page.__panel__())
    buttons(page.__panel__())["Go on"].clicks += 1
    assert client.maps.get(found.id).status == "queued"
    client.maps.cancel(found.id)
    asyncio.run(page.look())
    assert "The map is cancelled." in texts(page.__panel__())


def test_groups_are_counted_and_a_press_selects_one_for_review(client, mapped, monkeypatch):
    view = opened(client, dataset=mapped.id).view
    labels = buttons(view.__panel__())
    choose(view.__panel__(), "parcel (20)")
    assert view.rows == list(range(1, 40, 2))
    assert view.review_button.label == "Review these 20 rows"
    monkeypatch.setattr(map_view, "MAX_PLACES", 5)
    view.chart.select(range(40))
    assert view.review_button.label == "Review these 5 rows"
    assert len(view.rows) == 5
    assert "Of 40 that are selected" in texts(view.__panel__())
    labels["Clear the selection"].clicks += 1
    assert not view.review_button.visible


def test_the_rows_chosen_open_in_a_review(client, mapped):
    page = opened(client, dataset=mapped.id)
    page.view.chart.select([2, 5, 9])
    wanted = page.view.rows
    asyncio.run(page.view.send())
    session = page.session
    assert (session.page, session.dataset, session.version) == ("review", mapped.id, 1)
    chosen, queue = read_query(session.query)
    assert (list(chosen.places), queue) == (wanted, "all")
    found = client.drafts.rows(session.draft, "all", where=chosen.where)
    assert [row.now.row for row in found.data] == wanted


def test_one_row_is_opened_beside_the_map(client, mapped):
    view = opened(client, dataset=mapped.id).view
    view.chart.select([7])
    index = view.mapped.points.index[7]
    assert f"{SAID[index % 2]}, ticket {index}" in texts(view.__panel__())
    assert view.review_button.label == "Review this row"


def test_errors_confidence_and_sides_colour_it(client, mapped):
    view = opened(client, dataset=mapped.id, view="error").view
    counts = dict(zip(view.colouring.names, view.colouring.counts, strict=True))
    assert counts["not scored"] == 30
    assert counts["right"] + counts["wrong"] == 10
    for by, n_groups in (("confidence", 5), ("side", 2), ("label", 4)):
        view.by.value = by
        assert (view.session.view, view.session.decision) == (by, "team")
        assert len(view.colouring.names) == n_groups
        assert np.array_equal(view.chart.source.data["color"], view.colouring.pixels())


def test_a_failed_load_is_reported_and_tried_again(client, mapped):
    page = opened(client, dataset="nowhere")
    assert "There is no dataset" in texts(page.__panel__())
    assert buttons(page.__panel__())["Try again"]


def test_colours_of_many_outcomes_and_of_unknown_ones():
    names = [f"o{n}" for n in range(9)]
    points = MapPoints(map="m", index=[0], x=[0.0], y=[0.0], is_evaluation=[True], text=[""])
    values = MapValues(
        map="m",
        decision="d",
        outcomes=names,
        expected=[0, 8, -2, -1],
        answered=None,
        is_right=None,
        confidence=None,
    )
    made = colour("label", points, values)
    groups = [made.names[code] for code in made.codes]
    assert groups == ["o0", "another answer", "another answer", "no label"]
    assert list(made.descriptions) == ["o0", "o8", "another answer", "no label"]
    assert made.members(0) == [0]
    assert int(made.pixels()[0]) == int(f"{made.colors[0][1:]}ff", 16)
    assert colour("error", points, None).names == ("not scored",)


def test_places_are_short_in_an_address_and_junk_is_none():
    places = tuple(range(0, 100_000, 50))
    text = write_query(RowFilter(places=places), "all")
    assert len(text) < 10_000
    assert read_query(text)[0].places == places
    assert RowFilter(places=(3,)).parts[0][0] == "1 chosen row"
    for junk in ('"x!"', "7", '["1"]', f'"{"1." * 3000}1"'):
        assert read_query(f'{{"places": {junk}}}')[0].places == ()
