"""Saved views of an account: kept under a name, listed and removed."""

from __future__ import annotations

import time
from typing import Any

from sqlalchemy import Connection, Row

from steelyard.caller import Caller
from steelyard.errors import NotFoundError, ViewExistsError, ViewLimitError
from steelyard.ids import new_id
from steelyard.operations.idempotency import KeyedWrites
from steelyard.operations.write import Write
from steelyard.storage import State
from steelyard.storage.rows import lock_account
from steelyard.views import store as rows
from steelyard.views.wire import DeletedView, SaveView, View, ViewPage, ViewsQuery

MAX_VIEWS = 200


class Views:
    """The saved views of every account."""

    def __init__(self, state: State, writes: KeyedWrites) -> None:
        self._state = state
        self._writes = writes

    async def save(self, write: Write, request: SaveView) -> View:
        """Keep a view under a name that none has."""
        account_id = write.caller.account_id
        values = {
            "id": new_id("view"),
            "account_id": account_id,
            "name": request.name,
            "address": request.address,
            "created_at": time.time(),
        }

        def make(connection: Connection) -> View:
            lock_account(connection, account_id)
            if rows.has_name(connection, account_id, request.name):
                raise ViewExistsError(
                    f"There is a view {request.name!r} already; take another name, or delete it."
                )
            if rows.VIEWS.count(connection, account_id) >= MAX_VIEWS:
                raise ViewLimitError(
                    f"The account has {MAX_VIEWS} views, and may have no more; delete one."
                )
            rows.VIEWS.insert(connection, values)
            return _to_wire(_find(connection, account_id, str(values["id"])))

        return await self._writes.once(write, make)

    async def page(self, caller: Caller, query: ViewsQuery) -> ViewPage:
        """Return a page of the account's views."""
        page = await self._state.read(
            lambda connection: rows.VIEWS.page(
                connection, caller.account_id, limit=query.limit, cursor=query.cursor
            )
        )
        return page.to_wire(ViewPage, [_to_wire(row) for row in page.rows])

    async def delete(self, write: Write, view_id: str) -> DeletedView:
        """Remove a view; its dataset stays."""
        account_id = write.caller.account_id

        def work(connection: Connection) -> DeletedView:
            _find(connection, account_id, view_id)
            rows.VIEWS.delete(connection, view_id)
            return DeletedView(id=view_id, deleted=True)

        return await self._writes.once(write, work)


def _find(connection: Connection, account_id: str, view_id: str) -> Row[Any]:
    row = rows.VIEWS.find(connection, account_id, view_id)
    if row is None:
        raise NotFoundError(f"There is no view {view_id[:60]!r}; see GET /v1/views.")
    return row


def _to_wire(row: Row[Any]) -> View:
    return View(id=row.id, name=row.name, address=row.address, created_at=row.created_at)
