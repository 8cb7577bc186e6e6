"""Blocks of tokens to the rows of one pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.scoring.packing import NO_CHANNEL, NOTHING

#: Rows are filled up to this length; attention is dense within a row.
ROW_LENGTH = 128


@dataclass(frozen=True, slots=True)
class Tokens:
    """Some tokens of one or several layouts, ids already told apart.

    Parameters
    ----------
    ids, positions, roles : int32 arrays of shape (n_tokens,)
    blocks : int32 array of shape (n_tokens, 5)
    """

    ids: NDArray[np.int32]
    positions: NDArray[np.int32]
    roles: NDArray[np.int32]
    blocks: NDArray[np.int32]

    def __len__(self) -> int:
        """Count the tokens."""
        return int(self.ids.shape[0])

    def part(self, start: int, stop: int) -> Tokens:
        """Give a run of the tokens."""
        return Tokens(
            self.ids[start:stop],
            self.positions[start:stop],
            self.roles[start:stop],
            self.blocks[start:stop],
        )


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a pass, and where each unit of tokens went.

    Parameters
    ----------
    ids, positions, roles : int32 arrays of shape (n_rows, length)
    blocks : int32 array of shape (n_rows, length, 5)
    starts : tuple of int
        For each unit, the flat index (row * length + column) of its first token.
    """

    ids: NDArray[np.int32]
    positions: NDArray[np.int32]
    roles: NDArray[np.int32]
    blocks: NDArray[np.int32]
    starts: tuple[int, ...]


def fill_rows(units: Sequence[Tokens], row_length: int = ROW_LENGTH) -> Rows:
    """Place units in rows; a unit is never split.

    Parameters
    ----------
    units : sequence of Tokens
        At least one.
    row_length : int, default ``ROW_LENGTH``
        Rows are of this length or of the longest unit's, whichever needs less padding; longer
        only where a unit is.
    """
    lengths = [len(unit) for unit in units]
    longest = max(lengths)
    length, starts, n_rows = min(
        (place(lengths, length) for length in sorted({longest, max(longest, row_length)})),
        key=lambda placed: placed[0] * placed[2],
    )
    ids, positions, roles = (np.zeros(n_rows * length, np.int32) for _ in range(3))
    # Padding is a block of its own that nobody listens to.
    blocks = np.full((n_rows * length, 5), NOTHING, np.int32)
    blocks[:, :2] = 0, NO_CHANNEL
    for unit, start in zip(units, starts, strict=True):
        part = slice(start, start + len(unit))
        ids[part], positions[part], roles[part] = unit.ids, unit.positions, unit.roles
        blocks[part] = unit.blocks
    shape = (n_rows, length)
    return Rows(
        ids.reshape(shape),
        positions.reshape(shape),
        roles.reshape(shape),
        blocks.reshape(*shape, 5),
        tuple(starts),
    )


def place(lengths: Sequence[int], length: int) -> tuple[int, list[int], int]:
    """Place units first fit by decreasing length.

    Parameters
    ----------
    lengths : sequence of int
        Tokens of each unit, none more than ``length``.
    length : int
        Tokens of a row.

    Returns
    -------
    int, list of int, int
        ``length``, each unit's flat start (row * length + column), and the number of rows.
    """
    free: list[int] = []
    starts = [0] * len(lengths)
    first_open = 0
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        size = lengths[index]
        row = next((r for r in range(first_open, len(free)) if free[r] >= size), len(free))
        if row == len(free):
            free.append(length)
        starts[index] = row * length + length - free[row]
        free[row] -= size
        while first_open < len(free) and free[first_open] == 0:
            first_open += 1
    return length, starts, len(free)
