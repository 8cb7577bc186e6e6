"""Retries: which, after how long, under which key, and which never."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import uuid
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from steelyard.client import (
    AsyncClient,
    Client,
    ClientOptions,
    NoAnswerInTimeError,
    ServerUnreachableError,
    UnexpectedAnswerError,
)
from steelyard.client.dataset_calls import check_rows
from steelyard.errors import (
    DeadlineExceededError,
    EngineUnavailableError,
    IdempotencyConflictError,
    InternalError,
    InvalidRequestError,
    RateLimitedError,
    RequestInProgressError,
    SteelyardError,
    StorageUnavailableError,
    UnsupportedEncodingError,
)
from support.servers.scripted_server import API_KEY, URL, ScriptedServer, answer, refusal

DECISIONS = [{"id": "refund", "kind": "binary", "question": "Money back?"}]
FEEDBACK = {"decision_id": "dec_1", "recorded": ["refund"]}

pytestmark = pytest.mark.parametrize("client_class", [Client, AsyncClient])


def decide(client):
    return client.decide("Paid twice.", DECISIONS)


def feedback(client):
    return client.feedback("dec_1", {"refund": "yes"})


@pytest.mark.parametrize(
    "error",
    [
        RateLimitedError("Too many."),
        EngineUnavailableError("Busy."),
        StorageUnavailableError("Full."),
        RequestInProgressError("Running."),
        DeadlineExceededError("Late."),
    ],
)
def test_a_failure_that_may_pass_is_repeated_with_the_same_key_and_bytes(client_class, error):
    server = ScriptedServer(client_class, [refusal(error), refusal(error), answer(FEEDBACK)])
    assert server.ask(feedback).recorded == ["refund"]
    keys = server.header("Idempotency-Key")
    assert len(keys) == 3
    assert len(set(keys)) == 1
    assert uuid.UUID(keys[0]).version == 4
    assert len({request.content for request in server.requests}) == 1


def test_every_call_has_a_key_of_its_own_and_a_callers_is_kept(client_class):
    server = ScriptedServer(client_class, [answer()])
    server.ask(decide)
    server.ask(decide)
    server.ask(lambda client: client.decide("x", DECISIONS, idempotency_key="mine"))
    first, second, mine = server.header("Idempotency-Key")
    assert first != second
    assert mine == "mine"


def test_reads_and_calls_without_effect_carry_no_key(client_class):
    server = ScriptedServer(client_class, [answer({"warnings": []})])
    server.ask(lambda client: client.lint("x", DECISIONS))
    assert server.header("Idempotency-Key") == [None]


def test_the_wait_is_the_servers_and_at_most_a_tenth_more(client_class):
    error = RateLimitedError("Too many.")
    server = ScriptedServer(client_class, [refusal(error, Retry_After="1.5"), answer()])
    server.ask(decide)
    assert len(server.sleeps) == 1
    assert 1.5 <= server.sleeps[0] <= 1.65


@pytest.mark.parametrize("header", ["Wed, 21 Oct 2037 07:28:00 GMT", "nan", "-1", ""])
def test_without_usable_seconds_the_wait_doubles(client_class, header):
    error = EngineUnavailableError("Busy.")
    replies = [refusal(error, Retry_After=header)] * 5 + [answer()]
    server = ScriptedServer(client_class, replies, max_retries=10)
    server.ask(decide)
    for wait, doubled in zip(server.sleeps, [0.25, 0.5, 1, 2, 4], strict=True):
        assert 0.8 * doubled <= wait <= 1.2 * doubled


@pytest.mark.parametrize("max_retries", [0, 1, 2])
def test_attempts_are_bounded_and_the_last_error_is_raised(client_class, max_retries):
    error = EngineUnavailableError("Busy.")
    server = ScriptedServer(client_class, [refusal(error)], max_retries=max_retries)
    with pytest.raises(EngineUnavailableError, match=r"Busy\."):
        server.ask(decide)
    assert len(server.requests) == max_retries + 1


@pytest.mark.parametrize(
    ("use", "wait_s", "n_requests"),
    [(decide, "22", 2), (decide, "26", 1), (feedback, "100", 2), (feedback, "121", 1)],
)
def test_nothing_is_repeated_when_the_time_would_not_suffice(client_class, use, wait_s, n_requests):
    replies = [refusal(RateLimitedError("Too many."), Retry_After=wait_s)]
    server = ScriptedServer(client_class, replies, max_retries=1)
    with pytest.raises(RateLimitedError) as raised:
        server.ask(use)
    assert raised.value.retry_after_s == float(wait_s)
    assert len(server.requests) == n_requests


@pytest.mark.parametrize(("wait_s", "n_told"), [("4", 0), ("20", 1)])
def test_a_long_wait_says_why(client_class, wait_s, n_told, caplog):
    replies = [refusal(RateLimitedError("Too many."), Retry_After=wait_s)]
    server = ScriptedServer(client_class, replies, max_retries=1)
    with pytest.raises(RateLimitedError):
        server.ask(feedback)
    told = [one.getMessage() for one in caplog.records if one.name.startswith("steelyard.client")]
    assert len(told) == n_told
    assert all("The next attempt is in 2" in one for one in told)
    assert all("Too many." in one for one in told)


def test_a_terminal_failure_is_not_repeated(client_class):
    error = EngineUnavailableError("Failed.")
    headers = {"Idempotency_Status": "terminal", "X_Operation_ID": "op_7"}
    server = ScriptedServer(client_class, [refusal(error, **headers)])
    with pytest.raises(EngineUnavailableError) as raised:
        server.ask(decide)
    assert len(server.requests) == 1
    assert (raised.value.operation.id, raised.value.operation.status) == ("op_7", "terminal")


@pytest.mark.parametrize(
    "error",
    [
        IdempotencyConflictError("Another request."),
        InternalError("A fault."),
        InvalidRequestError("Wrong."),
    ],
)
def test_permanent_errors_are_not_repeated(client_class, error):
    server = ScriptedServer(client_class, [refusal(error)])
    with pytest.raises(type(error)):
        server.ask(decide)
    assert len(server.requests) == 1


def test_the_flag_of_the_body_wins_over_the_status(client_class):
    never = ScriptedServer(
        client_class, [refusal(EngineUnavailableError("Gone."), retryable=False)]
    )
    with pytest.raises(EngineUnavailableError):
        never.ask(decide)
    again = ScriptedServer(
        client_class, [refusal(InternalError("A hiccup."), retryable=True), answer()]
    )
    again.ask(decide)
    assert (len(never.requests), len(again.requests)) == (1, 2)


@pytest.mark.parametrize(
    ("status", "n_requests"),
    [(429, 3), (502, 3), (503, 3), (504, 3), (529, 3), (500, 1), (404, 1), (302, 1)],
)
def test_without_our_body_the_status_decides(client_class, status, n_requests):
    server = ScriptedServer(client_class, [httpx.Response(status, text="<html>proxy</html>")])
    with pytest.raises(UnexpectedAnswerError, match=str(status)) as raised:
        server.ask(decide)
    assert raised.value.http_status == status
    assert len(server.requests) == n_requests


def test_a_lost_connection_is_repeated_and_reported(client_class):
    server = ScriptedServer(client_class, [httpx.ReadError("reset"), answer()])
    assert server.ask(decide).model == "hashing"
    assert len(set(server.header("Idempotency-Key"))) == 1
    away = ScriptedServer(client_class, [httpx.ConnectError("refused")])
    with pytest.raises(ServerUnreachableError, match="steelyard serve") as raised:
        away.ask(decide)
    assert URL in raised.value.message
    assert len(away.requests) == 3
    assert isinstance(raised.value, SteelyardError | ConnectionError)


def test_a_timeout_is_reported_as_one(client_class):
    server = ScriptedServer(client_class, [httpx.ReadTimeout("")], timeout_s=5)
    with pytest.raises(NoAnswerInTimeError, match="within 5 s"):
        server.ask(decide)
    assert len(server.requests) == 1


def test_large_bodies_go_out_compressed(client_class):
    server = ScriptedServer(client_class, [answer()], gzip_over=1000, api_key=API_KEY)
    server.ask(lambda client: client.decide("word " * 1000, DECISIONS))
    server.ask(decide)
    assert server.header("Content-Encoding") == ["gzip", None]
    assert server.body(0)["context"] == "word " * 1000


def test_public_routes_get_plain_bodies(client_class):
    server = ScriptedServer(client_class, [answer({"warnings": []})], gzip_over=0)
    server.ask(lambda client: client.lint("word " * 1000, DECISIONS))
    assert server.header("Content-Encoding") == [None]


@pytest.mark.parametrize("is_ours", [True, False])
def test_a_server_that_does_not_decompress_gets_the_body_plain(client_class, is_ours):
    error = UnsupportedEncodingError("Send it plain.")
    refused = refusal(error) if is_ours else httpx.Response(415, text="no")
    server = ScriptedServer(client_class, [refused, answer()], gzip_over=1000, max_retries=0)
    server.ask(lambda client: client.decide("word " * 1000, DECISIONS))
    assert server.header("Content-Encoding") == ["gzip", None]
    assert len(set(server.header("Idempotency-Key"))) == 1
    assert server.body(0) == server.body(1)


def test_an_answer_of_another_program_is_recognised(client_class):
    for reply in (answer({"id": 3}), httpx.Response(200, text="<html>")):
        server = ScriptedServer(client_class, [reply])
        with pytest.raises(UnexpectedAnswerError, match="is a Steelyard server"):
            server.ask(decide)
        assert len(server.requests) == 1


@pytest.mark.parametrize("ending", [asyncio.CancelledError, KeyboardInterrupt])
def test_an_interrupted_second_attempt_ends_the_call(client_class, ending):
    server = ScriptedServer(client_class, [refusal(EngineUnavailableError("Busy.")), ending()])
    with pytest.raises(ending):
        server.ask(decide)
    assert len(server.requests) == 2


def test_an_answer_in_drips_is_bounded_by_the_time_of_the_call(client_class):
    with dripping_server() as url:
        with pytest.raises(NoAnswerInTimeError, match=r"within 0\.5 s"):
            use(client_class, url, lambda client: client.lint("x", DECISIONS))
        # Rows take as long as they need.
        assert len(use(client_class, url, lambda client: client.datasets.download("ds_1"))) == 10
        with pytest.raises(UnexpectedAnswerError):
            use(client_class, url, lambda client: client.send(check_rows({"examples": b"{}"})))


@contextmanager
def dripping_server():
    """Serve in drips over more than a second an answer that would be read in time drip by drip."""

    is_over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", "10")
            self.end_headers()
            with contextlib.suppress(OSError):
                for _ in range(10):
                    self.wfile.write(b" ")
                    is_over.wait(0.15)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        is_over.set()
        server.shutdown()


def use(client_class, url, ask):
    if client_class is Client:
        with Client(ClientOptions(url, timeout_s=0.5)) as client:
            return ask(client)

    async def ask_async():
        async with AsyncClient(ClientOptions(url, timeout_s=0.5)) as client:
            return await ask(client)

    return asyncio.run(ask_async())
