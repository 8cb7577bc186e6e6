"""Signatures, the schedule of tries, and which addresses a webhook may have."""

from __future__ import annotations

import time

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from steelyard.outbox.names import TEST
from steelyard.webhooks.signing import headers, new_secret
from steelyard.webhooks.targets import RefusedTargetError, check_addresses, read_target
from steelyard.webhooks.tries import (
    FAILING_S,
    JITTER,
    MAX_WAITING,
    TRIES,
    WAITS_S,
    next_wait_s,
    why_off,
)

BODY = '{"type":"job.failed","data":{"id":"ft_é"}}'.encode()


def test_the_standards_own_verifier_takes_either_secret_and_refuses_another():
    old, new = new_secret(), new_secret()
    sent = headers([new, old], "evt_1", int(time.time()), BODY)
    for secret in (old, new):
        assert Webhook(secret).verify(BODY, sent)["type"] == "job.failed"
    for secret, body in ((new_secret(), BODY), (new, BODY + b" ")):
        with pytest.raises(WebhookVerificationError):
            Webhook(secret).verify(body, sent)


def test_eight_tries_lie_within_a_day_and_each_waits_longer():
    assert TRIES == 8
    assert list(WAITS_S) == sorted(WAITS_S)
    assert 20 * 3600 < sum(WAITS_S) < (1 + JITTER) * sum(WAITS_S) < 24 * 3600
    for attempts, wait_s in enumerate(WAITS_S, start=1):
        early, late = (next_wait_s("job.failed", attempts, chance) for chance in (0.0, 1.0))
        assert (early, late) == pytest.approx((wait_s * 0.9, wait_s * 1.1))
    assert next_wait_s("job.failed", TRIES, 0.5) is next_wait_s(TEST, 1, 0.5) is None


@pytest.mark.parametrize(
    ("status", "failing_s", "n_waiting", "why"),
    [
        pytest.param(500, FAILING_S - 1, MAX_WAITING, None, id="not-yet"),
        pytest.param(410, 0, 1, "410", id="gone"),
        pytest.param(500, FAILING_S, 1, "3 days; the last one: It answered 500.", id="days"),
        pytest.param(None, 1, MAX_WAITING + 1, "More than 10000 deliveries", id="backlog"),
    ],
)
def test_a_webhook_that_fails_for_too_long_is_switched_off(status, failing_s, n_waiting, why):
    found = why_off(status, failing_s, n_waiting, "It answered 500.")
    assert found is None if why is None else why in found


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://hooks.example/", "webhook_hosts"),
        ("ftp://hooks.example/", "https://HOST"),
        ("https:///path", "https://HOST"),
        ("https://hooks.example:0/", "https://HOST"),
        ("https://hooks.example:99999/", "https://HOST"),
        ("https://hooks.example/#part", "https://HOST"),
        ("https://hooks.example/a b", "ASCII"),
        ("https://hooks.example/é", "ASCII"),
        ("https://user:secret@hooks.example/", "no user"),
        ("https://127.0.0.1/", "private network"),
        ("https://10.1.2.3/", "private network"),
        ("https://169.254.169.254/latest/", "private network"),
        ("https://LocalHost./", "private network"),
        ("https://api.localhost/", "private network"),
        ("https://127.1/", "private network"),
        ("https://0x7f000001/", "private network"),
        ("https://2130706433/", "private network"),
        ("https://[::1]/", "private network"),
        ("https://[::ffff:10.0.0.1]/", "private network"),
        ("https://[fe80::1%25eth0]/", "https://HOST"),
        ("https://224.0.0.1/", "private network"),
    ],
)
def test_an_address_that_a_webhook_may_not_have_is_refused(url, why):
    with pytest.raises(RefusedTargetError, match=why):
        read_target(url, ())


def test_listed_hosts_may_be_private_and_without_tls():
    target = read_target("http://Hooks.internal:8080/in?a=1", {"hooks.internal"})
    assert (target.authority, target.url_at("10.0.0.7")) == (
        "hooks.internal:8080",
        "http://10.0.0.7:8080/in?a=1",
    )
    check_addresses("hooks.internal", ["10.0.0.7"], {"hooks.internal"})
    assert read_target("https://[2606:4700::1111]/", ()).authority == "[2606:4700::1111]"


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.0.0.1",
        "100.64.0.1",
        "169.254.169.254",
        "0.0.0.0",
        "224.0.0.1",
        "240.0.0.1",
        "::1",
        "::",
        "fe80::1",
        "fc00::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "2002:a00:1::",
        "64:ff9b::a00:1",
        "::127.0.0.1",
        "fe80::1%eth0",
        "name",
    ],
)
def test_a_name_is_refused_when_one_of_its_addresses_is_not_public(address):
    check_addresses("hooks.example", ["1.1.1.1"], ())
    with pytest.raises(RefusedTargetError, match="private network"):
        check_addresses("hooks.example", ["1.1.1.1", address], ())
