"""Readers that can be downloaded, as ``catalogue.toml`` beside this module lists them."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from steelyard.wire.decoding import convert

#: The names of the recommended reader and of the one that ships.
READER, SHIPPED = "reader", "steelyard-reader-1"
#: Of the reader that ships, in the route ``auto``: see its card.
SHIPPED_MEASURED = "yes/no .75 right, log loss .51, AUC .82 in auto (100 questions)"


class ReaderEntry(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A reader that can be downloaded."""

    #: On the hub.
    repository: str
    licence: str
    tokenizer: str = "tokenizer.json"
    config: str = "config.json"
    #: Most tokens of a context's part with a statement.
    context: int
    #: Of all files together, about; the hub says it when they are downloaded.
    bytes: int
    #: How good we found it; empty where it was not measured by us.
    measured: str = ""
    recommended: Literal["", "good"] = ""


@functools.cache
def read_readers() -> Mapping[str, ReaderEntry]:
    """Return the readers by name, the recommended one first."""
    content = Path(__file__).with_name("catalogue.toml").read_bytes()
    return convert(msgspec.toml.decode(content), dict[str, ReaderEntry])


def find_reader(name: str) -> tuple[str, ReaderEntry] | None:
    """Return the name and entry of a reader that is named by either, or by its repository."""
    entries = read_readers()
    if name in entries:
        return name, entries[name]
    sought = name.lower()
    for known, entry in entries.items():
        repository = entry.repository.lower()
        if sought in {repository, repository.rpartition("/")[2]}:
            return known, entry
    return None
