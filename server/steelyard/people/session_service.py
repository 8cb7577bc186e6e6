"""Sessions: the user of a cookie, a user's sessions, and their end."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from sqlalchemy import Connection, Row

from steelyard.caller import Caller, SignedIn
from steelyard.errors import NotFoundError, NotSignedInError
from steelyard.people import limits, wire
from steelyard.people import store as rows
from steelyard.people.allowed import read_operators
from steelyard.people.codes import hash_token, new_rotation_key, rotated_token
from steelyard.settings import Settings
from steelyard.storage import State
from steelyard.wire.filling import filled

#: The account of a user who has none.
NO_ACCOUNT = "none"


class Sessions:
    """Knows people by their sessions."""

    def __init__(
        self, state: State, settings: Settings, *, now: Callable[[], float] | None = None
    ) -> None:
        self._state = state
        self._operators = read_operators(settings)
        self._now = now or limits.ForwardClock()

    async def authenticate(
        self, token: str | None, account_id: str | None, address: str
    ) -> tuple[Caller, str | None]:
        """Return who calls and, where a role changed, the token that takes the place of this one."""
        sha256 = None if token is None else hash_token(token)
        if sha256 is None:
            raise _not_signed_in()
        now = self._now()

        def work(connection: Connection) -> tuple[Row[Any] | None, list[wire.AccountRole]]:
            row = rows.find_session(connection, sha256, now - limits.ROTATION_S)
            return row, [] if row is None else to_accounts(rows.accounts_of(connection, row.email))

        row, accounts = await self._state.read(work)
        if row is None or not _lives(row, now):
            raise _not_signed_in()
        chosen = next((account for account in accounts if account_id in {None, account.id}), None)
        if chosen is None and account_id is not None:
            raise NotFoundError(
                "You have no part in the account that X-Steelyard-Account names; GET "
                "/v1/auth/session lists yours."
            )
        assert token is not None  # noqa: S101  it has a hash
        renewed = None
        if row.sha256 != sha256:
            renewed = _successor(row, token)
        elif row.must_rotate:
            renewed = await self._rotate(token, sha256, now)
        self._touch(row, now)
        session = SignedIn(
            session_id=row.id,
            user_id=row.user_id,
            email=row.email,
            role=None if chosen is None else chosen.role,
            confirmed_at=row.confirmed_at,
            is_confirmed=limits.is_alive(
                row.confirmed_at, row.confirmed_at + limits.CONFIRMED_S, now
            ),
            is_operator=is_operator(row, self._operators),
        )
        # Scope read: whatever asks a key's scope gives a session nothing that writes.
        if chosen is None:
            return Caller(NO_ACCOUNT, None, "read", address, session), renewed
        return Caller(chosen.id, None, "read", address, session, chosen.store), renewed

    async def current(self, caller: Caller) -> wire.CurrentSession:
        """Return who is signed in."""
        signed_in = session_of(caller)

        def work(connection: Connection) -> wire.CurrentSession:
            sessions = rows.live_sessions(connection, signed_in.user_id, self._now())
            row = next(
                (session for session in sessions if session.id == signed_in.session_id), None
            )
            if row is None:
                raise _not_signed_in()
            return wire.CurrentSession(
                session=_shown(row, signed_in),
                user=wire.User(
                    id=signed_in.user_id,
                    email=signed_in.email,
                    is_operator=signed_in.is_operator,
                ),
                accounts=to_accounts(rows.accounts_of(connection, signed_in.email)),
                account_id=None if signed_in.role is None else caller.account_id,
                is_confirmed=signed_in.is_confirmed,
            )

        return await self._state.read(work)

    async def list(self, caller: Caller) -> wire.SessionList:
        """Return the user's sessions that live."""
        signed_in = session_of(caller)
        find = functools.partial(rows.live_sessions, user_id=signed_in.user_id, now=self._now())
        sessions = await self._state.read(find)
        return wire.SessionList(data=[_shown(row, signed_in) for row in sessions])

    async def end(
        self, caller: Caller, *, only: str | None = None, but: str | None = None
    ) -> wire.EndedSessions:
        """End one of the user's sessions, or all but one."""
        signed_in = session_of(caller)

        def work(connection: Connection) -> wire.EndedSessions:
            now = self._now()
            ended = rows.end_sessions(connection, signed_in.user_id, now, only=only, but=but)
            if only is not None and not ended:
                raise NotFoundError(
                    "You have no such session that lives; GET /v1/account/sessions lists yours."
                )
            if ended and signed_in.role is not None:
                action = "session.ended" if only is not None else "sessions.ended"
                note(connection, caller, action, at=now, subject=only)
            return wire.EndedSessions(ended=ended)

        return await self._state.write(work)

    async def audit(self, caller: Caller, query: wire.AuditQuery) -> wire.AuditPage:
        """Return a page of an account's audit."""
        page = await self._state.read(
            lambda connection: rows.AUDIT.page(
                connection, caller.account_id, limit=query.limit, cursor=query.cursor
            )
        )
        data = [filled(wire.AuditEntry, row) for row in page.rows]
        return page.to_wire(wire.AuditPage, data)

    def sweep(self) -> None:
        """Remove long expired rows, blocking."""
        now = self._now()
        self._state.write_now(
            lambda connection: rows.sweep(
                connection, audit_before=now - limits.AUDIT_S, before=now - limits.HOUR_S
            )
        )

    async def _rotate(self, token: str, sha256: str, now: float) -> str | None:
        """Return the token that takes the place of one, the same for everybody who holds that."""

        def work(connection: Connection) -> str | None:
            row = rows.find_session(connection, sha256, now - limits.ROTATION_S)
            if row is None:
                return None
            if row.sha256 != sha256:  # another call was first
                return _successor(row, token)
            key = new_rotation_key()
            renewed = rotated_token(token, key)
            rows.rotate_session(connection, sha256, hash_token(renewed) or "", key, now)
            return renewed

        return await self._state.write(work)

    def _touch(self, row: Row[Any], now: float) -> None:
        """Record a use, at most once a minute, without making the caller wait."""
        if now - row.last_used_at < limits.TOUCH_S:
            return
        idle_until = min(now + limits.IDLE_S, row.expires_at)
        used = self._state.submit(
            lambda connection: rows.use_session(connection, row.id, now, idle_until)
        )
        used.add_done_callback(lambda done: None if done.cancelled() else done.exception() and None)


