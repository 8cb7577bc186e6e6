"""Methods of clients made of calls: each sends the call that a function gives."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from steelyard.client.calls import Call, describe_method

_Arguments = ParamSpec("_Arguments")
_Answer = TypeVar("_Answer")


class Sender(Protocol):
    """Sends calls and waits for their answers."""

    def send(self, call: Call[_Answer]) -> _Answer:
        """Send a call and give its answer."""
        ...


class AsyncSender(Protocol):
    """Sends calls whose answers are awaited."""

    async def send(self, call: Call[_Answer]) -> _Answer:
        """Send a call and give its answer."""
        ...


def blocking_method(
    build: Callable[_Arguments, Call[_Answer]],
) -> Callable[Concatenate[Sender, _Arguments], _Answer]:
    """Return the method that makes a call and sends it; its signature and help are the call's."""

    @functools.wraps(build)
    def method(self: Sender, /, *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Answer:
        return self.send(build(*args, **kwargs))

    describe_method(method, build)
    return method


def async_method(
    build: Callable[_Arguments, Call[_Answer]],
) -> Callable[Concatenate[AsyncSender, _Arguments], Awaitable[_Answer]]:
    """Return the same as ``blocking_method``, to be awaited."""

    @functools.wraps(build)
    async def method(
        self: AsyncSender, /, *args: _Arguments.args, **kwargs: _Arguments.kwargs
    ) -> _Answer:
        return await self.send(build(*args, **kwargs))

    describe_method(method, build)
    return method
