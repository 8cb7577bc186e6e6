"""A reader as a Triton model: its files, their answers, and a server's compared with this process."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import onnxruntime
import pytest
from click.testing import CliRunner
from google.protobuf import text_format
from tritonclient.grpc.model_config_pb2 import ModelConfig

from steelyard.cli.main import main
from steelyard.errors import NotFoundError
from steelyard.scoring.entailment.encoder import Encoder
from steelyard.scoring.entailment.folder import read_folder
from steelyard.scoring.remote.triton_address import parse_address
from steelyard.serving.connected.declared import write_models
from steelyard.serving.reader.catalogue import SHIPPED
from steelyard.serving.reader.declaring import reader_model
from steelyard.settings import read_settings
from steelyard.triton import backend_model
from steelyard.triton.parity import check_server
from steelyard.triton.repository import (
    CONFIG,
    PRECISION,
    SHA256,
    ExportOptions,
    reader_source,
    write_model,
)
from steelyard.triton.sources import find_sources
from support.models.entailment_models import THREE, TWO, write_encoder
from support.triton.fake_triton import FakeModel, serving

PAIRS = [("The customer is happy.", "The customer is pleased."), ("A parcel came.", "It is angry.")]


@pytest.fixture
def home(tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    write_models(home, {"nli": reader_model(write_encoder(tmp_path / "nli"))})
    monkeypatch.setenv("STEELYARD_HOME", str(home))
    return home


def load(model: Path, monkeypatch):
    """Return the Python backend's program on a model's folder."""
    module = ModuleType("triton_python_backend_utils")
    module.get_input_tensor_by_name = lambda request, name: SimpleNamespace(
        as_numpy=lambda: request.inputs[name]
    )
    module.Tensor = lambda name, value: (name, value)
    module.TritonError = RuntimeError
    module.InferenceResponse = lambda output_tensors=(), error=None: (dict(output_tensors), error)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(np, "__version__", "1.26.4")
    config = text_format.Parse((model / CONFIG).read_text(), ModelConfig())
    parameters = {key: {"string_value": one.string_value} for key, one in config.parameters.items()}
    program = backend_model.TritonPythonModel()
    program.initialize(
        {
            "model_config": json.dumps({"parameters": parameters}),
            "model_repository": str(model),
            "model_version": "1",
        }
    )
    return program, config


@pytest.mark.parametrize("labels", [THREE, TWO])
@pytest.mark.parametrize("length", [None, 48])
@pytest.mark.parametrize("has_types", [False, True])
def test_the_program_equals_an_encoder_here(tmp_path, monkeypatch, labels, length, has_types):
    folder = write_encoder(tmp_path / "nli", labels, length=length, has_types=has_types)
    encoder = Encoder(read_folder(folder))
    source = reader_source("nli", encoder.facts)
    assert write_model(tmp_path / "models", source, ExportOptions())
    assert not write_model(tmp_path / "models", source, ExportOptions())
    program, config = load(tmp_path / "models" / "nli", monkeypatch)
    names = ["input_ids", "attention_mask", *(["token_type_ids"] if has_types else [])]
    assert [each.name for each in config.input] == names
    assert {tuple(each.dims) for each in config.input} == {(1, length) if length else (-1, -1)}
    for pair in PAIRS:
        inputs = encoder.inputs(*pair)
        request = SimpleNamespace(inputs=inputs, requested_output_names=lambda: ["logits"])
        [(outputs, error)] = program.execute([request])
        assert error is None
        np.testing.assert_array_equal(outputs["logits"][0], encoder.logits(*pair))


def test_a_float_graph_is_one_file_for_a_gpu(tmp_path):
    facts = read_folder(write_encoder(tmp_path / "nli"))
    assert write_model(tmp_path, reader_source("gpu", facts), ExportOptions(backend="onnxruntime"))
    session = onnxruntime.InferenceSession(tmp_path / "gpu" / "1" / "model.onnx")
    encoder = Encoder(facts)
    [[logits]] = session.run(["logits"], encoder.inputs(*PAIRS[0]))
    np.testing.assert_array_equal(logits, encoder.logits(*PAIRS[0]))


def test_a_reader_is_exported_where_it_is_named(home, tmp_path):
    def export(*words):
        folder = str(tmp_path / "models")
        return CliRunner().invoke(main, ["triton", "export", folder, *words])

    settings = read_settings({"home": str(home)})
    assert [source.name for source in find_sources(settings).sources] == ["steelyard-base-2"]
    assert find_sources(settings).readers == ["nli", SHIPPED]
    with pytest.raises(NotFoundError, match="nli"):
        find_sources(settings, names=["none"])
    done = export("--model", "nli", "--model", SHIPPED)
    assert done.exit_code == 0, done.output
    assert "nli: written (float32, " in done.output
    assert f"{SHIPPED}: written (int8, " in done.output
    refused = export("--model", SHIPPED, "--target", "gpu")
    assert (refused.exit_code, "float32 graph" in refused.output) == (3, True)
    export("--prune")
    assert {"nli", SHIPPED} <= {path.name for path in (tmp_path / "models").iterdir()}
    (tmp_path / "nli" / "model.onnx").unlink()
    done = export("--model", "nli")
    assert (done.exit_code, "has no model.onnx" in done.output) == (1, True)


@pytest.mark.parametrize(("change", "verdict"), [(0.0, "equal"), (0.5, "different")])
def test_a_servers_reader_is_compared_with_this_processs(home, change, verdict):
    settings = read_settings({"home": str(home)})
    sources = {one.name: one for one in find_sources(settings, with_readers=True).sources}
    session = onnxruntime.InferenceSession(sources["nli"].files.graph)

    def run(inputs, outputs):
        logits = session.run(list(outputs), inputs)[0] + np.array([[change, 0, 0]], np.float32)
        return {"logits": logits}

    parameters = {SHA256: sources["nli"].sha256, PRECISION: "float32"}
    model = FakeModel(run, parameters, is_loaded=True)
    with serving(("nli", model)) as server:
        [found] = check_server(parse_address(server.url), sources)
        assert (found.model, found.verdict) == ("nli", verdict)
        model.run = lambda *_: {"logits": np.zeros((1, 2), np.float32)}
        [found] = check_server(parse_address(server.url), sources)
        assert found.verdict == "different"
