"""Sessions: how long they live, a browser's headers, how they end and when tokens change."""

from __future__ import annotations

import pytest

from steelyard.people import limits
from support.accounts.console import open_console
from support.api.error_shape import assert_canonical_error

pytestmark = pytest.mark.usefixtures("every_response_is_checked")
MIA, LEO = "mia@example.org", "leo@example.org"
WHO = "/v1/auth/session"


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with open_console(tmp_path_factory.mktemp("console")) as opened:
        opened.account("acme", owner=MIA, developer=LEO)
        for email in (MIA, LEO):
            with opened.sign_in(email):
                pass
        yield opened


@pytest.fixture
def console(shared):
    shared.clock.now += 40 * 24 * limits.HOUR_S
    return shared


def use(console, browser):
    """Use a session, and wait until the use is stored."""
    response = browser.get(WHO)
    console.state.write_now(lambda connection: None)
    return response.status_code


def assert_ended(browser):
    assert_canonical_error(browser.get(WHO), 401, "not_signed_in")


def test_a_session_ends_when_it_idles(console):
    with console.sign_in(MIA) as browser:
        console.clock.now += limits.IDLE_S - 1
        assert use(console, browser) == 200
        console.clock.now += limits.IDLE_S - 1
        assert use(console, browser) == 200
        console.clock.now += limits.IDLE_S
        assert_ended(browser)


def test_a_session_ends_after_thirty_days_however_it_is_used(console):
    with console.sign_in(MIA) as browser:
        began = console.clock.now
        while console.clock.now + 11 * limits.HOUR_S < began + limits.SESSION_S:
            console.clock.now += 11 * limits.HOUR_S
            assert use(console, browser) == 200
        console.clock.now = began + limits.SESSION_S
        assert_ended(browser)


def test_a_clock_that_was_set_back_before_its_last_use_ends_a_session(console):
    with console.sign_in(MIA) as browser:
        console.clock.now -= limits.HOUR_S
        assert_ended(browser)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"X-Steelyard-Console": "0"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
    ],
)
def test_a_cookie_is_taken_from_own_pages_alone(console, headers, status):
    with console.sign_in(MIA) as browser:
        response = browser.get(WHO, headers=headers)
        assert response.status_code == status
        if status == 403:
            assert_canonical_error(response, 403, "cross_site_request")
        own = {"Origin": console.url}
        assert browser.get(WHO, headers=own).status_code == 200


@pytest.mark.parametrize("token", ["", "x", "steelyard_ss_" + "A" * 43, "é" * 56])
def test_a_wrong_cookie(console, token):
    with console.browser() as browser:
        headers = {"Cookie": f"steelyard_session={token}".encode()}
        response = browser.get(WHO, headers=headers)
        assert_canonical_error(response, 401, "not_signed_in")


def test_sessions_are_listed_and_ended(console):
    agent = {"User-Agent": "A"}
    with (
        console.sign_in(MIA, **agent) as a,
        console.sign_in(MIA) as b,
        console.sign_in(MIA) as c,
        console.sign_in(LEO) as leo,
    ):
        listed = a.get("/v1/account/sessions").json()["data"]
        assert [one["is_current"] for one in listed].count(True) == 1
        [own] = [one for one in listed if one["is_current"]]
        assert (own["agent"], own["network"]) == ("A", "127.0.0.1")
        assert "token" not in own
        other = b.get(WHO).json()["session"]["id"]
        assert_canonical_error(leo.delete(f"/v1/account/sessions/{other}"), 404, "not_found")
        assert a.delete(f"/v1/account/sessions/{other}").json() == {"ended": 1}
        assert_ended(b)
        assert a.delete("/v1/account/sessions").json() == {"ended": 1}
        assert_ended(c)
        assert leo.get(WHO).status_code == 200
        out = a.post("/v1/auth/sign-out")
        assert "Max-Age=0" in out.headers["set-cookie"]
        assert_ended(a)


def test_signing_in_again_ends_the_browsers_session_before(console):
    with console.sign_in(MIA) as browser:
        token = browser.cookies["steelyard_session"]
        challenge, code = console.ask(MIA, browser)
        browser.post("/v1/auth/email/verify", json={"challenge_id": challenge, "code": code})
        with console.browser() as old:
            old.cookies["steelyard_session"] = token
            assert_ended(old)


def members(browser):
    found = browser.get("/v1/account/members").json()["data"]
    return {one["email"]: one for one in found}


def test_a_change_of_role_rotates_the_members_token(console):
    with console.sign_in(MIA) as mia, console.sign_in(LEO) as leo:
        old = leo.cookies["steelyard_session"]
        id_ = members(mia)[LEO]["id"]
        changed = mia.patch(f"/v1/account/members/{id_}", json={"role": "billing"})
        assert changed.json()["role"] == "billing"
        assert leo.get(WHO).json()["accounts"][0]["role"] == "billing"
        assert leo.cookies["steelyard_session"] != old
        with console.browser() as other, console.browser() as late:
            for browser in (other, late):
                browser.cookies.set("steelyard_session", old, domain="127.0.0.1", path="/")
            assert other.get(WHO).status_code == 200
            assert other.cookies["steelyard_session"] == leo.cookies["steelyard_session"]
            console.clock.now += limits.ROTATION_S
            assert other.get(WHO).status_code == 200
            assert_ended(late)
        assert leo.get(WHO).status_code == 200
        mia.patch(f"/v1/account/members/{id_}", json={"role": "developer"})


