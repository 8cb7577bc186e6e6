"""Passkeys: added, signed in with, removed, and refused replies of browsers."""

from __future__ import annotations

import dataclasses

import pytest
from sqlalchemy import select, text

from steelyard.people import limits, passkey_ceremonies
from steelyard.people.removal import AccountRemoval
from steelyard.people.tables import passkeys
from steelyard.storage.tables import accounts
from support.accounts.console import open_console
from support.api.error_shape import assert_canonical_error

pytest.importorskip("webauthn", reason="the extra passkeys is not installed")

from support.browser.authenticator import SoftPasskey, to_text

pytestmark = pytest.mark.usefixtures("every_response_is_checked")

MIA, EVE = "mia@example.org", "eve@example.org"
START, VERIFY, WHO = "/v1/auth/passkey", "/v1/auth/passkey/verify", "/v1/auth/session"
OWN, CHALLENGE = "/v1/account/passkeys", "/v1/account/passkeys/challenge"
HOST = "console.example.org"
PAGE = f"https://{HOST}"


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with open_console(tmp_path_factory.mktemp("console"), hosts=HOST) as opened:
        opened.account("acme", owner=MIA, developer=EVE)
        yield opened


@pytest.fixture
def console(shared):
    """A console without sign-ins or passkeys in this hour."""
    shared.clock.now += limits.HOUR_S
    shared.state.write_now(lambda found: found.execute(text("DELETE FROM passkeys")) and None)
    shared.box.clear()
    return shared


def add(browser, passkey=None, name="laptop", **wrong):
    """Add a passkey, and return the answer and the passkey."""
    passkey = passkey or SoftPasskey(PAGE, HOST)
    begun = browser.post(CHALLENGE, json={"origin": PAGE})
    assert begun.status_code == 200, begun.text
    made = passkey.make(begun.json()["options"], **wrong)
    return browser.post(OWN, json={"name": name, "credential": made}), passkey


def begin(browser):
    begun = browser.post(START, json={"origin": PAGE})
    assert begun.status_code == 200, begun.text
    return begun.json()["options"]


def give(browser, passkey, options=None, **wrong):
    given = passkey.give(options or begin(browser), **wrong)
    return browser.post(VERIFY, json={"credential": given})


def added(console, email=MIA, **given):
    with console.sign_in(email) as browser:
        answer, passkey = add(browser, SoftPasskey(PAGE, HOST, **given))
        assert answer.status_code == 200, answer.text
    return passkey


def audit(browser):
    return [
        (one["email"], one["action"], one["subject"])
        for one in browser.get("/v1/account/audit").json()["data"]
    ]


def test_a_passkey_is_added_signs_in_and_is_removed(console):
    with console.sign_in(MIA) as browser:
        answer, passkey = add(browser, name=" My laptop ")
        own = answer.json()
        assert (own["name"], own["host"], own["last_used_at"]) == ("My laptop", HOST, None)
    console.clock.now += limits.CONFIRMED_S + 1
    with console.sign_in(MIA) as browser, console.browser() as other:
        options = begin(other)
        signed_in = give(other, passkey, options)
        assert signed_in.status_code == 200, signed_in.text
        assert signed_in.json()["user"]["email"] == MIA
        assert signed_in.json()["accounts"][0]["name"] == "acme"
        assert "HttpOnly" in signed_in.headers["set-cookie"]
        # As fresh as a code: what is sensitive may be done.
        assert other.get(WHO).json()["is_confirmed"] is True
        assert other.get(OWN).json()["data"] == [{**own, "last_used_at": console.clock.now}]
        kept = console.state.read_now(
            lambda found: str(found.execute(text("SELECT * FROM sign_in_challenges")).all())
        )
        assert options["challenge"] not in kept
        assert_canonical_error(give(other, passkey, options), 401, "invalid_code")
        removed = other.delete(f"{OWN}/{own['id']}")
        assert removed.json() == {"id": own["id"], "removed": True}
        assert_canonical_error(other.delete(f"{OWN}/{own['id']}"), 404, "not_found")
        assert_canonical_error(give(other, passkey), 401, "invalid_code")
        told = audit(browser)
        assert told[0] == (MIA, "passkey.removed", "My laptop")
        assert (MIA, "session.begun", "passkey My laptop") in told
        assert (MIA, "passkey.added", "My laptop") in told


def test_a_sign_in_ends_the_browsers_session_before(console):
    passkey = added(console)
    with console.sign_in(MIA) as browser:
        before = browser.cookies["steelyard_session"]
        assert give(browser, passkey).status_code == 200
        assert browser.cookies["steelyard_session"] != before
        with console.browser(Cookie=f"steelyard_session={before}") as old:
            assert_canonical_error(old.get(WHO), 401, "not_signed_in")


