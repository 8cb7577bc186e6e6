"""Methods of both clients: each is awaited in an asynchronous client, and blocks in a blocking one.

Each is one coroutine. A blocking client does its input and output inside, so that the coroutine never
waits for an event loop and ends at its first step.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast, overload

from steelyard.client.answers import RecordList
from steelyard.client.calls import Call, CursorPage
from steelyard.client.saving import Saving
from steelyard.client.uploads import UploadCalls
from steelyard.client.walking import RecordWalk
from steelyard.datasets.wire import Dataset
from steelyard.labeling.wire import LabelingSource

_Arguments = ParamSpec("_Arguments")
_Answer = TypeVar("_Answer")
_Sent = TypeVar("_Sent")
_Item = TypeVar("_Item")
_Blocking = TypeVar("_Blocking")
_Awaited = TypeVar("_Awaited")
_Uploaded = TypeVar("_Uploaded", bound=Dataset | LabelingSource)


class Blocking:
    """The mode of a client whose calls wait for their answers."""


class Awaited:
    """The mode of a client whose calls are awaited."""


Mode = TypeVar("Mode")


class HasCalls(Generic[Mode]):
    """A client, or the part of one that has the calls of one subject."""

    #: Whether its methods wait for their answers.
    is_blocking: bool = False

    def __init__(self, client: Any) -> None:
        self._client = client

    async def answer_to(self, call: Call[_Answer]) -> _Answer:
        """Send a call through the client and return its answer."""
        answer: _Answer = await settle(self._client.send(call))
        return answer

    async def write_export(self, saving: Saving) -> Path:
        """Write an export to the disk through the client."""
        path: Path = await settle(self._client.save_export(saving))
        return path

    async def upload_rows(self, upload: UploadCalls[_Uploaded]) -> _Uploaded:
        """Send rows in as many calls as they need."""
        with upload:
            for call in upload.calls():
                with upload.sending():
                    upload.made = await self.answer_to(call)
            return upload.result()

    async def read_records(self, walk: RecordWalk) -> RecordList:
        """Read scored decisions, page by page."""
        while not walk.is_over:
            walk.take(await self.answer_to(walk.call()))
        return walk.records


def finish(coroutine: Coroutine[Any, Any, _Answer]) -> _Answer:
    """Return the result of a coroutine that waits for no event loop."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return cast("_Answer", end.value)
    raise RuntimeError("A blocking client waited for an event loop.")


async def settle(answer: Any) -> Any:
    """Return an answer, awaited where it comes from an asynchronous client."""
    return await answer if isinstance(answer, Awaitable) else answer


class Method(Generic[_Arguments, _Blocking, _Awaited]):
    """A method of a client or of its parts: two functions, of which its mode has one."""

    def __init__(
        self,
        awaited: Callable[Concatenate[Any, _Arguments], _Awaited],
        blocking: Callable[Concatenate[Any, _Arguments], _Blocking],
    ) -> None:
        self._awaited, self._blocking = awaited, blocking

    @overload
    def __get__(
        self, owner: HasCalls[Blocking], of: type[Any] | None = None
    ) -> Callable[_Arguments, _Blocking]: ...

    @overload
    def __get__(
        self, owner: HasCalls[Awaited], of: type[Any] | None = None
    ) -> Callable[_Arguments, _Awaited]: ...

    @overload
    def __get__(self, owner: None, of: type[Any]) -> Callable[..., Any]: ...

    def __get__(self, owner: HasCalls[Any] | None, of: Any = None) -> Callable[..., Any]:
        """Return the method of an object, or the function of a class."""
        is_blocking = (of if owner is None else owner).is_blocking
        function: Callable[..., Any] = self._blocking if is_blocking else self._awaited
        return function if owner is None else MethodType(function, owner)


