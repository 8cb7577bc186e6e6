"""The commands of one noun of a server: the call that each makes, and how its answer is printed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from steelyard.cli.connecting import Server, server_options
from steelyard.cli.failures import FAILED

if TYPE_CHECKING:
    from steelyard.client import Client

_Print: TypeAlias = Callable[[Any], object]
#: An answer, the function that prints it, and where it may fail, whether the command ends with 1.
Shown: TypeAlias = tuple[Any, _Print] | tuple[Any, _Print, bool]


def asking(
    name: str,
    *arguments: str,
    connect: Callable[[Server], AbstractContextManager[Client]] = Server.connected,
    epilog: str | None = None,
    help: str | None = None,  # noqa: A002
) -> Callable[[Callable[..., Shown]], click.Command]:
    """Return a decorator that makes a command of a function that calls a client.

    The function takes the client, ``arguments`` and its options, and returns an answer and its
    printer. Its docstring is the help where none is given.
    """

    def make(ask: Callable[..., Shown]) -> click.Command:
        options = vars(ask).pop("__click_params__", [])

        @server_options
        @functools.wraps(ask)
        def run(*, server: Server, **given: Any) -> None:
            with connect(server) as client:
                answer, show, *failed = ask(client, **given)
            server.show(answer, show)
            if any(failed):
                raise click.exceptions.Exit(FAILED)

        vars(run)["__click_params__"] += options
        for argument in reversed(arguments):
            run = click.argument(argument)(run)
        return click.command(name, epilog=epilog, help=help)(run)

    return make


class Noun(click.Group):
    """A group of commands that ask a server."""

    #: Whether each command shows the examples of all.
    repeats_examples = True

    @staticmethod
    def connect(server: Server) -> AbstractContextManager[Client]:
        """Yield the client that commands ask with."""
        return server.connected()

    def asks(
        self, name: str, *arguments: str, **attributes: Any
    ) -> Callable[[Callable[..., Shown]], click.Command]:
        """Return a decorator that adds a command of ``asking`` to the group."""

        def add(ask: Callable[..., Shown]) -> click.Command:
            epilog = self.epilog if self.repeats_examples else None
            options = {"connect": self.connect, "epilog": epilog, **attributes}
            command = asking(name, *arguments, **options)(ask)
            self.add_command(command)
            return command

        return add
