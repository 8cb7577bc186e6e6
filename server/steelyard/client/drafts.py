"""``client.drafts``, reviews of versions of datasets, blocking and to be awaited."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from steelyard.client import draft_calls as calls
from steelyard.client.calls import Call
from steelyard.client.methods import async_method, blocking_method

if TYPE_CHECKING:
    from steelyard.client.asynchronous import AsyncClient
    from steelyard.client.blocking import Client

_Answer = TypeVar("_Answer")


class Drafts:
    """Reviews of versions, which become datasets or versions when sealed: ``client.drafts``."""

    def __init__(self, client: Client) -> None:
        self._client = client

    create = blocking_method(calls.create)
    list = blocking_method(calls.list_drafts)
    get = blocking_method(calls.get)
    delete = blocking_method(calls.delete)
    edit = blocking_method(calls.edit)
    bulk = blocking_method(calls.bulk)
    undo = blocking_method(calls.undo)
    redo = blocking_method(calls.redo)
    history = blocking_method(calls.history)
    rows = blocking_method(calls.rows)
    seal = blocking_method(calls.seal)

    def send(self, call: Call[_Answer]) -> _Answer:
        """Send a call through the client."""
        return self._client.send(call)


class AsyncDrafts:
    """Reviews of versions, which become datasets or versions when sealed: ``client.drafts``."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    create = async_method(calls.create)
    list = async_method(calls.list_drafts)
    get = async_method(calls.get)
    delete = async_method(calls.delete)
    edit = async_method(calls.edit)
    bulk = async_method(calls.bulk)
    undo = async_method(calls.undo)
    redo = async_method(calls.redo)
    history = async_method(calls.history)
    rows = async_method(calls.rows)
    seal = async_method(calls.seal)

    async def send(self, call: Call[_Answer]) -> _Answer:
        """Send a call through the client."""
        return await self._client.send(call)
