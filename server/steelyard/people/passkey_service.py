"""Passkeys of signed-in users: adding, removing, and signing in with one.

Nothing tells which part of a passkey was wrong, or whether it is known here; a challenge is of one
page and one use, and only its hash is kept.
"""

from __future__ import annotations

import asyncio
import functools
import secrets
from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, Row

from steelyard import errors
from steelyard.accounts.keys import checked_name
from steelyard.caller import Caller
from steelyard.http.access import address_group
from steelyard.ids import new_id
from steelyard.people import beginnings, limits, wire
from steelyard.people import passkey_ceremonies as ceremonies
from steelyard.people import passkey_store as rows
from steelyard.people.own_pages import OwnPages
from steelyard.people.session_service import session_of
from steelyard.people.sign_in_service import Proof, SignIns
from steelyard.people.store import note_for_all
from steelyard.settings import Settings
from steelyard.storage import State
from steelyard.wire.filling import filled
from steelyard.wire.hosts import is_address
from steelyard.wire.violations import BODY

_CHALLENGE_BYTES = 32
_GIVEN, _MADE = "passkey", "newpasskey"
_REFUSAL = (
    "This passkey signs nobody in: it is not one of this page's or was removed, or the dialog was "
    "open for too long; begin anew, or sign in with a code by mail."
)


