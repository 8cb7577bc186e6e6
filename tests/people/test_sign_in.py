"""Signing in with a code: its stored hash, its lifetime, and answers that tell nothing of users."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import text

from steelyard.errors import SignUpRefusedError
from steelyard.people import limits
from steelyard.people.codes import ALPHABET, hash_code, read_code
from steelyard.people.limits import ForwardClock
from steelyard.people.roles import read_address
from steelyard.people.sign_in_service import SignIns
from steelyard.people.wire import StartSignIn, VerifyCode
from steelyard.settings import InvalidSettingError, read_settings
from support.accounts.console import code_of, open_console
from support.api.error_shape import assert_canonical_error

pytestmark = pytest.mark.usefixtures("every_response_is_checked")
MIA = "mia@example.org"


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    settings = {"operators": "sam@ops.org", "trusted_proxies": "127.0.0.1"}
    with open_console(tmp_path_factory.mktemp("console"), **settings) as opened:
        yield opened


@pytest.fixture
def console(shared):
    """A console without codes in this hour, and Mia is invited."""
    shared.clock.now += 40 * 24 * limits.HOUR_S
    shared.box.clear()
    shared.account(f"acme {shared.clock.now}", owner=MIA, developer="invited@b.org")
    return shared


def verify(browser, challenge, code):
    body = {"challenge_id": challenge, "code": code}
    return browser.post("/v1/auth/email/verify", json=body)


def assert_wrong(response):
    assert_canonical_error(response, 401, "invalid_code")


def stored(console):
    """All that the state's tables of people hold, as text."""

    def read(connection):
        tables = ("sign_in_challenges", "sessions", "letters", "users", "audit_entries")
        return [str(connection.execute(text(f"SELECT * FROM {one}")).all()) for one in tables]

    return "".join(console.state.read_now(read))


def test_a_code_opens_a_session_and_neither_is_kept(console, caplog):
    with console.browser() as browser:
        begun = browser.post("/v1/auth/email", json={"email": " MIA@Example.org"})
        assert begun.json()["expires_at"] == console.clock.now + 600
        console.mail.tick()
        [letter] = console.box
        code = letter.highlight
        assert letter.to == MIA
        assert set(code) <= {*ALPHABET, "-"}
        assert code in letter.html()
        assert code.replace("-", "") not in stored(console)
        done = verify(browser, begun.json()["challenge_id"], f" {code.lower()}")
        cookie = done.headers["set-cookie"]
        token = done.json()["session"]["token"]
        assert all(part in cookie for part in ("HttpOnly", "SameSite=Strict", "Path=/", token))
        assert "Secure" not in cookie
        assert token not in stored(console)
        who = browser.get("/v1/auth/session").json()
        assert (who["user"]["email"], who["is_confirmed"]) == (MIA, True)
        assert [one["role"] for one in who["accounts"]][-1] == "owner"
        assert code not in caplog.text
        assert token not in caplog.text


def test_over_tls_the_cookie_is_for_tls_alone(console):
    with console.browser(**{"X-Forwarded-Proto": "https"}) as browser:
        done = verify(browser, *console.ask(MIA, browser))
        assert "Secure" in done.headers["set-cookie"]


def test_a_code_works_once(console):
    with console.browser() as browser:
        asked = console.ask(MIA, browser)
        assert verify(browser, *asked).status_code == 200
        assert_wrong(verify(browser, *asked))


def from_network(browser, network):
    """Send the next requests from an address of another network."""
    browser.headers["X-Forwarded-For"] = network


def test_three_codes_live_and_the_one_that_is_used_ends_them(console):
    with console.browser() as browser:
        asked = []
        for _ in range(limits.LIVE_CODES + 1):
            console.clock.now += 1
            asked.append(console.ask(MIA, browser))
        first, *others = asked
        assert_wrong(verify(browser, *first))
        assert_wrong(verify(browser, others[0][0], others[1][1]))
        assert verify(browser, *others[0]).status_code == 200
        for other in others:
            assert_wrong(verify(browser, *other))


