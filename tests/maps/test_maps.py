"""Maps over HTTP and in a worker: every answer is as the OpenAPI document declares."""

from __future__ import annotations

import asyncio
import json

import httpx
import polars as pl
import pytest
from click.testing import CliRunner

import steelyard
from jobs.workers import kill, start_job_worker
from steelyard.app.foundation import open_frames
from steelyard.app.job_runtime import open_worker
from steelyard.caller import LOCAL_ACCOUNT, Caller
from steelyard.cli.main import main
from steelyard.datasets.frames.vectors import read_contexts, scorer_of, stored_vectors
from steelyard.datasets.service import DatasetService
from steelyard.errors import ModelUnavailableError
from steelyard.jobs.work import LostRunError
from steelyard.maps import progress as progress_of_maps
from steelyard.maps import run as running
from steelyard.maps import service as services_of_maps
from steelyard.maps import store as map_rows
from steelyard.maps.layout import MapLayout
from steelyard.maps.run import MapRuns
from support.api.error_shape import assert_canonical_error
from support.datasets.dataset_rows import to_ndjson
from support.decisions.wordings import tuned_server
from support.models.evaluated import claim
from support.servers.live_server import live_server
from support.waiting import wait_until

pytestmark = pytest.mark.usefixtures("every_response_is_checked")

TEAM = {"id": "team", "kind": "single", "question": "Which team?", "outcomes": ["money", "parcel"]}
SAID = {"money": "my card was charged twice", "parcel": "the courier lost a box"}


def rows(n, start=0):
    names = list(SAID)
    return [
        {
            "context": f"{SAID[names[k % 2]]},\n  ticket {k}",
            "decisions": [TEAM],
            "targets": {"team": {names[k % 2]: 1.0}},
        }
        for k in range(start, start + n)
    ]


def upload(http, training=60, evaluation=20):
    ndjson = "application/x-ndjson"
    files = {
        "training": ("t.jsonl", to_ndjson(rows(training)), ndjson),
        "evaluation": ("e.jsonl", to_ndjson(rows(evaluation, start=training)), ndjson),
    }
    return http.post("/v1/datasets", files=files, data={"name": "tickets"}).json()["id"]


def start(http, dataset_id, **given):
    return http.post("/v1/maps", json={"dataset_id": dataset_id, **given})


def get(http, found):
    return http.get(f"/v1/maps/{found['id']}").json()


def runs_of(services):
    return MapRuns(
        services.state,
        open_frames(services.settings, "maps"),
        services.get(DatasetService),
        open_frames(services.settings, "datasets"),
        services.models,
    )


