"""``steelyard decide``: the same answer from a file, a pipe and flags, and errors people can use."""

from __future__ import annotations

import json

import pytest

from steelyard.app.deployment import open_deployment
from steelyard.errors import EngineUnavailableError
from steelyard.serving.base import load_named_model
from steelyard.settings import read_settings
from support.servers.live_server import live_server

FLAGS = ("--context", "Paid twice.", "--question", "Which team?")
TWO_OUTCOMES = ("--outcome", "billing=money, refunds", "--outcome", "other")


def answer_of(result):
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    return json.loads(result.stdout)


def test_a_file_and_a_pipe_give_the_in_process_answer(run, request_file):
    from_file = answer_of(run("decide", str(request_file), "--json"))
    from_pipe = answer_of(run("decide", "-", "--json", stdin=request_file.read_bytes()))
    with open_deployment(read_settings({"engine": "hashing"}, environ={})) as deployment:
        expected = deployment.answers.answer(request_file.read_bytes())
    assert list(from_file["decisions"]) == list(expected.decisions)
    assert from_file["decisions"] == from_pipe["decisions"]
    text = request_file.read_text()
    for encoding in ("utf-8-sig", "utf-16"):
        request_file.write_text(text, encoding)
        marked = answer_of(run("decide", str(request_file), "--json"))
        assert marked["decisions"] == from_file["decisions"]
    for name, decision in expected.decisions.items():
        assert from_file["decisions"][name]["probabilities"] == decision.probabilities


def test_flags_spell_a_request(run):
    answer = answer_of(run("decide", *FLAGS, *TWO_OUTCOMES, "--json"))
    assert list(answer["decisions"]["decision"]["probabilities"]) == ["billing", "other"]


def test_several_labels_are_a_decision_each(run):
    flags = ("--context", "Paid twice.", *TWO_OUTCOMES, "--multi", "--id", "topics")
    answer = answer_of(run("decide", *flags, "--json"))
    assert list(answer["decisions"]) == ["topics_billing", "topics_other"]
    assert {one["kind"] for one in answer["decisions"].values()} == {"binary"}
    assert run("decide", *flags, "--kind", "binary").exit_code == 2


def test_flags_of_every_kind(run):
    binary = answer_of(run("decide", *FLAGS, "--kind", "binary", "--id", "refund", "--json"))
    assert list(binary["decisions"]["refund"]["probabilities"]) == ["yes", "no"]
    levels = ("--kind", "ordinal", "--rubric", "low", "--rubric", "high")
    ordinal = answer_of(run("decide", *FLAGS, *levels, "--json"))
    assert list(ordinal["decisions"]["decision"]["probabilities"]) == ["0", "1"]
    named = (*levels, "--outcome", "calm", "--outcome", "hot")
    ordinal = answer_of(run("decide", *FLAGS, *named, "--json"))
    assert list(ordinal["decisions"]["decision"]["probabilities"]) == ["calm", "hot"]


def test_a_context_file(run, tmp_path):
    path = tmp_path / "mail.txt"
    path.write_text("Paid twice.", encoding="utf-8")
    flags = ("--context-file", str(path), "--question", "Which team?", *TWO_OUTCOMES, "--json")
    assert (
        answer_of(run("decide", *flags))["decisions"]
        == (answer_of(run("decide", *FLAGS, *TWO_OUTCOMES, "--json"))["decisions"])
    )


def test_the_temperature_flag(run):
    answer = answer_of(run("decide", *FLAGS, *TWO_OUTCOMES, "--temperature", "2", "--json"))
    assert answer["temperature"] == {"decision": 2}


def test_the_table_shows_every_decision(run, request_file):
    result = run("decide", str(request_file))
    assert result.exit_code == 0
    for expected in ("team (single)", "refund (binary)", "urgency (ordinal)", "billing", "action:"):
        assert expected in result.stdout
    assert "expected level:" in result.stdout


