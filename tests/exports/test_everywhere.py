"""Datasets, scored decisions and stored ones in every format: over HTTP, by the client, by commands."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import zipfile

import httpx
import polars as pl
import pytest
from click.testing import CliRunner

import steelyard
from steelyard.app.job_runtime import open_worker
from steelyard.cli.main import main
from steelyard.client.tables import read_table
from steelyard.errors import NotFoundError
from support.api.error_shape import assert_canonical_error
from support.datasets.dataset_rows import DECISIONS, make_rows
from support.models.evaluated import settings_of
from support.servers.live_server import live_server

pytestmark = pytest.mark.usefixtures("every_response_is_checked")

TYPES = {
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "hf": "application/zip",
}
URGENT = {"id": "urgent", "kind": "binary", "question": "Is it urgent?"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    given = {"jobs": "off", "dataset_min_rows": 1}
    with live_server(home=tmp_path_factory.mktemp("home"), **given) as server:
        yield server


@pytest.fixture(scope="module")
def client(server):
    with steelyard.connect(server.url) as client:
        yield client


@pytest.fixture(scope="module")
def dataset(client):
    return client.datasets.create("tickets", make_rows(40))


@pytest.fixture(scope="module")
def evaluation(server, client, dataset):
    with open_worker(settings_of(server.services.settings.home)):
        asked = client.evaluations.create(dataset.id, "hashing")
        return client.evaluations.wait(asked.data[0], progress=False)


@pytest.fixture(scope="module")
def answers(client):
    """Stored answers, the oldest first; the first two have feedback."""
    contexts = ["=1+1", {"subject": "Twice"}, *(f"Ticket {number}" for number in range(128))]
    made = [client.decide(one, [DECISIONS[0], URGENT]) for one in contexts]
    client.feedback(made[0].id, {"route": "other"})
    client.feedback(made[1].id, {"route": {"billing": 0.75, "other": 0.25}})
    return made


def table_of(response):
    assert response.status_code == 200, response.text
    return read_table(response.content)


def records_of(table):
    return [dict(zip(table.columns, cells, strict=True)) for _, cells in table.rows]


@pytest.mark.parametrize("format_", TYPES)
def test_scored_decisions(server, client, evaluation, format_):
    url = f"{server.url}/v1/evaluations/{evaluation.id}/export"
    response = httpx.get(url, params={"format": format_}, timeout=30)
    assert response.headers["content-type"] == TYPES[format_]
    found = records_of(table_of(response))
    expected = client.evaluations.records(evaluation.id, context=True)
    assert len(found) == len(expected)
    for one, record in zip(found, expected, strict=True):
        assert (one["context"], one["decision_id"]) == (record.context, record.decision_id)
        assert one["target"] == max(record.targets, key=record.targets.get)
        assert one["top"] == max(record.probabilities, key=record.probabilities.get)
        assert float(one["loss"]) == record.loss
        held = one["probabilities"]
        held = json.loads(held) if isinstance(held, str) else held
        assert {entry["outcome"]: entry["value"] for entry in held} == record.probabilities
    wrong = httpx.get(url, params={"format": format_, "wrong": True, "order": "loss"}, timeout=30)
    losses = [float(one["loss"]) for one in records_of(table_of(wrong))]
    assert losses == [
        one.loss for one in client.evaluations.records(evaluation.id, wrong=True, order="loss")
    ]


@pytest.mark.parametrize("format_", TYPES)
def test_stored_decisions(server, answers, format_):
    url = f"{server.url}/v1/decisions/log/export"
    response = httpx.get(url, params={"format": format_}, timeout=30)
    assert response.headers["content-type"] == TYPES[format_]
    found = records_of(table_of(response))
    # The newest first, over several pages, each decision a row.
    assert [one["id"] for one in found] == [one.id for one in answers[::-1] for _ in range(2)]
    last = {one["decision_id"]: one for one in found if one["id"] == answers[0].id}
    assert (last["route"]["context"], last["route"]["feedback"]) == ("=1+1", "other")
    assert last["urgent"]["feedback"] is None
    assert json.loads(last["route"]["decision"])["outcomes"] == DECISIONS[0]["outcomes"]
    assert float(last["route"]["p_top"]) == answers[0].decisions["route"].p_top
    at = last["route"]["created_at"]
    at = dt.datetime.fromisoformat(at) if isinstance(at, str) else at
    assert abs(at.timestamp() - dt.datetime.now(dt.UTC).timestamp()) < 600
    observed = next(one for one in found if one["id"] == answers[1].id)
    assert json.loads(observed["context"]) == {"subject": "Twice"}
    assert observed["feedback"] == "billing"
    told = httpx.get(
        url, params={"format": format_, "decision": "route", "has_feedback": True}, timeout=30
    )
    assert [one["id"] for one in records_of(table_of(told))] == [answers[1].id, answers[0].id]
    nothing = httpx.get(url, params={"format": format_, "until": 1}, timeout=30)
    assert list(table_of(nothing).rows) == []


def test_the_datasets_library_loads_records_and_decisions(
    client, evaluation, answers, tmp_path, monkeypatch
):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    library = pytest.importorskip("datasets", reason="needs the package datasets")

    def load(name, **given):
        folder, cache = str(tmp_path / name), str(tmp_path / "cache")
        return library.load_dataset(folder, cache_dir=cache, **given)

    client.evaluations.export_to(evaluation.id, tmp_path / "scored", decision="route")
    scored = load("scored")["test"]
    assert scored.features["top"].names == scored.features["target"].names
    assert set(scored.features["top"].names) == set(DECISIONS[0]["outcomes"])
    client.export_decisions_to(tmp_path / "stored", decision="urgent")
    stored = load("stored")["train"]
    assert (len(stored), stored.features["top"].names) == (len(answers), ["yes", "no"])
    assert "streaming" not in (tmp_path / "stored" / "README.md").read_text()

    # A part without rows: not at all, and never beside one with rows.
    client.export_decisions_to(tmp_path / "none", until=1)
    with pytest.raises(ValueError, match="corresponds to no data"):
        load("none")
    told = (tmp_path / "none" / "README.md").read_text()
    assert 'load_dataset("path/to/this/folder", streaming=True)' in told
    nothing = load("none", streaming=True)["train"]
    assert (list(nothing), set(nothing.features)) == ([], set(stored.features))
    client.evaluations.export_to(evaluation.id, tmp_path / "no records", decision="none")
    assert list(load("no records", streaming=True)["test"]) == []


def test_the_client_writes_whole_files_and_replaces_none_unasked(client, dataset, tmp_path):
    seen = []
    path = client.datasets.export_to(dataset.id, tmp_path / "rows.csv", progress=seen.append)
    assert seen[-1] == path.stat().st_size
    before = path.read_bytes()
    rows = list(csv.DictReader(io.StringIO(before.decode("utf-8-sig"), newline="")))
    assert [row["context"] for row in rows] == [row["context"] for row in make_rows(40)]
    with pytest.raises(FileExistsError, match="there already"):
        client.datasets.export_to(dataset.id, path)
    with pytest.raises(NotFoundError):
        client.datasets.export_to("ds_none", path, force=True)
    assert path.read_bytes() == before
    folder = client.datasets.export_to(dataset.id, tmp_path / "folder", partition="training")
    files = sorted(str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file())
    assert files == ["README.md", "data/train-00000-of-00001.parquet"]
    client.datasets.export_to(dataset.id, folder, force=True)
    assert (folder / "data/test-00000-of-00001.parquet").exists()
    # A file in the place of the folder, and a folder again.
    client.datasets.export_to(dataset.id, folder, format="csv", force=True)
    assert folder.is_file()
    client.datasets.export_to(dataset.id, folder, format="hf", force=True)
    (folder / "mine.txt").touch()
    with pytest.raises(FileExistsError, match="other things"):
        client.datasets.export_to(dataset.id, folder, force=True)
    packed = client.datasets.export_to(dataset.id, tmp_path / "packed.zip")
    assert zipfile.ZipFile(packed).testzip() is None
    assert sorted(one.name for one in tmp_path.iterdir()) == ["folder", "packed.zip", "rows.csv"]
    frame = client.datasets.to_polars(dataset.id)
    assert frame["route"].to_list() == pl.read_csv(before)["route"].to_list()


def test_commands(server, dataset, evaluation, answers, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*arguments, status=0):
        result = CliRunner().invoke(main, [*arguments, "--url", server.url])
        assert result.exit_code == status, result.output
        return result

    told = run("dataset", "export", dataset.id, "--format", "hf", "--output", "tickets", "--json")
    assert json.loads(told.stdout)["path"] == "tickets"
    refused = run(
        "dataset", "export", dataset.id, "--format", "hf", "--output", "tickets", status=2
    )
    assert "replace it with --force" in refused.stderr
    again = json.loads(run("dataset", "import", "tickets", "--json").stdout)
    lines = httpx.get(f"{server.url}/v1/datasets/{again['id']}/download?partition=evaluation")
    of_first = httpx.get(f"{server.url}/v1/datasets/{dataset.id}/download?partition=evaluation")
    assert lines.content == of_first.content
    run("dataset", "export", dataset.id, "--format", "hf", "-o", "tickets", "--force")
    run("evaluation", "export", evaluation.id, "--format", "csv", "--wrong")
    assert (tmp_path / f"{evaluation.id}.csv").exists()
    run("decisions", "export", "--decision", "route", "--feedback", "-o", "told.parquet")
    assert pl.read_parquet("told.parquet").height == 2
    assert run("decisions", "export", "--until", "2020-01-01", "--wrong").stdout.startswith(
        "decisions.parquet: "
    )
    run("dataset", "export", "ds_none", status=2)
    refused = run("dataset", "export", dataset.id, "-o", "no/where.csv", status=2)
    assert "make it first" in refused.stderr
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".")] == []


def test_exports_that_are_refused(server, dataset):
    for path in (f"datasets/{dataset.id}", "decisions/log"):
        response = httpx.get(f"{server.url}/v1/{path}/export", params={"format": "xml"})
        assert_canonical_error(response, 422, "invalid_request")
    response = httpx.get(f"{server.url}/v1/evaluations/eval_none/export")
    assert_canonical_error(response, 404, "not_found")
