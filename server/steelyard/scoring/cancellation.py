"""The pause between the passes of an engine's call: cancel it, or let others go first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from steelyard.errors import DeadlineExceededError

#: Of a thread that calls an engine: runs before each pass. It raises ``DeadlineExceededError``
#: when no caller waits any more, and may call the engine itself.
before_pass: ContextVar[Callable[[], None] | None] = ContextVar("before_pass", default=None)


@contextmanager
def only_while(is_awaited: Callable[[], bool]) -> Iterator[None]:
    """Cancel this thread's engine calls as soon as their caller is gone."""

    def check() -> None:
        if not is_awaited():
            raise unwanted()

    token = before_pass.set(check)
    try:
        yield
    finally:
        before_pass.reset(token)


def check_awaited() -> None:
    """Raise ``DeadlineExceededError`` when the caller of this thread's work is gone."""
    check = before_pass.get()
    if check is not None:
        check()


def unwanted() -> DeadlineExceededError:
    """Return the error of a call whose caller is gone."""
    message = "The request was not scored by its deadline; shorten it, or ask less at once."
    return DeadlineExceededError(message)
