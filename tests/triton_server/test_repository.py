"""Repositories on the disk: their content, when they are written, and their backends."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from google.protobuf import text_format
from tritonclient.grpc.model_config_pb2 import ModelConfig

from steelyard.errors import EngineUnavailableError
from steelyard.scoring.engine import Tensors
from steelyard.scoring.onnx import DECISION_OUTPUTS, OnnxScorer
from steelyard.scoring.passes import PAST_OUTPUTS
from steelyard.triton import backend_model
from steelyard.triton.repository import (
    CONFIG,
    EXPORT,
    ExportOptions,
    ModelSource,
    base_source,
    embed_weights,
    exported,
    is_current,
    read_record,
    remove_model,
    write_model,
)
from support.models.random_model import sample_requests
from support.triton.triton_hosting import write_lora_artifact

CPU, GPU = ExportOptions(), ExportOptions(backend="onnxruntime")


@pytest.fixture(scope="module")
def folder(tmp_path_factory, base: ModelSource) -> Path:
    """A repository with the base model for a CPU; not to be changed."""
    folder = tmp_path_factory.mktemp("repository")
    assert write_model(folder, base, CPU)
    return folder


@pytest.fixture(scope="module")
def inputs(base: ModelSource) -> Tensors:
    """The inputs of a pass of two requests."""
    scorer = OnnxScorer(None, base.files.tokenizer, name="random", engine_name="")
    return scorer.plan([scorer.lay_out(one) for one in sample_requests()[:2]], None)


def config_of(model: Path) -> ModelConfig:
    return text_format.Parse((model / CONFIG).read_text(encoding="utf-8"), ModelConfig())


def test_a_cpu_model_is_a_configuration_a_program_a_graph_and_its_tensors(folder, base):
    model = folder / "random"
    assert sorted(path.name for path in (model / "1").iterdir()) == [
        "graph.onnx",
        "model.py",
        "weights.npz",
    ]
    config = config_of(model)
    assert config.name == "random"
    told = {key: value.string_value for key, value in config.parameters.items()}
    assert told["steelyard_sha256"] == base.sha256
    assert told["precision"] == "float32"
    assert {one.name for one in config.output} >= {*DECISION_OUTPUTS, *PAST_OUTPUTS}


def test_the_configuration_has_the_inputs_of_a_pass(folder, inputs):
    found = {one.name: one for one in config_of(folder / "random").input}
    assert found.keys() == inputs.keys()
    for name, array in inputs.items():
        assert len(found[name].dims) == array.ndim
        for told, size in zip(found[name].dims, array.shape, strict=True):
            assert told in {-1, size}


def test_unchanged_models_are_left_alone(folder, base):
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert is_current(folder, base, CPU)
    assert not write_model(folder, base, CPU)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_the_record_names_every_file_and_its_hash(folder, base):
    record = read_record(folder / "random")
    assert record is not None
    assert sorted(record.files) == ["1/graph.onnx", "1/model.py", "1/weights.npz", "config.pbtxt"]
    assert (record.model_sha256, record.precision, record.target) == (base.sha256, "float32", "cpu")
    assert exported(folder) == {"random": record}


def test_other_options_or_an_altered_file_are_written_anew(tmp_path, base):
    assert write_model(tmp_path, base, CPU)
    threads = ExportOptions(threads=1)
    assert not is_current(tmp_path, base, threads)
    config = tmp_path / "random" / CONFIG
    whole = config.read_bytes()
    config.write_bytes(whole + b"\n")
    assert write_model(tmp_path, base, CPU)
    assert config.read_bytes() == whole
    (tmp_path / "random" / EXPORT).unlink()
    assert write_model(tmp_path, base, CPU)
    # Nothing beside the model is left of all that.
    assert [path.name for path in tmp_path.iterdir()] == ["random"]


def test_a_failed_write_leaves_the_earlier_model(tmp_path, base, monkeypatch):
    write_model(tmp_path, base, CPU)
    before = (tmp_path / "random" / EXPORT).read_bytes()

    def fail(*args, **named):
        raise OSError("the disk is full")

    monkeypatch.setattr("steelyard.triton.repository.np.savez", fail)
    with pytest.raises(OSError, match="full"):
        write_model(tmp_path, base, ExportOptions(threads=2))
    assert [path.name for path in tmp_path.iterdir()] == ["random"]
    assert (tmp_path / "random" / EXPORT).read_bytes() == before
    assert is_current(tmp_path, base, CPU)


def test_only_exported_models_are_removed(tmp_path, base):
    write_model(tmp_path, base, CPU)
    (tmp_path / "theirs").mkdir()
    remove_model(tmp_path, "theirs")
    remove_model(tmp_path, "random")
    assert [path.name for path in tmp_path.iterdir()] == ["theirs"]


class FakeTriton(types.ModuleType):
    """The arguments of the Python backend to its models."""

    class Tensor:
        def __init__(self, name: str, value: np.ndarray) -> None:
            self.name, self.value = name, value

        def as_numpy(self) -> np.ndarray:
            return self.value

    class TritonError(Exception):
        pass

    class InferenceResponse:
        def __init__(self, output_tensors=(), error=None) -> None:
            self.tensors, self.error = {one.name: one.value for one in output_tensors}, error

    @staticmethod
    def get_input_tensor_by_name(request, name):
        return FakeTriton.Tensor(name, request.inputs[name])


class Request:
    def __init__(self, inputs, wanted) -> None:
        self.inputs, self.wanted = inputs, wanted

    def requested_output_names(self):
        return self.wanted


@pytest.fixture
def start(monkeypatch):
    """Start the Python backend's program on a model's folder, as the backend does."""
    module = FakeTriton("triton_python_backend_utils")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(np, "__version__", "1.26.4")

    def start(model: Path):
        config = config_of(model)
        parameters = {
            key: {"string_value": value.string_value} for key, value in config.parameters.items()
        }
        program = backend_model.TritonPythonModel()
        program.initialize(
            {
                "model_config": json.dumps({"parameters": parameters}),
                "model_repository": str(model),
                "model_version": "1",
            }
        )
        return program

    return start


def test_the_program_equals_an_engine_here(folder, base, inputs, start):
    program = start(folder / "random")
    engine = base.engine()
    for wanted in (["logits", "marker_vectors"], ["pooled", *PAST_OUTPUTS]):
        [answer] = program.execute([Request(inputs, wanted)])
        assert answer.error is None
        assert list(answer.tensors) == wanted
        for name, expected in engine.run(inputs, wanted).items():
            np.testing.assert_array_equal(answer.tensors[name], expected)
    engine.close()


def test_the_program_answers_each_request_for_itself(folder, inputs, start):
    broken = {**inputs, "kinds": inputs["kinds"].astype(np.float32)}
    good, bad = start(folder / "random").execute(
        [Request(inputs, ["logits"]), Request(broken, ["logits"])]
    )
    assert good.error is None
    assert "The pass failed" in str(bad.error)


def test_the_program_refuses_files_that_were_not_exported(tmp_path, base, start):
    write_model(tmp_path, base, CPU)
    graph = tmp_path / "random" / "1" / "graph.onnx"
    graph.write_bytes(graph.read_bytes() + b"x")
    with pytest.raises(RuntimeError, match=r"graph\.onnx is not the file that was exported"):
        start(tmp_path / "random")


def test_the_program_refuses_numpy_2(folder, start, monkeypatch):
    monkeypatch.setattr(np, "__version__", "2.4.0")
    with pytest.raises(RuntimeError, match="below 2"):
        start(folder / "random")


def test_a_fine_tunes_model_has_its_own_weights(tmp_path, base, inputs, start):
    tuned = write_lora_artifact(tmp_path / "artifact", base)
    write_model(tmp_path / "models", tuned, CPU)
    told = config_of(tmp_path / "models" / tuned.name).parameters
    assert told["steelyard_sha256"].string_value == tuned.sha256
    assert told["base"].string_value == "random"
    [answer] = start(tmp_path / "models" / tuned.name).execute([Request(inputs, ["logits"])])
    merged, untouched = tuned.engine(), base.engine()
    np.testing.assert_array_equal(
        answer.tensors["logits"], merged.run(inputs, ["logits"])["logits"]
    )
    apart = np.abs(answer.tensors["logits"] - untouched.run(inputs, ["logits"])["logits"])
    assert apart.max() > 1e-3
    merged.close()
    untouched.close()


@pytest.mark.slow
def test_a_gpu_model_is_one_whole_file_that_answers_the_same(tmp_path, base, inputs):
    write_model(tmp_path, base, GPU)
    model = tmp_path / "random"
    assert [path.name for path in (model / "1").iterdir()] == ["model.onnx"]
    assert config_of(model).backend == "onnxruntime"
    onnx.checker.check_model(str(model / "1" / "model.onnx"), full_check=False)
    session = onnxruntime.InferenceSession(
        str(model / "1" / "model.onnx"), providers=["CPUExecutionProvider"]
    )
    engine = base.engine()
    expected = engine.run(inputs, ["logits", "marker_vectors"])
    for name, value in zip(expected, session.run(list(expected), inputs), strict=True):
        np.testing.assert_allclose(value, expected[name], atol=1e-5)
    engine.close()


def test_a_gpu_takes_no_int8(tmp_path, random_folder):
    int8 = base_source(random_folder, engine="onnxruntime-int8")
    with pytest.raises(EngineUnavailableError, match="onnxruntime-float32"):
        write_model(tmp_path, int8, GPU)
    assert list(tmp_path.iterdir()) == []


def test_a_graph_without_one_of_its_weights_is_refused(base):
    with pytest.raises(EngineUnavailableError, match="that its weights lack"):
        embed_weights(base.files.graph, {})
