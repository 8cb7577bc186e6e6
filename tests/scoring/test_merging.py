"""An adapter merged into a base's weights, and folders that must not be served."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
import numpy as np
import pytest
from safetensors.numpy import save

from steelyard.errors import EngineUnavailableError
from steelyard.scoring.assets import read_base_files
from steelyard.scoring.engine import FLOAT32, INT8
from steelyard.scoring.merging import (
    ADAPTER,
    ADAPTER_FACTS,
    ADAPTER_FILES,
    LINEARS,
    AdapterFacts,
    base_hashes,
    merge,
    merged_scorer,
    read_adapter,
)
from steelyard.training.shape import Shape
from steelyard.training.weights import unpack_weights
from support.models.random_model import NAME, sample_requests

SIZES = {"feed_forward_in": (384, 1536), "feed_forward_out": (1536, 384)}
RANK = 3


def make_pairs(scale: float, names: tuple[str, ...] = LINEARS) -> dict[str, tuple]:
    rng = np.random.default_rng(7)
    pairs = {}
    for layer in range(Shape().n_layers):
        for name in names:
            n_in, n_out = SIZES.get(name, (384, 384))
            a = rng.normal(scale=0.05, size=(RANK, n_in)).astype(np.float32)
            b = rng.normal(scale=scale, size=(n_out, RANK)).astype(np.float32)
            pairs[f"layers.{layer}.{name}"] = (a, b)
    return pairs


def write_adapter(folder: Path, base: Path, pairs: dict[str, tuple]) -> Path:
    """Write an adapter as training does."""
    files = read_base_files(folder=base)
    tensors = {
        f"{name}.{part}": value
        for name, pair in pairs.items()
        for part, value in zip("ab", pair, strict=True)
    }
    content = save(tensors)
    facts = AdapterFacts(
        base=NAME,
        base_files=base_hashes(files),
        rank=RANK,
        sha256=hashlib.sha256(content).hexdigest(),
        trained_on="0" * 64,
        parity=0.0,
        parity_decisions=0,
        int8_difference=0.0,
    )
    folder.mkdir()
    (folder / ADAPTER).write_bytes(content)
    (folder / ADAPTER_FACTS).write_bytes(msgspec.json.encode(facts))
    return folder


@pytest.fixture
def adapter(tmp_path: Path, random_folder: Path) -> Path:
    return write_adapter(tmp_path / "adapter", random_folder, make_pairs(0.02))


@pytest.fixture(scope="module")
def stored_weights(random_folder):
    return read_base_files(folder=random_folder).weights


def probabilities(scorer) -> list[np.ndarray]:
    scored = [decision.logits for (decision,) in scorer.score(sample_requests())]
    return [
        np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum() for logits in scored
    ]


def test_a_merged_weight_is_the_trained_one_plus_the_product(stored_weights):
    pairs = make_pairs(0.1)
    before = unpack_weights(stored_weights, Shape())
    merged = merge(stored_weights, pairs, FLOAT32)
    # As stored: transposed, queries scaled, queries, keys and values side by side.
    for layer in (0, 5):
        block = f"layers.{layer}"
        for name in LINEARS:
            a, b = pairs[f"{block}.{name}"]
            expected = before[f"{block}.{name}.weight"] + b @ a
            if name in SIZES or name == "attention_output":
                found = merged[f"{block}.{name}.weight"].T
            else:
                start = ("query", "key", "value").index(name) * 384
                found = merged[f"{block}.qkv.weight"][:, start : start + 384].T
                found = found * np.sqrt(32) if name == "query" else found
            np.testing.assert_allclose(found, expected, atol=1e-5)
            assert f"{block}.{name}.scale" not in merged
    untouched = [name for name in stored_weights if not name.startswith("layers.")]
    assert untouched
    assert all(merged[name] is stored_weights[name] for name in untouched)


def test_int8_rounds_to_half_a_scale(stored_weights):
    pairs = make_pairs(0.1)
    exact, rounded = (merge(stored_weights, pairs, precision) for precision in (FLOAT32, INT8))
    assert exact.keys() < rounded.keys()
    for name in (f"layers.{i}.{part}" for i in range(6) for part in ("qkv", "feed_forward_out")):
        stored, scale = rounded[f"{name}.weight"], rounded[f"{name}.scale"]
        assert stored.dtype == np.int8
        assert (abs(stored * scale - exact[f"{name}.weight"]) <= scale * 0.5001).all()


def test_layers_without_a_pair_stay_as_stored(stored_weights):
    merged = merge(stored_weights, make_pairs(0.1, ("value", "feed_forward_in")), INT8)
    assert (
        merged["layers.2.feed_forward_out.weight"]
        is (stored_weights["layers.2.feed_forward_out.weight"])
    )
    keys = stored_weights["layers.2.qkv.weight"][:, :768]
    assert np.array_equal(merged["layers.2.qkv.weight"][:, :768], keys)
    assert not np.array_equal(merged["layers.2.qkv.weight"], stored_weights["layers.2.qkv.weight"])


@pytest.mark.slow
def test_an_adapter_that_changes_nothing_answers_as_the_base(
    tmp_path, random_folder, load, engine_name
):
    folder = write_adapter(tmp_path / "zero", random_folder, make_pairs(0.0))
    scorer = merged_scorer(random_folder, folder, engine=engine_name)
    base = load("random", engine_name).scorer
    assert (scorer.name, scorer.engine) == (base.name, base.engine)
    for ours, theirs in zip(probabilities(scorer), probabilities(base), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
    scorer.close()


@pytest.mark.slow
def test_both_engines_answer_alike_and_otherwise_than_the_base(adapter, random_folder, load):
    float32, int8 = (
        merged_scorer(random_folder, adapter, engine=f"onnxruntime-{precision}")
        for precision in (FLOAT32, INT8)
    )
    base = probabilities(load("random", "onnxruntime-float32").scorer)
    gaps = [abs(a - b).max() for a, b in zip(probabilities(float32), base, strict=True)]
    assert max(gaps) > 0.02
    rounding = [
        abs(a - b).mean() for a, b in zip(probabilities(float32), probabilities(int8), strict=True)
    ]
    assert np.mean(rounding) < np.mean(gaps)
    float32.close()
    int8.close()


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        *((file, None, "cannot be read") for file in ADAPTER_FILES),
        (ADAPTER, b"other matrices", "SHA-256"),
        (ADAPTER_FACTS, b'{"base": 1}', "cannot be read"),
    ],
)
def test_a_missing_or_altered_file_is_refused(adapter, file, content, message):
    if content is None:
        (adapter / file).unlink()
    else:
        (adapter / file).write_bytes(content)
    with pytest.raises(EngineUnavailableError, match=message):
        read_adapter(adapter)


def test_another_bases_adapter_is_refused(adapter):
    with pytest.raises(EngineUnavailableError, match="base_mismatch"):
        merged_scorer(None, adapter)
