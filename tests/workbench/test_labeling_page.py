"""The Labeling page: jobs, how far teachers agree, rows that are accepted, and the dataset of them."""

from __future__ import annotations

import asyncio
import html

import pytest

import steelyard
from steelyard.app.job_runtime import open_worker
from support.browser.shown_parts import buttons, lines, named, press_in, texts
from support.datasets.dataset_rows import make_rows
from support.models.teaching import SHARED, is_even, queries, taught_server
from support.servers.held_calls import HeldCall, until_done

pytest.importorskip("panel", reason="needs the workbench extra")

from steelyard_workbench.frame.heading import Heading
from steelyard_workbench.kit.components.mark_table import MarkTable
from steelyard_workbench.kit.session import Session
from steelyard_workbench.pages.labeling import page as labeling_page
from steelyard_workbench.pages.labeling.page import LabelingPage


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    with taught_server(home, {"even": is_even, "sure": lambda _: 0.9}) as (server, _):
        yield server


@pytest.fixture(scope="module")
def client(server):
    with steelyard.connect(server.url) as client:
        yield client


@pytest.fixture
def worker(server):
    with open_worker(server.services.settings):
        yield


def start(client):
    source = client.labeling.upload("<queries>", queries(6))
    return client.labeling.create(source.id, decisions=SHARED)


def opened(client, **chosen):
    page = LabelingPage(Session(client, page="labeling", **chosen))
    page.open()
    return page


@pytest.fixture
def ready(client, worker):
    return client.labeling.wait(start(client), progress=False)


def rows_of(page):
    [found] = page.__panel__().select(MarkTable)
    return found


def test_jobs_are_listed_followed_and_opened(client, server):
    job = start(client)
    page = opened(client)
    assert "queued · 0 of 6 rows" in texts(page.__panel__())
    with open_worker(server.services.settings):
        client.labeling.wait(job, progress=False)
    asyncio.run(page.look())
    assert "review ready · 6 rows, 3 on which all teachers agree" in texts(page.__panel__())
    lines(page, "Labeling jobs").press(0)
    assert page.session.labeling == job.id
    assert page.queue is not None
    assert "Krippendorff&#x27;s alpha" in texts(page.__panel__())
    heading = Heading(page.session)
    heading.refresh()
    assert (heading.in_browser, heading.up.label) == (job.name, "All labeling jobs")
    assert f">{html.escape(job.name)}<" in heading.title.object
    heading.up.clicks += 1
    assert page.queue is None


def test_without_any_it_says_how_to_begin(tmp_path):
    with (
        taught_server(tmp_path, {}) as (server, _),
        steelyard.connect(server.url) as client,
    ):
        page = opened(client)
        assert "No model can label rows yet." in texts(page.__panel__())
        press_in(page.__panel__(), "Get a model")
        assert page.session.page == "models"


def test_rows_of_a_file_and_of_a_dataset_are_labelled_from_the_form(client):
    client.datasets.create("tickets", make_rows(8))
    form = opened(client).form
    doubt = "it has not been held to labels of people."
    assert f"even: {doubt} sure: {doubt}" in texts(form.doubts)
    form.teachers.value = []
    assert not form.doubts
    form.teachers.value = ["even", "sure"]
    asyncio.run(form.begin())
    assert "Choose a file with the rows." in texts(form.said)
    form.take("mails.csv", b"text,id\nInvoice 1 was paid twice.,1\nInvoice 2 is due.,2\n")
    asyncio.run(form.begin())
    assert "Write the question" in texts(form.said)
    form.question.value = "Is the number even?"
    asyncio.run(form.begin())
    job = next(iter(client.labeling.list()))
    assert (job.name, job.rows, job.teacher_models) == ("mails", 2, ["even", "sure"])
    form.take(
        "mails.jsonl", queries(2, is_open=False) + b'no row\n{"context": "a", "decisions": []}\n'
    )
    asyncio.run(form.begin())
    assert "2 left out" in texts(form.said)
    assert "Line 3: It is no JSON at character 1" in texts(form.said)
    assert "Line 4: " in texts(form.said)
    assert next(iter(client.labeling.list())).rows == 2
    form.source.value = "Rows of a dataset"
    assert form.dataset.visible
    form.n_rows.value = 5
    asyncio.run(form.begin())
    job = next(iter(client.labeling.list()))
    assert (job.name, job.rows) == ("tickets", 5)
    form.source.value = "Unsure answers of Live"
    asyncio.run(form.begin())
    assert "Live has no unsure answer" in texts(form.said)


