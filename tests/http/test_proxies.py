"""Callers behind proxies: an address from a trusted one is counted and logged, from others it is not."""

from __future__ import annotations

import logging

import httpx
import pytest

from steelyard.http.access import TrustedProxies
from steelyard.settings import InvalidSettingError
from support.api.error_shape import assert_canonical_error
from support.servers.stand_ins import stand_in_server

pytestmark = pytest.mark.usefixtures("every_response_is_checked")

PROXY, CALLER = "10.1.0.1", "192.0.2.7"


@pytest.mark.parametrize(
    ("peer", "told", "caller"),
    [
        (PROXY, [CALLER], CALLER),
        # A caller cannot put another before itself, in one line or in several.
        (PROXY, [f"198.51.100.1, {CALLER}"], CALLER),
        (PROXY, ["198.51.100.1", f" {CALLER}\t"], CALLER),
        (PROXY, [f"10.1.0.9, 198.51.100.1,{CALLER}"], CALLER),
        # Two proxies, the outer one of IPv6.
        (PROXY, [f"198.51.100.1, {CALLER}, fd00::5"], CALLER),
        ("fd00::5", ["2001:db8::7, 10.1.0.2"], "2001:db8::7"),
        # An address in other words.
        (PROXY, [f"{CALLER}:4711"], CALLER),
        (PROXY, ["[2001:DB8:0::7]:4711"], "2001:db8::7"),
        (PROXY, [f"::ffff:{CALLER}"], CALLER),
        (f"::ffff:{PROXY}", [CALLER], CALLER),
        # A proxy that asks for itself, and one that another asks.
        (PROXY, [], PROXY),
        (PROXY, ["10.1.0.2"], "10.1.0.2"),
        # What is no address says nothing, nor does what stands left of it.
        *(
            (PROXY, [f"{CALLER}, {bad}"], PROXY)
            for bad in (
                "",
                "unknown",
                "_hidden",
                "1.2.3",
                "1.2.3.4.5",
                "fe80::1%eth0",
                "::1::",
                "é",
            )
        ),
        (PROXY, [f"{CALLER}, junk, 10.1.0.2"], "10.1.0.2"),
        # Nobody else is believed.
        ("192.0.2.9", [CALLER], "192.0.2.9"),
        ("10.1.1.0", [CALLER], "10.1.1.0"),
        ("", [CALLER], ""),
    ],
)
def test_the_right_most_that_is_no_trusted_proxy_calls(peer, told, caller):
    assert TrustedProxies(" 10.1.0.0/24,fd00::5 ").address_behind(peer, told) == caller


def test_by_default_no_proxy_is_trusted():
    assert TrustedProxies("").address_behind(PROXY, [CALLER]) == PROXY


@pytest.mark.parametrize("wrong", ["proxy.example", "10.0.0.1/24", "10.0.0.0/33", "::/0", "*"])
def test_invalid_proxies_are_refused(wrong):
    with pytest.raises(InvalidSettingError, match="trusted_proxies"):
        TrustedProxies(f"10.0.0.1, {wrong}")


def lint(server, told=None):
    headers = {} if told is None else {"X-Forwarded-For": told}
    return httpx.post(f"{server.url}/v1/lint", json={}, headers=headers).status_code


def test_callers_of_a_trusted_proxy_have_minutes_of_their_own():
    with stand_in_server(public_requests_per_minute=2, trusted_proxies="127.0.0.1") as server:
        spoofed = [lint(server, f"198.51.100.{n}, {CALLER}") for n in range(4)]
        assert spoofed == [422, 422, 429, 429]
        assert [lint(server, "192.0.2.8") for _ in range(3)] == [422, 422, 429]
        # An IPv6 network is one caller.
        assert [lint(server, f"2001:db8::{n}") for n in range(3)] == [422, 422, 429]
        # Who writes what cannot be read is counted as the proxy.
        assert [lint(server, f"junk{n}") for n in range(3)] == [422, 422, 429]


def test_untrusted_senders_cannot_change_their_address():
    with stand_in_server(public_requests_per_minute=2, trusted_proxies="127.0.0.2") as server:
        assert [lint(server, f"198.51.100.{n}") for n in range(3)] == [422, 422, 429]


def test_a_trusted_proxys_caller_is_no_program_of_this_machine():
    with (
        stand_in_server(accounts="on", trusted_proxies="127.0.0.1") as server,
        httpx.Client(base_url=server.url) as http,
    ):
        for told in ("127.0.0.1", "::1", "", "junk"):
            refused = http.get("/metrics", headers={"X-Forwarded-For": told})
            assert_canonical_error(refused, 401, "missing_api_key")


def test_the_log_has_the_callers_address(caplog):
    caplog.set_level(logging.INFO, "steelyard.access")
    with stand_in_server(trusted_proxies="127.0.0.1") as server:
        lint(server, f"198.51.100.1, {CALLER}")
        lint(server, "<script>")
    assert [record.request_fields["address"] for record in caplog.records] == [CALLER, "127.0.0.1"]
