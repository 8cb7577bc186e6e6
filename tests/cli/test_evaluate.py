"""``steelyard evaluate`` against a live server."""

from __future__ import annotations

import json

import httpx
import pytest

import steelyard
from steelyard.app.job_runtime import open_worker
from support.datasets.dataset_rows import make_rows
from support.models.evaluated import settings_of
from support.review.labelled_apart import label_apart
from support.servers.live_server import live_server

MODELS = ("--model", "hashing", "--model", "second")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    given = {"jobs": "off", "dataset_min_rows": 1, "base_models": "second=hashing"}
    with live_server(home=home, **given) as server:
        yield server


@pytest.fixture
def ask(run, server):
    def run_evaluate(*arguments: str):
        return run("evaluate", *arguments, "--url", server.url)

    return run_evaluate


@pytest.fixture(scope="module")
def dataset_id(server):
    body = {"name": "tickets", "evaluation": make_rows(20)}
    return httpx.post(f"{server.url}/v1/datasets", json=body, timeout=30).json()["id"]


@pytest.fixture
def worker(server):
    home = server.services.settings.home
    with open_worker(settings_of(home, base_models="second=hashing")):
        yield


@pytest.mark.parametrize("call", [["list", "ds_1"], ["show", "eval_1"], ["compare", "a", "b"]])
def test_an_address_that_is_none_is_a_mistake_in_the_call(run, call):
    done = run("evaluate", *call, "--url", "localhost:8420")
    assert done.exit_code == 2
    assert "Error:" in done.output


def test_a_file_is_evaluated_whole(ask, server, worker, tmp_path):
    file = tmp_path / "held out.csv"
    rows = "".join(f"message {n},{'billing' if n % 2 else 'shipping'}\n" for n in range(12))
    file.write_text(f"text,team\n{rows}no team,\n")
    shown = ask(
        str(file), "--model", "hashing", "--bad-rows", str(tmp_path / "bad.csv"), "--follow"
    )
    assert shown.exit_code == 0, shown.output
    assert "12 of 12" in shown.output
    assert "line 14: It has no label; fill team." in shown.stderr
    assert (tmp_path / "bad.csv").read_text().splitlines()[1].startswith("14,")
    assert ask(str(file), "--model", "hashing", "--label", "tema").exit_code == 2
    assert "There is no file" in ask("none.csv", "--model", "hashing").stderr


@pytest.mark.parametrize("form", ["folder", "column", "export"])
def test_the_evaluation_side_of_a_file_is_scored(run, ask, server, worker, tmp_path, form):
    teams = ["billing", "shipping"]
    # A row of training is in the test too, which matters to training alone.
    rows = [("test", n) for n in range(8)] + [("train", n) for n in range(7, 30)]
    source = tmp_path / f"split by {form}"
    if form == "folder":
        source.mkdir()
        for split in ("test", "train"):
            lines = [f"message {n},{teams[n % 2]}" for part, n in rows if part == split]
            (source / f"{split}.csv").write_text("\n".join(["text,team", *lines]))
    else:
        lines = [f"message {n},{teams[n % 2]},{split}" for split, n in rows]
        source = source.with_suffix(".csv")
        source.write_text("\n".join(["text,team,split", *lines]))
    if form == "export":
        assert run("dataset", "import", str(source), "--url", server.url).exit_code == 0
        exported = ("--format", "csv", "--output", str(source), "--force")
        call = ("dataset", "export", source.stem, *exported, "--url", server.url)
        assert run(*call).exit_code == 0
    shown = ask(str(source), "--model", "hashing", "--follow")
    assert shown.exit_code == 0, shown.output
    assert "8 of 8" in shown.stdout
    side = "8 of evaluation." if form == "export" else "test: 8 rows, the evaluation side"
    assert side in shown.stderr
    n_training = 22 if form == "export" else 23
    assert f"{n_training} rows of training are left out of the evaluation." in shown.stderr


def test_following_one_shows_its_figures(ask, dataset_id, worker):
    shown = ask(dataset_id, "--model", "hashing", "--follow")
    assert shown.exit_code == 0, shown.output
    assert shown.stderr.startswith("Following eval_")
    assert "20 of 20" in shown.output
    assert "succeeded" in shown.output
    assert "PROMISED" in shown.output
    assert "kind: binary" in shown.output


def test_a_dataset_may_be_named_and_the_model_left_out(ask, server, dataset_id):
    [evaluation] = json.loads(ask("tickets", "--json").stdout)
    assert (evaluation["dataset_id"], evaluation["model_label"]) == (dataset_id, "hashing")
    assert ask("list", "ticket").exit_code == 2
    for _ in range(2):
        body = {"name": "twice", "evaluation": make_rows(3)}
        httpx.post(f"{server.url}/v1/datasets", json=body, timeout=30).raise_for_status()
    refused = ask("twice")
    assert refused.exit_code == 2
    assert "2 datasets are named twice; give ds_" in refused.stderr


