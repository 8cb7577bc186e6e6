"""The side-by-side benchmark: equal requests, right figures, and a page of every entry."""

from __future__ import annotations

import itertools
import json
import math
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest

from support.servers.live_server import live_server

NAMES = (
    "bodies",
    "contestants",
    "figures",
    "load",
    "loads_page",
    "page",
    "plan",
    "processes",
    "servers",
)


@pytest.fixture
def peers(script):
    """Return the benchmark's modules by name."""
    yield SimpleNamespace(**{name: script(f"peers.{name}") for name in NAMES})
    for name in [one for one in sys.modules if one == "peers" or one.startswith("peers.")]:
        del sys.modules[name]


@pytest.mark.parametrize("outcomes", [2, 4, 77])
def test_requests_are_the_same_bytes_and_valid_here(peers, outcomes):
    from steelyard.dialects.systemone.mapping import read_systemone

    size = peers.bodies.Size(3, outcomes, "short")
    body = peers.bodies.make_body(size, 5)
    assert body == peers.bodies.make_body(size, 5)
    assert peers.bodies.make_requests(size, 4, 2)[1] == peers.bodies.make_request(body)
    other = json.loads(peers.bodies.make_body(size, 6))
    sent = json.loads(body)
    assert sent["questions"] == other["questions"]
    assert sent["state"] != other["state"]
    read = read_systemone(sent)
    assert [len(question.outcomes.names) for question in read.questions] == [outcomes] * 3
    assert read.is_foreign_model


def test_native_and_dialect_ask_the_same(peers, script):
    workloads = script("workloads")
    size = peers.bodies.Size(2, 4, "medium")
    sent = json.loads(peers.bodies.make_body(size, 1))
    native = json.loads(
        workloads.make_payload(
            context=workloads.make_context(1_800, 1), n_questions=2, n_outcomes=4
        )
    )
    assert sent["state"] == native["context"]
    for decision in native["decisions"]:
        question = sent["questions"][decision["id"]]
        assert question["instructions"] == decision["question"]
        assert list(question["criteria"]) == decision["outcomes"]


@pytest.mark.parametrize(
    ("share", "expected"), [(0.5, 50), (0.95, 95), (0.99, 99), (0.001, 1), (1, 100)]
)
def test_percentiles_are_nearest_ranks(peers, share, expected):
    assert peers.figures.percentile(list(range(100, 0, -1)), share) == expected


def test_figures_of_a_round(peers):
    answers = peers.load.Answers([10.0, 30.0, 20.0, 40.0], seconds=2.0)
    answers.errors["HTTP 503"] = 1
    found = peers.figures.round_figures(answers, questions=3, cpu_s=0.6, peak_mb=100.0)
    assert found["p50_ms"] == 20.0
    assert found["p95_ms"] == found["p99_ms"] == 40.0
    assert found["decisions_s"] == pytest.approx(4 * 3 / 2)
    assert found["cpu_ms"] == pytest.approx(600 / 12)
    assert found["errors"] == {"HTTP 503": 1}
    rounds = [{"p50_ms": value} for value in (5.0, 1.0, 3.0)] + [{"n": 0}]
    assert peers.figures.spread(rounds, "p50_ms") == (3.0, 1.0, 5.0)
    assert peers.figures.spread(rounds, "cpu_ms") is None
    nothing = peers.load.Answers()
    assert "p50_ms" not in peers.figures.round_figures(nothing, 1, 0.1, 1.0)


def test_rounds_fit_into_the_time_there_is(peers):
    plan = peers.plan
    loads = [
        plan.Load(loop, clients) for clients in (1, 8, 32) for loop in (plan.CLOSED, plan.OPEN)
    ]
    alone = [0.004, 0.3, 12.0]
    wanted = plan.Effort(3.0, 30.0)

    def total(effort):
        return 5 * sum(effort.seconds(one, load) for one in alone for load in loads)

    assert plan.fit_effort(wanted, alone, loads, 5, 1e6) == wanted
    fitted = plan.fit_effort(wanted, alone, loads, 5, 120)
    assert total(fitted) <= 120
    assert fitted.requests(12.0, 8) == 0
    assert fitted.requests(0.004, 32) >= 32
    assert wanted.requests(0.3, 32) == 32
    assert wanted.requests(12.0, 1) == 1


