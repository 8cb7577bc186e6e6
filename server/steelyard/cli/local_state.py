"""The state opened by a command, beside a server that may run on it, and tables of its rows."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from steelyard.cli.options import json_option, setting_options
from steelyard.cli.terminal import printable

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.accounts.service import AccountService
    from steelyard.people.member_service import Members
    from steelyard.serving.connected.declared import ConnectedModel, ModelsFile
    from steelyard.settings import Settings
    from steelyard.storage import State


#: The text of an answer, or the function that prints it.
Print: TypeAlias = str | Callable[[Any], object]


@dataclass(frozen=True, slots=True)
class ThisMachine:
    """The home and the state of this machine, as the options of a command name them."""

    home: str | None
    state_url: str | None = None
    as_json: bool = False

    @property
    def settings(self) -> Settings:
        """The settings, with the options in them."""
        from steelyard.settings import read_settings

        return read_settings({"home": self.home, "state_url": self.state_url})

    @property
    def folder(self) -> Path:
        """The folder of the home."""
        from steelyard.settings import home_of

        return home_of(self.settings)

    def declared(self) -> ModelsFile:
        """Return the connected models and routes."""
        from steelyard.serving.connected.declarations import declared_in

        return declared_in(self.settings)

    def models(self) -> dict[str, ConnectedModel]:
        """Return the connected models, with where their files are on this machine."""
        from steelyard.serving.connected.files import declared_in_place

        return declared_in_place(self.settings).models

    def change_declared(self, change: Callable[[ModelsFile], ModelsFile]) -> None:
        """Write what a function returns of the connected models and routes."""
        from steelyard.serving.connected.declarations import open_declarations

        with open_declarations(self.settings) as declarations:
            declarations.change(change)

    @contextmanager
    def connected(self) -> Iterator[ThisMachine]:
        """Yield it, for a command that reads the home alone."""
        yield self

    @contextmanager
    def state(self) -> Iterator[State]:
        """Open the state."""
        from steelyard.storage import open_state
        from steelyard.storage.home import state_url_of

        with closing(open_state(state_url_of(self.settings))) as state:
            yield state

    @contextmanager
    def accounts(self) -> Iterator[AccountService]:
        """Open the state and yield the accounts in it."""
        from steelyard.accounts.service import AccountService

        with self.state() as state:
            yield AccountService(state, accounts_enabled=self.settings.accounts == "on")

    @contextmanager
    def members(self) -> Iterator[Members]:
        """Open the state and yield the members of its accounts."""
        from steelyard.people.mail_service import MailRoom
        from steelyard.people.member_service import Members

        with self.state() as state:
            yield Members(state, MailRoom(state, self.settings))


def source_options(
    source: Callable[..., Any], *settings: str
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds settings and the choice of JSON; the command gets their ``source``."""

    def add(command: Callable[..., None]) -> Callable[..., None]:
        @setting_options(*settings)
        @json_option
        @functools.wraps(command)
        def opening(**given: Any) -> None:
            options = {name: given.pop(name) for name in (*settings, "as_json")}
            command(source(**options), **given)

        return opening

    return add


home_options = source_options(ThisMachine, "home")
state_options = source_options(ThisMachine, "home", "state_url")


def show_answer(answer: Any, show: Print, *, as_json: bool) -> None:
    """Print an answer as JSON, or its text."""
    if as_json:
        show_json(answer)
    elif isinstance(show, str):
        click.echo(show)
    else:
        show(answer)


def show_json(value: Any) -> None:
    """Print a value as indented JSON."""
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2))


def show_table(columns: Sequence[str], lines: Sequence[Sequence[object]]) -> None:
    """Print lines under their columns' names, as wide as they need."""
    cells = [["-" if value is None else printable(str(value)) for value in line] for line in lines]
    widths = [
        max(len(name), *(len(line[index]) for line in cells)) if cells else len(name)
        for index, name in enumerate(columns)
    ]
    for line in [list(columns), *cells]:
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        click.echo("  ".join(padded).rstrip())


def table_of(columns: str, /, **cells: Callable[[Any], object]) -> Callable[[Any], None]:
    """Return a function that prints an answer as ``show_rows`` does."""
    return lambda answer: show_rows(answer, columns, **cells)


def show_rows(answer: Any, columns: str, /, **cells: Callable[[Any], object]) -> None:
    """Print a line for each row of an answer: a list, a page of one, or a row by itself.

    Columns such as ``ID:id, TRAINING:split.training`` name an attribute of the rows; ``cells``
    return the texts of columns without one.
    """
    rows = getattr(answer, "data", answer)
    if not isinstance(rows, Sequence):
        rows = [rows]
    named = [column.partition(":")[::2] for column in columns.split(", ")]
    lines = [[_value(row, name, cells) for _, name in named] for row in rows]
    show_table([heading for heading, _ in named], lines)


def show_fields(row: object, columns: str, /, **cells: Callable[[Any], object]) -> None:
    """Print a line for each of a row's fields, such as ``id, training:split.training``.

    A field has the name of its attribute where it has none before it; ``cells`` as in ``show_rows``.
    """
    named = [column.rpartition(":")[::2] for column in columns.split(", ")]
    lines = [(heading or name, _value(row, name, cells)) for heading, name in named]
    show_table(("FIELD", "VALUE"), lines)


def _value(row: object, name: str, cells: dict[str, Callable[[Any], object]]) -> object:
    value = cells.get(name, attrgetter(name))(row)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and name.endswith(("_at", "_since")):
        return show_time(value)
    return value


def show_time(at: float | None) -> str | None:
    """Return a time in Unix seconds as UTC text, ``2026-11-21 07:00``."""
    import datetime as dt

    if at is None:
        return None
    return f"{dt.datetime.fromtimestamp(at, dt.UTC):%Y-%m-%d %H:%M}"
