from __future__ import annotations

import numpy as np
import onnx
import pytest

from steelyard.scoring.assets import GRAPHS, LONG_GRAPHS, LOWER_GRAPHS, UPPER_GRAPHS, parts_of
from steelyard.scoring.engine import FLOAT32, INT8, graph_weights
from steelyard.scoring.passes import PAST_OUTPUTS
from steelyard.training.shape import Shape
from steelyard.training.weights import pack_weights
from steelyard_base_recipe.graph import LEAST_WEIGHT, LOWEST_SCORE, ActivationScale, build
from steelyard_base_recipe.graph_files import build_lower, build_upper, graph_files
from steelyard_base_recipe.long_graph import LongGraphBuilder
from steelyard_base_recipe.quantize import LINEARS
from support.models.random_model import make_state

SHAPE = Shape(is_gated=True)
NAMES = [f"layers.{layer}.{part}" for layer in range(SHAPE.n_layers) for part in LINEARS]
SCALES = {name: ActivationScale(0.05, 128) for name in NAMES}
TYPES = {onnx.TensorProto.FLOAT: np.float32, onnx.TensorProto.INT8: np.int8}


@pytest.fixture(scope="module")
def stored() -> dict[str, np.ndarray]:
    words, rest = pack_weights(make_state(2), SHAPE)
    return {**words, **rest}


def external(model: onnx.ModelProto) -> dict[str, onnx.TensorProto]:
    return {
        tensor.name: tensor
        for tensor in model.graph.initializer
        if tensor.data_location == onnx.TensorProto.EXTERNAL
    }


@pytest.mark.parametrize(
    ("precision", "scales"), [(FLOAT32, None), (INT8, SCALES)], ids=["float32", "int8"]
)
def test_the_tensors_that_the_graph_takes_are_those_given_at_load(
    stored, precision, scales
) -> None:
    declared, given = external(build(SHAPE, scales)), graph_weights(stored, precision)
    assert set(declared) <= set(given)
    # The float32 graph uses all; the int8 one too.
    assert set(given) == set(declared)
    for name, tensor in declared.items():
        assert tuple(tensor.dims) == given[name].shape, name
        assert TYPES[tensor.data_type] == given[name].dtype, name


@pytest.mark.parametrize("apart", [1, 3, 5])
def test_the_lowest_layers_and_those_above_are_the_whole_graph(stored, apart) -> None:
    shape = Shape(is_gated=True, apart=apart)
    parts = [external(build_lower(shape, SCALES)), external(build_upper(shape, SCALES))]
    assert external(build_upper(shape, SCALES, LongGraphBuilder)) == parts[1]
    assert set().union(*parts) == set(external(build(shape, SCALES)))
    assert not set(parts[0]) & set(parts[1])
    given = [set(graph_weights(part, INT8)) for part in parts_of(stored, apart)]
    assert [set(part) for part in parts] == given


def test_a_model_has_graphs_in_two_where_layers_are_apart() -> None:
    assert set(graph_files(SHAPE, SCALES)) == set(GRAPHS.values())
    files = graph_files(Shape(apart=2), SCALES)
    graphs = (GRAPHS, LOWER_GRAPHS, UPPER_GRAPHS, LONG_GRAPHS)
    assert set(files) == {name for names in graphs for name in names.values()}
    parts = ((LOWER_GRAPHS, "lower_layers"), *((of, "upper_layers") for of in graphs[2:]))
    for names, graph in parts:
        for name in names.values():
            assert onnx.load_model_from_string(files[name]).graph.name == graph


def test_the_graphs_are_small_files_without_weights() -> None:
    for scales in (None, SCALES):
        assert len(build(SHAPE, scales).SerializeToString()) < 200_000


def test_a_graph_is_the_same_every_time() -> None:
    one, other = (build(SHAPE, SCALES).SerializeToString(deterministic=True) for _ in range(2))
    assert one == other


def test_only_the_encoder_is_in_int8() -> None:
    products = [node for node in build(SHAPE, SCALES).graph.node if "Integer" in node.op_type]
    assert len(products) == len(NAMES)
    assert not [node for node in build(SHAPE).graph.node if "Integer" in node.op_type]
    taken = {name for node in products for name in node.input}
    assert {f"{name}.weight" for name in NAMES} <= taken
    assert not any(name.startswith("set_layer.") for name in taken)


def test_quantisation_does_not_depend_on_the_rest_of_a_pass() -> None:
    kinds = {node.op_type for node in build(SHAPE, SCALES).graph.node}
    assert "DynamicQuantizeLinear" not in kinds
    assert not {kind for kind in kinds if kind.startswith("Dynamic")}


def test_outputs_are_the_same_for_both_precisions() -> None:
    names = [[output.name for output in build(SHAPE, s).graph.output] for s in (None, SCALES)]
    assert names[0] == names[1]
    assert set(names[0]) == {"logits", "marker_vectors", "pooled", *PAST_OUTPUTS}


def test_probes_give_the_inputs_of_the_linear_layers() -> None:
    with_probes = build(SHAPE, probes=True).graph.output
    added = {output.name for output in with_probes} - {o.name for o in build(SHAPE).graph.output}
    assert added == {f"probe.{name}" for name in NAMES}


def test_masked_tokens_weigh_nothing_and_are_not_denormal() -> None:
    lowest = np.exp(np.float32(LOWEST_SCORE))
    assert np.finfo(np.float32).tiny < lowest < LEAST_WEIGHT
    nodes = build(Shape()).graph.node
    makers = {name: node.op_type for node in nodes for name in node.output}
    takers = {name: node.op_type for node in nodes for name in node.input}
    raised = [node for node in nodes if node.op_type == "Exp"]
    assert raised
    assert {makers[node.input[0]] for node in raised} == {"Max"}
    assert {takers[node.output[0]] for node in raised} == {"ThresholdedRelu"}
