"""Accounts and API keys: identify callers, check their permissions, and manage both for operators.

Revoking a key works at once in every process, since each call looks the key up.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass

from sqlalchemy import Connection

from steelyard import errors
from steelyard.accounts import store as rows
from steelyard.accounts.keys import (
    KEY_LENGTH,
    KEY_START,
    PREFIX_LENGTH,
    NewKey,
    checked_name,
    hash_secret,
    insert_key,
    refused,
    shown_keys,
)
from steelyard.accounts.wire import AccountSummary, AccountUser, ApiKey, ApiKeyPage, WalletBalance
from steelyard.caller import LOCAL_ACCOUNT, Caller, Scope
from steelyard.ids import new_id
from steelyard.ledger import books as ledger
from steelyard.ledger.money import to_usd
from steelyard.ledger.store import balances_of
from steelyard.operations.posting import post_operation
from steelyard.settings import Settings
from steelyard.storage import State
from steelyard.wire.limits import MAX_OUTCOMES, MAX_PLAYGROUND_DECISIONS, ROW_LIMITS
from steelyard.wire.queries import ApiKeysQuery
from steelyard.wire.storing import STORE_SETTINGS, StoreSetting

#: Seconds within which a key's uses count as one for ``last_used_at``.
_TOUCH_S = 60.0
#: Held against when no key has the prefix, so that both cases take the same time.
_NOBODYS_SHA256 = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True, slots=True)
class AccountWallet:
    """An account as an operator sees it."""

    id: str
    name: str
    created_at: float
    wallet: WalletBalance
    deletes_at: float | None = None


class AccountService:
    """Identifies callers by their keys, and makes, lists and revokes accounts and keys."""

    def __init__(
        self,
        state: State,
        *,
        accounts_enabled: bool,
        limits: Mapping[str, int] | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._state = state
        self._accounts_enabled = accounts_enabled
        self._limits = dict(limits or {})
        self._now = now
        self._touched: dict[str, float] = {}

    async def authenticate(self, authorization: str | None, address: str) -> Caller:
        """Return the caller of a request."""
        if not self._accounts_enabled:
            return Caller(LOCAL_ACCOUNT, None, "full", address)
        secret = _bearer(authorization)
        given = hash_secret(secret)
        prefix = secret[:PREFIX_LENGTH]
        row = await self._state.look_up(lambda connection: rows.find_api_key(connection, prefix))
        known = _NOBODYS_SHA256 if row is None else row.sha256
        is_known = hmac.compare_digest(given, known)
        if row is None or not is_known or row.revoked_at is not None:
            raise _invalid_key()
        if row.expires_at is not None and row.expires_at <= self._now():
            raise _invalid_key()
        self._touch(row.id, row.last_used_at)
        store = max(row.store, row.account_store, key=STORE_SETTINGS.index)
        return Caller(row.account_id, row.id, row.scope, address, store=store)

    async def summary(self, caller: Caller) -> AccountSummary:
        """Return the permissions and credit of the caller's account."""

        def work(connection: Connection) -> AccountSummary:
            row = rows.find_account(connection, caller.account_id)
            return AccountSummary(
                effective_limits=self._limits,
                user=AccountUser(
                    id=caller.account_id, name=caller.account_id if row is None else row.name
                ),
                accounts_enabled=self._accounts_enabled,
                wallet=_wallet(connection, caller.account_id),
                deletes_at=None if row is None else row.deletes_at,
                store="on" if row is None else row.store,
            )

        return await self._state.read(work)

    async def keys(self, caller: Caller, query: ApiKeysQuery) -> ApiKeyPage:
        """Return a page of the account's keys, the newest first."""

        def work(connection: Connection) -> ApiKeyPage:
            page = rows.page_api_keys(
                connection,
                caller.account_id,
                revoked=query.revoked,
                limit=query.limit,
                cursor=query.cursor,
            )
            return page.to_wire(ApiKeyPage, shown_keys(connection, page.rows, self._now()))

        return await self._state.read(work)

    def create_account(self, name: str) -> AccountWallet:
        """Make an account, blocking."""
        name = checked_name(name)

        def work(connection: Connection) -> AccountWallet:
            if rows.find_account_named(connection, name) is not None:
                raise errors.InvalidRequestError(
                    f"There is an account named {name!r}; take another name."
                )
            account_id, at = new_id("acct"), self._now()
            rows.insert_account(connection, account_id, name, at)
            return AccountWallet(account_id, name, at, _wallet(connection, account_id))

        return self._state.write_now(work)

    def list_accounts(self) -> list[AccountWallet]:
        """Return every account, the oldest first, blocking."""

        def work(connection: Connection) -> list[AccountWallet]:
            return [
                AccountWallet(row.id, row.name, row.created_at, _wallet(connection, row.id))
                for row in rows.all_accounts(connection)
            ]

        return self._state.read_now(work)

    def page_accounts(
        self, connection: Connection, *, limit: int, cursor: str | None
    ) -> tuple[list[AccountWallet], str | None]:
        """Return a page of every account, the newest first, and where the next begins."""
        page = rows.page_accounts(connection, limit=limit, cursor=cursor)
        account_entries = [
            AccountWallet(
                row.id, row.name, row.created_at, _wallet(connection, row.id), row.deletes_at
            )
            for row in page.rows
        ]
        return account_entries, page.next_cursor

    def add_credit(self, account: str, amount_nano: int) -> AccountWallet:
        """Add credit to an account, blocking."""
        return self._state.write_now(
            lambda connection: self.credit(connection, account, amount_nano)
        )

    def credit(self, connection: Connection, account: str, amount_nano: int) -> AccountWallet:
        """Add credit to an account, in a transaction."""
        if amount_nano <= 0:
            raise refused(
                "amount_usd", "The amount is not more than 0; give what is added, in USD."
            )

        row = rows.get_account(connection, account)
        if -balances_of(connection, row.id)["funding"] + amount_nano > _MAX_FUNDING:
            raise refused(
                "amount_usd", "The account would have more credit than can be held; add less."
            )
        posting = ledger.credit(amount_nano)
        post_operation(connection, row.id, "credit", posting, amount_nano, self._now())
        return AccountWallet(row.id, row.name, row.created_at, _wallet(connection, row.id))

    def limit_storing(self, account: str, store: StoreSetting) -> None:
        """Set the most that is stored of an account's answers, blocking."""
        self._state.write_now(
            lambda connection: rows.ACCOUNTS.change(
                connection, rows.get_account(connection, account).id, store=store
            )
        )

    def create_key(
        self,
        *,
        account: str = LOCAL_ACCOUNT,
        name: str = "key",
        scope: Scope = "full",
        monthly_cap_nano: int | None = None,
        store: StoreSetting = "on",
    ) -> NewKey:
        """Make an API key, blocking; its secret is given this once."""

        def work(connection: Connection) -> NewKey:
            return insert_key(
                connection,
                rows.get_account(connection, account).id,
                name=name,
                scope=scope,
                monthly_cap_nano=monthly_cap_nano,
                store=store,
                at=self._now(),
            )

        return self._state.write_now(work)

    def list_keys(self, account: str | None = None) -> list[tuple[str, ApiKey]]:
        """Return keys with their accounts' names, the newest first, blocking."""

        def work(connection: Connection) -> list[tuple[str, ApiKey]]:
            only = None if account is None else rows.get_account(connection, account).id
            all_api_keys = [
                row
                for row in rows.all_api_keys(connection)
                if only is None or row.account_id == only
            ]
            names = {row.id: row.name for row in rows.all_accounts(connection)}
            shown = shown_keys(connection, all_api_keys, self._now())
            return [
                (names[row.account_id], key) for row, key in zip(all_api_keys, shown, strict=True)
            ]

        return self._state.read_now(work)

    def revoke_key(self, key_id: str) -> ApiKey:
        """End a key for good, blocking; one that was revoked before stays as it is."""

        def work(connection: Connection) -> ApiKey:
            row = rows.revoke_api_key(connection, key_id, self._now())
            if row is None:
                raise errors.NotFoundError(
                    f"There is no API key {key_id!r}; steelyard key list shows their ids."
                )
            return shown_keys(connection, [row], self._now())[0]

        return self._state.write_now(work)

    def _touch(self, key_id: str, last_used_at: float | None) -> None:
        """Record a key's use, at most once a minute, without making the caller wait."""
        at = self._now()
        last = max(last_used_at or 0.0, self._touched.get(key_id, 0.0))
        if at - last < _TOUCH_S:
            return
        self._touched[key_id] = at
        touched = self._state.submit(functools.partial(rows.touch_api_key, key_id=key_id, at=at))
        touched.add_done_callback(_heed_nothing)


