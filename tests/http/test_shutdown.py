"""Stopping: running requests are answered, new ones are refused, and nothing waits for ever."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from sanic import Sanic

from support.api.error_shape import assert_canonical_error
from support.servers.stand_ins import REQUEST, stand_in_server
from support.waiting import wait_until

pytestmark = pytest.mark.usefixtures("every_response_is_checked")


@pytest.fixture
def pool():
    with ThreadPoolExecutor(2) as threads:
        yield threads


def begin(server, pool):
    """Start a request that waits, and give the future of its answer."""
    server.decisions.may_answer.clear()
    answer = pool.submit(httpx.post, f"{server.url}/v1/decide", json=REQUEST, timeout=30)
    assert server.decisions.started.wait(timeout=10)
    return answer


def app_of(server):
    return next(app for app in Sanic._app_registry.values() if app.ctx.services is server.services)


def wait_until_stopping(server):
    app = app_of(server)
    wait_until(lambda: app.ctx.drain.is_stopping)


def test_a_request_in_flight_is_answered_and_a_new_one_refused(pool):
    with stand_in_server(shutdown_s=30) as server, httpx.Client(base_url=server.url) as kept:
        assert kept.get("/health").status_code == 200
        running = begin(server, pool)
        server.thread.ask_to_stop()
        wait_until_stopping(server)
        refused = kept.post("/v1/decide", json=REQUEST)
        assert_canonical_error(
            refused, 503, "engine_unavailable", message="stopping", retryable=True
        )
        assert float(refused.headers["Retry-After"]) > 0
        assert refused.headers["Connection"] == "close"
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{server.url}/health")
        server.decisions.may_answer.set()
        assert running.result(timeout=30).status_code == 200
        server.thread.join()


def test_a_server_that_leaves_tells_its_probes_and_answers_the_rest():
    with stand_in_server(leaving_s=300) as server, httpx.Client(base_url=server.url) as kept:
        server.thread.ask_to_stop()
        app = app_of(server)
        wait_until(lambda: app.ctx.drain.is_leaving)
        told = kept.get("/v1/health")
        assert_canonical_error(told, 503, "engine_unavailable", message="stopping", retryable=True)
        answer = kept.post("/v1/decide", json=REQUEST)
        assert (answer.status_code, answer.headers["Connection"]) == (200, "close")
        server.thread.ask_to_stop()
        server.thread.join()


@pytest.mark.parametrize(
    ("settings", "within_s"),
    [({"shutdown_s": 0.1}, ()), ({"shutdown_s": 300, "leaving_s": 300}, (0.1,))],
    ids=["by its setting", "at a terminal"],
)
def test_slow_requests_are_refused(pool, settings, within_s):
    with stand_in_server(**settings) as server:
        running = begin(server, pool)
        server.thread.ask_to_stop(*within_s)
        assert_canonical_error(
            running.result(timeout=30), 503, "engine_unavailable", retryable=True
        )
        server.thread.join()


def test_asked_twice_it_does_not_wait(pool):
    with stand_in_server(shutdown_s=300) as server:
        running = begin(server, pool)
        server.thread.ask_to_stop()
        wait_until_stopping(server)
        server.thread.ask_to_stop()
        server.thread.join()
        with pytest.raises(httpx.HTTPError):
            running.result(timeout=30).raise_for_status()


def test_nothing_is_left_behind():
    apps, threads = dict(Sanic._app_registry), threading.active_count()
    with stand_in_server() as server:
        assert httpx.get(f"{server.url}/health").status_code == 200
    assert Sanic._app_registry == apps
    # Threads of earlier tests may end meanwhile.
    assert threading.active_count() <= threads
