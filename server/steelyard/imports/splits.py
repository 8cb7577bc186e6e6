"""Splits that other programs made: which side of a dataset the rows of each are on."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Literal

Side = Literal["training", "evaluation"]

_SIDES: dict[str, Side] = {
    "train": "training",
    "training": "training",
    "test": "evaluation",
    "testing": "evaluation",
    "publictest": "evaluation",
    "privatetest": "evaluation",
    "validation": "evaluation",
    "valid": "evaluation",
    "val": "evaluation",
    "dev": "evaluation",
    "eval": "evaluation",
    "evaluation": "evaluation",
    "heldout": "evaluation",
    "holdout": "evaluation",
}
#: Names of columns that say of which split a row is.
COLUMNS = frozenset(
    {
        *("split", "splits", "partition", "subset", "side", "dataset_split", "data_split"),
        "dataitemresourcelabels",  # Vertex AI
    }
)


def side_of(split: object) -> Side | None:
    """Return the side of a split by its name; ``None`` where the name says nothing.

    >>> side_of("Test"), side_of("unsupervised")
    ('evaluation', None)
    """
    return _SIDES.get(re.sub(r"[^a-z]", "", str(split).lower()))


def split_of(path: PurePath) -> str | None:
    """Return the split that a file's name or folder tells.

    >>> split_of(PurePath("data/validation-00000-of-00001.parquet")), split_of(PurePath("rows.csv"))
    ('validation', None)
    """
    for name in (path.stem, *reversed(path.parts[:-1])):
        for word in re.split(r"[^A-Za-z]+", name):
            if side_of(word) is not None:
                return word
    return None
