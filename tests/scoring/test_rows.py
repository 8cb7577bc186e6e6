from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.scoring.packing import (
    NO_CHANNEL,
    NOTHING,
    ROLE_CONTEXT,
    TokenizedDecision,
    TokenizedRequest,
    lay_out,
)
from steelyard.scoring.rows import (
    APART_ROW_LENGTH,
    MAX_KEYS,
    NO_KEY,
    PADDING,
    ROW_LENGTH,
    SUMMED,
    KeptRows,
    PassRows,
    Tokens,
    fill_rows,
    keep_summed,
    keep_tokens,
    tokens_of,
)
from support.decisions.strategies import few

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


def expected_keys(rows: PassRows, tokens: list[list[int]]) -> set[int]:
    """Return the keys that any of some tokens, given by their blocks, may see."""
    return {
        key
        for key, (block, channel) in enumerate(rows.blocks.reshape(-1, 5)[:, :2].tolist())
        for token in tokens
        if (block == token[0] != 0) or (channel in token[2:] and channel != NOTHING)
    }


@given(lengths, st.sampled_from([1, 64, ROW_LENGTH]))
def test_every_unit_is_there_once_in_one_piece(sizes, row_length):
    units = make_units(sizes)
    rows = fill_rows(units, row_length)
    taken = np.zeros(rows.ids.size, bool)
    for unit, start in zip(units, rows.starts, strict=True):
        place = slice(start, start + len(unit))
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
def test_rows_are_no_longer_and_no_more_than_they_need_be(sizes):
    rows = fill_rows(make_units(sizes))
    n_rows, length = rows.ids.shape
    assert length <= ROW_LENGTH
    # Units of their own rows are padded to them; otherwise less than one token a row is padding.
    is_apart = all(start % length == 0 for start in rows.starts)
    assert rows.ids.size - sum(sizes) < (len(sizes) * length if is_apart else n_rows)


@few
@given(st.lists(st.integers(1, 300), min_size=1, max_size=3), st.integers(1, 40))
def test_a_row_has_the_keys_that_its_tokens_may_see_and_no_others(contexts, n_question):
    decision = TokenizedDecision("single", list(range(n_question)), [[1], [2, 3]])
    units, offset = [], 0
    for n_context in contexts:
        layout = lay_out(TokenizedRequest(list(range(n_context)), [decision, decision]))
        units.append(tokens_of(layout, offset))
        offset += layout.n_ids
    rows = fill_rows(units)
    roles = rows.roles.reshape(-1)
    for row in range(len(rows.ids)):
        expected = expected_keys(rows, rows.blocks[row].tolist())
        found = [keys[row][keys[row] != NO_KEY] for keys in (rows.context_keys, rows.keys)]
        assert set(np.concatenate(found).tolist()) == expected
        assert all((np.diff(keys) > 0).all() for keys in found)
        assert (roles[found[0]] == ROLE_CONTEXT).all()
        assert (roles[found[1]] != ROLE_CONTEXT).all()


def assert_kept(rows: PassRows, kept: KeptRows, indices: np.ndarray) -> None:
    blocks, roles = rows.blocks.reshape(-1, 5), rows.roles.reshape(-1)
    assert kept.index.shape[1] <= APART_ROW_LENGTH
    assert kept.index.reshape(-1)[kept.places].tolist() == indices.tolist()
    mine = kept.blocks.reshape(-1, 5)
    assert np.array_equal(mine[kept.places], blocks[indices])
    padding = np.delete(mine, kept.places, axis=0)
    assert (padding == [0, NO_CHANNEL, NOTHING, NOTHING, NOTHING]).all()
    for row in range(len(kept.index)):
        found = [keys[row][keys[row] != NO_KEY] for keys in (kept.context_keys, kept.keys)]
        seen = expected_keys(rows, kept.blocks[row].tolist())
        assert set(np.concatenate(found).tolist()) == seen
        assert (roles[found[0]] == ROLE_CONTEXT).all()
        assert (roles[found[1]] != ROLE_CONTEXT).all()


