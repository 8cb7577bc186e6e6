from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from steelyard_base_recipe import start
from steelyard_base_recipe.dequantize import read_quantized
from steelyard_base_recipe.start import MINILM, STARTS, find_encoder, read_encoder

DIGEST = hashlib.sha256(b"weights").hexdigest()


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    return tmp_path


def test_weights_of_another_hash_are_refused(folder) -> None:
    with pytest.raises(ValueError, match=rf"SHA-256 {DIGEST}; expected {MINILM.sha256}"):
        find_encoder(folder)


def test_the_expected_weights_are_found(folder) -> None:
    assert find_encoder(folder, replace(MINILM, sha256=DIGEST)) == folder


def test_a_folder_without_weights_is_an_error(tmp_path) -> None:
    with pytest.raises(FileNotFoundError):
        find_encoder(tmp_path)


@pytest.mark.parametrize("one", STARTS.values(), ids=list(STARTS))
def test_without_a_folder_the_package_is_looked_for(one, monkeypatch) -> None:
    asked = []
    monkeypatch.setattr(start.util, "find_spec", asked.append)
    with pytest.raises(FileNotFoundError, match="--encoder"):
        find_encoder(None, one)
    assert asked == [one.package]


def test_the_packages_folder_is_checked_too(monkeypatch, tmp_path) -> None:
    class Spec:
        origin = str(tmp_path / "__init__.py")

    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.safetensors").write_bytes(b"weights")
    monkeypatch.setattr(start.util, "find_spec", lambda _: Spec)
    with pytest.raises(ValueError, match="expected"):
        find_encoder()
    assert find_encoder(None, replace(MINILM, sha256=DIGEST)) == tmp_path / "model"


def write_quantized(path, weight, bias, table) -> None:
    """Write a graph that looks a row up and multiplies it, quantised as ONNX Runtime does."""
    scale = np.abs(weight).max(0) / 127
    stored = {
        "onnx::MatMul_7_quantized": np.rint(weight / scale).astype(np.int8),
        "onnx::MatMul_7_scale": scale.astype(np.float32),
        "onnx::MatMul_7_zero_point": np.zeros(len(scale), np.int8),
        "bert.embeddings.word_embeddings.weight_quantized": np.rint(table / 0.01 + 128).astype(
            "u1"
        ),
        "bert.embeddings.word_embeddings.weight_scale": np.float32(0.01),
        "bert.embeddings.word_embeddings.weight_zero_point": np.uint8(128),
        "bert.encoder.layer.0.output.dense.bias": bias,
    }
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [
            helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
            helper.make_node(
                "MatMulInteger",
                ["q", "onnx::MatMul_7_quantized", "z", "onnx::MatMul_7_zero_point"],
                ["y"],
                name="/bert/encoder/layer.0/output/dense/MatMul_quant",
            ),
        ],
        "encoder",
        [info("x", TensorProto.FLOAT, [1, weight.shape[0]])],
        [info("y", TensorProto.INT32, [1, weight.shape[1]])],
        [numpy_helper.from_array(np.asarray(v), name) for name, v in stored.items()],
    )
    onnx.save(helper.make_model(graph), path)


def test_int8_weights_come_back_within_half_a_step(tmp_path) -> None:
    rng = np.random.default_rng(0)
    weight, bias = rng.normal(size=(6, 4)), rng.normal(size=4).astype(np.float32)
    table = rng.uniform(-1, 1, size=(5, 3))
    path = tmp_path / "model.onnx"
    write_quantized(path, weight, bias, table)
    content = path.read_bytes()
    one = replace(MINILM, weights=path.name, sha256=hashlib.sha256(content).hexdigest())
    found = read_encoder(find_encoder(tmp_path, one), one)
    assert sorted(found) == [
        "embeddings.word_embeddings.weight",
        "encoder.layer.0.output.dense.bias",
        "encoder.layer.0.output.dense.weight",
    ]
    dense = found["encoder.layer.0.output.dense.weight"]
    assert np.abs(dense.T - weight).max() <= np.abs(weight).max() / 127 / 2 + 1e-6
    assert np.abs(found["embeddings.word_embeddings.weight"] - table).max() <= 0.005 + 1e-6
    assert np.array_equal(found["encoder.layer.0.output.dense.bias"], bias)


def test_a_graph_of_float32_is_refused(tmp_path) -> None:
    info = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["x2"])], "g", [info], [])
    onnx.save(helper.make_model(graph), tmp_path / "model.onnx")
    with pytest.raises(ValueError, match="multiplies no matrix as int8"):
        read_quantized(tmp_path / "model.onnx")
