"""Configurations as Triton's own protobuf reads them."""

from __future__ import annotations

from google.protobuf import text_format
from tritonclient.grpc.model_config_pb2 import DataType, ModelConfig, ModelInstanceGroup

from steelyard.triton.model_config import TensorSpec, render_config

INPUTS = [
    TensorSpec("ids", "tensor(int32)", (-1, -1)),
    TensorSpec("past", "tensor(float)", (12, 32, -1)),
]
OUTPUTS = [TensorSpec("logits", "tensor(float)", (-1, -1))]


def parse(**changed) -> ModelConfig:
    arguments = {
        "backend": "python",
        "inputs": INPUTS,
        "outputs": OUTPUTS,
        "parameters": {"steelyard_sha256": "ab", "odd": 'quote " and \\ and é'},
        **changed,
    }
    return text_format.Parse(render_config("m", **arguments), ModelConfig())


def test_a_cpu_model_runs_on_the_python_backend_and_stacks_nothing():
    config = parse(instances=2)
    assert (config.name, config.backend, config.max_batch_size) == ("m", "python", 0)
    assert list(config.version_policy.specific.versions) == [1]
    [group] = config.instance_group
    assert (group.count, group.kind) == (2, ModelInstanceGroup.KIND_CPU)
    assert not config.HasField("optimization")


def test_tensors_have_the_graphs_names_types_and_sizes():
    config = parse()
    found = [(one.name, one.data_type, list(one.dims)) for one in config.input]
    assert found == [
        ("ids", DataType.TYPE_INT32, [-1, -1]),
        ("past", DataType.TYPE_FP32, [12, 32, -1]),
    ]
    assert [one.name for one in config.output] == ["logits"]


def test_the_queue_is_bounded_and_a_caller_may_wait_less():
    policy = parse().dynamic_batching.default_queue_policy
    assert policy.timeout_action == policy.REJECT
    assert policy.default_timeout_microseconds == 60_000_000
    assert policy.allow_timeout_override
    assert policy.max_queue_size == 128


def test_parameters_arrive_as_they_were_given():
    parameters = {key: value.string_value for key, value in parse().parameters.items()}
    assert parameters == {"steelyard_sha256": "ab", "odd": 'quote " and \\ and é'}


def test_a_gpu_model_runs_on_the_onnx_runtime_backend():
    config = parse(backend="onnxruntime")
    assert config.backend == "onnxruntime"
    assert config.instance_group[0].kind == ModelInstanceGroup.KIND_GPU
    assert not config.optimization.cuda.graphs
    assert not config.optimization.execution_accelerators.gpu_execution_accelerator


def test_tensorrt_is_an_accelerator_of_it_in_full_precision():
    config = parse(backend="tensorrt")
    assert config.backend == "onnxruntime"
    [accelerator] = config.optimization.execution_accelerators.gpu_execution_accelerator
    assert accelerator.name == "tensorrt"
    assert dict(accelerator.parameters) == {"precision_mode": "FP32"}
