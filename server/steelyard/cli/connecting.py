"""Commands that ask a running server: their options, and the client that they ask with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from steelyard.cli.local_state import source_options

if TYPE_CHECKING:
    from steelyard.client import Client, ClientOptions
    from steelyard.settings import Settings


@dataclass(frozen=True, slots=True)
class Server:
    """The server that a command calls, and how its answers are printed."""

    url: str | None
    api_key: str | None
    as_json: bool

    @contextmanager
    def connected(self) -> Iterator[Client]:
        """Yield a client; the environment and the defaults stand behind the options."""
        from steelyard.client import Client

        with Client(client_options(client_settings(url=self.url, api_key=self.api_key))) as client:
            yield client


def client_settings(*, url: str | None, **given: str | None) -> Settings:
    """Return the settings of a client; where none is named, its server is the one of the home."""
    from steelyard.cli.serve import address_of_running
    from steelyard.settings import home_of, read_settings

    overrides = {"url": url, **given}
    settings = read_settings(overrides)
    running = None if url else address_of_running(home_of(settings))
    return settings if running is None else read_settings(overrides, defaults={"url": running})


def client_options(settings: Settings) -> ClientOptions:
    """Return the options of a client; an address that is none is a usage error."""
    from steelyard.client import ClientOptions

    try:
        return ClientOptions(settings.url, settings.api_key)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def dataset_id_of(client: Client, dataset: str) -> str:
    """Return the id of the dataset with a name; return other texts unchanged."""
    if dataset.startswith("ds_"):
        return dataset
    ids = [each.id for each in client.datasets.iterate() if each.name == dataset]
    if len(ids) > 1:
        raise click.UsageError(f"{len(ids)} datasets are named {dataset}; give {' or '.join(ids)}.")
    return ids[0] if ids else dataset


server_options = source_options(Server, "url", "api_key")
