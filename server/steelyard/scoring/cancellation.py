"""What happens between the passes of an engine's call: is it still wanted, and who may go first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from steelyard.errors import DeadlineExceededError


@dataclass(frozen=True, slots=True)
class _Call:
    is_wanted: Callable[[], bool]
    meanwhile: Callable[[], None] | None


_running: ContextVar[_Call | None] = ContextVar("running_call", default=None)


@contextmanager
def only_while(
    is_wanted: Callable[[], bool], meanwhile: Callable[[], None] | None = None
) -> Iterator[None]:
    """Cancel this thread's engine calls as soon as nobody waits for them.

    ``meanwhile`` runs between their passes, in their thread; it may call the engine itself.
    """
    token = _running.set(_Call(is_wanted, meanwhile))
    try:
        yield
    finally:
        _running.reset(token)


def check_wanted() -> None:
    """Raise ``DeadlineExceededError`` when nobody waits for this thread's work any more."""
    call = _running.get()
    if call is None:
        return
    if not call.is_wanted():
        message = "The request was not scored by its deadline; shorten it, or ask less at once."
        raise DeadlineExceededError(message)
    if call.meanwhile is not None:
        call.meanwhile()