def test_on_which_sentences_an_answer_hangs(run, request_file):
    flags = ("--context", "Paid twice. It rains.", *FLAGS[2:], *TWO_OUTCOMES, "--explain")
    shown = run("decide", *flags).stdout
    assert "without: Paid twice." in shown
    assert "without: It rains." in shown
    assert run("decide", str(request_file), "--explain").exit_code == 2


def test_the_table_is_short_for_many_outcomes(run):
    outcomes = [part for number in range(40) for part in ("--outcome", f"label-{number}")]
    result = run("decide", *FLAGS, *outcomes)
    assert result.exit_code == 0
    assert result.stdout.count("label-") < 40
    assert "--json shows all" in result.stdout


def test_a_callers_text_cannot_drive_the_terminal(run):
    hostile = "\x1b[2Jbilling[bold]"
    result = run("decide", *FLAGS, "--outcome", hostile, "--outcome", "other")
    assert result.exit_code == 0
    assert "\x1b[2J" not in result.stdout
    assert "[bold]" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ((*FLAGS, "--outcome", "billing"), "decisions[0].outcomes"),
        ((*FLAGS, *TWO_OUTCOMES, "--temperature", "9"), "temperature"),
        ((*FLAGS, "--kind", "ordinal"), "decisions[0].rubric"),
        ((*FLAGS, *TWO_OUTCOMES, "--id", ""), "decisions[0].id"),
    ],
)
def test_an_invalid_request_names_the_field(run, arguments, path):
    result = run("decide", *arguments, "--json")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "invalid_request" in result.stderr
    assert f"\n  {path} " in result.stderr


