from __future__ import annotations

import numpy as np
import pytest

from steelyard.scoring.packing import NOTHING
from steelyard.scoring.passes import (
    ABSENT,
    GIVEN,
    HEAD,
    KINDS,
    N_HEADS,
    N_LAYERS,
    NO_DECISION,
    NO_PAST,
    NO_POOL,
    PAST_OUTPUTS,
    WIDTH,
    PassDecision,
    level_features,
    pass_inputs,
    tokens_read,
)
from steelyard.scoring.rows import PassRows, Tokens, fill_rows


def make_rows(*sizes: int) -> PassRows:
    units = []
    for number, size in enumerate(sizes, start=1):
        ids = np.arange(size, dtype=np.int32)
        blocks = np.full((size, 5), NOTHING, np.int32)
        blocks[:, :2] = number, 10 + number
        units.append(Tokens(ids, ids, ids, blocks))
    return fill_rows(units)


def make_outputs(rows: PassRows, seed: int) -> dict[str, np.ndarray]:
    """Keys and values of a pass, every number another."""
    rng = np.random.default_rng(seed)
    n_rows, length = rows.ids.shape
    shape = n_rows, length, N_HEADS * HEAD
    return {name: rng.normal(size=shape).astype(np.float32) for name in PAST_OUTPUTS}


def of_heads(row: np.ndarray) -> np.ndarray:
    """A row's output, head by head: (n_heads, length, head)."""
    return np.stack([row[:, n * HEAD : (n + 1) * HEAD] for n in range(N_HEADS)])


def vectors(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, WIDTH)).astype(np.float32)


def test_decisions_of_unlike_sizes_are_padded_with_absent_outcomes():
    first = PassDecision("single", np.array([3, 1], np.int32), vectors(2), 0)
    second = PassDecision("ordinal", np.array([0, 2, 4], np.int32), vectors(3, 1), 1)
    inputs = pass_inputs(make_rows(5), [first, second], [7, 9])
    assert inputs["marker_index"].tolist() == [[3, 1, ABSENT], [0, 2, 4]]
    assert inputs["kinds"].tolist() == [KINDS.index("single"), KINDS.index("ordinal")]
    assert inputs["context_pool"].tolist() == [0, 1]
    assert inputs["pool_channels"].tolist() == [7, 9]
    assert np.array_equal(inputs["outcome_vectors"][0, :2], vectors(2))
    assert not inputs["outcome_vectors"][0, 2].any()
    assert not inputs["levels"][0].any()
    assert np.array_equal(inputs["levels"][1], level_features("ordinal", 3))
    assert not inputs["pooled_past"].any()
    assert inputs["pooled_past"].shape == (2, WIDTH)


def test_a_decision_without_vectors_has_no_similarity():
    decision = PassDecision("binary", np.array([0, 1], np.int32), None, 0)
    inputs = pass_inputs(make_rows(4), [decision], [1])
    assert not inputs["outcome_vectors"].any()


def test_a_similarity_that_is_known_is_that_of_a_pool_of_its_own():
    known = np.array([0.5, -0.25], np.float32)
    first = PassDecision("single", np.array([3, 1], np.int32), vectors(2), 0)
    second = PassDecision("single", np.array([0, 2], np.int32), None, 0, similarity=known)
    inputs = pass_inputs(make_rows(5), [first, second], [7], pooled_past=vectors(1))
    assert inputs["context_pool"].tolist() == [0, 1]
    assert inputs["pool_channels"].tolist() == [7, NO_POOL]
    assert np.array_equal(inputs["pooled_past"][:1], vectors(1))
    assert np.array_equal(inputs["outcome_vectors"][1] @ inputs["pooled_past"][1], known)
    assert np.array_equal(inputs["outcome_vectors"][0], vectors(2))


def test_given_marker_vectors_are_passed_on():
    given = vectors(3)
    decision = PassDecision("single", np.full(3, GIVEN, np.int32), None, 0, given=given)
    inputs = pass_inputs(make_rows(1), [decision], [1])
    assert (inputs["marker_index"] == GIVEN).all()
    assert np.array_equal(inputs["marker_past"][0], given)


