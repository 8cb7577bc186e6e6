"""Layouts to the rows of one pass, and the keys that each row attends to.

Tokens of a pass lie one after another and are cut into rows of one length, wherever that falls. A
row attends to the tokens that any of its own may see, wherever they are, so attention costs as much
as there is to see and no more.

Contexts' keys are apart from the others: a token's sum over its context is then the same as when the
context was read by an earlier pass.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from steelyard.scoring.packing import NO_CHANNEL, NOTHING, ROLE_CONTEXT, Layout, shift_ids

T = TypeVar("T")

#: Tokens of a row at most. Shorter rows see fewer tokens that are not for them, and gather more.
ROW_LENGTH = 96
#: The same where questions are read apart: in most passes few tokens are for many.
APART_ROW_LENGTH = 32
#: A key that is none: rows see different numbers of tokens.
NO_KEY = -1
#: Keys of a row up to which a matrix product adds up its terms in one go. Beyond, where a partial
#: sum ends would depend on the other tokens of the row.
MAX_KEYS = 512
#: Tokens whose sum a matrix product makes in one go: it begins anew at every multiple of them.
SUMMED = 128
#: Of how many tokens one may be padding so that each window begins a row of its own: a token of padding
#: costs as much as any in every product of the encoder.
PADDING = 16


@dataclass(frozen=True, slots=True)
class Tokens:
    """Some tokens of one or several layouts, with distinct ids.

    Each array is int32 of shape (n_tokens,), ``blocks`` of (n_tokens, 5). ``states`` are their states
    after the lowest layers, float32 of (n_tokens, width), where they have been read.
    """

    ids: NDArray[np.int32]
    positions: NDArray[np.int32]
    roles: NDArray[np.int32]
    blocks: NDArray[np.int32]
    states: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return int(self.ids.shape[0])

    def part(self, start: int, stop: int) -> Tokens:
        """Return a run of the tokens."""
        return Tokens(
            self.ids[start:stop],
            self.positions[start:stop],
            self.roles[start:stop],
            self.blocks[start:stop],
            None if self.states is None else self.states[start:stop],
        )


def tokens_of(layout: Layout, offset: int = 0, states: NDArray[np.float32] | None = None) -> Tokens:
    """Return all tokens of a layout, its ids moved by ``offset``."""
    blocks = shift_ids(layout.blocks, offset) if offset else layout.blocks
    return Tokens(layout.ids, layout.positions, layout.roles, blocks, states)


def block_bounds(layout: Layout) -> list[tuple[int, int]]:
    """Return where each block of a layout starts and ends."""
    edges = (np.flatnonzero(np.diff(layout.blocks[:, 0])) + 1).tolist()
    return list(zip([0, *edges], [*edges, layout.ids.size], strict=True))


def windows_of(layout: Layout, offset: int = 0, stage: int | None = None) -> list[Tokens]:
    """Return the blocks of a layout one by one, or those of a stage."""
    tokens = tokens_of(layout, offset)
    return [
        tokens.part(start, stop)
        for start, stop in block_bounds(layout)
        if stage is None or layout.stages[start] == stage
    ]


def groups_of(
    units: Sequence[T], n_tokens: int, lengths: Iterable[int] | None = None
) -> list[list[T]]:
    """Cut a sequence into runs of at most ``n_tokens`` tokens; a larger unit is a run alone.

    ``lengths`` has the tokens of each unit, where ``len`` does not tell.
    """
    groups: list[list[T]] = []
    room = 0
    sizes: Iterable[int] = map(len, cast("Sequence[Any]", units)) if lengths is None else lengths
    for unit, size in zip(units, sizes, strict=True):
        if not groups or size > room:
            groups.append([])
            room = n_tokens
        groups[-1].append(unit)
        room -= size
    return groups


@dataclass(frozen=True, slots=True)
class PassRows:
    """Rows of a pass, (n_rows, length), and where each unit of tokens starts.

    ``context_keys`` and ``keys`` have for each row the flat indices (row * length + column) of the
    tokens that it attends to, of contexts and the others, rising, then ``NO_KEY``. ``states``,
    (n_rows, length, width), are there when the units have them.
    """

    ids: NDArray[np.int32]
    positions: NDArray[np.int32]
    roles: NDArray[np.int32]
    blocks: NDArray[np.int32]
    context_keys: NDArray[np.int32]
    keys: NDArray[np.int32]
    starts: tuple[int, ...]
    states: NDArray[np.float32] | None = None
    #: Whether units are to be summed of which each has places of its own in ``keep_summed``.
    is_summed: bool = False


def fill_rows(
    units: Sequence[Tokens],
    row_length: int | None = None,
    *,
    is_joint: bool = False,
    is_summed: bool = False,
    of_windows: bool = False,
) -> PassRows:
    """Lay one unit or more after another and cut them into rows of at most ``row_length`` tokens.

    Where ``is_joint``, all keys are in ``keys``, contexts' too. Where ``is_summed``, units of up to
    ``SUMMED`` tokens lie so that the sum of one does not depend on units before it: with states not
    here but in ``keep_summed``. Units ``of_windows``, which see themselves alone, are a row each where they
    are of like lengths.
    """
    if is_summed and units[0].states is not None:
        return replace(fill_rows(units, row_length, of_windows=True), is_summed=True)
    if of_windows:
        longest, total = max(map(len, units)), sum(map(len, units))
        if len(units) * longest * PADDING <= total * (PADDING + 1):
            return _cut(units, longest, is_joint=is_joint, is_summed=False, is_apart=True)
    if row_length is None:
        is_apart = is_joint or units[0].states is not None
        row_length = APART_ROW_LENGTH if is_apart else ROW_LENGTH
    rows = _cut(units, row_length, is_joint=is_joint, is_summed=is_summed)
    if len(units) > 1 and max(rows.context_keys.shape[1], rows.keys.shape[1]) > MAX_KEYS:
        # Each unit from a row of its own on: then a row sees one unit.
        return _cut(units, row_length, is_joint=is_joint, is_summed=is_summed, is_apart=True)
    return rows


def _cut(
    units: Sequence[Tokens],
    row_length: int,
    *,
    is_joint: bool,
    is_summed: bool,
    is_apart: bool = False,
) -> PassRows:
    lengths = [len(unit) for unit in units]
    if is_apart:
        length = min(max(lengths), row_length)
        room = [-(-n // length) * length for n in lengths]
        starts = list(accumulate(room[:-1], initial=0))
        n_rows = sum(room) // length
    else:
        starts = _summed_starts(lengths) if is_summed else list(accumulate(lengths[:-1], initial=0))
        end = starts[-1] + lengths[-1]
        n_rows = -(-end // row_length)
        length = -(-end // n_rows)
    n_tokens = n_rows * length
    ids, positions, roles = (np.zeros(n_tokens, np.int32) for _ in range(3))
    blocks = _padding(n_tokens)
    for unit, start in zip(units, starts, strict=True):
        part = slice(start, start + len(unit))
        ids[part], positions[part], roles[part] = unit.ids, unit.positions, unit.roles
        blocks[part] = unit.blocks
    visible = visible_tokens(blocks, n_rows)
    is_context = (roles == ROLE_CONTEXT) & (not is_joint)
    shape = (n_rows, length)
    return PassRows(
        ids.reshape(shape),
        positions.reshape(shape),
        roles.reshape(shape),
        blocks.reshape(*shape, 5),
        indices_of(visible & is_context),
        indices_of(visible & ~is_context),
        tuple(starts),
        _states_of(units, starts, shape),
    )


def _states_of(
    units: Sequence[Tokens], starts: Sequence[int], shape: tuple[int, int]
) -> NDArray[np.float32] | None:
    """Return the units' states in rows, zeros for padding, where the units have them."""
    if units[0].states is None:
        return None
    n_rows, length = shape
    states = np.zeros((n_rows * length, units[0].states.shape[1]), np.float32)
    for unit, start in zip(units, starts, strict=True):
        states[start : start + len(unit)] = unit.states
    return states.reshape(n_rows, length, -1)


