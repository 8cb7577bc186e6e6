"""Commands that ask a running server: their options, and the client that they ask with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from steelyard.cli.options import setting_option

if TYPE_CHECKING:
    from steelyard.client import Client

_Command = TypeVar("_Command", bound=Callable[..., Any])


def server_options(command: _Command) -> _Command:
    """Add the server's address, its key, and the choice of JSON."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print as JSON."),
        setting_option("api_key"),
        setting_option("url"),
    ):
        command = option(command)
    return command


@contextmanager
def connected(url: str | None, api_key: str | None) -> Iterator[Client]:
    """Yield a client of the server of the options; the environment and defaults stand behind them.

    Raises
    ------
    click.UsageError
        When the address or the key cannot be used.
    """
    from steelyard.client import Client, ClientOptions
    from steelyard.settings import read_settings

    settings = read_settings({"url": url, "api_key": api_key})
    try:
        options = ClientOptions(settings.url, settings.api_key)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    with Client(options) as client:
        yield client