def test_pooled_vectors_of_earlier_passes_are_passed_on():
    pooled = vectors(1)
    inputs = pass_inputs(make_rows(2), [NO_DECISION], [1], pooled_past=pooled)
    assert np.array_equal(inputs["pooled_past"], pooled)
    assert inputs["marker_index"].tolist() == [[ABSENT]]


def test_rows_are_passed_on_as_they_are():
    rows = make_rows(3, 2)
    inputs = pass_inputs(rows, [NO_DECISION], [1])
    assert inputs["input_ids"] is rows.ids
    assert inputs["position_ids"] is rows.positions
    assert inputs["role_ids"] is rows.roles
    assert inputs["blocks"] is rows.blocks
    assert inputs["context_index"] is rows.context_keys
    assert inputs["key_index"] is rows.keys


def test_the_inputs_are_those_that_the_graph_declares(random_engine):
    inputs = pass_inputs(make_rows(3), [NO_DECISION], [1])
    declared = {node.name: node for node in random_engine._session.get_inputs()}
    types = {"tensor(int32)": np.int32, "tensor(float)": np.float32}
    assert set(inputs) == set(declared)
    for name, value in inputs.items():
        assert value.dtype == types[declared[name].type], name
        for size, wanted in zip(value.shape, declared[name].shape, strict=True):
            assert isinstance(wanted, str) or size == wanted, name


def test_no_past_is_one_unheard_token():
    tensors = NO_PAST.tensors()
    assert tensors["past_channels"].tolist() == [0]
    assert len(tensors) == 1 + 2 * N_LAYERS


@pytest.mark.parametrize("n_parts", [1, 2, 3])
def test_the_past_has_every_token_of_every_pass_in_its_place(n_parts):
    # Units of many sizes, so that there are several rows and padding.
    parts = []
    for part in range(n_parts):
        rows = make_rows(300, 200 + part, 140, 90)
        parts.append((rows, make_outputs(rows, part)))
    n_tokens = sum(rows.ids.size for rows, _ in parts)
    past = NO_PAST.extended((tokens_read(*part, PAST_OUTPUTS) for part in parts), n_tokens)
    at = 1
    for rows, outputs in parts:
        n_rows, length = rows.ids.shape
        for row in range(n_rows):
            place = slice(at, at + length)
            at += length
            assert past.channels[place].tolist() == rows.blocks[row, :, 1].tolist()
            for layer in range(N_LAYERS):
                keys, values = outputs[f"key_{layer}"][row], outputs[f"value_{layer}"][row]
                assert np.array_equal(past.keys[layer][:, place], of_heads(keys))
                assert np.array_equal(past.values[layer][:, place], of_heads(values))
    assert len(past.channels) == at


def test_a_past_can_be_extended_by_some_of_the_tokens():
    rows = make_rows(20, 30)
    read = tokens_read(rows, make_outputs(rows, 0), PAST_OUTPUTS)
    whole = NO_PAST.extended([read], rows.ids.size)
    part = NO_PAST.extended([read.part(20, 50)], 30)
    assert np.array_equal(part.channels[1:], whole.channels[21:51])
    for layer in range(N_LAYERS):
        assert np.array_equal(part.keys[layer][:, 1:], whole.keys[layer][:, 21:51])
        assert np.array_equal(part.values[layer][:, 1:], whole.values[layer][:, 21:51])


def test_a_past_can_be_extended_again():
    first, second = make_rows(5), make_rows(3)
    outputs = make_outputs(first, 0), make_outputs(second, 1)
    read = [tokens_read(*part, PAST_OUTPUTS) for part in zip((first, second), outputs, strict=True)]
    n_first, n_second = first.ids.size, second.ids.size
    twice = NO_PAST.extended(read[:1], n_first).extended(read[1:], n_second)
    once = NO_PAST.extended(read, n_first + n_second)
    assert np.array_equal(twice.channels, once.channels)
    for layer in range(N_LAYERS):
        assert np.array_equal(twice.keys[layer], once.keys[layer])
        assert np.array_equal(twice.values[layer], once.values[layer])
    assert len(NO_PAST.channels) == 1, "the shared past was changed"
