"""Signing in with a code: asked for, sent, given.

Nothing here tells whether an address is known before its code was given: the same rows are written
and the same letter is sent for every address, and who it is is looked up afterwards.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row

from steelyard.accounts.store import find_account_named, insert_account
from steelyard.errors import InvalidCodeError, RateLimitedError, SignUpRefusedError
from steelyard.http.access import address_group
from steelyard.ids import new_id
from steelyard.people import codes, limits
from steelyard.people import store as rows
from steelyard.people.allowed import read_domains, read_operators
from steelyard.people.mail_service import MailRoom
from steelyard.people.member_store import insert_member
from steelyard.people.roles import may_sign_up, read_address
from steelyard.people.session_service import is_operator, to_accounts
from steelyard.people.wire import Challenge, NewSession, SignedInUser, StartSignIn, User, VerifyCode
from steelyard.settings import Settings
from steelyard.storage import State

MAX_AGENT = 256
_NO_CODE = "The code is wrong, used or too old, or was tried too often; ask for another."


@dataclass(frozen=True, slots=True)
class Proof:
    """A proved address, how it was proved for the audit, and when, where that was before now."""

    email: str
    by: str | None = None
    at: float | None = None


class SignIns:
    """Sends codes, and begins sessions for the people who return them."""

    def __init__(
        self,
        state: State,
        mail: MailRoom,
        settings: Settings,
        *,
        now: Callable[[], float] | None = None,
    ) -> None:
        self._state = state
        self._mail = mail
        self._mode = settings.sign_up
        self._domains = read_domains(settings)
        self._operators = read_operators(settings)
        self._now = now or limits.ForwardClock()

    async def start(self, request: StartSignIn, address: str) -> Challenge:
        """Send a code; the answer is alike for every address."""
        email = read_address(request.email)
        self._mail.check()
        network = address_group(address)

        def work(connection: Connection) -> Challenge:
            now = self._now()
            _check_codes(connection, email, network, now)
            tries = _make_room(connection, email, network, now)
            challenge = Challenge(challenge_id=new_id(rows.CODE), expires_at=now + limits.CODE_S)
            rows.insert_challenge(
                connection,
                challenge.challenge_id,
                email=email,
                network=network,
                tries=tries,
                at=now,
                expires_at=challenge.expires_at,
            )
            rows.insert_letter(
                connection,
                "code",
                email,
                at=now,
                expires_at=challenge.expires_at,
                challenge_id=challenge.challenge_id,
            )
            return challenge

        return await self._state.write(work)

    async def verify(
        self, request: VerifyCode, address: str, *, agent: str, replaced: str | None
    ) -> SignedInUser:
        """Begin a session for a valid code; it replaces the browser's session before."""
        # Outside of the writer's thread: the hash is slow, and is made for any challenge.
        given = await asyncio.to_thread(
            codes.hash_code, request.challenge_id, codes.read_code(request.code)
        )
        return await self.enter(
            lambda connection, now: _take_code(connection, request.challenge_id, given, now),
            address,
            agent=agent,
            replaced=replaced,
        )

    async def enter(
        self,
        prove: Callable[[Connection, float], Proof | None],
        address: str,
        *,
        agent: str,
        replaced: str | None,
        refusal: str = _NO_CODE,
    ) -> SignedInUser:
        """Begin a session for the address that was proved, where it may have one."""

        def work(connection: Connection) -> SignedInUser | Exception:
            now = self._now()
            proof = prove(connection, now)
            if proof is None:
                return InvalidCodeError(refusal)
            user = self._admitted(connection, proof.email, now)
            if user is None:
                return SignUpRefusedError(
                    "This address has no account here; ask an owner of one to invite it."
                )
            old = None if replaced is None else codes.hash_token(replaced)
            if old is not None:
                rows.end_session_of_token(connection, user.id, old, now)
            return self._begun(connection, user, address, agent, now, proof)

        # What was tried is kept also where the answer is a refusal: those are returned, not raised.
        done = await self._state.write(work)
        if isinstance(done, Exception):
            raise done
        return done

    def _admitted(self, connection: Connection, email: str, now: float) -> Row[Any] | None:
        """Return the user of an address that was proved, made where it may sign up."""
        user = rows.find_user(connection, email)
        is_new = user is None
        if is_new:
            may = may_sign_up(
                email,
                mode=self._mode,
                domains=self._domains,
                is_invited=rows.is_invited(connection, email, now),
                is_operator=email in self._operators,
            )
            if not may:
                return None
            user = rows.insert_user(connection, email, now)
        rows.join(connection, email, now)
        if is_new and self._mode == "open" and not rows.accounts_of(connection, email):
            _open_account(connection, email, now)
        return user

    def _begun(
        self,
        connection: Connection,
        user: Row[Any],
        address: str,
        agent: str,
        now: float,
        proof: Proof,
    ) -> SignedInUser:
        token = codes.new_token()
        confirmed_at = now if proof.at is None else min(proof.at, now)
        agent = "".join(character for character in agent if character.isprintable())[:MAX_AGENT]
        session = NewSession(
            id=new_id("sess"),
            network=address_group(address),
            agent=agent,
            created_at=now,
            last_used_at=now,
            idle_until=now + limits.IDLE_S,
            expires_at=now + limits.SESSION_S,
            confirmed_at=confirmed_at,
            is_current=True,
            token=token,
        )
        rows.insert_session(
            connection,
            id=session.id,
            user_id=user.id,
            sha256=codes.hash_token(token),
            network=session.network,
            agent=session.agent,
            created_at=now,
            confirmed_at=confirmed_at,
            last_used_at=now,
            idle_until=session.idle_until,
            expires_at=session.expires_at,
        )
        rows.note_for_all(
            connection, user.email, "session.begun", address=address, at=now, subject=proof.by
        )
        return SignedInUser(
            session=session,
            user=User(id=user.id, email=user.email, is_operator=is_operator(user, self._operators)),
            accounts=to_accounts(rows.accounts_of(connection, user.email)),
        )


