"""The rows of a dataset that ask one decision in the same words, for a search and for its test."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from steelyard.datasets.version_service import LabelledRow
from steelyard.decisions.kinds import Decision
from steelyard.decisions.rendering import render_context
from steelyard.decisions.validation import decisions_of
from steelyard.errors import ImagesNotSupportedError
from steelyard.wire.violations import BODY

FloatArray = NDArray[np.float64]

#: Training rows that wordings are judged on during the search, and evaluation rows of the test.
VALIDATION_ROWS, TEST_ROWS = 400, 1_000
#: Training rows whose labels are held against the model.
CHECKED_ROWS = 1_000
_CACHED_DECISIONS = 1024


@dataclass(frozen=True, slots=True)
class AskedRows:
    """Rows that ask a decision, as the model reads them."""

    indexes: tuple[int, ...]
    contexts: tuple[str, ...]
    #: Of the contexts, so that equal ones are known.
    keys: tuple[str, ...]
    targets: FloatArray  # (n_rows, n_outcomes)

    def __len__(self) -> int:
        return len(self.indexes)

    def at(self, places: Iterable[int]) -> AskedRows:
        """Return some of the rows, by place."""
        chosen = list(places)
        return AskedRows(
            tuple(self.indexes[place] for place in chosen),
            tuple(self.contexts[place] for place in chosen),
            tuple(self.keys[place] for place in chosen),
            self.targets[chosen],
        )

    def sample(self, most: int) -> AskedRows:
        """Return at most so many rows, the same ones each time, in their order."""
        if len(self) <= most:
            return self
        order = sorted(range(len(self)), key=lambda place: (self.keys[place], place))
        return self.at(sorted(order[:most]))

    @property
    def labels(self) -> list[int]:
        """The likeliest outcome of each row, by place."""
        return [int(place) for place in self.targets.argmax(axis=1)]

    @property
    def context_places(self) -> NDArray[np.int64]:
        """The place of each row's context among the different ones."""
        return np.unique(np.array(self.keys), return_inverse=True)[1].astype(np.int64)


def read_decision(sent: Any) -> Decision:
    """Return a stored decision without its policy and its guideline."""
    return dataclasses.replace(decisions_of([sent])[0], policy=None, guideline="")


def rows_asking(rows: Iterable[LabelledRow], decision: Decision) -> tuple[AskedRows, int]:
    """Return the labelled rows that ask a decision in its words, and how many word it otherwise."""
    names = decision.outcomes.names
    asks = lru_cache(_CACHED_DECISIONS)(
        lambda sent: read_decision(msgspec.json.decode(sent)) == decision
    )
    indexes, contexts, keys, targets, n_otherwise = [], [], [], [], 0
    for row in rows:
        sent = next((entry for entry in row.decisions if entry["id"] == decision.id), None)
        target = row.labels.get(decision.id)
        if sent is None or target is None:
            continue
        if row.images:
            raise ImagesNotSupportedError(
                f"Row {row.index} has images, and wordings are tuned on text alone; make a dataset of "
                "rows without images.",
                path=(*BODY, "dataset_id"),
            )
        if not asks(msgspec.json.encode(sent)):
            n_otherwise += 1
            continue
        indexes.append(row.index)
        contexts.append(render_context(row.context))
        keys.append(row.context_sha256)
        targets.append([float(target.get(name, 0.0)) for name in names])
    table = np.array(targets, dtype=np.float64).reshape(len(targets), len(names))
    return AskedRows(tuple(indexes), tuple(contexts), tuple(keys), table), n_otherwise


def learn_and_validate(rows: AskedRows) -> tuple[AskedRows, AskedRows]:
    """Return the rows that wordings are made of, and judged on; equal contexts are on one side."""
    is_first = [hashlib.sha256(key.encode()).digest()[0] % 2 == 0 for key in rows.keys]
    learnt = rows.at(place for place, flag in enumerate(is_first) if flag)
    judged = rows.at(place for place, flag in enumerate(is_first) if not flag)
    return learnt, judged.sample(VALIDATION_ROWS)