def answers(
    function: Callable[Concatenate[Any, _Arguments], Coroutine[Any, Any, _Answer]],
) -> Method[_Arguments, _Answer, Coroutine[Any, Any, _Answer]]:
    """Return the method that a coroutine function answers."""

    @functools.wraps(function)
    def blocking(self: Any, /, *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Answer:
        return finish(function(self, *args, **kwargs))

    return Method(function, blocking)


def iterates(
    function: Callable[Concatenate[Any, _Arguments], AsyncIterator[_Item]],
) -> Method[_Arguments, Iterator[_Item], AsyncIterator[_Item]]:
    """Return the method that iterates over the items of an asynchronous generator."""

    @functools.wraps(function)
    def blocking(
        self: Any, /, *args: _Arguments.args, **kwargs: _Arguments.kwargs
    ) -> Iterator[_Item]:
        items = cast("AsyncGenerator[_Item, None]", function(self, *args, **kwargs))
        try:
            while True:
                try:
                    item = finish(items.__anext__())
                except StopAsyncIteration:
                    return
                yield item
        finally:
            finish(items.aclose())

    signature = inspect.signature(function)
    returned = str(signature.return_annotation).removeprefix("Async")
    _set_signature(blocking, signature.replace(return_annotation=returned))
    return Method(function, blocking)


def _sends(
    build: Callable[_Arguments, _Sent],
    send: Callable[[HasCalls[Any], _Sent], Coroutine[Any, Any, _Answer]],
    answer: str | None = None,
) -> Method[_Arguments, _Answer, Coroutine[Any, Any, _Answer]]:
    """Return the method that sends what ``build`` returns, whose signature and help it has."""

    @functools.wraps(build)
    async def function(
        self: HasCalls[Any], /, *args: _Arguments.args, **kwargs: _Arguments.kwargs
    ) -> _Answer:
        return await send(self, build(*args, **kwargs))

    _describe(function, build, answer)
    return answers(function)


def method(
    build: Callable[_Arguments, Call[_Answer]],
) -> Method[_Arguments, _Answer, Coroutine[Any, Any, _Answer]]:
    """Return the method that makes a call and sends it; its signature and help are the call's."""
    return _sends(build, HasCalls.answer_to)


def uploads(
    build: Callable[_Arguments, UploadCalls[_Uploaded]],
) -> Method[_Arguments, _Uploaded, Coroutine[Any, Any, _Uploaded]]:
    """Return the method that sends rows in as many calls as they need; its help is the upload's."""
    return _sends(build, HasCalls.upload_rows)


def collects(
    build: Callable[_Arguments, RecordWalk],
) -> Method[_Arguments, RecordList, Coroutine[Any, Any, RecordList]]:
    """Return the method that reads scored decisions, page by page; its help is the walk's."""
    return _sends(build, HasCalls.read_records, "RecordList")


def saves(
    build: Callable[_Arguments, Saving],
) -> Method[_Arguments, Path, Coroutine[Any, Any, Path]]:
    """Return the method that writes an export to the disk; its help is the export's."""
    return _sends(build, HasCalls.write_export, "Path")


def pages(
    build: Callable[_Arguments, Call[CursorPage[_Item]]],
) -> Method[_Arguments, Iterator[_Item], AsyncIterator[_Item]]:
    """Return the method that iterates over a list, whose pages are asked for as they are needed.

    Its parameters and help are those of the call; ``cursor`` is where it begins.
    """

    @functools.wraps(build)
    async def iterate(
        self: HasCalls[Any], /, *args: _Arguments.args, **kwargs: _Arguments.kwargs
    ) -> AsyncIterator[_Item]:
        while True:
            page = await self.answer_to(build(*args, **kwargs))
            for item in page.data:
                yield item
            if not page.data or not page.has_more or page.next_cursor is None:
                return
            kwargs["cursor"] = page.next_cursor

    page = inspect.unwrap(build).__globals__[_returned(build)]
    item = page.__orig_bases__[0].__args__[0].__name__
    _describe(iterate, build, f"AsyncIterator[{item}]")
    return iterates(iterate)


def _returned(build: Callable[..., Any]) -> str:
    """Return the type of the answer, such as that of ``Call[Dataset]`` or ``UploadCalls[Dataset]``."""
    text = str(inspect.signature(build).return_annotation)
    return text.partition("[")[2].removesuffix("]")


def _describe(
    function: Callable[..., Any], build: Callable[..., Any], answer: str | None = None
) -> None:
    """Set the signature that people see of a client's method: its call's, after ``self``."""
    signature = inspect.signature(build)
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    parameters = [itself, *signature.parameters.values()]
    returned = answer or _returned(build)
    _set_signature(function, signature.replace(parameters=parameters, return_annotation=returned))


def _set_signature(function: Callable[..., Any], signature: inspect.Signature) -> None:
    function.__signature__ = signature  # type: ignore[attr-defined]
