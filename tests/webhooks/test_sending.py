"""One try over the network: its target, its headers, and its bounds."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import ExitStack

import pytest
import trustme

from steelyard.webhooks import sending
from support.servers.webhook_endpoint import webhook_endpoint

HEADERS = {"webhook-id": "evt_1"}
HERE = {"127.0.0.1"}


@pytest.fixture
def endpoint():
    with webhook_endpoint() as found:
        yield found


def send(url, allowed=frozenset(HERE), *, names=None, roots=True, timeout_s=5.0):
    """Send once; names resolve as by the system's resolver, each once."""
    asked = []

    async def resolve(host, port, **_):
        asked.append(host)
        return [(None, None, None, "", (one, port)) for one in (names or {}).get(host, [host])]

    async def work():
        asyncio.get_running_loop().getaddrinfo = resolve
        async with sending.open_client(1, roots) as client:
            return await sending.send(client, url, b"{}", HEADERS, allowed, timeout_s=timeout_s)

    outcome = asyncio.run(work())
    assert len(asked) <= 1, "a second look-up could answer another address"
    return outcome


def test_it_goes_to_the_address_that_was_checked_under_the_hosts_name(endpoint):
    url = f"http://hooks.example:{endpoint.port}/hook"
    sent = send(url, {"hooks.example"}, names={"hooks.example": ["127.0.0.1"]})
    assert (sent.status, sent.response, sent.error) == (200, "ok", None)
    (got,) = endpoint.received
    assert got.headers["host"] == f"hooks.example:{endpoint.port}"
    assert got.headers["content-type"] == "application/json"


def test_the_certificate_must_be_that_of_the_name_and_the_name_is_asked_for():
    authority, asked = trustme.CA(), []
    roots = ssl.create_default_context()
    authority.configure_trust(roots)
    names = {"hooks.example": ["127.0.0.1"], "other.example": ["127.0.0.1"]}
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.sni_callback = lambda _, name, __: asked.append(name)
    authority.issue_cert("hooks.example").configure_cert(context)
    with webhook_endpoint(context) as endpoint:
        right, wrong = (
            send(f"https://{name}:{endpoint.port}/", {*names}, names=names, roots=roots)
            for name in names
        )
    assert (right.status, asked) == (200, ["hooks.example", "other.example"])
    assert "cannot be reached" in wrong.error
    assert len(endpoint.received) == 1


@pytest.mark.parametrize("address", ["127.0.0.1", "::ffff:127.0.0.1", "10.0.0.9"])
def test_a_name_that_resolves_to_a_private_address_is_not_called(endpoint, address):
    url = f"https://hooks.example:{endpoint.port}/"
    sent = send(url, names={"hooks.example": ["1.1.1.1", address]})
    assert "private network" in sent.error
    assert endpoint.received == []


def test_a_redirect_is_not_followed(endpoint):
    with webhook_endpoint() as inside:
        endpoint.status, endpoint.location = 307, inside.url
        sent = send(endpoint.url)
    assert (sent.status, inside.received) == (307, [])
    assert "redirects are not followed" in sent.error


def test_little_is_kept_of_a_long_answer(endpoint):
    endpoint.status, endpoint.body = 500, b"\0" + "é".encode() * 4_000_000
    sent = send(endpoint.url)
    assert (sent.status, sent.error) == (500, "It answered 500.")
    assert len(sent.response) == 1_000
    assert "\0" not in sent.response


@pytest.mark.parametrize(
    ("fault", "why"),
    [("hangs", "within 0.2 s"), ("closed", "cannot be reached"), ("nowhere", "be resolved")],
)
def test_an_endpoint_without_an_answer_is_reported_in_words(endpoint, monkeypatch, fault, why):
    with ExitStack() as closing:
        endpoint.hangs = fault == "hangs"
        url, names = endpoint.url, None
        if fault == "closed":
            gone = closing.enter_context(webhook_endpoint())
            closing.close()
            url = gone.url
        if fault == "nowhere":
            monkeypatch.setattr(sending, "_resolve", refuse_names)
        assert why in send(url, names=names, timeout_s=0.2).error


async def refuse_names(_):
    raise sending.socket.gaierror("unknown name")