@pytest.mark.parametrize(
    "wrong",
    [
        {"origin": "https://evil.example"},
        {"origin": f"{PAGE}:8443"},
        {"host": "evil.example"},
        {"kind": "webauthn.create"},
        {"challenge": to_text(b"made-up" * 4)},
        {"is_verified": False},
        {"is_framed": True},
        {"user_handle": to_text(b"user_other")},
    ],
    ids=str,
)
def test_an_altered_passkey_signs_no_user_in(console, wrong):
    passkey = added(console)
    with console.browser() as browser:
        options = begin(browser)
        refused = give(browser, passkey, options, **wrong)
        told = assert_canonical_error(refused, 401, "invalid_code")["message"]
        # The same words as for a passkey that nobody has.
        stranger = give(browser, SoftPasskey(PAGE, HOST, user_handle=passkey.user_handle))
        assert assert_canonical_error(stranger, 401, "invalid_code")["message"] == told
        assert_canonical_error(browser.get(WHO), 401, "not_signed_in")
        assert give(browser, passkey).status_code == 200


def test_another_users_passkey_is_not_ones_own(console):
    mias, eves = added(console, MIA), added(console, EVE)
    with console.browser() as browser:
        # Eve's key, under the id of Mia's, and for Mia's handle.
        forged = dataclasses.replace(eves, id=mias.id, user_handle=mias.user_handle)
        assert_canonical_error(give(browser, forged), 401, "invalid_code")
        forged = dataclasses.replace(eves, user_handle=mias.user_handle)
        assert_canonical_error(give(browser, forged), 401, "invalid_code")
        assert give(browser, eves).json()["user"]["email"] == EVE
        [own] = browser.get(OWN).json()["data"]
    with console.sign_in(MIA) as browser:
        assert_canonical_error(browser.delete(f"{OWN}/{own['id']}"), 404, "not_found")
        # What is Eve's already cannot be added.
        assert_canonical_error(add(browser, eves)[0], 422, "invalid_request")


def test_a_count_that_goes_back_is_a_copied_key(console):
    passkey = added(console)
    with console.browser() as browser:
        for _ in range(2):
            assert give(browser, passkey).status_code == 200
        copied = dataclasses.replace(passkey, count=passkey.count - 1)
        assert_canonical_error(give(browser, copied), 401, "invalid_code")
        assert audit(browser)[0] == (MIA, "passkey.refused", "laptop")
        assert give(browser, passkey).status_code == 200
        # Keys that are on several devices do not count at all.
        synced = added(console, EVE)
        for _ in range(2):
            assert give(browser, synced, count=0).status_code == 200


@pytest.mark.parametrize("passed", [limits.CODE_S, -3600.0], ids=["too late", "clock set back"])
def test_a_challenge_lives_as_long_as_is_stored(console, passed):
    passkey = added(console)
    with console.sign_in(MIA) as browser:
        mine = browser.post(CHALLENGE, json={"origin": PAGE}).json()["options"]
        options = begin(browser)
        console.clock.now += passed
        assert_canonical_error(give(browser, passkey, options), 401, "invalid_code")
        console.clock.now -= min(passed, 0)
    if passed > 0:
        with console.sign_in(MIA) as browser:
            made = SoftPasskey(PAGE, HOST).make(mine)
            refused = browser.post(OWN, json={"name": "late", "credential": made})
            assert_canonical_error(refused, 422, "invalid_request", path=["body", "credential"])


@pytest.mark.parametrize(
    "wrong",
    [
        {"origin": "https://evil.example"},
        {"host": "evil.example"},
        {"kind": "webauthn.get"},
        {"is_verified": False},
    ],
    ids=str,
)
def test_invalid_or_known_passkeys_are_not_added(console, wrong):
    with console.sign_in(MIA) as browser:
        refused, _ = add(browser, **wrong)
        assert_canonical_error(refused, 422, "invalid_request", path=["body", "credential"])
        assert browser.get(OWN).json() == {"data": []}


def test_a_new_passkey_is_added_once_by_whom_it_was_begun(console):
    with console.sign_in(MIA) as mia, console.sign_in(EVE) as eve:
        options = mia.post(CHALLENGE, json={"origin": PAGE}).json()["options"]
        body = {"name": "n", "credential": SoftPasskey(PAGE, HOST).make(options)}
        assert_canonical_error(eve.post(OWN, json=body), 422, "invalid_request")
        assert mia.post(OWN, json=body).status_code == 200
        assert_canonical_error(mia.post(OWN, json=body), 422, "invalid_request")
        [known] = mia.post(CHALLENGE, json={"origin": PAGE}).json()["options"]["excludeCredentials"]
        assert known["id"] == body["credential"]["id"]
        # What is to be added signs nobody in, and the other way round.
        given = SoftPasskey(PAGE, HOST).make({**options, "challenge": begin(mia)["challenge"]})
        refused = mia.post(OWN, json={"name": "n", "credential": given})
        assert_canonical_error(refused, 422, "invalid_request")


