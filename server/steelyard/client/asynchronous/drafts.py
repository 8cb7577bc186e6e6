"""``client.drafts``, reviews of versions of datasets."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from steelyard.client import draft_calls as calls
from steelyard.client.calls import Call
from steelyard.client.methods import async_method as _method

if TYPE_CHECKING:
    from steelyard.client.asynchronous.client import AsyncClient

_Answer = TypeVar("_Answer")


class AsyncDrafts:
    """Reviews of versions, which become datasets or versions when sealed: ``client.drafts``."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    create = _method(calls.create)
    list = _method(calls.list_drafts)
    get = _method(calls.get)
    delete = _method(calls.delete)
    edit = _method(calls.edit)
    bulk = _method(calls.bulk)
    undo = _method(calls.undo)
    redo = _method(calls.redo)
    history = _method(calls.history)
    rows = _method(calls.rows)
    seal = _method(calls.seal)

    async def send(self, call: Call[_Answer]) -> _Answer:
        """Send a call through the client."""
        return await self._client.send(call)
