from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.scoring import similarity
from steelyard.scoring.engine import Engine, Tensors
from steelyard.scoring.packing import TokenizedDecision, TokenizedRequest, lay_out, lay_out_text
from steelyard.scoring.rows import block_bounds, groups_of, tokens_of, windows_of
from steelyard.scoring.similarity import MAX_CACHED_TOKENS, OutcomeVectors

#: Longer than one window, so that it is pooled over several.
LONG = tuple(range(2_000, 2_700))
TEXTS = [(1_000,), (1_001, 1_002), (1_003,) * 40, (), tuple(range(1_004, 1_124)), LONG]


class CountingEngine:
    """Remembers how many passes and tokens an engine ran."""

    def __init__(self, inner: Engine) -> None:
        self._inner = inner
        self.n_passes = 0
        self.n_tokens = 0

    def run(self, inputs: Tensors, outputs: Sequence[str]) -> Tensors:
        self.n_passes += 1
        self.n_tokens += int((inputs["blocks"][..., 0] > 0).sum())
        return self._inner.run(inputs, outputs)


@pytest.fixture
def engine(random_engine: Engine) -> CountingEngine:
    return CountingEngine(random_engine)


def test_a_text_has_a_vector_of_length_one(engine):
    found = OutcomeVectors(engine).get(TEXTS)
    assert set(found) == set(TEXTS)
    for vector in found.values():
        assert vector.shape == (384,)
        assert vector.dtype == np.float32
        assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


@pytest.mark.slow
def test_vectors_are_those_of_the_reference(engine, references):
    found = OutcomeVectors(engine).get(TEXTS)
    expected = references("random").outcome_vectors(TEXTS)
    for text, vector in zip(TEXTS, expected, strict=True):
        assert np.allclose(found[text], vector, atol=1e-5)


def test_a_text_is_encoded_once(engine):
    vectors = OutcomeVectors(engine)
    first = vectors.get([TEXTS[0], TEXTS[1], TEXTS[0]])
    n_tokens = sum(len(lay_out_text(text)) for text in TEXTS[:2])
    assert engine.n_tokens == n_tokens
    again = vectors.get([TEXTS[1], TEXTS[0]])
    assert engine.n_tokens == n_tokens
    assert all(np.array_equal(again[text], first[text]) for text in first)
    vectors.get([TEXTS[1], TEXTS[2]])
    assert engine.n_tokens == n_tokens + len(lay_out_text(TEXTS[2]))


def test_a_long_text_is_answered_and_not_kept(engine):
    store = OutcomeVectors(engine)
    long, short = tuple(range(1_000, 1_000 + MAX_CACHED_TOKENS + 1)), (2_000, 2_001)
    found = store.get([long, short])
    n_passes = engine.n_passes
    again = store.get([short])
    assert engine.n_passes == n_passes
    np.testing.assert_array_equal(again[short], found[short])
    assert again[short].base is None, "the rest of its pass is not kept with it"
    np.testing.assert_array_equal(store.get([(3_000,), long])[long], found[long])
    assert engine.n_passes > n_passes


def test_no_texts_take_no_pass(engine):
    assert OutcomeVectors(engine).get([]) == {}
    assert engine.n_passes == 0


def test_the_least_recently_used_text_leaves_first(engine):
    vectors = OutcomeVectors(engine, max_vectors=2)
    one, two, three = TEXTS[:3]
    vectors.get([one, two])
    vectors.get([one])
    vectors.get([three])
    passes = engine.n_passes
    vectors.get([one, three])
    assert engine.n_passes == passes
    vectors.get([two])
    assert engine.n_passes == passes + 1


def test_more_texts_than_are_kept_are_all_answered(engine):
    few = OutcomeVectors(engine, max_vectors=1).get(TEXTS)
    many = OutcomeVectors(engine).get(TEXTS)
    assert set(few) == set(TEXTS)
    assert all(np.allclose(few[text], many[text], atol=1e-5) for text in TEXTS)


def test_a_vector_depends_on_its_text_alone(engine):
    together = OutcomeVectors(engine).get(TEXTS)
    backwards = OutcomeVectors(engine).get(TEXTS[::-1])
    for text in TEXTS:
        alone = OutcomeVectors(engine).get([text])[text]
        for found in (together[text], backwards[text]):
            if text is LONG:
                assert np.allclose(found, alone, atol=1e-5)
            else:
                assert np.array_equal(found, alone), "what is kept is what would be computed"


def test_small_passes_give_the_same_vectors(engine, monkeypatch):
    whole = OutcomeVectors(engine).get(TEXTS)
    passes = engine.n_passes
    monkeypatch.setattr(similarity, "PASS_TOKENS", 50)
    parts = OutcomeVectors(engine).get(TEXTS)
    assert engine.n_passes > passes + 2
    assert all(np.allclose(whole[text], parts[text], atol=1e-5) for text in TEXTS)


def test_several_threads_may_ask_at_once(engine):
    vectors = OutcomeVectors(engine, max_vectors=3)
    expected = OutcomeVectors(engine).get(TEXTS)
    wrong: list[object] = []

    def ask(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(6):
            texts = [TEXTS[i] for i in rng.integers(len(TEXTS) - 1, size=3)]
            found = vectors.get(texts)
            if set(found) != set(texts):
                wrong.append(texts)
            wrong.extend(t for t in found if not np.allclose(found[t], expected[t], atol=1e-5))

    workers = [threading.Thread(target=ask, args=(seed,)) for seed in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=60)
    assert wrong == []
    assert not any(worker.is_alive() for worker in workers)


@given(st.lists(st.integers(1, 50)), st.integers(1, 60))
def test_groups_keep_the_order_and_the_bound(sizes, bound):
    units = [range(size) for size in sizes]
    groups = list(groups_of(units, bound))
    assert [unit for group in groups for unit in group] == units
    for group in groups:
        assert group
        assert sum(map(len, group)) <= bound or len(group) == 1
    for one, following in itertools.pairwise(groups):
        assert sum(map(len, one)) + len(following[0]) > bound


def test_bounds_are_where_blocks_begin_and_end():
    decision = TokenizedDecision("single", range(300), [range(5), range(200)])
    layout = lay_out(TokenizedRequest(range(600), [decision]))
    bounds = block_bounds(layout)
    assert [start for start, _ in bounds] == [0, *(stop for _, stop in bounds[:-1])]
    assert bounds[-1][1] == len(layout)
    blocks = layout.blocks[:, 0]
    assert all(len(set(blocks[start:stop].tolist())) == 1 for start, stop in bounds)
    assert len(bounds) == len(set(blocks.tolist()))


def test_windows_and_tokens_are_the_layouts(engine):
    layout = lay_out_text(LONG)
    tokens = tokens_of(layout, 5)
    parts = windows_of(layout, 5)
    assert len(parts) > 2
    assert np.array_equal(np.concatenate([part.ids for part in parts]), layout.ids)
    assert np.array_equal(np.concatenate([part.blocks for part in parts]), tokens.blocks)
    assert np.array_equal(tokens.blocks[:, 0], layout.blocks[:, 0] + 5)