def test_members_are_invited_join_and_leave_and_it_is_noted(console):
    with console.sign_in(MIA) as mia:
        console.box.clear()
        path, once = "/v1/account/members", {"Idempotency-Key": "once"}
        zoe_reviews = {"email": "Zoe@example.org", "role": "reviewer"}
        invited = mia.post(path, json=zoe_reviews, headers=once).json()
        again = mia.post(path, json=zoe_reviews, headers=once)
        assert (again.headers["Idempotency-Replayed"], again.json()) == ("true", invited)
        console.mail.tick()
        assert [letter.to for letter in console.box] == ["zoe@example.org"]
        assert "acme" in console.box[0].text()
        assert (invited["state"], invited["invited_by"]) == ("invited", MIA)
        again = mia.post("/v1/account/members", json={"email": "zoe@example.org", "role": "owner"})
        assert_canonical_error(again, 409, "member_exists")
        with console.sign_in("zoe@example.org") as zoe:
            assert members(mia)["zoe@example.org"]["state"] == "joined"
            assert_canonical_error(zoe.get("/v1/account/members"), 403, "role_forbidden")
            for _ in range(2):
                gone = mia.delete(f"{path}/{invited['id']}", headers=once)
                assert gone.json() == {"id": invited["id"], "removed": True}
            assert zoe.get(WHO).json()["accounts"] == []
        entries = mia.get("/v1/account/audit", params={"limit": 4}).json()
        assert [one["action"] for one in entries["data"]] == [
            "member.removed",
            "session.begun",
            "member.invited",
            "session.begun",
        ]
        assert entries["data"][0]["email"] == MIA
        assert entries["has_more"]


def test_a_repeated_change_is_answered_again_and_is_each_users_own(console):
    def change(browser, method, path, body, key):
        return browser.request(method, path, json=body, headers={"Idempotency-Key": key})

    with console.sign_in(MIA) as mia, console.sign_in(LEO) as leo:
        keys = "/v1/account/keys"
        key_id = mia.post(keys, json={"name": "ci", "scope": "read"}).json()["id"]
        leo_id = members(mia)[LEO]["id"]
        for method, path, body in (
            ("PATCH", f"{keys}/{key_id}", {"name": "tests"}),
            ("DELETE", f"{keys}/{key_id}", None),
            ("PATCH", f"/v1/account/members/{leo_id}", {"role": "owner"}),
            ("PATCH", "/v1/account", {"name": "acme & co"}),
            ("DELETE", "/v1/account", None),
            ("POST", "/v1/account/restore", None),
            ("DELETE", "/v1/account/sessions", None),
        ):
            first, second = (change(mia, method, path, body, "k") for _ in range(2))
            assert (first.status_code, second.content) == (200, first.content), first.text
            assert second.headers["Idempotency-Replayed"] == "true"
            if body is not None:
                other = change(mia, method, path, dict.fromkeys(body, "developer"), "k")
                assert_canonical_error(other, 409, "idempotency_conflict")
        with console.sign_in(LEO):
            for n_ended, key in ((1, "k"), (0, "other")):
                mine = change(leo, "DELETE", "/v1/account/sessions", None, key)
                assert "Idempotency-Replayed" not in mine.headers
                assert mine.json()["ended"] == n_ended
        mia.patch(f"/v1/account/members/{leo_id}", json={"role": "developer"})


def test_the_last_owner_stays(console):
    with console.sign_in(MIA) as mia:
        id_ = members(mia)[MIA]["id"]
        for response in (
            mia.patch(f"/v1/account/members/{id_}", json={"role": "billing"}),
            mia.delete(f"/v1/account/members/{id_}"),
        ):
            assert_canonical_error(response, 409, "last_owner")


def test_a_sensitive_change_needs_a_code_of_late(console):
    with console.sign_in(MIA) as mia:
        console.clock.now += limits.CONFIRMED_S
        id_ = members(mia)[LEO]["id"]
        refused = mia.patch(f"/v1/account/members/{id_}", json={"role": "billing"})
        assert_canonical_error(refused, 403, "confirm_sign_in")


def test_an_invitation_runs_out_and_is_made_anew(console):
    wanted = {"email": "max@example.org", "role": "developer"}
    with console.sign_in(MIA) as mia:
        assert mia.post("/v1/account/members", json=wanted).status_code == 200
        console.clock.now += limits.INVITATION_S
    with console.sign_in(MIA) as mia, console.browser() as browser:
        assert members(mia)["max@example.org"]["state"] == "expired"
        challenge, code = console.ask("max@example.org", browser)
        body = {"challenge_id": challenge, "code": code}
        refused = browser.post("/v1/auth/email/verify", json=body)
        assert_canonical_error(refused, 403, "sign_up_refused")
        assert mia.post("/v1/account/members", json=wanted).json()["state"] == "invited"


def test_a_user_of_two_accounts_names_one(console):
    other = console.account("other", billing=MIA)
    with console.sign_in(MIA) as mia:
        named = mia.get(WHO, headers={"X-Steelyard-Account": other}).json()
        assert (named["account_id"], len(named["accounts"])) == (other, 2)
        nobodys = mia.get(WHO, headers={"X-Steelyard-Account": "acct_nobodys"})
        assert_canonical_error(nobodys, 404, "not_found")


def test_expired_sessions_are_swept(console):
    sessions = console.services.sessions
    with console.sign_in(MIA) as mia:
        n_entries = len(mia.get("/v1/account/audit").json()["data"])
        assert n_entries
        sessions.sweep()
        assert mia.get(WHO).status_code == 200
    console.clock.now += limits.AUDIT_S + 1
    sessions.sweep()
    with console.sign_in(MIA) as mia:
        assert len(mia.get("/v1/account/audit").json()["data"]) == 1
