from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.reference import visibility
from steelyard.scoring.packing import (
    CLS,
    CONTEXT_BASE,
    CONTEXT_LENGTH,
    CONTEXT_OVERLAP,
    N_ROLES,
    NO_CHANNEL,
    NOTHING,
    OUTCOME_BASE,
    OUTCOME_LENGTH,
    QUESTION_BASE,
    QUESTION_LENGTH,
    ROLE_CONTEXT,
    ROLE_OF_KIND,
    ROLE_OUTCOME,
    SEP,
    STAGE_CONTEXT,
    TEXT_OVERLAP,
    Layout,
    TokenizedDecision,
    TokenizedRequest,
    lay_out,
    lay_out_text,
    shift_ids,
    windows,
)
from steelyard.scoring.passes import level_features
from support.decisions.strategies import few

FIRST_ID = 1_000
CONTEXT, QUESTION = -1, -1


def text(n_tokens: int, first: int = FIRST_ID) -> list[int]:
    return list(range(first, first + n_tokens))


#: Numbers of tokens about the places where a text starts another window.
context_sizes = st.sampled_from([0, 1, 7, 253, 254, 255, 476, 477, 900]) | st.integers(0, 1_200)
text_sizes = st.sampled_from([0, 1, 3, 126, 127, 128, 238, 239]) | st.integers(0, 400)


@st.composite
def tokenized(draw: st.DrawFn) -> TokenizedRequest:
    decisions = [
        TokenizedDecision(
            draw(st.sampled_from(["single", "binary", "ordinal"])),
            text(draw(text_sizes)),
            [text(draw(text_sizes)) for _ in range(draw(st.integers(2, 4)))],
        )
        for _ in range(draw(st.integers(0, 3)))
    ]
    return TokenizedRequest(text(draw(context_sizes)), decisions)


def owners(layout: Layout) -> list[tuple[int, int]]:
    """Return whose each token is: (decision, outcome), with -1 for the context and for questions."""
    found = [(CONTEXT, QUESTION)] * len(layout)
    for decision, (start, stop) in enumerate(layout.spans):
        # An outcome's marker block is its last: whatever follows is the next outcome's.
        heads = [int(layout.blocks[marker, 0]) for marker in layout.markers[decision]]
        outcome = 0
        for token in range(start, stop):
            if layout.roles[token] != ROLE_OUTCOME:
                found[token] = (decision, QUESTION)
                continue
            while outcome < len(heads) - 1 and layout.blocks[token, 0] > heads[outcome]:
                outcome += 1
            found[token] = (decision, outcome)
    return found


def joined(blocks: list[list[int]], overlap: int) -> list[int]:
    """Put windows together again."""
    return blocks[0] + [token for block in blocks[1:] for token in block[overlap:]]


def blocks_of(layout: Layout, start: int, stop: int) -> list[list[int]]:
    """Return the ids of each block in a range of tokens."""
    found: dict[int, list[int]] = {}
    for token in range(start, stop):
        found.setdefault(int(layout.blocks[token, 0]), []).append(int(layout.ids[token]))
    return list(found.values())