def run(http, services, found):
    """Compute a map in this process, to its end; gives how far it was after each step but the last."""
    run_ = claim(services.state, runs_of(services), found["id"])
    told = []
    while run_.advance():
        told.append(get(http, found)["progress"])
    return told


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Services with jobs of their own, and a client of them."""
    home = tmp_path_factory.mktemp("home")
    with (
        live_server(home=str(home), jobs="off", dataset_min_rows=1) as server,
        httpx.Client(base_url=server.url, timeout=60) as http,
    ):
        yield server.services, http


@pytest.fixture(scope="module")
def http(served):
    return served[1]


@pytest.fixture(scope="module")
def mapped(served):
    """A map that has succeeded."""
    services, http = served
    found = start(http, upload(http)).json()
    assert (found["status"], found["rows"], found["points"]) == ("queued", 80, 80)
    assert_canonical_error(http.get(f"/v1/maps/{found['id']}/points"), 409, "map_not_ready")
    phases = [one["phase"] for one in run(http, services, found)]
    assert list(dict.fromkeys(phases)) == ["comparing", "laying_out"]
    return get(http, found)


class TestAMap:
    def test_its_points_are_the_rows_with_their_sides_and_texts(self, http, mapped):
        assert (mapped["status"], mapped["progress"]) == ("succeeded", None)
        points = http.get(f"/v1/maps/{mapped['id']}/points").json()
        assert sorted(points["index"]) == list(range(80))
        by_index = dict(zip(points["index"], points["is_evaluation"], strict=True))
        assert [by_index[index] for index in range(80)] == [False] * 60 + [True] * 20
        texts = dict(zip(points["index"], points["text"], strict=True))
        assert texts[3] == "the courier lost a box, ticket 3"
        assert max(map(abs, points["x"] + points["y"])) == pytest.approx(1, abs=1e-3)

    def test_its_vectors_serve_who_compares_the_rows_next(self, served, mapped):
        services, _ = served
        store = open_frames(services.settings, "datasets")
        at = asyncio.run(
            services.get(DatasetService).dataset_at(
                Caller(LOCAL_ACCOUNT, None, "full", "here"),
                mapped["dataset_id"],
                mapped["dataset_version"],
                is_new_work=False,
            )
        )
        scorer = scorer_of(services.models.default.evaluation_key)
        stored = [
            stored_vectors(store, part, scorer, read_contexts(store, part))
            for part in at.manifest.parts
        ]
        assert [len(vectors) for vectors in stored] == [60, 20]

    def test_its_rows_have_labels_and_answers(self, served, http, mapped):
        services, _ = served
        asked = {"dataset_id": mapped["dataset_id"], "models": ["hashing"]}
        evaluation = http.post("/v1/evaluations", json=asked).json()["data"][0]
        path, query = f"/v1/maps/{mapped['id']}/values", {"decision": "team"}
        early = http.get(path, params={**query, "evaluation": evaluation["id"]})
        assert_canonical_error(early, 409, "evaluation_not_ready")
        with open_worker(services.settings):
            wait_until(lambda: is_over(http, evaluation), 60)
        points = http.get(f"/v1/maps/{mapped['id']}/points").json()
        values = http.get(path, params={**query, "evaluation": evaluation["id"]}).json()
        assert values["outcomes"] == ["money", "parcel"]
        expected = dict(zip(points["index"], values["expected"], strict=True))
        assert [expected[index] for index in range(80)] == [0, 1] * 40
        # As the records of the evaluation have it: its rows are the last twenty.
        records = http.get(f"/v1/evaluations/{evaluation['id']}/records").json()["data"]
        assert len(records) == 20
        answered = dict(zip(points["index"], values["answered"], strict=True))
        sure = dict(zip(points["index"], values["confidence"], strict=True))
        right = dict(zip(points["index"], values["is_right"], strict=True))
        for record in records:
            index = 60 + record["row"]
            said = record["probabilities"]
            assert values["outcomes"][answered[index]] == max(said, key=said.get)
            assert sure[index] == pytest.approx(max(said.values()), abs=1e-4)
            assert right[index] == (record["accuracy"] == 1)
        assert {answered[index] for index in range(60)} == {-1}
        assert {right[index] for index in range(60)} == {sure[3]} == {None}
        alone = http.get(path, params={"decision": "mood"}).json()
        assert (set(alone["expected"]), alone["answered"], alone["outcomes"]) == ({-1}, None, [])

    def test_who_asks_again_gets_it(self, http, mapped):
        assert start(http, mapped["dataset_id"]).json() == mapped
        assert start(http, mapped["dataset_id"], version=1, model="hashing").json() == mapped
        page = http.get("/v1/maps", params={"dataset_id": mapped["dataset_id"]}).json()
        assert page["data"] == [mapped]
        assert http.get("/v1/maps", params={"dataset_id": "ds_other"}).json()["data"] == []

    def test_an_evaluation_of_another_dataset_is_refused(self, http, mapped):
        other = upload(http, 4, 4)
        asked = {"dataset_id": other, "models": ["hashing"]}
        evaluation = http.post("/v1/evaluations", json=asked).json()["data"][0]["id"]
        query = {"decision": "team", "evaluation": evaluation}
        refused = http.get(f"/v1/maps/{mapped['id']}/values", params=query)
        assert_canonical_error(refused, 422, "invalid_request", message="evaluation")
        http.post(f"/v1/evaluations/{evaluation}/cancel")


def is_laid_out(found):
    """Whether its points have places, the last or not."""
    now = found["progress"]
    return found["status"] == "succeeded" or (now is not None and now["phase"] == "laying_out")


def is_over(http, evaluation):
    return http.get(f"/v1/evaluations/{evaluation['id']}").json()["status"] == "succeeded"


def test_rows_that_cannot_be_laid_out_are_refused(http):
    assert_canonical_error(start(http, "ds_nowhere"), 404, "not_found")
    dataset_id = upload(http, 4, 4)
    assert_canonical_error(start(http, dataset_id, version=7), 404, "not_found")
    assert_canonical_error(start(http, dataset_id, model="nowhere"), 404, "not_found")
    assert_canonical_error(http.get("/v1/maps/map_nowhere"), 404, "not_found")


def test_a_model_without_vectors_is_refused_by_name(tmp_path):
    with tuned_server(tmp_path) as (_, http, _):
        refused = start(http, upload(http, 4, 4), model="far")
        assert_canonical_error(refused, 503, "vectors_unavailable", message="far")


def test_a_map_that_waits_keeps_its_dataset_and_goes_with_it(served, http):
    services, _ = served
    dataset_id = upload(http, 6, 4)
    found = start(http, dataset_id).json()
    assert_canonical_error(http.delete(f"/v1/datasets/{dataset_id}"), 409, "version_in_use")
    run(http, services, found)
    assert len(services.state.read_now(map_rows.live_files)) >= 1
    assert http.delete(f"/v1/datasets/{dataset_id}").status_code == 200
    assert_canonical_error(http.get(f"/v1/maps/{found['id']}"), 404, "not_found")


def test_of_many_rows_an_even_sample_is_laid_out(served, http, monkeypatch):
    services, _ = served
    monkeypatch.setattr(services_of_maps.wire, "MAX_POINTS", 25)
    monkeypatch.setattr(running, "BLOCK_ROWS", 10)
    monkeypatch.setattr(progress_of_maps, "BLOCK_ROWS", 10)
    found = start(http, upload(http)).json()
    assert (found["rows"], found["points"]) == (80, 25)
    told = run(http, services, found)
    assert [one["step"] for one in told if one["phase"] == "embedding"] == [10, 20]
    points = http.get(f"/v1/maps/{found['id']}/points").json()
    assert len(points["index"]) == 25
    # A quarter of the rows are held out, and of the sample too.
    assert sum(points["is_evaluation"]) == pytest.approx(25 / 4, abs=1)


def test_a_cancelled_map_continues(served, http):
    services, _ = served
    found = start(http, upload(http, 30, 10)).json()
    run_ = claim(services.state, runs_of(services), found["id"])
    for _ in range(4):
        run_.advance()
    half = get(http, found)["progress"]
    assert half["phase"] == "laying_out"
    assert half["step"] > 0
    path = f"/v1/maps/{found['id']}/cancel"
    assert http.post(path).json()["status"] == "cancelling"
    runs_of(services).cancel(run_.job)
    assert get(http, found)["status"] == "cancelled"
    with pytest.raises(LostRunError):
        run_.advance()
    again = start(http, found["dataset_id"]).json()
    assert (again["id"], again["status"]) == (found["id"], "queued")
    run_ = claim(services.state, runs_of(services), found["id"])
    run_.advance()
    assert get(http, found)["progress"]["step"] > half["step"]
    while run_.advance():
        pass
    assert get(http, found)["status"] == "succeeded"


def test_a_failed_map_begins_anew(served, http):
    services, _ = served
    found = start(http, upload(http, 12, 8)).json()
    works = runs_of(services)
    run_ = claim(services.state, works, found["id"])
    run_.advance()
    works.fail(run_.job, ModelUnavailableError("It is gone."))
    failed = get(http, found)
    assert (failed["status"], failed["error_code"]) == ("failed", "model_unavailable")
    assert "error" not in start(http, found["dataset_id"]).json()
    assert run(http, services, found)[0]["phase"] == "comparing"


@pytest.mark.slow
def test_a_killed_worker_is_resumed_and_the_map_is_the_same(served, http, tmp_path):
    """The same rows are laid out without a break and through a kill: the same points."""
    services, _ = served
    n = 1_200
    found = start(http, upload(http, n, 100)).json()
    worker = start_job_worker(services.settings.home)
    try:
        wait_until(lambda: is_laid_out(get(http, found)), 120)
    finally:
        kill(worker)
    with open_worker(services.settings):
        wait_until(lambda: get(http, found)["status"] == "succeeded", 120)
    whole = start(http, upload(http, n, 100)).json()
    run(http, services, whole)
    one, other = (http.get(f"/v1/maps/{one['id']}/points").json() for one in (found, whole))
    assert (one["x"], one["y"]) == (other["x"], other["y"])


def test_a_running_map_is_stopped_soon(served, http, monkeypatch):
    services, _ = served
    monkeypatch.setattr(running, "ITERATIONS", 10**9)
    monkeypatch.setattr(MapLayout, "has_ended", False)
    found = start(http, upload(http, 40, 10)).json()
    with open_worker(services.settings):
        wait_until(lambda: is_laid_out(get(http, found)), 60)
        http.post(f"/v1/maps/{found['id']}/cancel")
        wait_until(lambda: get(http, found)["status"] == "cancelled", 30)


@pytest.mark.slow
def test_the_client_waits_for_a_map_and_reads_it():
    with steelyard.embed(engine="hashing", dataset_min_rows=1) as server:
        client = server.client
        dataset = client.datasets.create("tickets", rows(24))
        found = client.maps.wait(client.maps.create(dataset.id), timeout_s=120, progress=False)
        assert found.status == "succeeded"
        assert [one.id for one in client.maps.list(dataset_id=dataset.id)] == [found.id]
        assert len(client.maps.points(found.id).x) == 24
        assert set(client.maps.values(found.id, "team").expected) == {0, 1}
        with pytest.raises(ValueError, match="needs decision"):
            client.maps.export_to(found.id, "points.csv", evaluation="eval_1")


def test_the_command_lays_rows_out_follows_stops_and_exports(served, http, tmp_path):
    services, _ = served

    def ask(command, *arguments, status=0):
        given = ["map", command, *map(str, arguments), "--url", str(http.base_url)]
        done = CliRunner().invoke(main, given)
        assert done.exit_code == status, done.output
        return done

    dataset_id = upload(http, 20, 10)
    waits = json.loads(ask("start", dataset_id, "--json").stdout)
    assert waits["status"] == "queued"
    assert ask("export", waits["id"], status=2).stderr.count("it has succeeded") == 1
    assert "cancelled" in ask("cancel", waits["id"]).stdout
    ask("follow", waits["id"], status=1)
    with open_worker(services.settings):
        followed = ask("start", dataset_id, "--follow")
    assert waits["id"] in followed.stderr
    assert "succeeded" in followed.stdout
    assert waits["id"] in ask("list", "--dataset", dataset_id).stdout
    assert "succeeded" in ask("show", waits["id"]).stdout
    asked = {"dataset_id": dataset_id, "models": ["hashing"]}
    evaluation = http.post("/v1/evaluations", json=asked).json()["data"][0]
    with open_worker(services.settings):
        wait_until(lambda: is_over(http, evaluation), 60)
    points = http.get(f"/v1/maps/{waits['id']}/points").json()
    for path in (tmp_path / "points.csv", tmp_path / "points.parquet"):
        ask(
            "export",
            waits["id"],
            "--decision",
            "team",
            "--evaluation",
            evaluation["id"],
            "-o",
            path,
        )
        read = pl.read_csv if path.suffix == ".csv" else pl.read_parquet
        table = read(path)
        assert table["index"].to_list() == points["index"]
        assert table["x"].to_list() == pytest.approx(points["x"])
        assert table["side"].value_counts().sort("side")["count"].to_list() == [10, 20]
        assert table["expected"].value_counts().sort("expected")["count"].to_list() == [15, 15]
        assert table["confidence"].null_count() == table["is_right"].null_count() == 20
        assert set(table["answered"].drop_nulls()) <= set(SAID)
    ask("export", waits["id"], "-o", path, status=2)
    ask("export", waits["id"], "-o", path, "--force")
    assert pl.read_parquet(path).columns == ["index", "side", "x", "y", "text"]
    ask("export", waits["id"], "--evaluation", "eval_1", "-o", tmp_path / "none.csv", status=2)