#: Sums of two such amounts still fit 64 bits.
_MAX_FUNDING = 2**62


def effective_limits(settings: Settings) -> dict[str, int]:
    """Return the limits that an account's summary reports, by name."""
    return {
        "requests_per_minute": settings.requests_per_minute,
        "tokens_per_minute": settings.tokens_per_minute,
        "body_bytes": settings.body_bytes,
        "upload_bytes": settings.upload_bytes,
        "max_decisions": settings.max_decisions,
        "max_outcomes": MAX_OUTCOMES,
        "max_playground_decisions": MAX_PLAYGROUND_DECISIONS,
        "live_limit": settings.live_limit,
        "warm_limit": settings.warm_models,
        "fine_tune_queue": settings.fine_tune_queue,
        "fine_tune_queue_per_account": settings.fine_tune_queue_per_account,
        "dataset_bytes": settings.upload_bytes,
        "dataset_min_rows": settings.dataset_min_rows,
        "dataset_rows": settings.dataset_rows,
        **ROW_LIMITS,
    }


def _bearer(authorization: str | None) -> str:
    scheme, _, secret = (authorization or "").strip().partition(" ")
    secret = secret.strip()
    if scheme.lower() != "bearer" or not secret:
        raise errors.MissingApiKeyError(
            "The call has no API key; send it as Authorization: Bearer KEY."
        )
    is_formed = len(secret) == KEY_LENGTH and secret.isascii() and secret.startswith(KEY_START)
    if not is_formed:
        raise _invalid_key()
    return secret


def _invalid_key() -> errors.InvalidApiKeyError:
    return errors.InvalidApiKeyError(
        "The API key is not one of this server, was revoked or is over; send a valid one."
    )


def _heed_nothing(touched: Future[None]) -> None:
    """Take the outcome of a write that may fail: the next use of the key tries again."""
    if not touched.cancelled():
        touched.exception()


def _wallet(connection: Connection, account_id: str) -> WalletBalance:
    books = balances_of(connection, account_id)
    promotional = max(books["promotional"], 0)
    balance = books["paid"] + books["promotional"] + books["held"]
    return WalletBalance(
        paid_usd=to_usd(max(balance - promotional, 0)),
        promotional_usd=to_usd(promotional),
        balance_usd=to_usd(balance),
        available_usd=to_usd(max(books["paid"] + books["promotional"], 0)),
        reserved_usd=to_usd(books["held"]),
        financial_shortfall_usd=to_usd(max(-balance, 0)),
    )