def test_strangers_end_no_code_of_a_network_that_signed_in(console):
    with console.browser() as browser:
        assert verify(browser, *console.ask(MIA, browser)).status_code == 200
        own = console.ask(MIA, browser)
        for n in range(limits.CODES_FROM_STRANGERS - 2):
            from_network(browser, f"203.0.113.{n}")
            guessed, _ = console.ask(MIA, browser)
            for _ in range(limits.TRIES):
                assert_wrong(verify(browser, guessed, "33333333"))
        assert verify(browser, *own).status_code == 200


def test_one_stranger_ends_no_code_of_another(console):
    with console.browser() as browser:
        from_network(browser, "203.0.113.1")
        own = console.ask(MIA, browser)
        from_network(browser, "203.0.113.2")
        for _ in range(limits.CODES_PER_ADDRESS):
            console.ask(MIA, browser)
        assert verify(browser, *own).status_code == 200


def test_five_tries_over_all_codes_and_no_more(console):
    with console.browser() as browser:
        asked = [console.ask(MIA, browser) for _ in range(2)]
        for n in range(limits.TRIES - 1):
            assert_wrong(verify(browser, asked[n % 2][0], "33333333"))
        asked.append(console.ask(MIA, browser))  # has as many left
        assert_wrong(verify(browser, asked[2][0], "33333333"))
        for challenge, code in asked:
            assert_wrong(verify(browser, challenge, code))
        assert verify(browser, *console.ask(MIA, browser)).status_code == 200


@pytest.mark.parametrize("passed", [limits.CODE_S, -3600.0], ids=["too late", "clock set back"])
def test_a_code_lives_as_long_as_is_stored(console, passed):
    with console.browser() as browser:
        asked = console.ask(MIA, browser)
        console.clock.now += passed
        assert_wrong(verify(browser, *asked))
        console.clock.now -= min(passed, 0)


def test_the_letter_of_a_code_that_is_over_is_not_sent(console):
    with console.browser() as browser:
        for _ in range(limits.LIVE_CODES + 1):
            browser.post("/v1/auth/email", json={"email": MIA})
    console.mail.tick()
    assert len(console.box) == limits.LIVE_CODES


def test_known_and_unknown_addresses_are_answered_and_written_alike(console):
    answers = []
    with console.browser() as browser:
        for email in (MIA, "nobody@example.org"):
            begun = browser.post("/v1/auth/email", json={"email": email})
            answers.append((begun.status_code, {**begun.json(), "challenge_id": ""}))
        console.mail.tick()
        assert answers[0] == answers[1]
        known, unknown = console.box
        assert known.subject == unknown.subject
        assert known.paragraphs == unknown.paragraphs
        assert_wrong(verify(browser, begun.json()["challenge_id"], "33333333"))
        refused = verify(browser, begun.json()["challenge_id"], unknown.highlight)
        assert_canonical_error(refused, 403, "sign_up_refused")


def test_how_often_an_address_and_a_network_may_ask(console):
    with console.browser() as browser:

        def ask(email):
            return browser.post("/v1/auth/email", json={"email": email})

        for _ in range(limits.CODES_PER_ADDRESS):
            assert ask("often@example.org").status_code == 202
        refused = ask("often@example.org")
        assert_canonical_error(refused, 429, "rate_limited", retryable=True)
        assert float(refused.headers["Retry-After"]) == 3600
        for n in range(limits.CODES_PER_NETWORK - limits.CODES_PER_ADDRESS):
            assert ask(f"{n}@example.org").status_code == 202
        assert ask("more@example.org").status_code == 429
        from_network(browser, "203.0.113.9, 192.0.2.7")
        for email in ("more@example.org", "often@example.org"):
            assert ask(email).status_code == 202
        del browser.headers["X-Forwarded-For"]
        console.clock.now += limits.HOUR_S
        assert ask("often@example.org").status_code == 202