def test_a_price_is_shown_before_it_is_held(tmp_path):
    with (
        taught_server(tmp_path, {"even": is_even}, price_in="1") as (server, _),
        steelyard.connect(server.url) as client,
    ):
        form = opened(client).form
        form.take("rows.jsonl", queries(3, is_open=False))
        asyncio.run(form.begin())
        assert "Labeling 3 rows costs" in texts(form.said)
        assert not list(client.labeling.list())
        asyncio.run(form.begin())
        [job] = client.labeling.list()
        assert job.charge == "reserved"
        assert len(list(client.labeling.sources())) == 1


def test_rows_are_accepted_and_become_a_dataset(client, ready):
    page = opened(client, labeling=ready.id)
    found = page.queue
    assert found.queue.value == "differ"
    assert [row[0] for row in rows_of(page).rows] == ["left out"] * 3
    assert rows_of(page).rows[0][1:] == ["1", "Invoice 1 was paid twice.", "no", "yes"]
    rows_of(page).press(0)
    assert rows_of(page).rows[0][0] == "accepted"
    assert found.accepted == {0, 1, 2, 4}
    rows_of(page).press(0)
    assert found.accepted == {0, 2, 4}
    found._take_page(None)
    assert found.accepted == set(range(6))
    found.queue.value = "agree"
    rows_of(page).press(1)
    assert found.finish.label == "Make a dataset of 5 rows"
    asyncio.run(found.finalize())
    assert "Made a dataset of 5 rows." in texts(page.__panel__())
    job = client.labeling.get(ready.id)
    assert job.status == "finalized"
    assert client.datasets.get(job.dataset_id).labeling.row_indices == [0, 1, 3, 4, 5]
    buttons(found.said)["Review its rows"].clicks += 1
    assert (page.session.page, page.session.dataset) == ("review", job.dataset_id)
    assert opened(client, labeling=ready.id).queue.finish.disabled


def test_long_queues_are_paged(client, ready, monkeypatch):
    monkeypatch.setattr(labeling_page, "PAGE", 2)
    page = opened(client, labeling=ready.id)
    assert page.queue.before.disabled
    page.queue.after.clicks += 1
    assert [row[1] for row in rows_of(page).rows] == ["5"]
    assert page.queue.after.disabled
    page.queue.before.clicks += 1
    assert [row[1] for row in rows_of(page).rows] == ["1", "3"]
    page.queue.queue.value = "all"
    assert [row[1] for row in rows_of(page).rows] == ["0", "1"]


def test_a_dataset_is_made_once_however_often_it_is_clicked(client, ready):
    finalize = HeldCall(client.labeling.finalize)

    async def click_twice():
        page = opened(client, labeling=ready.id)
        await until_done()
        found = page.queue
        found._client = type("Held", (), {"labeling": type("Calls", (), {"finalize": finalize})})
        first = asyncio.create_task(found.finalize())
        await finalize.until_called()
        second = asyncio.create_task(found.finalize())
        finalize.go_on()
        await asyncio.gather(first, second)
        await until_done()

    asyncio.run(click_twice())
    assert finalize.n_calls == 1


def test_one_that_waits_is_cancelled(client):
    page = opened(client, labeling=start(client).id)
    named(page.__panel__(), "Cancel")[0].clicks += 1
    assert "cancelled" in texts(page.__panel__())


def test_one_that_is_ready_is_discarded(client, ready):
    page = opened(client, labeling=ready.id)
    named(page.__panel__(), "Discard")[0].clicks += 1
    assert "discarded" in texts(page.__panel__())
    assert client.labeling.get(ready.id).status == "discarded"


def test_one_that_is_not_there_is_a_failure_of_its_part(client):
    assert "There is no labeling job" in texts(opened(client, labeling="lab_none").__panel__())