class Passkeys:
    """Knows people by passkeys that they added."""

    def __init__(
        self,
        state: State,
        sign_ins: SignIns,
        settings: Settings,
        *,
        now: Callable[[], float] | None = None,
    ) -> None:
        self._state = state
        self._sign_ins = sign_ins
        self._pages = OwnPages(settings)
        self._now = now or limits.ForwardClock()

    @property
    def are_read(self) -> bool:
        """Whether passkeys can be added and given here."""
        return ceremonies.is_installed()

    async def start(self, request: wire.StartPasskey, address: str) -> wire.PasskeyChallenge:
        """Return the options for signing in with a passkey, the same for everybody."""
        self._check_installed()
        challenge, host = _new_challenge(), self._host_of(request.origin)
        expires_at = await self._state.write(
            lambda connection: beginnings.begin(
                connection,
                _GIVEN,
                _bound(challenge, request.origin),
                now=self._now(),
                limit=limits.SIGN_INS_PER_NETWORK,
                network=address_group(address),
            )
        )
        options = ceremonies.to_give(challenge, host=host)
        return wire.PasskeyChallenge(options=options, expires_at=expires_at)

    async def verify(
        self, request: wire.VerifyPasskey, address: str, *, agent: str, replaced: str | None
    ) -> wire.SignedInUser:
        """Begin a session for the holder of a passkey, in place of the browser's earlier session."""
        self._check_installed()
        given = request.credential
        client_data = ceremonies.read_client_data(given.response.client_data)
        host = self._pages.host_of_origin(client_data.origin) or ""
        known = await self._state.read(functools.partial(rows.find_passkey, credential_id=given.id))
        key = None if known is None or known.host != host else known.public_key
        count = await asyncio.to_thread(ceremonies.read_count, given, client_data, host, key)

        def prove(connection: Connection, now: float) -> Proof | None:
            secret = _bound(client_data.challenge, client_data.origin)
            is_begun = beginnings.take(connection, _GIVEN, secret, now)
            row = rows.find_passkey(connection, given.id)
            if not is_begun or count is None or row is None or row.public_key != key:
                return None
            if given.response.user_handle != ceremonies.handle_of(row.user_id):
                return None
            if ceremonies.is_copied(row.sign_count, count):
                note_for_all(
                    connection,
                    row.email,
                    "passkey.refused",
                    address=address,
                    at=now,
                    subject=row.name,
                )
                return None
            rows.PASSKEYS.change(connection, row.id, sign_count=count, last_used_at=now)
            return Proof(row.email, f"passkey {row.name}")

        return await self._sign_ins.enter(
            prove, address, agent=agent, replaced=replaced, refusal=_REFUSAL
        )

    async def start_adding(
        self, caller: Caller, request: wire.StartPasskey
    ) -> wire.PasskeyChallenge:
        """Return the options for making a passkey of the signed-in user."""
        self._check_installed()
        user, challenge = session_of(caller), _new_challenge()
        host = self._host_of(request.origin)

        def work(connection: Connection) -> tuple[float, list[str]]:
            passkeys = rows.passkeys_of(connection, user.user_id)
            _check_room(passkeys)
            expires_at = beginnings.begin(
                connection,
                _MADE,
                _bound(challenge, request.origin, user.user_id),
                now=self._now(),
                limit=limits.PASSKEYS_BEGUN,
                network=address_group(caller.address),
                email=user.email,
            )
            return expires_at, [row.credential_id for row in passkeys if row.host == host]

        expires_at, known = await self._state.write(work)
        options = ceremonies.to_make(
            challenge, host=host, user_id=user.user_id, email=user.email, known=known
        )
        return wire.PasskeyChallenge(options=options, expires_at=expires_at)

    async def add(self, caller: Caller, request: wire.AddPasskey) -> wire.Passkey:
        """Keep a passkey that a browser made."""
        self._check_installed()
        user, name = session_of(caller), checked_name(request.name)
        client_data = ceremonies.read_client_data(request.credential.response.client_data)
        host = self._pages.host_of_origin(client_data.origin) or ""
        made = await asyncio.to_thread(ceremonies.read_made, request.credential, client_data, host)

        def work(connection: Connection) -> wire.Passkey | None:
            now, secret = (
                self._now(),
                _bound(client_data.challenge, client_data.origin, user.user_id),
            )
            is_begun = beginnings.take(connection, _MADE, secret, now)
            if not is_begun or made is None:
                return None
            rows.lock_user(connection, user.user_id)
            _check_room(rows.passkeys_of(connection, user.user_id))
            if rows.find_passkey(connection, made.credential_id) is not None:
                return None
            row = rows.insert_passkey(
                connection,
                id=new_id("pk"),
                user_id=user.user_id,
                credential_id=made.credential_id,
                public_key=made.public_key,
                sign_count=made.sign_count,
                host=host,
                name=name,
                created_at=now,
            )
            self._note(connection, caller, "passkey.added", name, now)
            return _shown(row)

        # A challenge is used up also where the answer is a refusal: that is raised afterwards.
        added = await self._state.write(work)
        if added is None:
            message = (
                "The browser gave no passkey that can be kept here: it is of another page, is here "
                "already, or its dialog was open for too long; add it anew."
            )
            raise errors.InvalidRequestError.at((*BODY, "credential"), message, "invalid")
        return added

    async def list(self, caller: Caller) -> wire.PasskeyList:
        """Return the user's passkeys."""
        find = functools.partial(rows.passkeys_of, user_id=session_of(caller).user_id)
        return wire.PasskeyList(data=[_shown(row) for row in await self._state.read(find)])

    async def remove(self, caller: Caller, passkey_id: str) -> wire.RemovedPasskey:
        """Remove one of the user's passkeys; sessions that it began go on."""
        user_id = session_of(caller).user_id

        def work(connection: Connection) -> wire.RemovedPasskey:
            passkeys = rows.passkeys_of(connection, user_id)
            row = next((passkey for passkey in passkeys if passkey.id == passkey_id), None)
            if row is None:
                raise errors.NotFoundError(
                    "You have no such passkey; GET /v1/account/passkeys lists yours."
                )
            rows.PASSKEYS.delete(connection, row.id)
            self._note(connection, caller, "passkey.removed", row.name, self._now())
            return wire.RemovedPasskey(id=row.id)

        return await self._state.write(work)

    def _note(
        self, connection: Connection, caller: Caller, action: str, name: str, at: float
    ) -> None:
        email = session_of(caller).email
        note_for_all(connection, email, action, address=caller.address, at=at, subject=name)

    def _check_installed(self) -> None:
        if not self.are_read:
            raise errors.PasskeysOffError(
                "This server reads no passkeys; sign in with POST /v1/auth/email, or have whoever "
                "runs it install them: pip install 'steelyard[passkeys]'."
            )

    def _host_of(self, origin: str) -> str:
        """Return the host of a page that passkeys are of, or refuse the page."""
        host = self._pages.host_of_origin(origin)
        if host is None:
            message = (
                "origin is no page of this server; add its host to the setting hosts "
                "(STEELYARD_HOSTS), or open another."
            )
        elif is_address(host):
            message = (
                "Browsers keep no passkeys for an IP address; open the page by its name, such as "
                "http://localhost:PORT."
            )
        else:
            return host
        raise errors.InvalidRequestError.at((*BODY, "origin"), message, "not_allowed")


def _new_challenge() -> str:
    return secrets.token_urlsafe(_CHALLENGE_BYTES)


def _bound(challenge: str, origin: str, user_id: str = "") -> str:
    """Return a challenge with the page that it is for, and whose passkey is to be made."""
    return f"{challenge} {origin} {user_id}"


def _check_room(passkeys: Any) -> None:
    if len(passkeys) >= limits.PASSKEYS:
        raise errors.PasskeyLimitError(
            f"You have {limits.PASSKEYS} passkeys, and may have no more; remove one with DELETE "
            "/v1/account/passkeys/{passkey}."
        )


def _shown(row: Row[Any]) -> wire.Passkey:
    return filled(wire.Passkey, row)
