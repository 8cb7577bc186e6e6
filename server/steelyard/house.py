"""The house that rooms are opened in: a state with its settings and files, and the other rooms' services."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast, get_type_hints

from sqlalchemy import Column, Connection

from steelyard.jobs.ticker import Ticker
from steelyard.model_use import ModelUse
from steelyard.operations.idempotency import KeyedWrites
from steelyard.settings import Settings
from steelyard.storage import State
from steelyard.storage.frame_store import FrameStore

T = TypeVar("T")


class Closable(Protocol):
    """An object that is closed when its process ends."""

    def close(self) -> None:
        """Stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """The objects of a server process; ``services`` are those of all rooms by their classes."""

    settings: Settings
    state: State
    #: Returns the store of a room's files.
    frames: Callable[[str], FrameStore]
    #: Closes the services of rooms, the last first.
    closing: ExitStack
    services: dict[type, Any] = field(default_factory=dict)
    #: Whether requests are answered in this process; in others jobs run.
    answers: bool = True
    #: Looks for jobs at once.
    wake: Callable[[], None] = lambda: None
    #: Gets the process that runs jobs ready for one that is likely to come.
    prepare: Callable[[], None] = lambda: None
    #: Called when a job of that process has ended.
    job_ends: list[Callable[[], None]] = field(default_factory=list)
    now: Callable[[], float] = time.time
    #: Columns of all rooms that name stored decisions.
    decisions: tuple[Column[Any], ...] = ()
    #: The services of all rooms that queue jobs.
    queues: tuple[type[Any], ...] = ()
    #: Returns the models that an account's unfinished jobs of all rooms use.
    model_uses: Callable[[Connection, str], Iterable[ModelUse]] = lambda *_: ()
    #: Copies the home into a new folder of one, and tells how many files of how many are copied.
    back_up: Callable[[Path, Callable[[int, int], None]], object] = lambda *_: None

    def add(self, *services: object) -> None:
        """Add services, which rooms find by their classes."""
        self.services.update({type(service): service for service in services})

    def get(self, kind: type[T]) -> T:
        """Return the service of a class."""
        return cast("T", self.services[kind])

    def open(self, opener: Callable[..., T]) -> T:
        """Return an opener's value for this house and services, which its annotations name."""
        return opener(*self.arguments_of(opener))

    def arguments_of(self, opener: Callable[..., object]) -> list[Any]:
        """Return the house and the services that an opener's annotations name."""
        kinds = [kind for name, kind in get_type_hints(opener).items() if name != "return"]
        missing = [kind for kind in kinds if kind not in {House, *self.services}]
        if missing:
            needs = ", ".join(kind.__name__ for kind in missing)
            raise LookupError(
                f"{opener.__module__} needs {needs}; name the room that opens it in its `after`."
            )
        return [self if kind is House else self.services[kind] for kind in kinds]

    @property
    def writes(self) -> KeyedWrites:
        """Writes that are done once for each idempotency key."""
        return KeyedWrites(self.state, now=self.now)

    @property
    def has_accounts(self) -> bool:
        """Whether this server has accounts, with keys and credit."""
        return self.settings.accounts == "on"

    def close_at_end(self, *opened: Closable) -> None:
        """Close an opened object when this process ends."""
        for closable in opened:
            self.closing.callback(closable.close)

    def tick(
        self, tick: Callable[[], None], *, name: str, failure: str, interval_s: float = 1.0
    ) -> Ticker:
        """Call something at once and after every interval, until this process ends."""
        explain = self.state.explain
        ticker = Ticker(tick, name=name, failure=failure, explain=explain, interval_s=interval_s)
        self.close_at_end(ticker)
        return ticker
