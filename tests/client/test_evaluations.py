"""``client.evaluations``, blocking and asynchronous, and how its answers show themselves."""

from __future__ import annotations

import asyncio
import sys
from html import escape
from xml.etree import ElementTree as ET

import bokeh.embed
import bokeh.plotting
import httpx
import pytest

import steelyard
from steelyard.app.job_runtime import open_worker
from steelyard.client import AsyncClient, Client, ClientOptions, NoAnswerInTimeError
from steelyard.client.progress import progress_bar
from support.datasets.dataset_rows import make_rows
from support.models.evaluated import settings_of
from support.servers.live_server import live_server

pytestmark = pytest.mark.usefixtures("every_response_is_checked")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    given = {"jobs": "off", "dataset_min_rows": 1, "base_models": "second=hashing"}
    with live_server(home=home, **given) as server:
        yield server


@pytest.fixture(scope="module")
def client(server):
    with steelyard.connect(server.url) as client:
        yield client


@pytest.fixture(scope="module")
def pair(server, client):
    """Two evaluations that succeeded."""
    rows = make_rows(12)
    for row in rows:
        row["decisions"][1] = {**row["decisions"][1], "id": "<refund>"}
        row["targets"]["<refund>"] = row["targets"].pop("refund")
    body = {"name": "tickets", "evaluation": rows}
    dataset_id = httpx.post(f"{server.url}/v1/datasets", json=body, timeout=30).json()["id"]
    home = server.services.settings.home
    with open_worker(settings_of(home, base_models="second=hashing")):
        submission = client.evaluations.create(dataset_id, ["hashing", "second"])
        return [client.evaluations.wait(one, timeout_s=60) for one in submission.data]


def test_waiting_returns_the_ended_evaluations(pair):
    assert [one.status for one in pair] == ["succeeded", "succeeded"]
    assert "12 of 12" in pair[0]._repr_html_()


def test_a_restart_of_the_server_ends_no_waiting(client, pair):
    lost = [httpx.ConnectError("refused")] * 3

    def answer(request):
        if lost:
            raise lost.pop()
        found = httpx.get(f"{client.url}{request.url.path}")
        return httpx.Response(200, content=found.content, headers=found.headers)

    options = ClientOptions(client.url, max_retries=0)
    with Client(options, transport=httpx.MockTransport(answer)) as flaky:
        assert flaky.evaluations.wait(pair[0], poll_s=0.001).id == pair[0].id

    async def wait():
        lost.extend([httpx.ConnectError("refused")] * 3)
        async with AsyncClient(options, transport=httpx.MockTransport(answer)) as flaky:
            return await flaky.evaluations.wait(pair[0], poll_s=0.001)

    assert asyncio.run(wait()).id == pair[0].id


def test_lists(client, pair):
    dataset_id = pair[0].dataset_id
    found = list(client.evaluations.list(dataset_id, status="succeeded", page_size=1))
    assert [one.id for one in found] == [pair[1].id, pair[0].id]
    assert list(client.evaluations.list(dataset_id, status=["failed", "queued"])) == []


def test_details_turn_into_frames_and_tables(client, pair):
    detail = client.evaluations.detail(pair[0].id)
    frame = detail.to_polars()
    overall = frame.filter(frame["by"] == "overall")
    assert dict(zip(overall["measure"], overall["value"], strict=True))["accuracy"] == (
        pair[0].metrics.accuracy
    )
    shown = detail._repr_html_()
    assert "&lt;refund&gt;" in shown
    assert "<refund>" not in shown
    assert "Reliability" in shown


def test_details_draw_figures_that_a_cell_shows_as_small_pictures(client, pair):
    detail = client.evaluations.detail(pair[0].id)
    curve = client.evaluations.cost_curve(
        pair[0].id, "<refund>", false_positive=8, false_negative=3
    )
    drawn = (
        detail.plot.reliability(),
        detail.plot.thresholds(),
        detail.plot.thresholds("<refund>"),
        detail.plot.confusion("<refund>"),
        curve.plot(),
    )
    for figure in drawn:
        assert isinstance(figure, bokeh.plotting.figure)
        shown = figure._repr_html_()
        ET.fromstring(shown)
        assert len(shown) < 30_000
        assert "<refund>" not in shown
        assert bokeh.embed.json_item(figure)["doc"]["roots"][0]["name"] == "Figure"
    assert "share that was right" in drawn[0]._repr_html_()
    assert "&lt;refund&gt;" in drawn[3]._repr_html_()


def test_a_missing_figure_names_the_present_ones(client, pair):
    plot = client.evaluations.detail(pair[0].id).plot
    with pytest.raises(ValueError, match=r"Say which decision: .*<refund>"):
        plot.confusion()
    with pytest.raises(ValueError, match=r"'tem'; choose among .*<refund>"):
        plot.thresholds("tem")


