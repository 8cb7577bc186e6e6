"""Rows of a file sent to a server: all of its pieces are stored, or none."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from steelyard.client.tables.converted import Converted
from steelyard.client.uploads import rows_to_create
from steelyard.datasets.wire import Dataset
from steelyard.errors import SteelyardError

if TYPE_CHECKING:
    from steelyard.client import Client


def create_whole(client: Client, name: str, made: Converted, **options: Any) -> Dataset:
    """Return the dataset that was made of a file; one whose later pieces fail is deleted again.

    ``options`` are those of ``datasets.create``.
    """
    upload = rows_to_create(name, made.parts, on_refused=made, **options)
    try:
        return client.datasets.send_rows(upload)
    except BaseException as error:  # Ctrl-C too
        if upload.made is not None:
            with suppress(SteelyardError):
                client.datasets.delete(upload.made.id)
                error.__notes__ = []  # which say that the rows sent before are there
        raise
