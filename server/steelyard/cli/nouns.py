"""The commands of one noun of a server: the call that each makes, and how its answer is printed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from steelyard.cli.connecting import Server, server_options

if TYPE_CHECKING:
    from steelyard.client import Client

#: An answer, and the function that prints it.
Shown: TypeAlias = tuple[Any, Callable[[Any], object]]


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
        """Return a decorator that makes a command of a function that calls a client.

        The function takes the client, ``arguments`` and its options, and returns an answer and its
        printer. Its docstring is the help, unless ``attributes`` of the command have one.
        """

        def add(ask: Callable[..., Shown]) -> click.Command:
            options = vars(ask).pop("__click_params__", [])

            @server_options
            @functools.wraps(ask)
            def run(*, server: Server, **given: Any) -> None:
                with self.connect(server) as client:
                    answer, show = ask(client, **given)
                server.show(answer, show)

            vars(run)["__click_params__"] += options
            for argument in reversed(arguments):
                run = click.argument(argument)(run)
            epilog = self.epilog if self.repeats_examples else None
            return self.command(name, **{"epilog": epilog, **attributes})(run)

        return add
