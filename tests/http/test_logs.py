"""The log: one JSON line for a request, with useful fields and without secrets."""

from __future__ import annotations

import io
import json
import logging

import httpx
import pytest

from steelyard.http.logs import configure_logging
from support.servers.stand_ins import REQUEST, stand_in_server

pytestmark = pytest.mark.usefixtures("every_response_is_checked")

SECRET = "onehot_sk_secret"


@pytest.fixture
def log(monkeypatch):
    """Return this process's log, as decoded lines."""
    stream = io.StringIO()
    root, ours = logging.getLogger(), logging.getLogger("steelyard")
    before = (root.handlers[:], root.level, ours.level)
    monkeypatch.setattr("sys.stderr", stream)
    configure_logging("info")
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    root.handlers[:], root.level, ours.level = before


@pytest.fixture
def text_log(log, monkeypatch):
    """The same, as text for people, of the level that is asked for."""

    def log_at(level):
        stream = io.StringIO()
        monkeypatch.setattr("sys.stderr", stream)
        configure_logging(level, "text")
        return stream.getvalue

    return log_at


@pytest.mark.parametrize("level", ["info", "debug"])
def test_text_for_people_has_a_short_line_for_a_request(text_log, level):
    written = text_log(level)
    with stand_in_server(accounts="on") as server:
        httpx.get(f"{server.url}/v1/nothing", headers={"Authorization": "Bearer full"})
        httpx.get(f"{server.url}/v1/health")
        httpx.post(f"{server.url}/v1/decide", json=REQUEST)
    requests = [line.split(" ", 1)[1] for line in written().splitlines() if " /v1/" in line]
    requests = [line.rpartition(" ")[0].rpartition(" ")[0] for line in requests]
    reads = ["GET /v1/health 200"] if level == "debug" else []
    assert requests == [*reads, "POST /v1/decide 401 missing_api_key"]
    assert "GET unmatched 404 not_found " in written()
    logging.getLogger("sanic.error").warning("Sanic is running in PRODUCTION mode.")
    logging.getLogger("steelyard.jobs").warning("A job waits.")
    assert "PRODUCTION" not in written()
    assert written().splitlines()[-1].endswith("WARNING A job waits.")


def test_a_terminal_shows_failures_in_colours(log, monkeypatch):
    for variable, is_coloured in (("", True), ("1", False)):
        stream = io.StringIO()
        stream.isatty = lambda: True
        monkeypatch.setattr("sys.stderr", stream)
        monkeypatch.setenv("NO_COLOR", variable)
        configure_logging("info", "auto")
        logging.getLogger("steelyard.jobs").error("A job failed.")
        [line] = stream.getvalue().splitlines()
        assert line.startswith("\x1b[31m") is is_coloured
        assert "ERROR A job failed." in line


def requests_in(lines):
    return [line for line in lines if line["logger"] == "steelyard.access"]


def test_a_request_has_one_line(log):
    with stand_in_server(accounts="on") as server:
        response = httpx.post(
            f"{server.url}/v1/decide", json=REQUEST, headers={"Authorization": "Bearer full"}
        )
    [line] = requests_in(log())
    assert line.pop("ms") >= 0
    assert line.pop("time")
    assert line == {
        "level": "INFO",
        "logger": "steelyard.access",
        "message": "request",
        "request_id": response.headers["X-Request-ID"],
        "method": "POST",
        "route": "/v1/decide",
        "status": 200,
        "error": None,
        "address": "127.0.0.1",
        "account_id": "acct_1",
        "key_id": "key_full",
        "bytes_in": len(response.request.content),
        "bytes_out": len(response.content),
    }


def test_secrets_stay_out(log):
    with stand_in_server(accounts="on") as server, httpx.Client(base_url=server.url) as client:
        headers = {"Authorization": f"Bearer {SECRET}"}
        client.post("/v1/decide", json={"context": SECRET}, headers=headers)
        client.post("/v1/lint", json={"context": SECRET}, headers=headers)
        client.get(f"/v1/{SECRET}?cursor={SECRET}", headers=headers)
        client.get(f"/openapi.json?key={SECRET}", headers={"Idempotency-Key": SECRET})
        server.decisions.failure = RuntimeError("broken")
        client.post(
            "/v1/decide",
            json={**REQUEST, "context": SECRET},
            headers={"Authorization": "Bearer full"},
        )
    lines = log()
    assert [line["status"] for line in requests_in(lines)] == [401, 422, 404, 422, 500]
    assert [line["route"] for line in requests_in(lines)][2] == "unmatched"
    assert SECRET not in json.dumps(lines)
    [fault] = [line for line in lines if line["level"] == "ERROR"]
    assert "RuntimeError: broken" in fault["exc_info"]


def test_a_refused_scope_is_logged_with_the_key(log):
    with stand_in_server(accounts="on") as server:
        httpx.post(f"{server.url}/v1/decide", headers={"Authorization": "Bearer read"})
    [line] = requests_in(log())
    assert (line["status"], line["error"], line["key_id"]) == (403, "key_scope", "key_read")
