"""Signing in under attack: guessed, replayed and fixed codes and sessions, addresses tried out, clocks."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from sqlalchemy import func, select

from steelyard.errors import InvalidCodeError, RateLimitedError
from steelyard.people import limits
from steelyard.people.mail_service import MailRoom
from steelyard.people.sign_in_service import SignIns
from steelyard.people.tables import sessions
from steelyard.people.wire import StartSignIn, VerifyCode
from steelyard.settings import read_settings
from steelyard.storage import open_state
from support.accounts.console import Clock, code_of, open_console
from support.api.error_shape import assert_canonical_error

MIA, EVE = "mia@example.org", "eve@example.org"
WHO, ASK, VERIFY = "/v1/auth/session", "/v1/auth/email", "/v1/auth/email/verify"
WRONG = "33333333"


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with open_console(tmp_path_factory.mktemp("console"), operators="sam@ops.org") as opened:
        opened.account("acme", owner=MIA, developer=EVE)
        for email in (MIA, EVE):
            with opened.sign_in(email):
                pass
        yield opened


@pytest.fixture
def console(shared):
    shared.clock.now += 40 * 24 * limits.HOUR_S
    shared.box.clear()
    return shared


class Servers:
    """Two servers on one database, each with its own opening of it."""

    def __init__(self, url):
        self.clock, self.box = Clock(), []
        settings = read_settings({"accounts": "on", "sign_up": "open"}, environ={})
        self.states = [open_state(url) for _ in range(2)]
        self.mails = [
            MailRoom(state, settings, now=self.clock, send=self.box.append) for state in self.states
        ]
        self.services = [
            SignIns(state, mail, settings, now=self.clock)
            for state, mail in zip(self.states, self.mails, strict=True)
        ]

    async def ask(self, email, address="192.0.2.1"):
        return await self.services[0].start(StartSignIn(email=email), address)

    async def told(self, challenge, code, n):
        """Return the result of a code at one of the servers."""
        request = VerifyCode(challenge_id=challenge.challenge_id, code=code)
        try:
            await self.services[n % 2].verify(request, "192.0.2.1", agent="", replaced=None)
        except InvalidCodeError:
            return "refused"
        return "signed in"


@pytest.fixture
def servers(state_url):
    found = Servers(state_url)
    yield found
    for state in found.states:
        state.close()


def test_guesses_at_once_have_no_more_tries_than_one_after_the_other(servers):
    async def guess():
        challenge = await servers.ask(MIA)
        await asyncio.to_thread(servers.mails[0].tick)
        code = code_of(servers.box[-1])
        await asyncio.gather(*(servers.told(challenge, WRONG, n) for n in range(30)))
        return await servers.told(challenge, code, 0)

    assert asyncio.run(guess()) == "refused"


def test_a_code_given_twice_at_once_opens_one_session(servers):
    async def race():
        challenge = await servers.ask(MIA)
        await asyncio.to_thread(servers.mails[0].tick)
        code = code_of(servers.box[-1])
        return Counter(await asyncio.gather(*(servers.told(challenge, code, n) for n in range(12))))

    assert asyncio.run(race()) == {"signed in": 1, "refused": 11}
    count = select(func.count()).select_from(sessions)
    assert servers.states[0].read_now(lambda connection: connection.scalar(count)) == 1


def test_an_hour_has_few_guesses_from_any_sender(servers):
    """A hundred of 24 to the eighth: one in a milliard."""

    async def ask_from(n):
        try:
            return await servers.ask(MIA, f"198.51.100.{n}")
        except RateLimitedError as error:
            return error

    async def guess():
        asked = [await ask_from(n) for n in range(limits.CODES_FROM_STRANGERS + 3)]
        codes = [one for one in asked if not isinstance(one, RateLimitedError)]
        assert len(codes) == limits.CODES_FROM_STRANGERS
        servers.clock.now -= 2 * limits.HOUR_S  # a clock set back forgets nothing
        assert isinstance(await ask_from(99), RateLimitedError)

    asyncio.run(guess())


def test_a_network_of_addresses_counts_as_one(servers):
    async def ask():
        for n in range(limits.CODES_PER_NETWORK):
            await servers.ask(f"a{n}@example.org", f"2001:db8:1:2::{n:x}")
        with pytest.raises(RateLimitedError):
            await servers.ask("b@example.org", "2001:db8:1:2:ffff::1")
        await servers.ask("b@example.org", "2001:db8:1:3::1")

    asyncio.run(ask())


def test_a_code_is_for_the_address_and_the_browser_that_asked(console):
    """Neither another address's challenge nor an earlier one takes it."""
    with console.browser() as browser:
        mine = console.ask(EVE, browser)
        hers = console.ask(MIA, browser)
        for challenge, code in ((hers[0], mine[1]), (mine[0], hers[1]), ("chal_nobodys", hers[1])):
            refused = browser.post(VERIFY, json={"challenge_id": challenge, "code": code})
            assert_canonical_error(refused, 401, "invalid_code")
        signed_in = browser.post(VERIFY, json={"challenge_id": hers[0], "code": hers[1]})
        assert signed_in.json()["user"]["email"] == MIA


