"""Rows of accounts and of their API keys."""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, bindparam, func, insert, select, true, update

from steelyard.caller import Scope
from steelyard.errors import NotFoundError
from steelyard.storage.pages import OrderedPage, newest_first
from steelyard.storage.rows import Rows
from steelyard.storage.statements import Statement
from steelyard.storage.tables import accounts, api_keys
from steelyard.wire.storing import StoreSetting

ACCOUNTS = Rows(accounts, owner="id")
API_KEYS = Rows(api_keys)


class KnownKey(NamedTuple):
    """The stored record that a caller's key is checked against."""

    id: str
    account_id: str
    sha256: str
    scope: Scope
    last_used_at: float | None
    revoked_at: float | None
    expires_at: float | None
    store: StoreSetting
    account_store: StoreSetting


_BY_PREFIX = Statement(
    select(
        *(api_keys.c[name] for name in KnownKey._fields[:-1]),
        accounts.c.store.label("account_store"),
    )
    .join(accounts, accounts.c.id == api_keys.c.account_id)
    .where(api_keys.c.prefix == bindparam("wanted"))
)


def insert_account(connection: Connection, account_id: str, name: str, at: float) -> None:
    """Write a new account."""
    connection.execute(insert(accounts), {"id": account_id, "name": name, "created_at": at})


def find_account(connection: Connection, account_id: str) -> Row[Any] | None:
    """Return an account by its id."""
    return connection.execute(select(accounts).where(accounts.c.id == account_id)).first()


def find_account_named(connection: Connection, name: str) -> Row[Any] | None:
    """Return an account by its name."""
    return connection.execute(select(accounts).where(accounts.c.name == name)).first()


def get_account(connection: Connection, account: str) -> Row[Any]:
    """Return an account by its id or name; refuse others."""
    row = find_account(connection, account) or find_account_named(connection, account)
    if row is None:
        raise NotFoundError(
            f"There is no account {account!r}; steelyard account list shows their ids and names."
        )
    return row


def all_accounts(connection: Connection) -> list[Row[Any]]:
    """Return every account, the oldest first."""
    query = select(accounts).order_by(accounts.c.created_at, accounts.c.id)
    return list(connection.execute(query).all())


def page_accounts(connection: Connection, *, limit: int, cursor: str | None) -> OrderedPage:
    """Return a page of every account, the newest first."""
    return newest_first(connection, accounts, owned=true(), limit=limit, cursor=cursor)


def find_api_key(connection: Connection, prefix: str) -> KnownKey | None:
    """Return the record of a caller's key by its public prefix."""
    row = _BY_PREFIX.first(connection, {"wanted": prefix})
    return None if row is None else KnownKey(*row)


def page_api_keys(
    connection: Connection, account_id: str, *, revoked: bool | None, limit: int, cursor: str | None
) -> OrderedPage:
    """Return a page of an account's keys, the newest first."""
    is_revoked = api_keys.c.revoked_at.is_not(None)
    where = () if revoked is None else ((is_revoked if revoked else ~is_revoked),)
    return API_KEYS.page(connection, account_id, where=where, limit=limit, cursor=cursor)


def all_api_keys(connection: Connection) -> list[Row[Any]]:
    """Return every key of every account, the newest first."""
    query = select(api_keys).order_by(api_keys.c.created_at.desc(), api_keys.c.id.desc())
    return list(connection.execute(query).all())


def touch_api_key(connection: Connection, key_id: str, at: float) -> None:
    """Write when a key was used last."""
    connection.execute(update(api_keys).where(api_keys.c.id == key_id).values(last_used_at=at))


def key_names(connection: Connection, account_id: str) -> dict[str, str]:
    """Return the names of an account's keys by their ids."""
    of = api_keys.c.account_id == account_id
    rows = connection.execute(select(api_keys.c.id, api_keys.c.name).where(of))
    return {row.id: row.name for row in rows}


def count_live_keys(connection: Connection, account_id: str) -> int:
    """Return how many keys of an account are not revoked."""
    of = (api_keys.c.account_id == account_id, api_keys.c.revoked_at.is_(None))
    return connection.scalar(select(func.count()).select_from(api_keys).where(*of)) or 0


def revoke_api_key(connection: Connection, key_id: str, at: float) -> Row[Any] | None:
    """Revoke a key for good, once, and return it; ``None`` when there is none."""
    connection.execute(
        update(api_keys)
        .where(api_keys.c.id == key_id, api_keys.c.revoked_at.is_(None))
        .values(revoked_at=at)
    )
    return connection.execute(select(api_keys).where(api_keys.c.id == key_id)).first()