def _check_codes(connection: Connection, email: str, network: str, now: float) -> None:
    """Raise when too many codes were asked for in this hour.

    Each network has its own for an address, so that none uses up another's. All networks without
    a sign-in share a bound besides, so that no mailbox is flooded from many networks.
    """
    since = now - limits.HOUR_S
    times = rows.challenge_times
    bounds = [
        (limits.CODES_PER_ADDRESS, times(connection, since, email=email, network=network)),
        (limits.CODES_PER_NETWORK, times(connection, since, network=network)),
    ]
    if not rows.is_known_network(connection, network):
        bounds.append((limits.CODES_FROM_STRANGERS, times(connection, since, email=email)))
    for limit, requested_at in bounds:
        wait_s = limits.wait_s(requested_at, limit, now)
        if wait_s is not None:
            raise RateLimitedError(
                "Too many codes were requested in this hour; use the last one, or wait.",
                retry_after_s=wait_s,
            )


def _make_room(connection: Connection, email: str, network: str, now: float) -> int:
    """End an address's codes beyond those that may live beside a new one; return the tries of that.

    Those of networks without a sign-in end first, then those of the network with the most.
    """
    live = rows.live_challenges(connection, email, now)
    by_network = Counter(challenge.network for challenge in live)
    is_known = {group: rows.is_known_network(connection, group) for group in by_network}
    newest_first = range(len(live))
    by_end = sorted(
        newest_first,
        key=lambda n: (is_known[live[n].network], -by_network[live[n].network], -n),
    )
    ended = [live[n].id for n in by_end[: max(len(live) - limits.LIVE_CODES + 1, 0)]]
    rows.end_challenges(connection, ended, now)
    return min(
        (challenge.tries_left for challenge in live if challenge.network == network),
        default=limits.TRIES,
    )


def _take_code(connection: Connection, challenge_id: str, given: str, now: float) -> Proof | None:
    """Use a challenge up, or one of its tries; return its address where the code is right."""
    row = rows.find_challenge(connection, challenge_id)
    is_open = (
        row is not None
        and row.code_hash is not None
        and row.tries_left > 0
        and limits.is_alive(row.created_at, row.expires_at, now)
    )
    known = row.code_hash if row is not None and is_open else codes.NOBODYS_HASH
    is_right = codes.is_same(given, known)
    if row is None or not is_open:
        return None
    live = rows.live_challenges(connection, row.email, now)
    if is_right:
        rows.end_challenges(connection, [challenge_id, *(challenge.id for challenge in live)], now)
        return Proof(row.email)
    # Counted over all of the network's, so that several codes are no more guesses. Those of another
    # network stay: guesses there take nothing from here.
    for other in live:
        if other.network == row.network:
            rows.CHALLENGES.change(connection, other.id, tries_left=row.tries_left - 1)
    return None


def _open_account(connection: Connection, email: str, now: float) -> None:
    """Make a user's own account, named by its address."""
    account_id, name = new_id("acct"), email
    if find_account_named(connection, name) is not None:
        name = f"{email} ({account_id})"
    insert_account(connection, account_id, name, now)
    insert_member(connection, account_id, email, "owner", at=now, expires_at=now, joined_at=now)