def test_sizes_that_must_take_too_long_are_not_tried(peers, script, monkeypatch):
    run_module, size = script("peers.run"), peers.bodies.Size
    run = run_module.Run({"not_run": [], "contestants": []}, patience_s=8.0)
    server = SimpleNamespace(contestant=SimpleNamespace(key="slow"))
    run.servers = [server]
    tried = []

    def time_alone(server, one):
        tried.append(one)
        seconds = {"short": 1.0, "medium": 5.0, "long": 9.0}[one.context] * one.questions
        if one.outcomes == 77:
            seconds *= 20
        if seconds <= run.patience_s:
            return seconds
        run._not_run(server, one, f"not answered in {run.patience_s:g} s", run.patience_s)
        return None

    monkeypatch.setattr(run, "time_alone", time_alone)
    run.probe(peers.plan.Grid((1, 3, 32), (2, 4, 77)).sizes())
    assert tried == [
        size(1, 2, "short"),
        size(3, 2, "short"),
        size(1, 4, "short"),
        size(3, 4, "short"),
        size(1, 77, "short"),
        size(1, 2, "medium"),
        size(1, 4, "medium"),
        size(1, 2, "long"),
        size(1, 4, "long"),
    ]
    words = {
        (one["questions"], one["outcomes"], one["context"]): one["words"]
        for one in run.record["not_run"]
    }
    assert len(words) == 27 - 6
    assert words[32, 2, "short"] == "not tried: 3.0 s for 3 of its questions"
    assert words[3, 77, "medium"] == "not answered: nor was 1 x 77, short in 8 s"
    assert words[1, 77, "long"] == "not answered: nor was 1 x 77, short in 8 s"


@pytest.fixture
def measuring(peers, script, monkeypatch):
    """Return a run of two servers that answer at once, and the requests to each."""
    module = script("peers.run")
    run = module.Run({"not_run": [], "contestants": [], "cells": []}, patience_s=8.0)
    run.servers = [
        SimpleNamespace(
            contestant=SimpleNamespace(key=key), port=key, pid=0, known_contexts=lambda: 0
        )
        for key in ("ours", "theirs")
    ]
    sent = {server.port: [] for server in run.servers}

    def closed_loop(port, requests, n_clients, timeout_s):
        sent[port] += requests
        return peers.load.Answers([1.0] * len(requests), seconds=0.3)

    monkeypatch.setattr(module, "closed_loop", closed_loop)
    for name in ("reset_peaks", "cpu_seconds", "memory_mb"):
        monkeypatch.setattr(module, name, lambda *_: 1.0)
    return run, sent


def test_no_context_comes_again_with_other_questions(peers, measuring):
    run, sent = measuring
    sizes = peers.plan.Grid((1, 3), (2, 4), ("short",)).sizes()
    run.probe(sizes)
    for turn in range(3):
        for size in sizes:
            run.measure(size, peers.plan.Load("closed", 8), peers.plan.Effort(1.0, 9.0), turn)
    for requests in sent.values():
        contexts = [json.loads(one.partition(b"\r\n\r\n")[2])["state"] for one in requests]
        assert len(contexts) > 3 * len(sizes) * 8
        assert len(set(contexts)) == len(contexts)
    # In rounds, all are sent the same.
    n_rounds = 3 * len(sizes) * 8
    assert sent["ours"][-n_rounds:] == sent["theirs"][-n_rounds:]


def test_a_round_of_contexts_that_were_known_is_none(peers, script, measuring):
    run, _ = measuring
    size, load = peers.bodies.Size(1, 2, "short"), peers.plan.Load("closed", 1)
    run.probe([size])
    run.servers[0].known_contexts = iter(itertools.count()).__next__
    with pytest.raises(peers.servers.ServerError, match="ours knew contexts of 1 x 2, short"):
        run.measure(size, load, peers.plan.Effort(1.0, 9.0), 0)


def test_a_server_of_ours_reports_cached_contexts(peers):
    with live_server(jobs="off") as server:
        ours = SimpleNamespace(
            contestant=SimpleNamespace(peer=peers.contestants.OURS), port=urlsplit(server.url).port
        )
        assert peers.servers.Server.known_contexts(ours) == 0


def test_arrivals_are_seeded_and_have_their_rate(peers):
    at = peers.load.arrivals(20_000, rate=50.0, seed=1)
    assert (at == peers.load.arrivals(20_000, rate=50.0, seed=1)).all()
    assert at[-1] == pytest.approx(20_000 / 50, rel=0.03)
    assert (at[1:] > at[:-1]).all()


