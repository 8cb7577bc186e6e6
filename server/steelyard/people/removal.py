"""Removing an account and everything that belongs to it, once its days of grace are over.

The data of an account are found by the keys of the tables: rows that name the account, and rows that
name such rows. They go in small transactions, children first and the account last, so that a
process that dies in between leaves an account whose time is over, and the next tick goes on. Files
that no row names any more are removed by the sweeps of their rooms.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable

import sqlalchemy as sa

from steelyard.billing.tables import provider_events, purchases
from steelyard.people.limits import ForwardClock
from steelyard.people.tables import memberships, passkeys, sessions, users
from steelyard.storage import State
from steelyard.storage.tables import accounts, api_keys, metadata

_log = logging.getLogger(__name__)

#: Rows removed in one transaction, so that requests wait little for it.
_AT_ONCE = 500


class AccountRemoval:
    """Removes the accounts whose time is over."""

    def __init__(self, state: State, *, now: Callable[[], float] | None = None) -> None:
        self._state = state
        self._now = now or ForwardClock()

    def tick(self) -> None:
        """Remove every account whose time is over, blocking."""
        now = self._now()
        over = sa.select(accounts.c.id).where(accounts.c.deletes_at <= now)
        for account_id in self._state.read_now(lambda connection: list(connection.scalars(over))):
            self._remove(account_id, now)

    def _remove(self, account_id: str, now: float) -> None:
        lock = functools.partial(_lock_out, account_id=account_id, now=now)
        if not self._state.write_now(lock):
            return
        for table, is_owned in _owned(account_id):
            drop = functools.partial(_delete_some, table=table, where=is_owned)
            while self._state.write_now(drop) == _AT_ONCE:
                pass
        _log.info("Removed the account %s and all that it had.", account_id)


def _lock_out(connection: sa.Connection, account_id: str, now: float) -> bool:
    """End keys, members and the users without another account; return whether its time is over yet."""
    is_over = sa.and_(accounts.c.id == account_id, accounts.c.deletes_at <= now)
    if (
        connection.execute(sa.select(accounts.c.id).where(is_over).with_for_update()).first()
        is None
    ):
        return False
    live = (api_keys.c.account_id == account_id, api_keys.c.revoked_at.is_(None))
    connection.execute(sa.update(api_keys).where(*live).values(revoked_at=now))
    own = sa.select(memberships.c.email).where(memberships.c.account_id == account_id)
    elsewhere = sa.exists().where(
        memberships.c.email == users.c.email, memberships.c.account_id != account_id
    )
    leaving = sa.select(users.c.id).where(
        users.c.email.in_(own), users.c.is_operator == 0, ~elsewhere
    )
    gone = list(connection.scalars(leaving))
    connection.execute(sa.delete(sessions).where(sessions.c.user_id.in_(gone)))
    connection.execute(sa.delete(passkeys).where(passkeys.c.user_id.in_(gone)))
    connection.execute(sa.delete(users).where(users.c.id.in_(gone)))
    connection.execute(sa.delete(memberships).where(memberships.c.account_id == account_id))
    return True


def _delete_some(connection: sa.Connection, table: sa.Table, where: sa.ColumnElement[bool]) -> int:
    keys = list(table.primary_key)
    some = sa.select(*keys).where(where).limit(_AT_ONCE)
    named = keys[0] if len(keys) == 1 else sa.tuple_(*keys)
    return connection.execute(sa.delete(table).where(named.in_(some))).rowcount


def _owned(account_id: str) -> list[tuple[sa.Table, sa.ColumnElement[bool]]]:
    """Return the condition of an account's rows by table, referenced tables last."""
    owned: list[tuple[sa.Table, sa.ColumnElement[bool]]] = []
    of_purchases = sa.select(purchases.c.id).where(purchases.c.account_id == account_id)
    owned.append((provider_events, provider_events.c.purchase_id.in_(of_purchases)))
    conditions = owned_rows(account_id)
    owned += [
        (table, conditions[table])
        for table in reversed(metadata.sorted_tables)
        if table in conditions
    ]
    return owned


def owned_rows(account_id: str) -> dict[sa.Table, sa.ColumnElement[bool]]:
    """Return an account's rows in each table that has rows of accounts."""
    conditions: dict[sa.Table, sa.ColumnElement[bool]] = {accounts: accounts.c.id == account_id}
    for table in metadata.sorted_tables:
        if table is accounts:
            continue
        own = [
            column == account_id
            for column in table.columns
            if column.name == "account_id" or column.references(accounts.c.id)
        ]
        # Rows of a child, such as a version of a dataset, name no account themselves.
        of_parents = [
            key.parent.in_(sa.select(key.column).where(conditions[key.column.table]))
            for key in table.foreign_keys
            if key.column.table in conditions
        ]
        if own or of_parents:
            conditions[table] = sa.or_(*(own or of_parents))
    return conditions
