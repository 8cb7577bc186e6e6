"""Blocks of tokens to the rows of one pass, and the keys that each row attends to.

Tokens of a pass lie one after another and are cut into rows of one length, wherever that falls. A
row attends to the tokens that any of its own may see, wherever they are, so attention costs as much
as there is to see and no more.

Contexts' keys are apart from the others: what a token hears of its context is then summed by
itself, as it is when the context was read by an earlier pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from steelyard.scoring.packing import NO_CHANNEL, NOTHING, ROLE_CONTEXT

#: Tokens of a row at most. Shorter rows see fewer tokens that are not for them, and gather more.
ROW_LENGTH = 96
#: A key that is none: rows see different numbers of tokens.
NO_KEY = -1
#: Keys of a row up to which a matrix product adds up its terms in one go. Beyond, where a partial
#: sum ends would depend on what else the row sees.
MAX_KEYS = 512


@dataclass(frozen=True, slots=True)
class Tokens:
    """Some tokens of one or several layouts, ids already told apart.

    Each array is int32 of shape (n_tokens,), ``blocks`` of (n_tokens, 5).
    """

    ids: NDArray[np.int32]
    positions: NDArray[np.int32]
    roles: NDArray[np.int32]
    blocks: NDArray[np.int32]

    def __len__(self) -> int:
        return int(self.ids.shape[0])

    def part(self, start: int, stop: int) -> Tokens:
        """Return a run of the tokens."""
        return Tokens(
            self.ids[start:stop],
            self.positions[start:stop],
            self.roles[start:stop],
            self.blocks[start:stop],
        )


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a pass, (n_rows, length), and where each unit of tokens starts.

    ``context_keys`` and ``keys`` have for each row the flat indices (row * length + column) of the
    tokens that it attends to, of contexts and the others, rising, then ``NO_KEY``.
    """

    ids: NDArray[np.int32]
    positions: NDArray[np.int32]
    roles: NDArray[np.int32]
    blocks: NDArray[np.int32]
    context_keys: NDArray[np.int32]
    keys: NDArray[np.int32]
    starts: tuple[int, ...]


def fill_rows(units: Sequence[Tokens], row_length: int = ROW_LENGTH) -> Rows:
    """Lay one unit or more after another and cut them into rows of at most ``row_length`` tokens."""
    rows = _cut(units, row_length)
    if len(units) > 1 and max(rows.context_keys.shape[1], rows.keys.shape[1]) > MAX_KEYS:
        # Each unit from a row of its own on: then what a row sees is of one unit.
        return _cut(units, row_length, is_apart=True)
    return rows


def _cut(units: Sequence[Tokens], row_length: int, *, is_apart: bool = False) -> Rows:
    lengths = [len(unit) for unit in units]
    if is_apart:
        length = min(max(lengths), row_length)
        room = [-(-n // length) * length for n in lengths]
        n_rows = sum(room) // length
    else:
        n_rows = -(-sum(lengths) // row_length)
        length = -(-sum(lengths) // n_rows)
        room = [*lengths[:-1], n_rows * length - sum(lengths[:-1])]
    starts = list(accumulate(room[:-1], initial=0))
    n_tokens = n_rows * length
    ids, positions, roles = (np.zeros(n_tokens, np.int32) for _ in range(3))
    # Padding is a block of its own that nobody listens to.
    blocks = np.full((n_tokens, 5), NOTHING, np.int32)
    blocks[:, :2] = 0, NO_CHANNEL
    for unit, start in zip(units, starts, strict=True):
        part = slice(start, start + len(unit))
        ids[part], positions[part], roles[part] = unit.ids, unit.positions, unit.roles
        blocks[part] = unit.blocks
    visible = visible_tokens(blocks, n_rows)
    is_context = roles == ROLE_CONTEXT
    shape = (n_rows, length)
    return Rows(
        ids.reshape(shape),
        positions.reshape(shape),
        roles.reshape(shape),
        blocks.reshape(*shape, 5),
        indices_of(visible & is_context),
        indices_of(visible & ~is_context),
        tuple(starts),
    )


def visible_tokens(blocks: NDArray[np.int32], n_rows: int) -> NDArray[np.bool_]:
    """Return which tokens any token of a row may see, (n_rows, n_tokens).

    ``blocks``, (n_tokens, 5): each token's block, channel, and up to three channels it listens to.
    ``n_rows`` divides n_tokens.
    """
    row = np.repeat(np.arange(n_rows), len(blocks) // n_rows)
    n_ids = int(blocks.max()) + 1
    in_row = np.zeros((n_rows, n_ids), bool)
    # One column more takes what listens to nothing.
    heard = np.zeros((n_rows, n_ids + 1), bool)
    in_row[row, blocks[:, 0]] = True
    in_row[:, 0] = False  # padding: what it sees is nobody's
    for column in (2, 3, 4):
        heard[row, blocks[:, column]] = True
    visible: NDArray[np.bool_] = in_row[:, blocks[:, 0]] | heard[:, blocks[:, 1]]
    return visible


def indices_of(visible: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Return where each row is true, in at least one column; a shorter row ends in ``NO_KEY``."""
    counts = visible.sum(axis=1)
    indices = np.full((len(visible), max(1, int(counts.max()))), NO_KEY, np.int32)
    indices[np.arange(indices.shape[1]) < counts[:, None]] = np.nonzero(visible)[1]
    return indices
