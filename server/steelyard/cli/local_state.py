"""The state opened by a command, beside a server that may run on it, and tables of its rows."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from steelyard.cli.options import json_option, setting_option
from steelyard.cli.terminal import printable

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.accounts.service import AccountService
    from steelyard.people.member_service import Members
    from steelyard.serving.connected.declared import ConnectedModel, ModelsFile
    from steelyard.storage import State


#: The text of an answer, or the function that prints it.
Print: TypeAlias = str | Callable[[Any], object]


def home_folder(home: str | None) -> Path:
    """Return the home that an option and the settings name."""
    from steelyard.settings import home_of, read_settings

    return home_of(read_settings({"home": home}))


@contextmanager
def local_state(home: str | None, state_url: str | None) -> Iterator[State]:
    """Open the state."""
    from steelyard.settings import read_settings
    from steelyard.storage import open_state
    from steelyard.storage.home import state_url_of

    url = state_url_of(read_settings({"home": home, "state_url": state_url}))
    with closing(open_state(url)) as state:
        yield state


def declared_models(home: str | None) -> ModelsFile:
    """Return the connected models and routes."""
    from steelyard.serving.connected.declarations import declared_in
    from steelyard.settings import read_settings

    return declared_in(read_settings({"home": home}))


def models_here(home: str | None) -> dict[str, ConnectedModel]:
    """Return the connected models, with where their files are on this machine."""
    from steelyard.serving.connected.files import declared_in_place
    from steelyard.settings import read_settings

    return declared_in_place(read_settings({"home": home})).models


def change_declared(home: str | None, change: Callable[[ModelsFile], ModelsFile]) -> None:
    """Write what a function returns of the connected models and routes."""
    from steelyard.serving.connected.declarations import open_declarations
    from steelyard.settings import read_settings

    with open_declarations(read_settings({"home": home})) as declarations:
        declarations.change(change)


@dataclass(frozen=True, slots=True)
class LocalAccounts:
    """The accounts in this machine's state, as the options of a command name it."""

    home: str | None
    state_url: str | None
    as_json: bool

    @contextmanager
    def opened(self) -> Iterator[AccountService]:
        """Open the state and yield the accounts in it."""
        from steelyard.accounts.service import AccountService
        from steelyard.settings import read_settings

        settings = read_settings({"home": self.home, "state_url": self.state_url})
        with local_state(self.home, self.state_url) as state:
            yield AccountService(state, accounts_enabled=settings.accounts == "on")

    @contextmanager
    def opened_members(self) -> Iterator[Members]:
        """Open the state and yield the members of its accounts."""
        from steelyard.people.mail_service import MailRoom
        from steelyard.people.member_service import Members
        from steelyard.settings import read_settings

        settings = read_settings({"home": self.home, "state_url": self.state_url})
        with local_state(self.home, self.state_url) as state:
            yield Members(state, MailRoom(state, settings))

    def show(self, answer: Any, show: Print) -> None:
        """Print an answer as JSON where that was chosen, and as ``show`` does elsewhere."""
        show_answer(answer, show, as_json=self.as_json)


def account_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the state and the choice of JSON: the argument ``local``."""

    @json_option
    @setting_option("home")
    @setting_option("state_url")
    @functools.wraps(command)
    def opening(*, home: str | None, state_url: str | None, as_json: bool, **given: Any) -> None:
        command(local=LocalAccounts(home, state_url, as_json), **given)

    return opening


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
    cells = [[_cell(value) for value in line] for line in lines]
    widths = [
        max(len(name), *(len(line[index]) for line in cells)) if cells else len(name)
        for index, name in enumerate(columns)
    ]
    for line in [list(columns), *cells]:
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        click.echo("  ".join(padded).rstrip())


def show_rows(rows: Iterable[object], columns: str, /, **cells: Callable[[Any], object]) -> None:
    """Print a line for each row under columns such as ``ID:id, TRAINING:split.training``.

    Each names an attribute of the rows; ``cells`` return the texts of columns without one.
    """
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


def _cell(value: object) -> str:
    return "-" if value is None else printable(str(value))