def test_the_word_start_may_be_given(ask, dataset_id):
    shown = ask("start", dataset_id, *MODELS, "--json")
    assert [one["model_label"] for one in json.loads(shown.stdout)] == ["hashing", "second"]


def test_list_show_and_compare(ask, server, dataset_id, worker):
    followed = ask(dataset_id, *MODELS, "--follow", "--json")
    first, second = (one["id"] for one in json.loads(followed.stdout))
    listed = json.loads(ask("list", dataset_id, "--status", "succeeded", "--json").stdout)
    assert {one["id"] for one in listed} == {first, second}
    assert first in ask("list", dataset_id).stdout
    shown = ask("show", first)
    assert "[" in shown.stdout
    assert "People agree" not in shown.stdout
    with steelyard.connect(server.url) as client:
        label_apart(client, dataset_id, n_rows=10, n_agreed=8)
    agreed = "People agree on 80 % [44, 97] of 10 rows that two labelled apart."
    assert agreed in ask("show", first).stdout
    assert "ACCURACY" in shown.stdout
    detail = json.loads(ask("show", first, "--json").stdout)
    assert detail["overall"]["n"] == 40
    compared = ask("compare", first, second)
    assert "fixed" in compared.stdout
    assert json.loads(ask("compare", first, second, "--json").stdout)["method"] == "sft"


def test_figures_are_cut_by_where_labels_came_from(ask, server, worker):
    rows = make_rows(12)
    for place, row in enumerate(rows):
        row["metadata"] = {"by": "click" if place < 4 else "expert"}
    body = {"name": "reported", "evaluation": rows}
    httpx.post(f"{server.url}/v1/datasets", json=body, timeout=30).raise_for_status()
    [evaluation] = json.loads(ask("reported", *MODELS[:2], "--follow", "--json").stdout)
    id_ = evaluation["id"]
    assert "Nobody observed some of these labels: 8 by click." in ask("show", id_).stdout
    shown = ask("show", id_, "--by", "expert").stdout
    assert "labelled by expert  16" in shown
    assert "click" not in shown
    found = json.loads(ask("compare", id_, id_, "--by", "click", "--json").stdout)
    assert (found["value"], found["metrics"]["n"]) == ("click", 8)
    assert "there are expert, click" in ask("show", id_, "--by", "outcome").stderr


def test_the_frontier(run, ask, server, dataset_id, worker):
    followed = json.loads(ask(dataset_id, *MODELS, "--follow", "--json").stdout)

    def frontier(*arguments: str):
        return run("frontier", dataset_id, *arguments, "--url", server.url)

    found = json.loads(frontier("--measure", "log_loss", "--json").stdout)
    assert {one["evaluation"] for one in found["data"]} == {one["id"] for one in followed}
    shown = frontier().stdout
    assert "ACCURACY" in shown
    assert "hashing" in shown
    costs = json.dumps({"pay": {"yes": 0, "no": 7}, "ask": {"yes": 1, "no": 1}})
    chosen = ("--measure", "expected_cost", "--decision", "refund", "--action-costs")
    assert "EXPECTED COST" in frontier(*chosen, costs).stdout
    assert frontier(*chosen, "[]").exit_code == 2
    assert frontier(*chosen, "{").exit_code == 2
    assert frontier("--measure", "expected_cost").exit_code == 2


def test_cancel_retry_and_evaluations_without_figures(ask, server):
    body = {"name": "more", "evaluation": make_rows(3, start=70)}
    made = httpx.post(f"{server.url}/v1/datasets", json=body, timeout=30).json()
    (evaluation,) = json.loads(ask(made["id"], "--model", "hashing", "--json").stdout)
    assert "queued" in ask("show", evaluation["id"]).stdout
    assert "cancelled" in ask("cancel", evaluation["id"]).stdout
    again = json.loads(ask("retry", evaluation["id"], "--json").stdout)
    assert again["generation"] == 2
    assert "cancelled" in ask("cancel", evaluation["id"]).stdout


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["show", "eval_none"], 2),
        (["ds_none", "--model", "hashing"], 2),
        (["ds_none"], 2),
        (["compare", "eval_none", "eval_none"], 2),
    ],
)
def test_what_cannot_be_used(ask, arguments, status):
    assert ask(*arguments).exit_code == status


def test_no_server(run):
    assert run("evaluate", "list", "ds_1", "--url", "http://127.0.0.1:1").exit_code == 3
