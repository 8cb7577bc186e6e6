"""A running server and a client of it, for the tests that ask over HTTP."""

from __future__ import annotations

import httpx
import pytest

from support.servers.live_server import LiveServer, live_server


@pytest.fixture(scope="session")
def running_server():
    with live_server() as server:
        yield server


@pytest.fixture
def server(running_server: LiveServer):
    running_server.scorer.reset()
    yield running_server
    running_server.scorer.reset()


@pytest.fixture(scope="session")
def session_client(running_server: LiveServer):
    with httpx.Client(base_url=running_server.url, timeout=30) as client:
        yield client


@pytest.fixture
def client(server: LiveServer, session_client: httpx.Client) -> httpx.Client:
    return session_client


@pytest.fixture
def make_request():
    """Return a valid request with three kinds of decisions; keyword arguments replace fields."""

    def make(**fields: object) -> dict[str, object]:
        request = {
            "context": "My card was charged twice for order 118. I need the money back today.",
            "decisions": [
                {
                    "id": "team",
                    "question": "Which team should own this?",
                    "outcomes": {"billing": "charges and refunds", "shipping": None, "other": None},
                },
                {"id": "refund", "kind": "binary", "question": "Does the writer ask for money?"},
                {
                    "id": "urgency",
                    "kind": "ordinal",
                    "question": "How urgent is it?",
                    "outcomes": ["0", "1", "2"],
                    "rubric": ["can wait", "today", "at once"],
                },
            ],
        }
        return {**request, **fields}

    return make
