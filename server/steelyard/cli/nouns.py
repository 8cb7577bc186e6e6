"""The commands of one noun of a server: the call that each makes, and how its answer is printed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

import click

from steelyard.cli.connecting import Server, server_options
from steelyard.cli.failures import FAILED
from steelyard.cli.local_state import Print, account_options

#: An answer, its text or the function that prints it, and where it may fail, whether the command
#: ends with 1, or why.
Shown: TypeAlias = tuple[Any, Print] | tuple[Any, Print, bool | str]
#: Yields a client of a server, or a service of this machine's state, for a command's options.
Connect: TypeAlias = Callable[[Any], AbstractContextManager[Any]]


def asking(
    name: str,
    *arguments: str,
    connect: Connect = Server.connected,
    is_local: bool = False,
    epilog: str | None = None,
    help: str | None = None,  # noqa: A002
) -> Callable[[Callable[..., Shown]], click.Command]:
    """Return a decorator that makes a command of a function that calls a client.

    The function takes the client, ``arguments`` and its options, and returns an answer and its
    printer. Its docstring is the help where none is given. A local command takes the accounts of
    this machine's state in place of a server.
    """
    source, source_options = ("local", account_options) if is_local else ("server", server_options)

    def make(ask: Callable[..., Shown]) -> click.Command:
        options = vars(ask).pop("__click_params__", [])

        @source_options
        @functools.wraps(ask)
        def run(**given: Any) -> None:
            target = given.pop(source)
            with connect(target) as client:
                answer, show, *failures = ask(client, **given)
                target.show(answer, show)
            for failure in filter(None, failures):
                if isinstance(failure, str):
                    raise click.ClickException(failure)
                raise click.exceptions.Exit(FAILED)

        vars(run)["__click_params__"] += options
        for argument in reversed(arguments):
            run = click.argument(argument)(run)
        return click.command(name, epilog=epilog, help=help)(run)

    return make


class Noun(click.Group):
    """A group of commands that ask a server, or this machine's state where it is local.

    ``repeats_examples``: whether each command shows the examples of all.
    """

    def __init__(
        self,
        *args: Any,
        connect: Connect = Server.connected,
        is_local: bool = False,
        repeats_examples: bool = True,
        **attributes: Any,
    ) -> None:
        super().__init__(*args, **attributes)
        self._attributes = {
            "connect": connect,
            "is_local": is_local,
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