def test_signing_in_replaces_an_earlier_session(console):
    """A session that an attacker put into the browser is neither adopted nor ended."""
    with console.sign_in(EVE) as eve, console.browser() as browser:
        planted = eve.cookies["steelyard_session"]
        challenge, code = console.ask(MIA, browser)
        browser.cookies.clear()
        headers = {"Cookie": f"steelyard_session={planted}"}
        body = {"challenge_id": challenge, "code": code}
        answer = browser.post(VERIFY, json=body, headers=headers)
        assert answer.json()["session"]["token"] != planted
        assert eve.get(WHO).json()["user"]["email"] == EVE
        assert browser.get(WHO).json()["user"]["email"] == MIA


def test_a_token_that_was_made_up_is_not_kept(console):
    made_up = "steelyard_ss_" + "A" * 43
    with console.browser() as browser:
        challenge, code = console.ask(MIA, browser)
        headers = {"Cookie": f"steelyard_session={made_up}"}
        body = {"challenge_id": challenge, "code": code}
        assert browser.post(VERIFY, json=body, headers=headers).status_code == 200
        browser.cookies.clear()
        refused = browser.get(WHO, headers=headers)
        assert_canonical_error(refused, 401, "not_signed_in")


def test_a_session_that_was_ended_stays_so_in_every_browser(console):
    with console.sign_in(MIA) as mia, console.browser() as thief:
        stolen = {"Cookie": f"steelyard_session={mia.cookies['steelyard_session']}"}
        assert thief.get(WHO, headers=stolen).status_code == 200
        mia.post("/v1/auth/sign-out")
        for method, path in (("GET", WHO), ("GET", "/v1/account"), ("DELETE", "/v1/account")):
            refused = thief.request(method, path, headers=stolen)
            assert_canonical_error(refused, 401, "not_signed_in")


def steps(console, email):
    """Return all answers to a person who tries an address out, without random parts."""
    told = []

    def note(response):
        shown = response.json()
        shown.pop("challenge_id", None)
        shown.get("error", {}).pop("request_id", None)
        headers = sorted(set(response.headers) - {"x-request-id"})
        told.append((response.status_code, shown, headers, len(response.content)))

    with console.browser() as browser:
        for _ in range(limits.CODES_PER_ADDRESS + 1):
            begun = browser.post(ASK, json={"email": email})
            note(begun)
            if begun.status_code == 202:
                challenge = begun.json()["challenge_id"]
                note(browser.post(VERIFY, json={"challenge_id": challenge, "code": WRONG}))
        for _ in range(limits.TRIES):
            note(browser.post(VERIFY, json={"challenge_id": challenge, "code": WRONG}))
    return told


def test_no_answer_tells_who_is_known(console):
    """Members, operators and unknown addresses of the same length are answered alike."""
    console.account(f"b {console.clock.now}", owner="new@example.org")
    answers = {}
    for email in (MIA, "joe@example.org", "new@example.org", "sam@ops.org", "joe@ops.org"):
        answers[email] = steps(console, email)
        console.clock.now += limits.HOUR_S
    for found in answers.values():
        for one in found:
            one[1].pop("expires_at", None)
    assert answers[MIA] == answers["joe@example.org"] == answers["new@example.org"]
    assert answers["sam@ops.org"] == answers["joe@ops.org"]


def test_a_clock_that_jumps_lengthens_nothing(console):
    with console.sign_in(MIA) as mia:
        began = console.clock.now
        console.clock.now = began - limits.HOUR_S  # another server's clock, an hour behind
        assert_canonical_error(mia.get(WHO), 401, "not_signed_in")
        console.clock.now = began + 2 * limits.SESSION_S
        assert_canonical_error(mia.get(WHO), 401, "not_signed_in")
        console.clock.now = began + 1
        session = mia.get(WHO).json()["session"]
        assert session["expires_at"] == began + limits.SESSION_S
        assert session["idle_until"] == began + limits.IDLE_S
