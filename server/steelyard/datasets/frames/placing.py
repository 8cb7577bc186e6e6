"""Which rows of a request are new, and on which side each context is.

A context has one side, and rows that are equal have equal contexts. So all of this can be seen in
the contexts in one range of hashes without looking at any other, and memory holds one range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from steelyard.datasets.frames.picking import EvaluationPick
from steelyard.datasets.frames.rows import SIDE_NUMBERS
from steelyard.datasets.frames.staging import StagedRows, hash_ranges
from steelyard.datasets.wire import SIDES, Side

#: About how many rows a range of contexts has.
RANGE_ROWS = 1 << 16
#: Of a row that is not new, and of one whose context's side is picked.
_OLD, _PICKED = np.int8(0), np.int8(3)

#: Gives the rows of the version before that are on some contexts: ``row_sha256``,
#: ``context_sha256`` and ``side``.
FindKnown = Callable[[pl.Series], pl.DataFrame]


@dataclass(frozen=True, slots=True, order=True)
class SideConflict:
    """A row that was sent for another side than its context is on."""

    place: int
    named: Side
    side: Side


class PlacedRows:
    """Where every staged row belongs."""

    def __init__(self, staged: StagedRows, pick: EvaluationPick) -> None:
        self._staged = staged
        self._pick = pick
        self._ranges = hash_ranges(max(1, -(-staged.n_rows // RANGE_ROWS)))
        #: One byte a row: the number of its side.
        self._codes: NDArray[np.int8] = np.zeros(staged.n_rows, dtype=np.int8)
        self._new_contexts: dict[Side, int] = dict.fromkeys(SIDES, 0)
        self.n_conflicts = 0
        self.conflicts: list[SideConflict] = []
        self.n_new = 0

    def place(
        self, find_known: FindKnown | None, retired: pl.DataFrame | None, *, max_listed: int
    ) -> None:
        """Look at every row."""
        for hash_range in self._ranges:
            keys = self._staged.keys(hash_range)
            if keys.is_empty():
                continue
            known = None
            if find_known is not None:
                known = find_known(keys["context_sha256"].unique())
            contexts = _Contexts(keys, known, retired)
            conflicts = contexts.settle()
            self.n_conflicts += len(conflicts)
            self.conflicts = sorted([*self.conflicts, *conflicts[:max_listed]])[:max_listed]
            self._pick.offer(contexts.open_hashes())
            hashes = keys["row_sha256"]
            is_new = hashes.is_first_distinct().to_numpy()
            if known is not None:
                is_new = is_new & ~hashes.is_in(known["row_sha256"].implode()).to_numpy()
            self.n_new += int(is_new.sum())
            self._codes[keys["place"].to_numpy()] = np.where(is_new, contexts.codes(), _OLD)
            for side in SIDES:
                self._new_contexts[side] += contexts.count_new(side)

    def new_hashes(self) -> Iterator[bytes]:
        """Yield the hash of every new row, sorted."""
        is_new = self._codes != _OLD
        for hash_range in self._ranges:
            yield from self._staged.row_hashes(hash_range, is_new)

    def side_numbers(self, start: int, context_hashes: pa.ChunkedArray) -> NDArray[np.int8]:
        """Return the numbers of the sides of some rows, once sides were picked.

        0 for rows that the dataset has, and for all but the first of equal rows.
        """
        codes = self._codes[start : start + len(context_hashes)].copy()
        is_picked = codes == _PICKED
        picked = context_hashes.filter(pa.array(is_picked)).to_pylist()
        is_evaluation = self._pick.is_evaluation(picked)
        codes[is_picked] = np.where(
            is_evaluation, SIDE_NUMBERS["evaluation"], SIDE_NUMBERS["training"]
        )
        return codes

    def count_new_contexts(self) -> dict[Side, int]:
        """Count the contexts that no version had before by their sides, once those were picked."""
        n_picked = {
            "evaluation": self._pick.n_picked,
            "training": self._pick.n_offered - self._pick.n_picked,
        }
        return {side: self._new_contexts[side] + n_picked[side] for side in SIDES}


class _Contexts:
    """The contexts of some rows, each once, and the sides that they are on.

    Rows hold the number of their context, and sides are numbers too (0 for none yet).
    """

    def __init__(
        self, keys: pl.DataFrame, known: pl.DataFrame | None, retired: pl.DataFrame | None
    ) -> None:
        self._places = keys["place"].to_numpy()
        self._number = keys["context_sha256"].rank("dense").to_numpy() - 1
        self._hashes = keys["context_sha256"].unique().sort()
        self._named = keys["named"].to_numpy()
        self._side: NDArray[np.int8] = np.zeros(len(self._hashes), dtype=np.int8)
        if known is not None:
            self._side = self._sides_in(known)
        self._is_new = self._side == 0
        if retired is not None:
            # A context whose rows were all removed comes back to its side, as a new one.
            self._side = np.where(self._is_new, self._sides_in(retired), self._side)

    def _sides_in(self, known: pl.DataFrame) -> NDArray[np.int8]:
        once = known.select("context_sha256", "side").unique("context_sha256")
        frame = self._hashes.to_frame().join(
            once, on="context_sha256", how="left", maintain_order="left"
        )
        number = pl.col("side").replace_strict(SIDE_NUMBERS, default=0, return_dtype=pl.Int8)
        sides: NDArray[np.int8] = frame.select(number).to_series().to_numpy().copy()
        return sides

    def settle(self) -> list[SideConflict]:
        """Put new contexts on the side named first; return the rows sent for another side."""
        named = np.flatnonzero(self._named)
        numbers = self._number[named]
        first = named[np.unique(numbers, return_index=True)[1]]
        fresh = first[self._side[self._number[first]] == 0]
        self._side[self._number[fresh]] = self._named[fresh]
        conflicts = named[self._named[named] != self._side[numbers]]
        return [
            SideConflict(
                place=int(self._places[row]),
                named=SIDES[self._named[row] - 1],
                side=SIDES[self._side[self._number[row]] - 1],
            )
            for row in conflicts
        ]

    def open_hashes(self) -> pl.Series:
        """Return the hashes of the contexts that have no side yet."""
        return self._hashes.filter(pl.Series(self._side == 0))

    def codes(self) -> NDArray[np.int8]:
        """Return, by row, the number of its side; ``_PICKED`` where there is none yet."""
        sides = self._side[self._number]
        codes: NDArray[np.int8] = np.where(sides == 0, _PICKED, sides)
        return codes

    def count_new(self, side: Side) -> int:
        """Count the contexts of a side, which is known, that no version had before."""
        return int((self._is_new & (self._side == SIDE_NUMBERS[side])).sum())
