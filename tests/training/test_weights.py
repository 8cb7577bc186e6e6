from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.training.shape import Shape
from steelyard.training.weights import pack_weights, quantize_columns, unpack_weights
from support.decisions.strategies import few
from support.models.random_model import make_state


@pytest.fixture(scope="module")
def state() -> dict[str, np.ndarray]:
    return make_state(1)


@pytest.fixture(scope="module")
def packed(state) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    return pack_weights(state, Shape())


@few
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(1, 40), st.floats(1e-6, 1e4))
def test_no_element_is_off_by_more_than_half_a_scale(
    seed: int, n_in: int, n_out: int, size: float
) -> None:
    rng = np.random.default_rng(seed)
    # Columns of very unlike sizes: each has a scale of its own.
    weight = (rng.normal(size=(n_in, n_out)) * rng.uniform(0, size, n_out)).astype(np.float32)
    stored, scale = quantize_columns(weight)
    assert (stored.dtype, scale.dtype) == (np.int8, np.float32)
    assert stored.shape == weight.shape
    assert scale.shape == (n_out,)
    assert abs(stored.astype(int)).max() <= 127
    error = abs(stored * scale.astype(np.float64) - weight)
    assert (error <= scale * (0.5 + 1e-4)).all()
    # The whole range is used.
    largest = abs(weight).max(axis=0)
    assert (abs(stored.astype(int)).max(axis=0)[largest > 1e-9] == 127).all()


def test_a_column_of_zeros_stays_zero() -> None:
    weight = np.zeros((4, 2), np.float32)
    weight[:, 1] = 3
    stored, scale = quantize_columns(weight)
    assert stored[:, 0].tolist() == [0] * 4
    assert (stored * scale)[:, 1] == pytest.approx(3)
    assert np.isfinite(scale).all()


def test_words_have_a_scale_each(state, packed) -> None:
    words, rest = packed
    assert set(words) == {"word_embeddings.weight", "word_embeddings.scale"}
    assert not any(name.startswith("word_embeddings") for name in rest)
    table, scale = words["word_embeddings.weight"], words["word_embeddings.scale"]
    assert (table.dtype, table.shape) == (np.int8, (30_522, 384))
    assert scale.shape == (30_522,)
    error = abs(table * scale[:, None] - state["word_embeddings.weight"])
    assert (error <= 0.501 * scale[:, None]).all()


@pytest.mark.parametrize(("block", "head"), [("layers.0", 32), ("layers.5", 32), ("set_layer", 64)])
def test_queries_carry_the_attentions_scaling(state, packed, block: str, head: int) -> None:
    stored = packed[1]
    weight = stored[f"{block}.qkv.weight"] * stored[f"{block}.qkv.scale"]
    for index, (part, factor) in enumerate((("query", head**-0.5), ("key", 1), ("value", 1))):
        columns = slice(384 * index, 384 * (index + 1))
        expected = state[f"{block}.{part}.weight"].T * factor
        scale = stored[f"{block}.qkv.scale"][columns]
        assert (abs(weight[:, columns] - expected) <= 0.501 * scale).all()
        bias = stored[f"{block}.qkv.bias"][columns]
        assert bias == pytest.approx(state[f"{block}.{part}.bias"] * factor, rel=1e-6)


def test_matrices_are_stored_from_input_to_output(state, packed) -> None:
    stored = packed[1]
    for name in (
        "layers.2.feed_forward_in",
        "layers.2.feed_forward_out",
        "set_layer.attention_output",
    ):
        weight = stored[f"{name}.weight"] * stored[f"{name}.scale"]
        expected = state[f"{name}.weight"].T
        assert weight.shape == expected.shape
        assert (abs(weight - expected) <= 0.501 * stored[f"{name}.scale"]).all()


def test_small_parts_are_kept_as_they_are(state, packed) -> None:
    stored = packed[1]
    for name in (
        "position_embeddings.weight",
        "role_embeddings.weight",
        "embedding_norm.bias",
        "layers.3.output_norm.weight",
        "set_layer.attention_norm.bias",
        "similarity_weight",
    ):
        assert np.array_equal(stored[name], state[name])
    for name in ("level_projection.weight", "similarity_projection.weight", "logit.weight"):
        assert np.array_equal(stored[name], state[name].T)
    assert all(value.flags.c_contiguous for value in stored.values())


def test_stored_weights_can_be_trained_further(state, packed) -> None:
    words, rest = packed
    unpacked = unpack_weights({**words, **rest}, Shape())

    assert unpacked.keys() == state.keys()
    for name, value in unpacked.items():
        assert value.shape == state[name].shape
        assert value.dtype == np.float32
        # A row of a (n_out, n_in) matrix is a column of the stored one: it has one scale.
        rows = np.atleast_2d(state[name])
        bound = np.abs(rows).max(axis=1, keepdims=True) / 127 * 0.5001 + 1e-6
        assert (np.abs(np.atleast_2d(value) - rows) <= bound).all(), name


def test_packing_again_changes_nothing(packed) -> None:
    words, rest = packed
    again = pack_weights(unpack_weights({**words, **rest}, Shape()), Shape())

    for first, second in zip(packed, again, strict=True):
        for name, value in first.items():
            if value.dtype == np.int8:
                assert np.array_equal(second[name], value), name
            else:
                assert np.allclose(second[name], value, rtol=1e-6, atol=1e-9), name