@pytest.fixture
def answering():
    """Return the port of a server that answers 200, and 503 to requests that say so, and its requests."""
    seen = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            seen.append(body)
            answer = b"busy" if b"refuse" in body else b"{}"
            self.send_response(503 if b"refuse" in body else 200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield SimpleNamespace(port=server.server_port, seen=seen)
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("loop", ["closed", "open"])
def test_every_request_is_sent_once_and_errors_are_counted(peers, answering, loop):
    bodies = [b"one", b"two", b"refuse", b"three", b"four"]
    requests = [peers.bodies.make_request(body) for body in bodies]
    if loop == "closed":
        answers = peers.load.closed_loop(answering.port, requests, 2, timeout_s=20)
    else:
        at = peers.load.arrivals(len(requests), 500.0, 1)
        answers = peers.load.open_loop(answering.port, requests, 2, at)
    assert sorted(answering.seen) == sorted(bodies)
    assert len(answers.milliseconds) == 4
    assert answers.errors == {"HTTP 503": 1}
    assert answers.last_error == "busy"


def test_nothing_listening_is_an_error_and_no_figure(peers):
    answers = peers.load.closed_loop(1, [b"x"], 1, timeout_s=20)
    assert not answers.milliseconds
    assert answers.errors == {"ConnectionRefusedError": 1}


def test_own_process_is_read(peers):
    import os

    pid = os.getpid()
    assert pid in peers.processes.tree(pid)
    assert peers.processes.cpu_seconds(pid) > 0
    assert 0 < peers.processes.memory_mb(pid, "VmRSS") <= peers.processes.memory_mb(pid, "VmHWM")
    server, client = peers.processes.split_cores()
    assert server
    assert client <= os.sched_getaffinity(0)


def test_every_contestant_has_a_peer_a_command_and_its_own_name(peers, tmp_path):
    contestants = peers.contestants
    keys = [one.key for one in contestants.CONTESTANTS]
    assert len(set(keys)) == len(keys)
    for one in contestants.CONTESTANTS:
        assert contestants.PEERS[one.peer].says
        command, variables = contestants.server_command(
            one,
            environments=tmp_path,
            checkpoint=tmp_path / "c",
            port=1234,
            home=tmp_path,
            threads=1,
        )
        assert any("1234" in part for part in [*command, *variables.values()])
    both = contestants.chosen(["laya"], [contestants.PLAIN])
    assert {one.peer for one in both} == {"laya", contestants.OURS}
    assert contestants.has_bfloat16("flags : avx2 avx512_bf16")
    assert not contestants.has_bfloat16("flags : avx2")


def _record(peers) -> dict:
    contestants = peers.contestants
    entries = [
        {
            "key": "steelyard, float32",
            "peer": "steelyard",
            "table": 1,
            "setting": "float32",
            "idle_mb": 300.0,
        },
        {
            "key": "sysone, a",
            "peer": "sysone",
            "table": 1,
            "setting": "a",
            "idle_mb": 900.0,
            "versions": "sysone 0.5.2",
        },
        {"key": "laya, b", "peer": "laya", "table": 1, "setting": "b", "idle_mb": 900.0},
        {
            "key": "crossencoder, c",
            "peer": "crossencoder",
            "table": 1,
            "setting": "c",
            "left_out": "pip could not install it",
        },
    ]
    assert {one["peer"] for one in entries} <= set(contestants.PEERS)
    size = {"questions": 3, "outcomes": 4, "context": "short"}

    def cell(key, rates, clients=1):
        rounds = [
            {
                "n": 9,
                "errors": {},
                "p50_ms": 1.0,
                "p95_ms": 2.0,
                "p99_ms": 3.0,
                "decisions_s": rate,
                "cpu_ms": 1.5,
                "peak_mb": 400.0,
            }
            for rate in rates
        ]
        return {"key": key, **size, "loop": "closed", "clients": clients, "rounds": rounds}

    left_out = cell("sysone, a", [], clients=32) | {"words": "not run: one request alone takes 9 s"}
    failed = cell("laya, b", [5.0])
    failed["rounds"].append({"n": 0, "errors": {"HTTP 503": 2}})
    return {
        "command": "python run.py --quick",
        "date": "2026-01-02",
        "minutes": 1.5,
        "rounds": 3,
        "machine": ["processor: x", "versions: y"],
        "cores": {"server": [0], "client": [1]},
        "contestants": entries,
        "alone": [{"key": one["key"], **size, "seconds": 0.5} for one in entries[:3]],
        "not_run": [
            {
                "key": "laya, b",
                **size,
                "outcomes": 77,
                "words": "HTTP 413: too many",
                "seconds": None,
            },
            {"key": "sysone, a", **size, "questions": 32, "words": "not tried", "seconds": 64.0},
        ],
        "cells": [
            cell("steelyard, float32", [80.0, 120.0, 100.0]),
            cell("sysone, a", [20.0, 30.0, 25.0]),
            left_out,
            failed,
        ],
    }


def test_page_tells_who_reads_a_context_once(peers):
    record = _record(peers)
    assert "## Why" not in peers.page.make_page(record, [])  # of one number of questions alone
    more = [dict(one, questions=10, seconds=one["seconds"]) for one in record["alone"]]
    record["alone"] += more
    page = peers.page.make_page(record, [])
    why = page[page.index("## Why") : page.index("## Contestants")]
    assert "| 10 questions |" in why
    key = more[0]["key"]
    line = next(line for line in why.splitlines() if f"| {key} |" in line)
    assert line.rstrip(" |").endswith(peers.page.shown(10 / more[0]["seconds"]))


def test_page_says_everything_that_the_record_has(peers):
    page = peers.page.make_page(_record(peers), [])
    for words in (
        "python run.py --quick",
        "processor: x",
        "server ran on core 0, every client on core 1",
        "pip could not install it",
        "| 4.00 | 3 | reached |",
        "random weights",
        "No quality was measured",
        "| short | steelyard, float32 | 1.00 | 100 |",
    ):
        assert words in page, words
    loads = peers.loads_page.make_loads_page(_record(peers))
    for words in (
        "100 (80.0 to 120)",
        "25.0 (20.0 to 30.0)",
        "- sysone, a: not run: one request alone takes 9 s (32 closed)",
        "HTTP 503: 2",
        "HTTP 413: too many",
        "about 64 s expected",
    ):
        assert words in loads, words
    lines = [*page.splitlines(), *loads.splitlines()]
    for before, line in itertools.pairwise(lines):
        if before.startswith("|") and line.startswith("|"):
            assert before.count("|") == line.count("|"), line


def test_best_peer_is_found_by_its_best_load_or_one_request(peers):
    record = _record(peers)
    [found] = peers.page.ratios(record, 1)
    assert found["peer"] == "sysone, a"
    assert found["ratio"] == pytest.approx(4.0)
    assert peers.page.ratios(record, 2) == []
    record["cells"] = [one for one in record["cells"] if not one["key"].startswith("sysone")]
    [found] = peers.page.ratios(record, 1)
    assert (found["best"], found["words"]) == (pytest.approx(6.0), "one request alone")
    assert peers.page.throughput(record, "sysone, a", (32, 4, "short"))[1] == "expected: not tried"
    assert peers.page.throughput(record, "laya, b", (3, 77, "short")) == (0.0, "no answer")


def test_a_peer_that_was_not_waited_for_may_still_be_the_best(peers):
    record = _record(peers)
    entry = {"key": "laya, b", "questions": 3, "outcomes": 4, "context": "short"}
    record["cells"] = record["cells"][:2]
    record["alone"] = [one for one in record["alone"] if one["key"] != "laya, b"]
    record["not_run"] = [entry | {"words": "not answered in 0.1 s", "seconds": 0.1}]
    [found] = peers.page.ratios(record, 1)
    assert (found["peer"], found["best"]) == ("laya, b", pytest.approx(30.0))
    assert found["words"] == "at most: not answered in 0.1 s"
    assert peers.page.verdict(found) == "reached; peer not measured in rounds"


def test_quality_is_the_output_of_finetune(peers, tmp_path):
    value = {"value": 0.9, "low": 0.8, "high": 0.95}
    result = {
        "task": "banking77",
        "rows": "full",
        "method": "ours",
        "n_train": 1000,
        "n": 100,
        "accuracy": value,
        "log_loss": value,
        "gain": None,
        "ece": value,
        "aurc": value,
        "seconds": {},
        "served_ms": 1.25,
        "note": "",
    }
    file = tmp_path / "page.md"
    peers.page.write_pages(_record(peers), [result], file, tmp_path / "loads.md")
    text = file.read_text(encoding="utf-8")
    assert "| banking77 | full | ours | 1,000 | 100 | 0.900 [0.800 0.950] |" in text
    assert "No quality was measured" not in text


def test_figures_are_shown_with_three_digits(peers):
    shown = [peers.page.shown(value) for value in (1234.5, 100.0, 12.34, 1.234, 0.1234)]
    assert shown == ["1,234", "100", "12.3", "1.23", "0.123"]
    assert math.isclose(peers.plan.OPEN_SHARE, 0.7)
