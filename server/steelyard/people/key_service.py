"""API keys in the console: made by members, changed and revoked; a developer has its own alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET
from sqlalchemy import Connection, Row

from steelyard.accounts import store as rows
from steelyard.accounts.keys import check_cap, checked_name, insert_key, refused, shown_keys
from steelyard.accounts.wire import ApiKey
from steelyard.caller import LOCAL_ACCOUNT, Caller
from steelyard.errors import NotFoundError, RoleForbiddenError
from steelyard.ledger.money import InvalidAmountError, from_usd
from steelyard.operations.idempotency import KeyedWrites
from steelyard.operations.write import Write
from steelyard.people.limits import ForwardClock
from steelyard.people.session_service import note, session_of
from steelyard.people.wire import ChangeKey, CreateKey, NewApiKey
from steelyard.storage import State

#: Keys of one account that are not revoked.
MAX_KEYS = 500


class Keys:
    """Makes, changes and revokes the keys of accounts, for signed-in users."""

    def __init__(self, state: State, *, now: Callable[[], float] | None = None) -> None:
        self._state = state
        self._now = now or ForwardClock()
        self._writes = KeyedWrites(state, now=self._now)

    async def create(self, write: Write, request: CreateKey) -> NewApiKey:
        """Make a key. Its secret is returned here only: a repeated call does not return it again."""
        caller = write.caller
        session = session_of(caller)
        cap = _read_cap(request.monthly_cap_usd)
        if caller.account_id == LOCAL_ACCOUNT and request.scope == "full":
            _require_operator(caller)

        def work(connection: Connection) -> NewApiKey:
            now = self._now()
            if rows.count_live_keys(connection, caller.account_id) >= MAX_KEYS:
                raise refused(
                    "name", f"The account has {MAX_KEYS} keys; revoke one that nobody uses first."
                )
            made = insert_key(
                connection,
                caller.account_id,
                name=request.name,
                scope=request.scope,
                monthly_cap_nano=cap,
                expires_at=_read_end(request.expires_at, now),
                made_by=session.email,
                role=session.role,
                store=request.store,
                at=now,
            )
            note(connection, caller, "key.created", at=now, subject=_audit_text(made.key))
            return NewApiKey(**msgspec.structs.asdict(made.key), secret=made.secret)

        return await self._writes.once(write, work, window_s=None)

    async def change(self, caller: Caller, key_id: str, request: ChangeKey) -> ApiKey:
        """Change a key's name, cap, end or what is stored of its answers."""

        def work(connection: Connection) -> ApiKey:
            now = self._now()
            row = _get(connection, caller, key_id)
            values: dict[str, Any] = {}
            if request.name is not UNSET:
                values["name"] = checked_name(request.name)
            if request.monthly_cap_usd is not UNSET:
                values["monthly_cap_nano"] = cap = _read_cap(request.monthly_cap_usd)
                check_cap(row.scope, cap)
            if request.expires_at is not UNSET:
                values["expires_at"] = _read_end(request.expires_at, now)
            if request.store is not UNSET:
                values["store"] = request.store
            changed = {name for name, value in values.items() if getattr(row, name) != value}
            if changed:
                if row.revoked_at is not None:
                    raise NotFoundError("The key is revoked for good; make another one.")
                rows.API_KEYS.change(connection, row.id, **values)
                row = _get(connection, caller, key_id)
            key = shown_keys(connection, [row], now)[0]
            if changed:
                note(connection, caller, "key.changed", at=now, subject=_audit_text(key))
            return key

        return await self._state.write(work)

    async def revoke(self, caller: Caller, key_id: str) -> ApiKey:
        """End a key for good; one that was revoked before stays as it is."""

        def work(connection: Connection) -> ApiKey:
            now = self._now()
            row = _get(connection, caller, key_id)
            if row.revoked_at is None:
                rows.revoke_api_key(connection, row.id, now)
                row = _get(connection, caller, key_id)
                note(connection, caller, "key.revoked", at=now, subject=f"{row.id} {row.name}")
            return shown_keys(connection, [row], now)[0]

        return await self._state.write(work)


def _get(connection: Connection, caller: Caller, key_id: str) -> Row[Any]:
    """Return a key that its caller may change."""
    row = rows.API_KEYS.find(connection, caller.account_id, key_id)
    if row is None:
        raise NotFoundError("The account has no such key; GET /v1/account/keys lists them.")
    session = session_of(caller)
    if session.role != "owner" and row.made_by != session.email:
        raise RoleForbiddenError(
            "A developer changes its own keys alone; ask an owner of the account."
        )
    return row


def _require_operator(caller: Caller) -> None:
    """Refuse a key for the whole server unless the caller is an operator."""
    if not session_of(caller).is_operator:
        raise RoleForbiddenError(
            f"A key of scope full of the account {LOCAL_ACCOUNT} sees the whole server, so operators "
            "alone make one; take the scope inference or read, or ask an operator."
        )


def _read_cap(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return from_usd(text)
    except InvalidAmountError as error:
        raise refused("monthly_cap_usd", f"The cap cannot be used: {error}") from None


def _read_end(expires_at: float | None, now: float) -> float | None:
    if expires_at is not None and expires_at <= now:
        raise refused("expires_at", "The end is over; give a later time, or leave it out.")
    return expires_at


def _audit_text(key: ApiKey) -> str:
    """Return a key as the audit names it."""
    cap = "" if key.monthly_cap_usd is None else f" {key.monthly_cap_usd} USD a month"
    end = "" if key.expires_at is None else f" until {key.expires_at:.0f}"
    store = "" if key.store == "on" else f", store {key.store}"
    return f"{key.id} {key.name} ({key.scope}{cap}{end}{store})"
