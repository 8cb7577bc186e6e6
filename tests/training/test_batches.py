from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch", reason="training needs the train extra: pip install steelyard[train]")

import torch

from scoring.reference import visibility
from steelyard.decisions.rendering import RenderedDecision
from steelyard.scoring.packing import ROLE_CONTEXT, Layout, alone_texts, lay_out_text
from steelyard.scoring.passes import KINDS, level_features
from steelyard.scoring.tokenizer import Tokenizer
from steelyard.training.batches import ROW_LENGTHS, Item, make_batches, make_item
from steelyard.training.examples import WordedDecision
from steelyard.training.model import PackedBatch, without_context
from support.models.random_model import make_words


def make_example(kind: str, n_outcomes: int, seed: int, question_words: int = 4) -> WordedDecision:
    outcomes = tuple(f"{make_words(1 + i % 3, seed + i)} {seed} {i}" for i in range(n_outcomes))
    outcomes = ("yes", "no") if kind == "binary" else outcomes
    targets = np.random.default_rng(seed).dirichlet(np.ones(len(outcomes)))
    decision = RenderedDecision(kind, make_words(question_words, seed), outcomes)
    return WordedDecision(decision, tuple(targets))


def make_items(tokenizer: Tokenizer) -> list[Item]:
    drawn = [
        (8, [make_example("single", 3, 1), make_example("binary", 2, 2)]),
        (30, [make_example("ordinal", 5, 3)]),
        (3, [make_example("single", 2, 4)]),
        # A question of two windows, and a context of two.
        (150, [make_example("single", 3, 5, 160), make_example("ordinal", 3, 6)]),
        (280, [make_example("binary", 2, 7)]),
    ]
    items = [make_item(f"{make_words(n, n)} {n}", examples, tokenizer) for n, examples in drawn]
    assert None not in items
    return items


def place_of(batch: PackedBatch, layout: Layout, taken: np.ndarray) -> slice:
    """Find where a layout's tokens are in the flattened rows."""
    flat = batch.ids.numpy().reshape(-1)
    n = len(layout)
    for start in range(len(flat) - n + 1):
        if (
            np.array_equal(flat[start : start + n], layout.ids)
            and not taken[start : start + n].any()
        ):
            taken[start : start + n] = True
            return slice(start, start + n)
    raise AssertionError("a layout is not in the batch")


def read_alone(item: Item) -> list[tuple[int, ...]]:
    """Return the texts that are encoded beside a request: sentences, outcomes, and questions."""
    read = [text for decision in item.request.decisions for text in decision.alone]
    return [tuple(text) for text in (*item.request.sentences, *read) if text is not None]


def members(batch: PackedBatch, items: list[Item]) -> list[Item]:
    return [item for item in items if item.context in batch.texts]


@pytest.fixture(scope="module")
def items(tokenizer: Tokenizer) -> list[Item]:
    return make_items(tokenizer)


@pytest.fixture(scope="module")
def batches(items: list[Item], tokenizer: Tokenizer) -> list[PackedBatch]:
    return make_batches(items)


def test_items_share_rows_of_the_shortest_length_that_holds_them(items, batches) -> None:
    lengths = [batch.ids.shape[1] for batch in batches]
    assert lengths == sorted(set(lengths))
    assert set(lengths) <= set(ROW_LENGTHS)
    assert len(lengths) > 1
    for item in items:
        (batch,) = [batch for batch in batches if item in members(batch, [item])]
        length = batch.ids.shape[1]
        assert len(item.layout) <= length
        assert all(len(item.layout) > other for other in ROW_LENGTHS if other < length)


def test_the_mask_is_the_visibility_of_every_layout_and_nothing_more(
    items, batches, tokenizer
) -> None:
    for batch in batches:
        n_rows, length = batch.ids.shape
        inside = members(batch, items)
        alone = {text: 0 for item in inside for text in read_alone(item)}
        layouts = [item.layout for item in inside]
        layouts += [lay_out_text(text) for text in alone]
        expected = np.zeros((n_rows * length, n_rows * length), bool)
        taken = np.zeros(n_rows * length, bool)
        for layout in sorted(layouts, key=len, reverse=True):
            place = place_of(batch, layout, taken)
            expected[place, place] = visibility(layout)
        assert int(taken.sum()) == batch.n_tokens
        mask = np.zeros_like(expected)
        for row in range(n_rows):
            part = slice(row * length, (row + 1) * length)
            mask[part, part] = batch.mask[row, 0].numpy()
        assert np.array_equal(mask[taken], expected[taken])
        assert not mask[~taken][:, taken].any(), "padding sees a text"


