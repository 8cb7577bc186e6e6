"""Keys in the console: who makes, changes and revokes them, their permissions, and stored fields."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from steelyard.ledger.money import NANO
from steelyard.people import limits
from support.accounts.console import open_console
from support.api.error_shape import assert_canonical_error

pytestmark = pytest.mark.usefixtures("every_response_is_checked")
MIA, LEO, BILL = "mia@example.org", "leo@example.org", "bill@example.org"
KEYS = "/v1/account/keys"
CI = {"name": "ci", "scope": "inference", "monthly_cap_usd": "25.50"}


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with open_console(tmp_path_factory.mktemp("console"), operators="sam@ops.org") as opened:
        opened.account("acme", owner=MIA, developer=LEO, billing=BILL)
        for email in (MIA, LEO, BILL):
            with opened.sign_in(email):
                pass
        yield opened


@pytest.fixture
def console(shared):
    shared.clock.now += 40 * 24 * limits.HOUR_S
    return shared


def with_key(console, secret):
    browser = console.browser()
    browser.headers["Authorization"] = f"Bearer {secret}"
    return browser


def test_a_key_is_made_shown_once_changed_and_revoked_and_it_is_noted(console):
    with console.sign_in(MIA) as mia:
        end = console.clock.now + 3600
        made = mia.post(KEYS, json={**CI, "expires_at": end}).json()
        secret = made.pop("secret")
        assert (made["made_by"], made["role"], made["expires_at"]) == (MIA, "owner", end)
        assert (made["monthly_cap_usd"], made["month_spent_usd"]) == ("25.5", "0")
        assert mia.get(KEYS).json()["data"][0] == made
        kept = console.state.read_now(
            lambda c: str(c.execute(text("SELECT * FROM api_keys")).all())
        )
        assert secret not in kept
        change = {"name": "tests", "monthly_cap_usd": None, "store": "features"}
        changed = mia.patch(f"{KEYS}/{made['id']}", json=change).json()
        assert changed == {**made, **change, "month_spent_usd": None}
        with with_key(console, secret) as program:
            assert program.get("/v1/health").status_code == 200
            assert_canonical_error(program.get("/v1/account"), 403, "key_scope")
            console.clock.now = end
            assert_canonical_error(program.get("/v1/account"), 401, "invalid_api_key")
    with console.sign_in(MIA) as mia:
        gone = mia.delete(f"{KEYS}/{made['id']}").json()
        assert gone["revoked_at"] == console.clock.now
        assert mia.delete(f"{KEYS}/{made['id']}").json() == gone
        refused = mia.patch(f"{KEYS}/{made['id']}", json={"name": "other"})
        assert_canonical_error(refused, 404, "not_found")
        entries = mia.get("/v1/account/audit").json()["data"]
        assert ", store features)" in str(entries)
        told = [(one["action"], one["email"]) for one in entries if one["action"][:4] == "key."]
        assert told[:3] == [("key.revoked", MIA), ("key.changed", MIA), ("key.created", MIA)]
        assert secret not in str(entries)


def test_a_call_that_is_repeated_makes_no_second_key_and_keeps_no_secret(console):
    with console.sign_in(MIA) as mia:
        before = len(mia.get(KEYS).json()["data"])
        given = {"json": CI, "headers": {"Idempotency-Key": "once"}}
        secret = mia.post(KEYS, **given).json()["secret"]
        assert_canonical_error(mia.post(KEYS, **given), 409, "idempotency_response_expired")
        assert len(mia.get(KEYS).json()["data"]) == before + 1
        kept = console.state.read_now(
            lambda c: str(c.execute(text("SELECT * FROM idempotency_keys")).all())
        )
        assert "once" in kept
        assert secret not in kept


def test_a_key_never_changes_keys_and_reads_where_it_may(console):
    with console.sign_in(MIA) as mia:
        for scope, reads in (("full", 200), ("read", 200), ("inference", 403)):
            made = mia.post(KEYS, json={"name": scope, "scope": scope}).json()
            with with_key(console, made["secret"]) as program:
                assert program.get(KEYS).status_code == reads
                for method, path, body in (
                    ("POST", KEYS, CI),
                    ("PATCH", f"{KEYS}/{made['id']}", {"name": "a"}),
                    ("DELETE", f"{KEYS}/{made['id']}", None),
                ):
                    refused = program.request(method, path, json=body)
                    assert_canonical_error(refused, 403, "console_only")


def test_roles_and_whose_key_it_is(console):
    with console.sign_in(MIA) as mia, console.sign_in(LEO) as leo, console.sign_in(BILL) as bill:
        own = leo.post(KEYS, json=CI).json()
        assert (own["made_by"], own["role"]) == (LEO, "developer")
        other = mia.post(KEYS, json=CI).json()
        assert_canonical_error(leo.delete(f"{KEYS}/{other['id']}"), 403, "role_forbidden")
        refused = leo.patch(f"{KEYS}/{other['id']}", json={"name": "mine"})
        assert_canonical_error(refused, 403, "role_forbidden")
        assert leo.patch(f"{KEYS}/{own['id']}", json={"name": "mine"}).json()["name"] == "mine"
        assert mia.delete(f"{KEYS}/{own['id']}").status_code == 200
        assert_canonical_error(bill.post(KEYS, json=CI), 403, "role_forbidden")
        assert_canonical_error(bill.get(KEYS), 403, "role_forbidden")
        assert bill.get("/v1/account").json()["user"]["name"] == "acme"
        assert_canonical_error(mia.delete(f"{KEYS}/key_nobodys"), 404, "not_found")
        console.clock.now += limits.CONFIRMED_S
        for method, path in (
            ("POST", KEYS),
            ("PATCH", f"{KEYS}/{other['id']}"),
            ("DELETE", f"{KEYS}/{other['id']}"),
        ):
            refused = mia.request(method, path, json=None if method == "DELETE" else CI)
            assert_canonical_error(refused, 403, "confirm_sign_in")


def test_operators_alone_make_a_key_that_sees_the_whole_server(console):
    console.members.invite_now("local", "sam@ops.org", "owner")
    console.members.invite_now("local", MIA, "owner")
    local = {"X-Steelyard-Account": "local"}
    full = {"name": "all", "scope": "full"}
    with console.sign_in(MIA, **local) as mia, console.sign_in("sam@ops.org", **local) as sam:
        assert_canonical_error(mia.post(KEYS, json=full), 403, "role_forbidden")
        assert mia.post(KEYS, json=CI).status_code == 200
        assert sam.post(KEYS, json=full).status_code == 200


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"name": ""}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"scope": "all"}, "scope"),
        ({"scope": "read"}, "monthly_cap_usd"),
        ({"monthly_cap_usd": "-1"}, "monthly_cap_usd"),
        ({"monthly_cap_usd": "1e3"}, "monthly_cap_usd"),
        ({"monthly_cap_usd": str(2**63 // NANO + 1)}, "monthly_cap_usd"),
        ({"expires_at": 1.0}, "expires_at"),
        ({"extra": 1}, "extra"),
    ],
)
def test_invalid_keys_are_refused(console, change, path):
    with console.sign_in(MIA) as mia:
        refused = mia.post(KEYS, json={**CI, **change})
        assert_canonical_error(refused, 422, "invalid_request", path=["body", path])
