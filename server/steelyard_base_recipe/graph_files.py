"""The graphs that a base model's folder has.

Of a model whose lowest layers read questions apart from the context there are two more, which
together are the whole: those layers alone, whose states of a question can be kept, and the layers
above them.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx
from onnx import helper

from steelyard.scoring.assets import GRAPHS, LONG_GRAPHS, LOWER_GRAPHS, UPPER_GRAPHS
from steelyard.scoring.engine import FLOAT32, INT8
from steelyard.training.shape import Shape
from steelyard_base_recipe.graph import (
    FLOAT,
    INT32,
    KEY_INPUTS,
    LISTENS_APART,
    ActivationScale,
    GraphBuilder,
    build,
)
from steelyard_base_recipe.long_graph import LongGraphBuilder


def build_lower(
    shape: Shape, activations: Mapping[str, ActivationScale] | None = None
) -> onnx.ModelProto:
    """Build the graph of the lowest ``shape.apart`` layers: from token ids to ``states``."""
    builder = GraphBuilder(shape, activations, probes=False)
    hidden = builder.embed()
    seen = builder.seen(LISTENS_APART, KEY_INPUTS[-1:], has_past=False)
    for index in range(shape.apart):
        hidden = builder.layer(hidden, f"layers.{index}", seen, index)
    builder.nodes.append(helper.make_node("Identity", [hidden], ["states"]))
    tokens = (*builder.token_inputs(), builder.block_input(), builder.key_input(KEY_INPUTS[-1]))
    states = helper.make_tensor_value_info("states", FLOAT, ["rows", "length", shape.width])
    return builder.model("lower_layers", tokens, [states])


def build_upper(
    shape: Shape,
    activations: Mapping[str, ActivationScale] | None = None,
    builder_class: type[GraphBuilder] = GraphBuilder,
) -> onnx.ModelProto:
    """Build the graph of the layers above: from ``states`` to the output of :func:`build`.

    Its last layer is for the ``kept`` tokens alone, which have rows of their own, and
    ``marker_index`` counts those.
    """
    builder = builder_class(shape, activations, probes=False)
    hidden, seen, last = "states", builder.seen(), shape.n_layers - 1
    for index in range(shape.apart, last):
        hidden = builder.layer(hidden, f"layers.{index}", seen, index)
    names = [f"kept_{name}" for name in KEY_INPUTS]
    seen = builder.seen(names=names, asking="kept_blocks")
    hidden = builder.layer(hidden, f"layers.{last}", seen, last, "kept")
    builder.decide(hidden, "kept_blocks")
    info = helper.make_tensor_value_info
    states = [
        info("states", FLOAT, ["rows", "length", shape.width]),
        info("kept", INT32, ["kept_rows", "kept_length"]),
        info("kept_blocks", INT32, ["kept_rows", "kept_length", 5]),
        *(info(name, INT32, ["kept_rows", f"{name}s"]) for name in names),
    ]
    inputs = [*states, *builder.inputs(shape.apart)[len(builder.token_inputs()) :]]
    return builder.model("upper_layers", inputs, builder.outputs(shape.apart))


def graph_files(shape: Shape, scales: Mapping[str, ActivationScale]) -> dict[str, bytes]:
    """Return a base model's graphs by the names of their files."""
    files: dict[str, bytes] = {}
    for precision, activations in ((FLOAT32, None), (INT8, scales)):
        models = {GRAPHS[precision]: build(shape, activations)}
        if shape.apart:
            models[LOWER_GRAPHS[precision]] = build_lower(shape, activations)
            models[UPPER_GRAPHS[precision]] = build_upper(shape, activations)
            models[LONG_GRAPHS[precision]] = build_upper(shape, activations, LongGraphBuilder)
        files |= {
            name: model.SerializeToString(deterministic=True) for name, model in models.items()
        }
    return files