def test_without_bokeh_a_figure_names_the_package(client, pair, monkeypatch):
    plot = client.evaluations.detail(pair[0].id).plot
    monkeypatch.delitem(sys.modules, "steelyard.client.bokeh_figures", raising=False)
    monkeypatch.delattr("steelyard.client.bokeh_figures", raising=False)
    monkeypatch.setitem(sys.modules, "bokeh.plotting", None)
    with pytest.raises(ModuleNotFoundError, match="A figure needs bokeh: pip install bokeh"):
        plot.reliability()


def test_the_frontier_is_a_frame_and_a_table(client, pair):
    found = client.evaluations.frontier(pair[0].dataset_id, "log_loss")
    frame = found.to_polars()
    assert set(frame["evaluation"]) == {one.id for one in pair}
    assert not frame["dominated"].all()
    assert frame["value"].is_sorted()
    assert "not dominated" in found._repr_html_()
    costs = {"pay": {"yes": 0, "no": 7}, "ask": {"yes": 1, "no": 1}}
    found = client.evaluations.frontier(
        pair[0].dataset_id, "expected_cost", decision="<refund>", action_costs=costs
    )
    assert len(found.data) == 2


def test_records(client, pair):
    records = client.evaluations.records(pair[0].id)
    assert len(records) == 24
    assert records.to_polars().shape[0] == 24
    wrong = client.evaluations.records(pair[0].id, wrong=True, decision="<refund>", limit=2)
    assert {one.accuracy for one in wrong} == {0.0}
    assert "&lt;refund&gt;" in wrong._repr_html_()
    assert "context" not in records.to_polars().columns


def test_a_page_of_the_records_behind_a_mark(client, pair):
    page = client.evaluations.records_page(
        pair[0].id, decision="<refund>", p_from=0.1, p_to=1.0, order="loss", context=True, limit=5
    )
    assert page.total == 12
    assert [one.loss for one in page.data] == sorted((one.loss for one in page.data), reverse=True)
    assert all(one.context for one in page.data)
    worst = page.data[0]
    records = client.evaluations.records(
        pair[0].id,
        contexts=[worst.context_sha256],
        target=None,
        top=max(worst.probabilities, key=worst.probabilities.get),
        context=True,
    )
    assert worst in records
    assert records.to_polars().columns[0] == "context"
    assert records.to_polars()["context"][0] == worst.context
    assert escape(str(worst.context)[:100]) in records._repr_html_()


def test_comparisons(client, pair):
    comparison = client.evaluations.compare(pair[0].id, pair[1].id)
    assert comparison.to_polars().height == comparison.flipped_total > 0
    assert "<refund>" not in comparison._repr_html_()


def test_policies_are_tried(client, pair):
    report = client.evaluations.try_policy(pair[0].id, "<refund>", abstain_below=0.9)
    assert report.coverage.value < 1
    curve = client.evaluations.cost_curve(
        pair[0].id, "<refund>", false_positive=1, false_negative=1
    )
    assert len(curve.points) == 101


def test_an_unfinished_evaluation_is_reported(client, pair):
    waiting = client.evaluations.create(pair[0].dataset_id, "hashing").data[0]
    assert waiting.status == "succeeded"
    rows = make_rows(2, start=60)
    body = {"name": "more", "evaluation": rows}
    dataset_id = httpx.post(f"{client.url}/v1/datasets", json=body, timeout=30).json()["id"]
    (queued,) = client.evaluations.create(dataset_id, "hashing").data
    with pytest.raises(NoAnswerInTimeError):
        client.evaluations.wait(queued.id, timeout_s=0, poll_s=0.01)
    assert client.evaluations.cancel(queued.id).status == "cancelled"
    assert client.evaluations.retry(queued.id).generation == 2
    assert client.evaluations.cancel(queued.id).status == "cancelled"


def test_asynchronous(server, pair):
    async def use():
        async with steelyard.connect_async(server.url) as client:
            evaluation = await client.evaluations.wait(pair[0], progress=False)
            listed = [one.id async for one in client.evaluations.list(evaluation.dataset_id)]
            records = await client.evaluations.records(evaluation.id, limit=3)
            return evaluation, listed, records

    evaluation, listed, records = asyncio.run(use())
    assert evaluation == pair[0]
    assert set(listed) == {one.id for one in pair}
    assert len(records) == 3


def test_without_a_terminal_nothing_is_shown(capsys):
    with progress_bar("Evaluation") as show:
        show(1, 2, "running")
    assert capsys.readouterr() == ("", "")
