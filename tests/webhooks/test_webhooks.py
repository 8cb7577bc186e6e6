"""Webhooks over HTTP, by the client and by the command line, on a real server."""

from __future__ import annotations

import json

import httpx
import pytest
from click.testing import CliRunner
from standardwebhooks import Webhook, WebhookVerificationError

import steelyard
from steelyard import errors
from steelyard.cli.main import main
from steelyard.outbox.names import EVENTS
from steelyard.outbox.publishing import publish
from steelyard.webhooks import service
from steelyard.webhooks.service import MAX_WEBHOOKS
from support.servers.live_server import live_server
from support.servers.webhook_endpoint import webhook_endpoint
from support.waiting import wait_until

pytestmark = pytest.mark.usefixtures("every_response_is_checked")


@pytest.fixture(scope="module")
def server():
    with live_server(webhook_hosts="127.0.0.1") as found:
        yield found


@pytest.fixture
def client(server):
    with steelyard.connect(server.url) as found:
        yield found
        for one in list(found.webhooks.list()):
            found.webhooks.delete(one.id)


@pytest.fixture
def endpoint():
    with webhook_endpoint() as found:
        yield found


def delivered(client, webhook):
    """The deliveries to a webhook, once all have ended."""
    return wait_until(
        lambda: (
            (found := list(client.webhooks.deliveries(webhook)))
            and all(one.status != "waiting" for one in found)
            and found
        )
    )


def test_an_event_arrives_signed_and_can_be_asked_for_again(server, client, endpoint):
    made = client.webhooks.create(endpoint.url, ["gate.failed", "job.failed"], description="ops")
    endpoint.secret = made.secret
    assert made.secret.startswith("whsec_")
    again = client.webhooks.get(made.id)
    assert (again.secret, again.events) == (steelyard.client.calls.UNSET, made.events)
    assert [one.id for one in client.webhooks.list()] == [made.id]
    server.services.state.write_now(
        lambda c: publish(c, "local", "job.failed", "ft_1", {"id": "ft_1"})
    )
    (first,) = delivered(client, made)
    assert (first.status, first.attempts, first.response_status) == ("delivered", 1, 200)
    assert first.payload == endpoint.told[0]
    assert first.payload["data"] == {"id": "ft_1"}
    second = client.webhooks.redeliver(made.id, first.id)
    assert (second.event_id, second.attempts) == (first.event_id, 0)
    assert [one.id for one in delivered(client, made)] == [second.id, first.id]
    assert [one.id for one in endpoint.received] == [first.event_id] * 2


def test_both_secrets_sign_for_a_day_after_a_rotation(client, endpoint):
    made = client.webhooks.create(endpoint.url, ["job.failed"])
    changed = client.webhooks.change(made.id, rotate_secret=True, events=["gate.failed"])
    assert (changed.events, changed.url) == (["gate.failed"], endpoint.url)
    client.webhooks.test(made.id)
    delivered(client, made)
    (got,) = endpoint.received
    for secret in (made.secret, changed.secret):
        assert Webhook(secret).verify(got.body, got.headers)["type"] == "webhook.test"
    with pytest.raises(WebhookVerificationError):
        Webhook("whsec_AAAA").verify(got.body, got.headers)


def test_one_that_is_off_is_sent_nothing_until_it_is_on(client, endpoint):
    made = client.webhooks.create(endpoint.url, list(EVENTS))
    off = client.webhooks.change(made.id, enabled=False)
    assert (off.enabled, off.disabled_reason) == (False, "Switched off by the account.")
    with pytest.raises(errors.WebhookOffError, match="enabled: true"):
        client.webhooks.test(made.id)
    assert client.webhooks.change(made.id, enabled=True).disabled_reason is None
    assert client.webhooks.test(made.id).event == "webhook.test"


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"url": "https://10.0.0.1/", "events": ["job.failed"]}, "url"),
        ({"url": "http://hooks.example/", "events": ["job.failed"]}, "url"),
        ({"url": "https://hooks.example/", "events": []}, "events"),
        ({"url": "https://hooks.example/", "events": ["job.started"]}, "events"),
    ],
)
def test_a_webhook_that_cannot_be_is_refused(server, body, place):
    refused = httpx.post(f"{server.url}/v1/integrations/webhooks", json=body)
    assert refused.status_code == 422
    assert refused.json()["error"]["details"][0]["path"][1] == place


def test_an_account_has_so_many_and_no_other_ids(client):
    made = [
        client.webhooks.create("https://hooks.example/", ["job.failed"])
        for _ in range(MAX_WEBHOOKS)
    ]
    with pytest.raises(errors.WebhookLimitError, match="remove one"):
        client.webhooks.create("https://hooks.example/", ["job.failed"])
    with pytest.raises(errors.NotFoundError):
        client.webhooks.get("wh_other")
    with pytest.raises(errors.NotFoundError):
        client.webhooks.redeliver(made[0].id, "whd_other")


def test_so_many_deliveries_wait_before_no_more_can_be_asked_for(client, endpoint, monkeypatch):
    monkeypatch.setattr(service, "MAX_WAITING", 2)
    endpoint.hangs = True
    made = client.webhooks.create(endpoint.url, ["job.failed"])
    first, _ = client.webhooks.test(made.id), client.webhooks.test(made.id)
    refused = pytest.raises(
        errors.WebhookLimitError, match=r"2 deliveries wait .*/deliveries for why"
    )
    with refused:
        client.webhooks.test(made.id)
    with refused:
        client.webhooks.redeliver(made.id, first.id)
    endpoint.may_answer.set()
    assert {one.status for one in delivered(client, made.id)} == {"delivered"}
    assert client.webhooks.redeliver(made.id, first.id).status == "waiting"


def test_the_commands(server, endpoint):
    def run(*arguments, status=0):
        found = CliRunner().invoke(main, ["webhook", *arguments, "--url", server.url])
        assert found.exit_code == status, found.output
        return found.output

    assert "Secret, shown once: whsec_" in run("add", "https://hooks.example/")
    made = json.loads(run("add", endpoint.url, "--event", "job.failed", "--json"))
    assert run("list").splitlines()[1].split()[:4] == [
        made["id"],
        endpoint.url,
        "job.failed",
        "yes",
    ]
    assert "delivered" in run("test", made["id"])
    endpoint.status = 410  # of a test it switches nothing off
    assert "It answered 410." in run("test", made["id"], status=1)
    endpoint.status = 500
    assert "It answered 500." in run("test", made["id"], status=1)
    failed = run("deliveries", made["id"], "--status", "failed").splitlines()[1].split()
    assert (failed[1], failed[3:6]) == ("webhook.test", ["failed", "1", "500"])
    assert failed[2] in run("redeliver", made["id"], failed[0])
    assert "is off: Switched off" in run("change", made["id"], "--off")
    for one in json.loads(run("list", "--json")):
        assert one["id"] in run("remove", one["id"])