def test_bad_json_names_the_request(run):
    result = run("decide", "-", stdin=b'{"context": ')
    assert result.exit_code == 2
    assert "invalid_request" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--context"),
        (("--context", "x"), "--question"),
        (("--question", "x"), "--context"),
        (("--context", "x", "--context-file", "-", "--question", "x"), "--context"),
        (("request.json", "--question", "x"), "either"),
        (("missing.json",), "missing.json"),
        ((*FLAGS, "--outcome", "a", "--outcome", "a=again"), "twice"),
        ((*FLAGS, "--kind", "maybe"), "maybe"),
        ((*FLAGS, "--temperature", "warm"), "warm"),
        ((*FLAGS, "--threads", "many"), "threads"),
        (("--nonsense",), "nonsense"),
    ],
)
def test_a_command_line_that_cannot_be_used(run, arguments, message):
    result = run("decide", *arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert message in result.stderr


def test_rows_are_no_request(run, tmp_path):
    rows = tmp_path / "rows.csv"
    rows.write_text("text\nPaid twice.\n")
    for command in ("decide", "lint"):
        refused = run(command, str(rows))
        assert refused.exit_code == 2
        assert f"steelyard decide --input {rows} --output FILE" in " ".join(refused.stderr.split())
    output = ("--output", str(tmp_path / "answers.xlsx"))
    refused = run(
        "decide", "--input", str(rows), *output, *FLAGS[2:], "--outcome", "a", "--outcome", "b"
    )
    assert "write it as one of .csv, .jsonl, .ndjson, .parquet, .tsv." in refused.stderr


def test_an_unknown_model_is_refused(run):
    result = run("decide", *FLAGS, *TWO_OUTCOMES, "--model", "nobody")
    assert result.exit_code == 2
    assert "nobody" in result.stderr


def test_an_engine_that_is_not_there(run, monkeypatch):
    def unavailable(engine, threads):
        raise EngineUnavailableError("The model's files are missing; install Steelyard again.")

    monkeypatch.setattr("steelyard.app.deployment.load_named_model", unavailable)
    result = run("decide", *FLAGS, *TWO_OUTCOMES)
    assert result.exit_code == 3
    assert result.stdout == ""
    assert "engine_unavailable" in result.stderr
    assert "install Steelyard again" in result.stderr


def test_the_double_is_not_the_shipped_model():
    assert load_named_model("hashing", None).scorer.engine == "hashing"


def test_rows_of_a_file(run, tmp_path, request_file):
    (tmp_path / "mails.csv").write_text("n,body\n1,Paid twice.\n2,\n")
    files = ("--input", str(tmp_path / "mails.csv"), "--output", str(tmp_path / "b.csv"))
    result = run("decide", *files, "--column", "body", "--decisions", str(request_file))
    assert ("2 rows answered" in result.stdout, "--model auto" in result.stderr) == (True, True)
    assert "1 row has an empty context: only the wording decides there." in result.stderr
    lines = (tmp_path / "b.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("\ufeffn,body,team.top,team.p_top,team.action,team.p.billing")
    assert len(lines) == 3
    again = run("decide", *files, "--column", "body", "--decisions", str(request_file))
    assert (again.exit_code, "there already" in again.stderr) == (2, True)
    columns = ("--column", "n", "--overwrite", "--json")
    flags = ("--question", "Which team?", *TWO_OUTCOMES)
    answered = run("decide", *files, *columns, *flags)
    assert json.loads(answered.stdout) == {"rows": 2, "errors": 0, "resumed": 0}
    assert "--model auto" not in answered.stderr  # it asks for no yes/no
    bad = ("--bad-rows", str(tmp_path / "bad.csv"))
    for name, rows in (("c.csv", "text\na\nb,c\n"), ("d.jsonl", '{"text": "a"}\n{"text": \n')):
        (tmp_path / name).write_text(rows)
        paths = ("--input", str(tmp_path / name), "--output", str(tmp_path / "e.csv"))
        for options, status in (((), 1), (bad, 0)):
            answered = run("decide", *paths, *flags, "--overwrite", "--json", *options)
            line = rows.count("\n")
            assert answered.exit_code == status, answered.output
            assert f"1 is left out:\n  line {line}: It " in answered.stderr
            assert json.loads(answered.stdout)["left_out"] == 1
        assert (tmp_path / "bad.csv").read_text().splitlines()[1].startswith(f"{line},")
    for arguments in (
        files,
        files[:2],
        (*files, *flags, "--context", "x"),
        (*files, "--decisions", str(tmp_path / "mails.csv")),
        (*files, *flags, "--bad-rows", str(tmp_path / "mails.csv")),
        (*files, *flags, "--queue", "--workers", "2"),
        (*files, *flags, "--queue", "--url", "http://127.0.0.1:1"),
        (*files, *flags, "--home", str(tmp_path)),
    ):
        assert run("decide", *arguments).exit_code == 2


def test_a_server_escalates_where_a_model_abstains(run, tmp_path):
    decision = {"id": "team", "question": "Which team?", "outcomes": ["billing", "other"]}
    decision["policy"] = {"abstain_below": 0.999}
    request, rows = tmp_path / "request.json", tmp_path / "rows.csv"
    asked = {"context": "Paid twice.", "decisions": [decision], "fallback": ["double"]}
    request.write_text(json.dumps({**asked, "escalate": True}))
    rows.write_text("text\nPaid twice.\n")
    onwards = ("--fallback", "double", "--escalate")
    with live_server(base_models="double=hashing") as server:
        answer = answer_of(run("decide", str(request), "--url", server.url, "--json"))
        assert answer["fallback"]["reason"] == "unsure"
        flags = ("--decisions", str(request), "--input", str(rows), *onwards)
        done = run("decide", *flags, "--output", str(tmp_path / "out.csv"), "--url", server.url)
        assert done.exit_code == 0, done.stderr
        # Both asked the model first, and then the other.
        assert server.scorer.n_requests == 2
    alone = run("decide", *FLAGS, *TWO_OUTCOMES, *onwards)
    assert alone.exit_code == 2
    assert "Give --url" in alone.stderr