def test_many_networks_use_up_no_codes_of_those_that_signed_in(console):
    with console.browser() as browser:
        assert verify(browser, *console.ask(MIA, browser)).status_code == 200
        for email in (MIA, "nobody@example.org"):  # no answer tells who has an account
            statuses = []
            for n in range(limits.CODES_FROM_STRANGERS + 1):
                from_network(browser, f"198.51.100.{n // 4}")
                statuses.append(browser.post("/v1/auth/email", json={"email": email}).status_code)
            assert set(statuses[:-2]) == {202}
            assert statuses[-1] == 429
            del browser.headers["X-Forwarded-For"]
            assert browser.post("/v1/auth/email", json={"email": email}).status_code == 202


@pytest.mark.parametrize(
    "email", ["mia", "a@b@c", "a\nb@c.org", "a b@c.org", "@c.org", "mïa@c.org"]
)
def test_invalid_addresses_are_refused(console, email):
    with console.browser() as browser:
        response = browser.post("/v1/auth/email", json={"email": email})
    assert_canonical_error(response, 422, "invalid_request", path=["body", "email"])


def test_an_operator_of_the_setting_needs_no_invitation(console):
    with console.sign_in("sam@ops.org") as browser:
        who = browser.get("/v1/auth/session").json()
    assert (who["user"]["is_operator"], who["accounts"], who["account_id"]) == (True, [], None)


@pytest.mark.parametrize(
    ("settings", "email", "status"),
    [
        ({"sign_up": "open"}, "a@b.org", 200),
        ({"sign_up": "open", "sign_up_domains": "b.org"}, "b@b.org", 200),
        ({"sign_up": "open", "sign_up_domains": "b.org"}, "a@c.org", 403),
        ({"sign_up": "closed"}, "invited@b.org", 403),
    ],
)
def test_who_may_sign_up(console, settings, email, status):
    given = read_settings({"accounts": "on", **settings}, environ={})
    sign_ins = SignIns(console.state, console.mail, given, now=console.clock)

    async def sign_in():
        begun = await sign_ins.start(StartSignIn(email=email), "192.0.2.1")
        console.mail.tick()
        given = VerifyCode(challenge_id=begun.challenge_id, code=code_of(console.box[-1]))
        return await sign_ins.verify(given, "192.0.2.1", agent="", replaced=None)

    if status == 403:
        with pytest.raises(SignUpRefusedError):
            asyncio.run(sign_in())
    else:
        assert email in asyncio.run(sign_in()).accounts[0].name


@pytest.mark.parametrize(
    "wrong", [{"operators": "sam"}, {"sign_up_domains": "@b.org"}, {"sign_up_domains": "b org"}]
)
def test_a_setting_without_users_is_refused(console, wrong):
    given = read_settings({"accounts": "on", **wrong}, environ={})
    with pytest.raises(InvalidSettingError, match="STEELYARD_"):
        SignIns(console.state, console.mail, given)


def test_without_accounts_no_user_signs_in(tmp_path):
    with open_console(tmp_path, accounts="off") as console, console.browser() as browser:
        for response in (
            browser.post("/v1/auth/email", json={"email": MIA}),
            browser.get("/v1/auth/session"),
            browser.get("/v1/account/usage"),
        ):
            assert_canonical_error(response, 503, "accounts_off")
        assert browser.get("/v1/account").status_code == 200


def test_a_server_without_mail_refuses_to_begin(console, monkeypatch):
    monkeypatch.setattr(console.mail, "send", None)  # as off loopback, without SMTP
    with console.browser() as browser:
        response = browser.post("/v1/auth/email", json={"email": MIA})
    assert_canonical_error(response, 503, "mail_unavailable")


def test_codes_are_read_as_people_type_them():
    assert read_code(" 3467 9acd") == read_code("3467-9ACD") == "34679ACD"
    assert hash_code("chal_1", "A") != hash_code("chal_2", "A")
    assert read_address(" A@B.org ") == "a@b.org"


def test_a_clock_that_is_set_back_does_not_stop_the_time():
    wall, steady = [1000.0], [5.0]
    clock = ForwardClock(lambda: wall[0], lambda: steady[0])
    assert clock() == 1000.0
    wall[0], steady[0] = 400.0, 15.0
    assert clock() == 1010.0
    wall[0] = 2000.0
    assert clock() == 2000.0
