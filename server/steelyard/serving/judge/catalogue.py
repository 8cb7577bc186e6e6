"""Language models that can be downloaded as judges, as ``catalogue.toml`` beside this module lists them."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from steelyard.wire.decoding import convert


class CatalogueEntry(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A model that can be downloaded."""

    #: On the hub.
    repository: str
    #: In the repository; a pattern where its name is known in part, which one file must match.
    file: str
    licence: str
    #: Tokens that it was trained to read; 0 where that is not known.
    context: int = 0
    #: Of the file; about, where its hash is empty, and 0 where it is known at the download alone.
    bytes: int = 0
    #: Empty where the hub's metadata say so when it is downloaded.
    sha256: str = ""
    #: How good we found it; empty where it was not measured by us.
    measured: str = ""
    #: For whom it is the first to try; empty for all but three.
    recommended: Literal["", "small", "good", "best"] = ""


@functools.cache
def read_catalogue() -> Mapping[str, CatalogueEntry]:
    """Return the models by name."""
    content = Path(__file__).with_name("catalogue.toml").read_bytes()
    return convert(msgspec.toml.decode(content), dict[str, CatalogueEntry])
