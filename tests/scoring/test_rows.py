from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.scoring.packing import (
    NO_CHANNEL,
    NOTHING,
    TokenizedDecision,
    TokenizedRequest,
    lay_out,
)
from steelyard.scoring.rows import ROW_LENGTH, Tokens, fill_rows
from steelyard.scoring.similarity import tokens_of
from strategies import few

lengths = st.lists(st.integers(1, 3 * ROW_LENGTH), min_size=1, max_size=30)


def make_units(sizes: list[int]) -> list[Tokens]:
    """Units whose every token has an id, a position and a role of its own."""
    units, first = [], 1
    for number, size in enumerate(sizes, start=1):
        counted = np.arange(first, first + size, dtype=np.int32)
        blocks = np.full((size, 5), NOTHING, np.int32)
        blocks[:, :2] = number, 1_000 + number
        units.append(Tokens(counted, counted + 1, counted + 2, blocks))
        first += size
    return units


@given(lengths, st.sampled_from([1, 64, ROW_LENGTH]))
def test_every_unit_is_in_one_row_once(sizes: list[int], row_length: int) -> None:
    units = make_units(sizes)
    rows = fill_rows(units, row_length)
    n_rows, length = rows.ids.shape
    taken = np.zeros(n_rows * length, bool)
    for unit, start in zip(units, rows.starts, strict=True):
        place = slice(start, start + len(unit))
        assert start // length == (start + len(unit) - 1) // length, "a unit was split"
        assert not taken[place].any(), "two units overlap"
        taken[place] = True
        for name in ("ids", "positions", "roles"):
            assert np.array_equal(getattr(rows, name).reshape(-1)[place], getattr(unit, name))
        assert np.array_equal(rows.blocks.reshape(-1, 5)[place], unit.blocks)
    assert taken.sum() == sum(sizes)
    padding = rows.blocks.reshape(-1, 5)[~taken]
    assert (rows.ids.reshape(-1)[~taken] == 0).all()
    # Its block is no unit's, and it neither speaks nor listens.
    assert (padding == [0, NO_CHANNEL, NOTHING, NOTHING, NOTHING]).all()


@given(lengths)
def test_rows_are_no_longer_and_no_more_than_they_need_be(sizes: list[int]) -> None:
    rows = fill_rows(make_units(sizes))
    n_rows, length = rows.ids.shape
    assert length in {max(sizes), max(ROW_LENGTH, *sizes)}
    assert n_rows * length <= len(sizes) * max(sizes), "more padding than a row a unit has"
    used = np.bincount(np.array(rows.starts) // length, weights=sizes, minlength=n_rows)
    assert (used > 0).all(), "an empty row"
    # First fit: no two rows would have fitted in one.
    least = np.sort(used)[:2]
    assert n_rows == 1 or least.sum() > length


@given(st.integers(1, 40), st.integers(1, ROW_LENGTH))
def test_a_row_takes_all_that_fits(n_units: int, size: int) -> None:
    rows = fill_rows(make_units([size] * n_units))
    n_rows, length = rows.ids.shape
    assert n_rows == -(-n_units // (length // size))


@few
@given(st.integers(0, 300), st.integers(1, 20))
def test_padding_is_heard_by_nobody(n_context: int, n_question: int) -> None:
    decision = TokenizedDecision("single", list(range(n_question)), [[1], [2, 3]])
    layout = lay_out(TokenizedRequest(list(range(n_context)), [decision]))
    rows = fill_rows([tokens_of(layout), tokens_of(layout, layout.n_ids)], 2 * ROW_LENGTH)
    blocks = rows.blocks.reshape(-1, 5)
    real = np.zeros(len(blocks), bool)
    for start in rows.starts:
        real[start : start + len(layout)] = True
    assert (blocks[real, 0] > 0).all()
    assert not np.isin(blocks[real, 2:], [0]).any()
    assert set(blocks[real, 0].tolist()).isdisjoint(blocks[~real, 0].tolist())


def test_a_part_is_a_run_of_tokens() -> None:
    (unit,) = make_units([10])
    part = unit.part(3, 7)
    assert len(part) == 4
    assert part.ids.tolist() == unit.ids[3:7].tolist()
    assert part.positions.tolist() == unit.positions[3:7].tolist()
    assert part.roles.tolist() == unit.roles[3:7].tolist()
    assert part.blocks.tolist() == unit.blocks[3:7].tolist()


@pytest.mark.parametrize("size", [1, ROW_LENGTH, 3 * ROW_LENGTH])
def test_one_unit_is_one_row_without_padding(size: int) -> None:
    assert fill_rows(make_units([size])).ids.shape == (1, size)