def _summed_starts(lengths: Sequence[int]) -> list[int]:
    """Return where units start of which no short one lies across a multiple of ``SUMMED``."""
    starts, end = [], 0
    for length in lengths:
        if length <= SUMMED < end % SUMMED + length:
            end += -end % SUMMED
        starts.append(end)
        end += length
    return starts


@dataclass(frozen=True, slots=True)
class KeptRows:
    """Some tokens of a pass in rows of their own, (n_rows, length), as in ``PassRows``.

    ``index`` has the flat index of each, and ``places`` the places here of the tokens kept, flat.
    """

    index: NDArray[np.int32]
    blocks: NDArray[np.int32]
    context_keys: NDArray[np.int32]
    keys: NDArray[np.int32]
    places: NDArray[np.int32]


def keep_tokens(rows: PassRows, indices: NDArray[np.intp]) -> KeptRows:
    """Cut the tokens at rising flat indices into rows that attend to the whole pass."""
    n_tokens = rows.ids.size
    if len(indices) == n_tokens:
        places = np.arange(n_tokens, dtype=np.int32)
        index = places.reshape(rows.ids.shape)
        return KeptRows(index, rows.blocks, rows.context_keys, rows.keys, places)
    cut = _cut_selected(rows, indices, [0, len(indices)])
    if max(cut.context_keys.shape[1], cut.keys.shape[1]) > MAX_KEYS:
        # Each unit's from a row of its own on, as in ``fill_rows``.
        edges = np.searchsorted(indices, rows.starts).tolist()
        return _cut_selected(rows, indices, [*edges, len(indices)])
    return cut


