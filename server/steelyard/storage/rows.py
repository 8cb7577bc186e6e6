"""The rows of a table by their ids, and their accounts: the common part of most rooms' stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Table, delete, func, insert, select, update

from steelyard.storage.pages import OrderedPage, newest_first
from steelyard.storage.tables import accounts


def lock_account(connection: Connection, account_id: str) -> None:
    """Keep other writers that lock the account too out until the transaction ends."""
    connection.execute(select(accounts.c.id).where(accounts.c.id == account_id).with_for_update())


@dataclass(frozen=True, slots=True)
class Rows:
    """Reads and writes the rows of a table, which has the column ``id``."""

    table: Table
    #: The column that says whose a row is.
    owner: str = "account_id"

    def insert(self, connection: Connection, values: Mapping[str, Any]) -> None:
        """Add a row; the values are by column."""
        connection.execute(insert(self.table), dict(values))

    def find(self, connection: Connection, owner_id: str, row_id: str) -> Row[Any] | None:
        """Return a row; ``None`` when there is none, or it is another's."""
        conditions = (self.table.c[self.owner] == owner_id, self.table.c.id == row_id)
        return connection.execute(select(self.table).where(*conditions)).first()

    def count(self, connection: Connection, owner_id: str) -> int:
        """Return how many rows an owner has."""
        owned = self.table.c[self.owner] == owner_id
        return connection.execute(select(func.count()).where(owned)).scalar_one()

    def page(
        self,
        connection: Connection,
        owner_id: str,
        *,
        where: Sequence[ColumnElement[bool]] = (),
        limit: int,
        cursor: str | None,
    ) -> OrderedPage:
        """Return a page of an owner's rows, the newest first."""
        owned = self.table.c[self.owner] == owner_id
        return newest_first(
            connection, self.table, owned=owned, where=where, limit=limit, cursor=cursor
        )

    def change(self, connection: Connection, row_id: str, **values: Any) -> None:
        """Write columns of a row."""
        connection.execute(update(self.table).where(self.table.c.id == row_id).values(**values))

    def delete(self, connection: Connection, row_id: str) -> None:
        """Remove a row, and the rows that depend on it."""
        connection.execute(delete(self.table).where(self.table.c.id == row_id))