@given(st.integers(0, 3_000), st.integers(2, 300), st.data())
def test_windows_hold_every_token_and_share_the_overlap(n, length, data):
    overlap = data.draw(st.integers(0, length // 2))
    tokens = text(n)
    cut = [list(window) for window in windows(tokens, length, overlap)]
    assert all(len(window) <= length for window in cut)
    assert joined(cut, overlap) == tokens
    for one, following in itertools.pairwise(cut):
        assert following[:overlap] == one[len(one) - overlap :]
        assert len(following) > overlap, "a window without a token of its own"


@given(st.integers(0, 3_000), st.integers(2, 300), st.data())
def test_windows_are_as_few_as_can_be(n, length, data):
    overlap = data.draw(st.integers(0, length // 2))
    cut = windows(text(n), length, overlap)
    least = 1 if n <= length else -(-(n - overlap) // (length - overlap))
    assert len(cut) <= least
    assert len({len(window) for window in cut[:-1]}) <= 1
    assert len(cut[-1]) <= len(cut[0])


def test_a_text_that_fits_is_one_window_and_an_empty_text_is_one_too():
    assert windows(text(10), 10, 3) == [text(10)]
    assert len(windows(text(11), 10, 3)) == 2
    assert windows([], 10, 3) == [[]]


@few
@given(tokenized())
def test_nothing_is_left_out(request_):
    layout = lay_out(request_)
    first = layout.spans[0][0] if layout.spans else len(layout)
    read = blocks_of(layout, 0, first)
    assert all((block[0], block[-1]) == (CLS, SEP) for block in read)
    assert joined([block[1:-1] for block in read], CONTEXT_OVERLAP) == request_.context
    owner = owners(layout)
    for index, decision in enumerate(request_.decisions):
        start, stop = layout.spans[index]
        question = [t for t in range(start, stop) if owner[t] == (index, QUESTION)]
        read = blocks_of(layout, question[0], question[-1] + 1)
        assert all(block[-1] == SEP for block in read)
        assert joined([block[:-1] for block in read], TEXT_OVERLAP) == decision.question
        for number, outcome in enumerate(decision.outcomes):
            mine = [t for t in range(start, stop) if owner[t] == (index, number)]
            *rest, head = blocks_of(layout, mine[0], mine[-1] + 1)
            assert head[0] == CLS
            assert joined([head[1:], *rest], TEXT_OVERLAP) == outcome


@few
@given(tokenized())
def test_positions_and_roles_identify_a_block(request_):
    layout = lay_out(request_)
    owner = owners(layout)
    bounds = {
        "context": (CONTEXT_BASE, CONTEXT_LENGTH),
        "question": (QUESTION_BASE, QUESTION_LENGTH),
        "outcome": (OUTCOME_BASE, OUTCOME_LENGTH),
    }
    assert sum(length for _, length in bounds.values()) == 512
    for token, (decision, outcome) in enumerate(owner):
        part = "context" if decision < 0 else "question" if outcome < 0 else "outcome"
        base, length = bounds[part]
        assert base <= layout.positions[token] < base + length
        expected = {
            "context": ROLE_CONTEXT,
            "question": ROLE_OF_KIND.get(layout.kinds[decision] if layout.kinds else "", 0),
            "outcome": ROLE_OUTCOME,
        }[part]
        assert layout.roles[token] == expected < N_ROLES
    same_block = np.diff(layout.blocks[:, 0]) == 0
    assert (np.diff(layout.positions)[same_block] == 1).all()


@few
@given(tokenized())
def test_every_outcome_has_a_marker(request_):
    layout = lay_out(request_)
    assert layout.kinds == tuple(decision.kind for decision in request_.decisions)
    owner = owners(layout)
    for index, decision in enumerate(request_.decisions):
        markers = layout.markers[index]
        assert [owner[t] for t in markers] == [(index, i) for i in range(len(decision.outcomes))]
        assert (layout.ids[markers] == CLS).all()
        assert (layout.positions[markers] == OUTCOME_BASE).all()
    stops = [0, *(stop for _, stop in layout.spans)]
    if layout.spans:
        assert [start for start, _ in layout.spans[1:]] == stops[1:-1]
        assert stops[-1] == len(layout)


@few
@given(tokenized())
def test_a_token_sees_its_own_outcome_its_question_and_the_context(request_):
    layout = lay_out(request_)
    sees = visibility(layout)
    decisions, outcomes = (np.array(column) for column in zip(*owners(layout), strict=True))
    block = layout.blocks[:, 0]
    is_context, is_question = decisions < 0, (decisions >= 0) & (outcomes < 0)
    is_outcome = outcomes >= 0
    same_block = block[:, None] == block
    same_decision = decisions[:, None] == decisions
    same_outcome = same_decision & (outcomes[:, None] == outcomes)
    # Windows of one text do not see each other; the marker's block sees all its outcome's.
    heads = np.isin(block, [block[m] for markers in layout.markers for m in markers])
    expected = same_block | (~is_context[:, None] & is_context)
    expected |= is_outcome[:, None] & is_question & same_decision
    expected |= (is_outcome & heads)[:, None] & is_outcome & same_outcome
    assert np.array_equal(sees, expected)


@pytest.mark.slow
@few
@given(tokenized())
def test_a_token_sees_only_earlier_stages_outside_its_block(request_):
    layout = lay_out(request_)
    seer, seen = np.nonzero(visibility(layout))
    other = layout.blocks[seer, 0] != layout.blocks[seen, 0]
    assert (layout.stages[seen[other]] < layout.stages[seer[other]]).all()
    in_context = layout.blocks[:, 1] == layout.context_channel
    assert np.array_equal(in_context, layout.stages == STAGE_CONTEXT)
    assert layout.blocks[:, :2].max() <= layout.n_ids
    assert layout.blocks[:, 0].min() > NO_CHANNEL


@pytest.mark.slow
@few
@given(tokenized())
def test_a_decision_is_laid_out_as_if_it_were_alone(request_):
    layout = lay_out(request_)
    n_context = len(lay_out_text(request_.context))
    sees = visibility(layout)
    for index, decision in enumerate(request_.decisions):
        alone = lay_out(TokenizedRequest(request_.context, [decision]))
        read = [*range(n_context), *range(*layout.spans[index])]
        for name in ("ids", "positions", "roles", "stages"):
            assert np.array_equal(getattr(layout, name)[read], getattr(alone, name))
        assert np.array_equal(sees[np.ix_(read, read)], visibility(alone))
        moved = layout.markers[index] - layout.spans[index][0] + alone.spans[0][0]
        assert np.array_equal(moved, alone.markers[0])


@pytest.mark.parametrize("kind", ["single", "binary", "ordinal"])
def test_empty_texts_still_have_their_tokens(kind):
    layout = lay_out(TokenizedRequest([], [TokenizedDecision(kind, [], [[], []])]))
    assert layout.ids.tolist() == [CLS, SEP, SEP, CLS, CLS]
    assert layout.markers[0].tolist() == [3, 4]


def test_arrays_have_the_types_that_the_graph_takes():
    layout = lay_out(TokenizedRequest(text(3), [TokenizedDecision("single", text(2), [[5], [6]])]))
    for name in ("ids", "positions", "roles", "blocks"):
        assert getattr(layout, name).dtype == np.int32
    assert layout.markers[0].dtype == np.int32
    assert layout.blocks.shape == (len(layout), 5)


def test_a_text_alone_is_laid_out_as_a_context():
    for size in (0, 5, 700):
        alone, request = lay_out_text(text(size)), lay_out(TokenizedRequest(text(size), ()))
        assert np.array_equal(alone.ids, request.ids)
        assert np.array_equal(alone.blocks, request.blocks)
        assert (alone.markers, alone.spans, alone.kinds) == ((), (), ())


@pytest.mark.parametrize("n", [2, 3, 11, 255])
def test_levels_are_spread_from_zero_to_one(n):
    features = level_features("ordinal", n)
    assert features.dtype == np.float32
    assert (features[:, 0] == 1).all()
    assert features[:, 1] == pytest.approx(np.linspace(0, 1, n), abs=1e-6)
    assert features[:, 2] == pytest.approx(np.linspace(0, 1, n) ** 2, abs=1e-6)


@pytest.mark.parametrize("kind", ["single", "binary"])
def test_outcomes_without_an_order_have_no_levels(kind):
    assert not level_features(kind, 4).any()


@few
@given(tokenized(), st.integers(1, 10_000))
def test_shifted_ids_tell_two_layouts_apart(request_, offset):
    blocks = lay_out(request_).blocks
    shifted = shift_ids(blocks, offset)
    special = (blocks == NOTHING) | (blocks == NO_CHANNEL)
    assert np.array_equal(shifted[special], blocks[special])
    assert np.array_equal(shifted[~special], blocks[~special] + offset)