def keep_summed(rows: PassRows) -> KeptRows:
    """Cut all tokens of units that are summed so that no sum depends on earlier units."""
    is_token = rows.blocks[..., 0].reshape(-1) > 0
    lengths = np.add.reduceat(is_token.astype(np.intp), rows.starts).tolist()
    begins = _summed_starts(lengths)
    end = begins[-1] + lengths[-1]
    n_rows = -(-end // APART_ROW_LENGTH)
    return _lay_rows(rows, np.flatnonzero(is_token), lengths, begins, (n_rows, -(-end // n_rows)))


def _cut_selected(rows: PassRows, indices: NDArray[np.intp], edges: Sequence[int]) -> KeptRows:
    """Cut tokens into rows; the tokens between two edges begin a new row."""
    lengths = [stop - start for start, stop in itertools.pairwise(edges)]
    most = max(lengths)
    length = -(-most // -(-most // APART_ROW_LENGTH))
    room = [-(-n // length) * length for n in lengths]
    begins = list(accumulate(room[:-1], initial=0))
    return _lay_rows(rows, indices, lengths, begins, (sum(room) // length, length))


def _lay_rows(
    rows: PassRows,
    indices: NDArray[np.intp],
    lengths: Sequence[int],
    begins: Sequence[int],
    shape: tuple[int, int],
) -> KeptRows:
    """Lay runs of tokens, of these lengths, where they begin in rows of a shape."""
    n_rows, length = shape
    places = np.concatenate(
        [np.arange(begin, begin + n) for begin, n in zip(begins, lengths, strict=True)]
    )
    index = np.zeros(n_rows * length, np.int32)
    index[places] = indices
    every = rows.blocks.reshape(-1, 5)
    blocks = _padding(n_rows * length)
    blocks[places] = every[indices]
    visible = visible_tokens(every, n_rows, blocks)
    is_context = rows.roles.reshape(-1) == ROLE_CONTEXT
    return KeptRows(
        index.reshape(n_rows, length),
        blocks.reshape(n_rows, length, 5),
        indices_of(visible & is_context),
        indices_of(visible & ~is_context),
        places.astype(np.int32),
    )


def _padding(n_tokens: int) -> NDArray[np.int32]:
    """Return the blocks of padding: a block of its own that no token attends to."""
    blocks = np.full((n_tokens, 5), NOTHING, np.int32)
    blocks[:, :2] = 0, NO_CHANNEL
    return blocks


def visible_tokens(
    blocks: NDArray[np.int32], n_rows: int, asking: NDArray[np.int32] | None = None
) -> NDArray[np.bool_]:
    """Return which tokens any token of a row may see, (n_rows, n_tokens).

    ``blocks``, (n_tokens, 5): each token's block, channel, and up to three channels it listens to.
    The rows are of the tokens ``asking``, by default of all; ``n_rows`` divides their number.
    """
    asking = blocks if asking is None else asking
    row = np.repeat(np.arange(n_rows), len(asking) // n_rows)
    n_ids = int(blocks.max()) + 1
    in_row = np.zeros((n_rows, n_ids), bool)
    # One column more takes tokens that listen to nothing.
    heard = np.zeros((n_rows, n_ids + 1), bool)
    in_row[row, asking[:, 0]] = True
    in_row[:, 0] = False  # padding sees nothing
    for column in (2, 3, 4):
        heard[row, asking[:, column]] = True
    visible: NDArray[np.bool_] = in_row[:, blocks[:, 0]] | heard[:, blocks[:, 1]]
    return visible


def indices_of(visible: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Return where each row is true, in at least one column; a shorter row ends in ``NO_KEY``."""
    counts = visible.sum(axis=1)
    indices = np.full((len(visible), max(1, int(counts.max()))), NO_KEY, np.int32)
    indices[np.arange(indices.shape[1]) < counts[:, None]] = np.nonzero(visible)[1]
    return indices