def test_pools_hold_each_context_and_each_text_alone(items, batches, tokenizer) -> None:
    for batch in batches:
        inside = members(batch, items)
        pools, ids = batch.pools.numpy(), batch.ids.numpy().reshape(-1)
        assert batch.n_pools == len(batch.texts)
        assert pools.max() <= batch.n_pools
        for pool, text in enumerate(batch.texts):
            assert ids[pools == pool].tolist() == lay_out_text(text).ids.tolist()
        decisions = [(item, example) for item in inside for example in item.examples]
        for index, (item, example) in enumerate(decisions):
            assert batch.texts[int(batch.context_pools[index])] == item.context
            decision = example.decision
            asked = alone_texts(decision.kind, decision.question, decision.outcomes)
            n = len(asked)
            used = batch.outcome_pools[index, :n].tolist()
            assert [None if pool == batch.n_pools else batch.texts[pool] for pool in used] == [
                None if text is None else tokenizer.encode(text) for text in asked
            ]
            assert (batch.outcome_pools[index, n:] == batch.n_pools).all()
            compared = [
                batch.texts[pool]
                for pool in batch.compared_pools[index].tolist()
                if pool < batch.n_pools
            ]
            by_sentence = decision.kind == "single" and item.request.sentences
            assert compared == (list(item.request.sentences) if by_sentence else [item.context])


def test_decisions_carry_their_markers_levels_and_targets(items, batches, tokenizer) -> None:
    for batch in batches:
        ids = batch.ids.numpy().reshape(-1)
        decisions = [(i, e) for i in members(batch, items) for e in i.examples]
        assert len(batch.targets) == len(decisions)
        for index, (item, example) in enumerate(decisions):
            n = len(example.targets)
            assert batch.outcome_mask[index].tolist() == [True] * n + [False] * (
                batch.outcome_mask.shape[1] - n
            )
            assert batch.targets[index, :n].numpy() == pytest.approx(np.array(example.targets))
            assert not batch.targets[index, n:].any()
            assert KINDS[int(batch.kinds[index])] == example.decision.kind
            expected = level_features(example.decision.kind, n)
            assert np.array_equal(batch.levels[index, :n].numpy(), expected)
            for marker, text in zip(
                batch.markers[index, :n].tolist(), example.decision.outcomes, strict=True
            ):
                tokens = tokenizer.encode(text)
                assert tuple(ids[marker + 1 : marker + 1 + len(tokens)]) == tokens
            assert float(batch.weights[index]) == pytest.approx(len(item.examples) ** -0.5)


def test_full_attention_lets_a_request_see_all_of_itself_and_no_other(items, tokenizer) -> None:
    for batch in make_batches(items, full_attention=True):
        n_rows, length = batch.ids.shape
        taken = np.zeros(n_rows * length, bool)
        layouts = [item.layout for item in members(batch, items)]
        for layout in sorted(layouts, key=len, reverse=True):
            place = place_of(batch, layout, taken)
            row, start = divmod(place.start, length)
            stop = start + len(layout)
            mask = batch.mask[row, 0].numpy()
            assert mask[start:stop, start:stop].all()
            assert not mask[start:stop, :start].any()
            assert not mask[start:stop, stop:].any()


def test_without_the_context_a_question_sees_itself_and_outcomes_their_question(batches) -> None:
    for batch in batches:
        is_context = batch.roles == ROLE_CONTEXT
        lower = without_context(batch.mask, batch.roles)
        for row in range(len(batch.ids)):
            full, seen, context = batch.mask[row, 0], lower[row, 0], is_context[row]
            assert torch.equal(seen[context], full[context])
            asked = seen[~context]
            assert not asked[:, context].any()
            assert torch.equal(asked[:, ~context], full[~context][:, ~context])
            assert asked.any(1).all(), "a token sees itself"


def test_a_context_that_does_not_fit_is_cut_to_the_longest_row(tokenizer) -> None:
    example = make_example("single", 3, 1)
    item = make_item(make_words(600), [example], tokenizer)
    assert item is not None
    assert ROW_LENGTHS[-1] - 60 < len(item.layout) <= ROW_LENGTHS[-1]
    assert item.context == tokenizer.encode(make_words(600))[: len(item.context)]
    assert len(item.layout.markers[0]) == 3


def test_decisions_that_leave_no_room_for_a_context_are_left_out(tokenizer) -> None:
    assert make_item("water", [make_example("single", 300, 1)], tokenizer) is None
    assert make_item("water", [make_example("binary", 2, 1, 2_000)], tokenizer) is None
