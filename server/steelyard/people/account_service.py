"""An account as its owners have it: its name, its deletion after days of grace, and its export."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import UNSET
from sqlalchemy import Connection

from steelyard.accounts import store as rows
from steelyard.accounts.keys import checked_name, refused
from steelyard.accounts.service import AccountService
from steelyard.accounts.wire import AccountSummary
from steelyard.caller import LOCAL_ACCOUNT, Caller
from steelyard.errors import AccountNeededError, RateLimitedError
from steelyard.people import limits
from steelyard.people import store as people
from steelyard.people.member_store import owners_of
from steelyard.people.roles import is_address
from steelyard.people.session_service import note, session_of
from steelyard.people.wire import ChangeAccount
from steelyard.storage import State

_EXPORTED = "account.exported"


class OwnAccount:
    """Changes and deletes an account, and counts its exports."""

    def __init__(
        self, state: State, accounts: AccountService, *, now: Callable[[], float] | None = None
    ) -> None:
        self._state = state
        self._accounts = accounts
        self._now = now or limits.ForwardClock()

    async def change(self, caller: Caller, request: ChangeAccount) -> AccountSummary:
        """Write an account's new name, or the most that is stored of its answers."""
        name = None if request.name is UNSET else checked_name(request.name)
        if caller.account_id == LOCAL_ACCOUNT:
            raise _needed()

        def work(connection: Connection) -> None:
            row = rows.find_account(connection, caller.account_id)
            if row is None:
                return
            if name is not None and name != row.name:
                # Accounts are named by the address that signed up, and no refusal tells who did.
                if is_address(name) and name.lower() != session_of(caller).email:
                    raise refused("name", "A name is not another person's address; take another.")
                if rows.find_account_named(connection, name) is not None:
                    raise refused("name", "An account has this name already; take another.")
                rows.ACCOUNTS.change(connection, row.id, name=name)
                note(connection, caller, "account.renamed", self._now(), f"{row.name} to {name}")
            if request.store not in {UNSET, row.store}:
                rows.ACCOUNTS.change(connection, row.id, store=request.store)
                subject = f"{row.store} to {request.store}"
                note(connection, caller, "account.store_changed", self._now(), subject)

        await self._state.write(work)
        return await self._accounts.summary(caller)

    async def delete(self, caller: Caller) -> AccountSummary:
        """Note that an account is removed after the days of grace; a second time changes nothing."""
        if caller.account_id == LOCAL_ACCOUNT:
            raise _needed()
        sender = session_of(caller).email

        def work(connection: Connection) -> None:
            now = self._now()
            row = rows.find_account(connection, caller.account_id)
            if row is None or row.deletes_at is not None:
                return
            deletes_at = now + limits.GRACE_S
            rows.ACCOUNTS.change(connection, row.id, deletes_at=deletes_at)
            note(connection, caller, "account.deletion_asked", now, row.name)
            for email in owners_of(connection, row.id):
                people.insert_letter(
                    connection,
                    "deletion",
                    email,
                    at=now,
                    expires_at=deletes_at,
                    account_name=row.name,
                    sender=sender,
                )

        await self._state.write(work)
        return await self._accounts.summary(caller)

    async def restore(self, caller: Caller) -> AccountSummary:
        """Take a deletion back within the days of grace."""

        def work(connection: Connection) -> None:
            row = rows.find_account(connection, caller.account_id)
            if row is not None and row.deletes_at is not None and row.deletes_at > self._now():
                rows.ACCOUNTS.change(connection, row.id, deletes_at=None)
                note(connection, caller, "account.restored", self._now(), row.name)

        await self._state.write(work)
        return await self._accounts.summary(caller)

    async def count_export(self, caller: Caller) -> None:
        """Note an export in the audit, which counts them, or refuse one too many."""

        def work(connection: Connection) -> None:
            now = self._now()
            since = now - limits.HOUR_S
            times = people.audit_times(connection, caller.account_id, _EXPORTED, since)
            wait_s = limits.wait_s(times, limits.EXPORTS, now)
            if wait_s is not None:
                raise RateLimitedError(
                    f"The account was exported {limits.EXPORTS} times in this hour; wait, or use "
                    "the last one.",
                    retry_after_s=wait_s,
                )
            note(connection, caller, _EXPORTED, now)

        await self._state.write(work)


def _needed() -> AccountNeededError:
    return AccountNeededError(
        f"The account {LOCAL_ACCOUNT} is the server's own, so it stays as it is; delete what it has, "
        "or ask whoever runs the server."
    )