def session_of(caller: Caller) -> SignedIn:
    """Return the session of a caller of the console."""
    if caller.session is None:
        raise _not_signed_in()
    return caller.session


def note(
    connection: Connection, caller: Caller, action: str, at: float, subject: str | None = None
) -> None:
    """Add a caller's action to the audit of its account."""
    email = session_of(caller).email
    rows.note(
        connection,
        caller.account_id,
        email,
        action,
        address=caller.address,
        at=at,
        subject=subject,
    )


def is_operator(row: Row[Any], operators: frozenset[str]) -> bool:
    """Whether a user is an operator, by a command or by the setting."""
    return bool(row.is_operator) or row.email in operators


def to_accounts(account_rows: Iterable[Row[Any, Any, Any, Any]]) -> list[wire.AccountRole]:
    """Return a user's accounts as the wire has them."""
    return [filled(wire.AccountRole, row) for row in account_rows]


def _lives(row: Row[Any], now: float) -> bool:
    return limits.is_alive(row.last_used_at, min(row.idle_until, row.expires_at), now)


def _successor(row: Row[Any], token: str) -> str | None:
    """Return the token of a session whose holder still has the one before."""
    return None if row.rotation_key is None else rotated_token(token, row.rotation_key)


def _shown(row: Row[Any, Any, Any, Any], signed_in: SignedIn) -> wire.Session:
    return filled(wire.Session, row, is_current=row.id == signed_in.session_id)


def _not_signed_in() -> NotSignedInError:
    return NotSignedInError(
        "No session that lives came with the call; sign in with POST /v1/auth/email."
    )