@few
@given(st.lists(st.integers(1, 60), min_size=1, max_size=3), st.randoms())
def test_kept_tokens_attend_as_they_do_in_the_rows_of_all(contexts, random):
    decision = TokenizedDecision("single", list(range(9)), [[1], [2, 3]])
    units, offset = [], 0
    for n_context in contexts:
        layout = lay_out(TokenizedRequest(list(range(n_context)), [decision, decision]))
        units.append(tokens_of(layout, offset))
        offset += layout.n_ids
    rows = fill_rows(units)
    real = np.flatnonzero(rows.blocks[:, :, 0].reshape(-1))
    drawn = sorted(random.sample(real.tolist(), random.randint(1, len(real))))
    assert_kept(rows, keep_tokens(rows, np.array(drawn)), np.array(drawn))


def test_kept_tokens_that_see_much_begin_rows_of_their_own():
    decision = TokenizedDecision("single", [7], [[1], [2, 3]])
    layout = lay_out(TokenizedRequest(list(range(400)), [decision]))
    rows = fill_rows([tokens_of(layout, n * layout.n_ids) for n in range(3)])
    indices = np.array([start + marker for start in rows.starts for marker in layout.markers[0]])
    kept = keep_tokens(rows, indices)
    assert_kept(rows, kept, indices)
    assert kept.index.shape == (3, 2)
    assert kept.context_keys.shape[1] <= MAX_KEYS


@given(st.lists(st.integers(1, SUMMED), min_size=1, max_size=20))
def test_a_unit_that_is_summed_lies_between_two_places_where_sums_begin(sizes):
    units = make_units(sizes)
    rows = fill_rows(units, is_summed=True)
    for unit, start in zip(units, rows.starts, strict=True):
        assert start // SUMMED == (start + len(unit) - 1) // SUMMED
        assert np.array_equal(rows.ids.reshape(-1)[start : start + len(unit)], unit.ids)


@given(st.lists(st.integers(1, SUMMED), min_size=1, max_size=20))
def test_units_summed_in_the_last_layer_lie_so_there_alone(sizes):
    units = [
        replace(unit, states=np.zeros((len(unit), 4), np.float32)) for unit in make_units(sizes)
    ]
    rows = fill_rows(units, is_summed=True)
    assert rows.ids.size - sum(sizes) <= max(len(rows.ids), sum(sizes) // PADDING)
    kept = keep_summed(rows)
    assert_kept(rows, kept, np.flatnonzero(rows.blocks[:, :, 0].reshape(-1)))
    for places in np.split(kept.places, np.cumsum(sizes)[:-1]):
        assert places[0] // SUMMED == places[-1] // SUMMED


def test_windows_of_like_lengths_see_themselves_alone():
    alike = fill_rows(make_units([172, 171, 165]), is_joint=True, of_windows=True)
    assert alike.ids.shape == alike.keys.shape == (3, 172)
    assert [row[row != NO_KEY].tolist() for row in alike.keys] == [
        list(range(start, start + size))
        for start, size in zip(alike.starts, (172, 171, 165), strict=True)
    ]
    unlike = fill_rows(make_units([172, 40]), is_joint=True, of_windows=True)
    assert unlike.ids.size - 212 < len(unlike.ids), "padding would cost more than it saves"


def test_units_that_see_much_begin_rows_of_their_own():
    decision = TokenizedDecision("single", [7], [[1], [2, 3]])
    layout = lay_out(TokenizedRequest(list(range(400)), [decision]))
    many = fill_rows([tokens_of(layout, n * layout.n_ids) for n in range(5)])
    alone = fill_rows([tokens_of(layout)])
    length = many.ids.shape[1]
    assert all(start % length == 0 for start in many.starts)
    assert many.context_keys.shape[1] == alone.context_keys.shape[1] <= MAX_KEYS


@few
@given(st.integers(0, 300), st.integers(1, 20))
def test_padding_is_not_heard(n_context, n_question):
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


def test_a_part_is_a_run_of_tokens():
    (unit,) = make_units([10])
    part = unit.part(3, 7)
    assert len(part) == 4
    assert part.ids.tolist() == unit.ids[3:7].tolist()
    assert part.positions.tolist() == unit.positions[3:7].tolist()
    assert part.roles.tolist() == unit.roles[3:7].tolist()
    assert part.blocks.tolist() == unit.blocks[3:7].tolist()


@pytest.mark.parametrize(("size", "n_rows"), [(1, 1), (ROW_LENGTH, 1), (3 * ROW_LENGTH, 3)])
def test_one_unit_is_cut_without_padding(size, n_rows):
    assert fill_rows(make_units([size])).ids.shape == (n_rows, size // n_rows)
