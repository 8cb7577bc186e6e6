"""Readers as ``models.toml`` has them, and the one that ships."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any, Final

from steelyard.scoring.entailment.folder import CONFIG
from steelyard.scoring.shipped import BASE
from steelyard.serving.connected.declared import ConnectedModel, ModelsFile
from steelyard.serving.reader.catalogue import SHIPPED, ReaderEntry

WIRE: Final = "entailment"
#: The reader that ships, where its folder does; and below a home, where downloaded ones are.
BUNDLED, FOLDER = BASE.parent / SHIPPED, "models"


def has_bundled() -> bool:
    """Whether a reader ships with this installation."""
    return (BUNDLED / CONFIG).is_file()


def folder_of(home: Path, entry: ReaderEntry) -> Path:
    """Return where a home has a reader of the catalogue, once that is downloaded."""
    return home / FOLDER / entry.repository.rpartition("/")[2].lower()


def reader_model(folder: Path, **options: Any) -> ConnectedModel:
    """Return how a reader in a folder is declared."""
    return ConnectedModel(wire=WIRE, file=str(folder), teacher=True, **options)


def declare_reader(declared: ModelsFile, name: str, folder: Path) -> ModelsFile:
    """Return the entries with a downloaded reader; its calibrations stay where the folder is the same."""
    known = declared.models.get(name)
    if known is not None and known.file == str(folder):
        return declared
    model = reader_model(folder, added=dt.datetime.now(dt.UTC).date())
    return declared.with_model(name, model)
