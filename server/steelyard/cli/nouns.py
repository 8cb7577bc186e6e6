"""The commands of one noun of a server: the call that each makes, and how its answer is printed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from steelyard.cli.connecting import Server, dataset_id_of, server_options
from steelyard.cli.failures import FAILED
from steelyard.cli.local_state import Print, show_answer

if TYPE_CHECKING:
    from steelyard.client import Client

#: An answer, its text or the function that prints it, and where it may fail, whether the command
#: ends with 1, or why.
Shown: TypeAlias = tuple[Any, Print] | tuple[Any, Print, bool | str]
#: Adds the options of a command's source, a server or this machine, which is its first argument.
SourceOptions: TypeAlias = Callable[[Callable[..., None]], Callable[..., None]]
#: Yields a client of a server, or what a command asks of this machine, for its source.
Connect: TypeAlias = Callable[[Any], AbstractContextManager[Any]]


def asking(
    name: str,
    *arguments: str,
    options: SourceOptions = server_options,
    connect: Connect | None = None,
    epilog: str | None = None,
    help: str | None = None,  # noqa: A002
) -> Callable[[Callable[..., Shown]], click.Command]:
    """Return a decorator that makes a command of a function that calls a client.

    The function takes the client, ``arguments`` and its options, and returns an answer and its
    printer. Its docstring is the help where none is given.
    """

    def make(ask: Callable[..., Shown]) -> click.Command:
        own_options = vars(ask).pop("__click_params__", [])

        @options
        @functools.wraps(ask)
        def run(source: Any, /, **given: Any) -> None:
            with source.connected() if connect is None else connect(source) as client:
                if isinstance(source, Server):
                    given |= _dataset_ids(client, given)
                answer, show, *failures = ask(client, **given)
                show_answer(answer, show, as_json=source.as_json)
            for failure in filter(None, failures):
                if isinstance(failure, str):
                    raise click.ClickException(failure)
                raise click.exceptions.Exit(FAILED)

        vars(run)["__click_params__"] += own_options
        for argument in reversed(arguments):
            run = click.argument(argument)(run)
        return click.command(name, epilog=epilog, help=help)(run)

    return make


def _dataset_ids(client: Client, given: Mapping[str, Any]) -> dict[str, str]:
    """Return the ids of the parameters that are a dataset, by id or name."""
    return {
        name: dataset_id_of(client, given[name])
        for name in ("dataset", "dataset_id")
        if isinstance(given.get(name), str)
    }


class Noun(click.Group):
    """A group of commands that ask a server, or this machine where its options are given.

    ``repeats_examples``: whether each command shows the examples of all.
    """

    def __init__(
        self,
        *args: Any,
        options: SourceOptions = server_options,
        connect: Connect | None = None,
        repeats_examples: bool = True,
        **attributes: Any,
    ) -> None:
        super().__init__(*args, **attributes)
        self._attributes = {
            "options": options,
            "connect": connect,
            "epilog": self.epilog if repeats_examples else None,
        }

    def asks(
        self, name: str, *arguments: str, **attributes: Any
    ) -> Callable[[Callable[..., Shown]], click.Command]:
        """Return a decorator that adds a command of ``asking`` to the group."""

        def add(ask: Callable[..., Shown]) -> click.Command:
            command = asking(name, *arguments, **{**self._attributes, **attributes})(ask)
            self.add_command(command)
            return command

        return add
