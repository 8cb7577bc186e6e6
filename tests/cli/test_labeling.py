"""``steelyard labeling`` against a live server with teachers."""

from __future__ import annotations

import json

import pytest

from steelyard.app.job_runtime import open_worker
from support.models.teaching import SHARED, is_even, queries, taught_server
from support.servers.live_server import live_server


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    with taught_server(home, {"even": is_even, "sure": lambda _: 0.9}) as (server, _):
        yield server


@pytest.fixture
def ask(run, server):
    def run_labeling(*arguments: str):
        return run("labeling", *arguments, "--url", server.url)

    return run_labeling


@pytest.fixture
def source(ask, tmp_path):
    (tmp_path / "queries.jsonl").write_bytes(queries(4))
    shown = ask("upload", str(tmp_path / "queries.jsonl"), "--name", "queries", "--json")
    return json.loads(shown.stdout)[0]["id"]


@pytest.fixture
def decisions(tmp_path):
    (tmp_path / "decisions.json").write_text(json.dumps(SHARED))
    return str(tmp_path / "decisions.json")


def test_a_table_becomes_queries_without_its_bad_rows(ask, tmp_path):
    (tmp_path / "mails.csv").write_bytes(
        'id;body\n1;Où est-il ?\n2;"open\n3;"a\r\nb"\n4;\n'.encode("cp1252")
    )
    bad = tmp_path / "bad.csv"
    asked = ("--name", "mails", "--metadata", "id", "--bad-rows", str(bad))
    made = ask("upload", str(tmp_path / "mails.csv"), *asked, "--json")
    assert json.loads(made.stdout)[0]["rows"] == 2, made.output
    assert "Windows-1252" in made.stderr
    assert "in line 3, character 3" in made.stderr
    assert [line.split(",")[0] for line in bad.read_text().splitlines()] == ["line", "3", "6"]
    lines = '{"context": "a"}\n{"context": 1e999}\n[]\n{"context": "b", "n": 1}\n'
    (tmp_path / "rows.jsonl").write_text(lines)
    made = ask("upload", str(tmp_path / "rows.jsonl"), *asked[:2], *asked[4:], "--json")
    assert json.loads(made.stdout)[0]["rows"] == 1, made.output
    left_out = [line.split(",")[0] for line in bad.read_text().splitlines()]
    assert left_out == ["line", "3", "2", "4"]
    refused = ask("upload", str(tmp_path / "mails.csv"), "--name", "mails", "--context", "text")
    assert (refused.exit_code, "the file has id, body" in refused.stderr) == (2, True)


def test_from_queries_to_a_dataset(ask, server, source, decisions):
    assert source in ask("sources").stdout
    with open_worker(server.services.settings):
        followed = ask("start", source, "--decisions", decisions, "--follow")
    assert followed.exit_code == 0, followed.output
    assert "ALPHA" in followed.stdout
    job = followed.stderr.partition("Following ")[2].split()[0]
    assert "even: it has not been held to labels of people." in followed.stderr
    assert "even" in ask("show", job).stdout
    assert "review_ready" in ask("list", "--status", "review_ready").stdout
    differing = json.loads(ask("results", job, "--disagreements", "--json").stdout)
    assert [one["index"] for one in differing] == [1, 3]
    assert "even: refund=no; sure: refund=yes" in ask("results", job).stdout
    first = json.loads(ask("next", job, "--n", "2", "--json").stdout)
    # Teachers differ on 1 and 3: they are in more doubt.
    assert {one["row"] for one in first} == {1, 3}
    dataset = json.loads(ask("finalize", job, "--agreed", "--json").stdout)
    assert (dataset["rows"], dataset["labeling"]["row_indices"]) == (2, [0, 2])
    assert ask("finalize", job, "--all").exit_code == 2
    assert ask("discard", job).exit_code == 2
    assert "Deleted" in ask("delete", source).stdout
    assert "deleted" in ask("show", job).stdout


def test_which_rows_to_label_first(ask, source, decisions, tmp_path):
    found = json.loads(ask("next", source, "--decisions", decisions, "--json").stdout)
    assert sorted(one["row"] for one in found) == [0, 1, 2, 3]
    assert all(0 < one["doubt"] <= 1 for one in found)
    asked = ["--model", "even", "--n", "2", "--output", str(tmp_path / "next.jsonl")]
    shown = ask("next", str(tmp_path / "queries.jsonl"), "--decisions", decisions, *asked)
    assert shown.exit_code == 0, shown.output
    lines = [json.loads(line) for line in (tmp_path / "next.jsonl").read_text().splitlines()]
    assert [set(line) for line in lines] == [{"context", "decisions"}] * 2
    # The model is surer of even rows, 0.8 of yes, than of the others, 0.3.
    assert lines[0]["context"].split()[1] in {"1", "3"}
    assert "is no file" in ask("next", "nothing").stderr
    for line in ('{"text": "a"}', "7", "[" * 100_000):
        (tmp_path / "bad.jsonl").write_text(line)
        assert "line 1" in ask("next", str(tmp_path / "bad.jsonl")).stderr


def test_what_cannot_be_used(ask, source, decisions, tmp_path):
    (tmp_path / "none.json").write_text("{")
    assert ask("start", source, "--decisions", str(tmp_path / "none.json")).exit_code == 2
    (tmp_path / "object.json").write_text("{}")
    assert ask("start", source, "--decisions", str(tmp_path / "object.json")).exit_code == 2
    assert ask("start", source, "--decisions", decisions, "--teacher", "nobody").exit_code == 2
    assert ask("finalize", "lab_none").exit_code == 2
    assert ask("follow", "lab_none").exit_code == 2
    job = json.loads(ask("start", source, "--decisions", decisions, "--json").stdout)["id"]
    assert "cancelled" in ask("cancel", job).stdout
    assert ask("follow", job).exit_code == 1


def test_teachers(ask, run):
    assert "even     yes      it has not been held to labels of people" in ask("teachers").stdout
    with live_server(jobs="off") as server:
        assert "--teacher" in run("labeling", "teachers", "--url", server.url).stdout