def test_sensitive_actions_need_a_recent_code(console):
    passkey = added(console)
    with console.sign_in(MIA) as browser:
        [own] = browser.get(OWN).json()["data"]
        console.clock.now += limits.CONFIRMED_S
        begun = browser.post(CHALLENGE, json={"origin": PAGE})
        assert_canonical_error(begun, 403, "confirm_sign_in")
        assert_canonical_error(browser.delete(f"{OWN}/{own['id']}"), 403, "confirm_sign_in")
        assert browser.get(OWN).json()["data"] == [own]
        assert give(browser, passkey).status_code == 200
        assert browser.delete(f"{OWN}/{own['id']}").status_code == 200


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (PAGE, 200),
        ("http://localhost:5006", 200),
        (f"http://{HOST}", 422),
        ("http://127.0.0.1:5006", 422),
        ("https://evil.example", 422),
        (f"{PAGE}/sign-in", 422),
        (f"https://mia@{HOST}", 422),
        (f"{PAGE}:port", 422),
        ("//[", 422),
    ],
)
def test_passkeys_are_of_own_pages_alone(console, origin, status):
    with console.browser() as browser:
        answer = browser.post(START, json={"origin": origin})
        assert answer.status_code == status
        if status == 422:
            assert_canonical_error(answer, 422, "invalid_request", path=["body", "origin"])


def test_how_often_and_how_many(console, monkeypatch):
    monkeypatch.setattr(limits, "SIGN_INS_PER_NETWORK", 3)
    monkeypatch.setattr(limits, "PASSKEYS_BEGUN", 3)
    monkeypatch.setattr(limits, "PASSKEYS", 2)
    with console.browser() as browser:
        for _ in range(3):
            begin(browser)
        refused = browser.post(START, json={"origin": PAGE})
        assert_canonical_error(refused, 429, "rate_limited", retryable=True)
        assert float(refused.headers["Retry-After"]) == 3600
    # Neither counts as a code that was asked for.
    with console.sign_in(MIA) as browser:
        for _ in range(2):
            assert add(browser)[0].status_code == 200
        full = browser.post(CHALLENGE, json={"origin": PAGE})
        assert_canonical_error(full, 409, "passkey_limit")
        [first, _] = browser.get(OWN).json()["data"]
        assert browser.delete(f"{OWN}/{first['id']}").status_code == 200
        assert browser.post(CHALLENGE, json={"origin": PAGE}).status_code == 200
        refused = browser.post(CHALLENGE, json={"origin": PAGE})
        assert_canonical_error(refused, 429, "rate_limited", retryable=True)


@pytest.mark.parametrize(
    "response",
    [
        {"clientDataJSON": to_text(b"[" * 3000)},
        {"clientDataJSON": to_text(b'"text"')},
        {"clientDataJSON": to_text(b'{"challenge": "a", "origin": "\\ud800"}')},
        {"authenticatorData": to_text(b"short")},
        {"authenticatorData": "A"},
        {"signature": to_text(bytes(64))},
    ],
    ids=str,
)
def test_bytes_that_are_nothing_are_refused_as_the_rest(console, response):
    passkey = added(console)
    with console.browser() as browser:
        given = passkey.give(begin(browser))
        given["response"] |= response
        refused = browser.post(VERIFY, json={"credential": given})
        assert_canonical_error(refused, 401, "invalid_code")


def test_passkeys_go_with_their_user(console):
    gone = console.account("gone", owner="gone@example.org")
    added(console, "gone@example.org")
    mias = added(console)
    over = accounts.update().where(accounts.c.id == gone).values(deletes_at=1.0)
    console.state.write_now(lambda found: found.execute(over) and None)
    AccountRemoval(console.state, now=console.clock).tick()
    kept = console.state.read_now(
        lambda found: found.scalars(select(passkeys.c.credential_id)).all()
    )
    assert kept == [mias.id]


def test_without_the_package_passkeys_are_off_and_a_code_is_not(console, monkeypatch):
    with console.sign_in(MIA) as browser:
        assert browser.get("/v1/auth").json() == {"passkeys": True, "issuer": None}
        [own] = [add(browser)[0].json()]
        monkeypatch.setattr(passkey_ceremonies, "is_installed", lambda: False)
        assert browser.get("/v1/auth").json()["passkeys"] is False
        for path in (START, CHALLENGE):
            refused = browser.post(path, json={"origin": PAGE})
            told = assert_canonical_error(refused, 503, "passkeys_off")
            assert "steelyard[passkeys]" in told["message"]
        assert browser.delete(f"{OWN}/{own['id']}").status_code == 200
