"""Whether anybody still waits for what an engine works on: passes of a long call look between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from steelyard.errors import DeadlineExceededError

_is_wanted: ContextVar[Callable[[], bool] | None] = ContextVar("is_wanted", default=None)


@contextmanager
def only_while(is_wanted: Callable[[], bool]) -> Iterator[None]:
    """Cancel this thread's engine calls as soon as nobody waits for them."""
    token = _is_wanted.set(is_wanted)
    try:
        yield
    finally:
        _is_wanted.reset(token)


def check_wanted() -> None:
    """Raise ``DeadlineExceededError`` when nobody waits for this thread's work any more."""
    is_wanted = _is_wanted.get()
    if is_wanted is not None and not is_wanted():
        message = "The request was not scored by its deadline; shorten it, or ask less at once."
        raise DeadlineExceededError(message)
