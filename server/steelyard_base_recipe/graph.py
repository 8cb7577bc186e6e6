"""The scorer as one ONNX graph, built node by node, without weights inside.

The graph goes from token ids to logits and marker vectors. Its large tensors are external
initializers, given at load: so the float32 graph and the int8 graph are small files that share
one stored set of weights. Tokens of earlier passes (a long request's context) enter as past keys
and values, so one graph serves short requests in one pass and long ones in several. (A variant
without the past costs as much CPU on short requests, so there is only this one.)

``steelyard_base_recipe.graph_files`` has this graph in two, for models whose lowest layers read
questions apart from the context.

In float32 the weights given are those stored, dequantised. In int8 every matrix product of the encoder
with a weight takes activations quantised with scales fixed at calibration (static), so that a result
does not depend on the rest of the batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from steelyard.training.shape import GATE_SPAN, Shape

OPSET = 20
IR_VERSION = 10
FLOAT, INT32, INT8 = TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT8
MASKED = -1e4
#: Columns of ``blocks`` that name the channels a token listens to; those of no context.
LISTENS, LISTENS_APART = (2, 3, 4), (3, 4)
#: What neither a block nor a channel is nor a token listens to.
NO_BLOCK = -2
#: Inputs that name the keys of each row, in the order in which what they hold is summed.
KEY_INPUTS = ("context_index", "key_index")
#: Scores are raised to this before e is raised to them, and less than this weighs nothing: the second
#: is more than e to the first.
LOWEST_SCORE, LEAST_WEIGHT = -80.0, 1e-34
#: Columns of ones that count weights: one column alone is not multiplied as several are.
COUNTERS = 16


@dataclass(frozen=True, slots=True)
class ActivationScale:
    """Static quantisation of an activation to uint8: ``real = (stored - zero_point) * scale``."""

    scale: float
    zero_point: int


@dataclass(frozen=True, slots=True)
class AttendedKeys:
    """The keys that a pass's tokens attend to, with a bias each, and those of the past."""

    keys: tuple[str, ...]
    biases: tuple[str, ...]
    has_past: bool = True
    #: The channels that the tokens listen to.
    listens: tuple[str, ...] = ()


class EarlierKeys(Protocol):
    """Keys and values that come in chunks, before all others; see ``steelyard_base_recipe.long_graph``."""

    def bound(self, query: str, bound: str) -> str:
        """Return the highest score of their keys and those before."""

    def sums(self, query: str, bound: str) -> tuple[str, str]:
        """Return their numerator and their denominator."""


@dataclass(slots=True)
class GraphBuilder:
    """Writes the graph; see :func:`build`."""

    shape: Shape
    activations: Mapping[str, ActivationScale] | None
    probes: bool
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    initializers: list[onnx.TensorProto] = field(default_factory=list)
    counter: int = 0
    constants: dict[tuple[object, ...], str] = field(default_factory=dict)
    quantized: dict[str, str] = field(default_factory=dict)
    probed: list[str] = field(default_factory=list)

    def op(
        self, kind: str, inputs: Sequence[str], *, domain: str = "", **attributes: object
    ) -> str:
        """Add a node with one output and give the output's name."""
        return self.ops(kind, inputs, 1, domain=domain, **attributes)[0]

    def ops(
        self, kind: str, inputs: Sequence[str], n: int, *, domain: str = "", **attributes: object
    ) -> list[str]:
        """Add a node with ``n`` outputs and give their names."""
        self.counter += 1
        outputs = [f"{kind}_{self.counter}_{i}" for i in range(n)]
        self.nodes.append(
            helper.make_node(kind, list(inputs), outputs, domain=domain, **attributes)
        )
        return outputs

    def constant(self, value: NDArray[np.generic] | np.generic) -> str:
        """Return the name of a small constant stored in the graph."""
        value = np.asarray(value)
        key = (str(value.dtype), value.shape, value.tobytes())
        if key not in self.constants:
            name = f"constant_{len(self.constants)}"
            self.initializers.append(numpy_helper.from_array(value, name))
            self.constants[key] = name
        return self.constants[key]

    def ints(self, *values: int) -> str:
        """Return a constant int64 vector."""
        return self.constant(np.asarray(values, np.int64))

    def external(self, name: str, dtype: int, *dims: int) -> str:
        """Declare a tensor given at load."""
        tensor = TensorProto(name=name, data_type=dtype, dims=dims)
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", "weights"), ("offset", "0"), ("length", "0")):
            entry = tensor.external_data.add()
            entry.key, entry.value = key, value
        if all(existing.name != name for existing in self.initializers):
            self.initializers.append(tensor)
        return name

    def linear(self, x: str, name: str, n_in: int, n_out: int, *, exact: bool = False) -> str:
        """Multiply by a weight and add its bias: in int8 where activations are calibrated."""
        bias = self.external(f"{name}.bias", FLOAT, n_out)
        if self.probes and not exact:
            probe = f"probe.{name}"
            self.nodes.append(helper.make_node("Identity", [x], [probe]))
            self.probed.append(probe)
        if self.activations is None or exact:
            weight = self.external(f"{name}.weight", FLOAT, n_in, n_out)
            return self.op("Add", [self.op("MatMul", [x, weight]), bias])
        scale, zero_point = self.activation(name)
        weight = self.external(f"{name}.weight", INT8, n_in, n_out)
        weight_scale = self.external(f"{name}.scale", FLOAT, n_out)
        weight_zero = self.constant(np.zeros(n_out, np.int8))
        quantized = self.op("QuantizeLinear", [x, scale, zero_point])
        return self.op(
            "MatMulIntegerToFloat",
            [quantized, weight, scale, weight_scale, zero_point, weight_zero, bias],
            domain="com.microsoft",
        )

    def activation(self, name: str) -> tuple[str, str]:
        """Return the scale and the zero point of a linear layer's input."""
        assert self.activations is not None  # noqa: S101
        activation = self.activations[name]
        scale = self.constant(np.float32(activation.scale))
        return scale, self.constant(np.uint8(activation.zero_point))

    def norm(self, x: str, name: str) -> str:
        """Normalise over the last axis.

        Written out: ONNX Runtime's own kernel takes three times as long on a CPU.
        """
        weight = self.external(f"{name}.weight", FLOAT, self.shape.width)
        bias = self.external(f"{name}.bias", FLOAT, self.shape.width)
        inverse_width = self.constant(np.float32(1.0 / self.shape.width))
        epsilon = self.constant(np.float32(self.shape.layer_norm_eps))
        last = self.ints(-1)
        centred = self.op("Sub", [x, self.op("ReduceMean", [x, last], keepdims=1)])
        # ReduceSumSquare, not ReduceMean of the square: that pattern is fused back into the kernel.
        squares = self.op("ReduceSumSquare", [centred, last], keepdims=1)
        variance = self.op("Add", [self.op("Mul", [squares, inverse_width]), epsilon])
        scaled = self.op("Div", [centred, self.op("Sqrt", [variance])])
        return self.op("Add", [self.op("Mul", [scaled, weight]), bias])

    def column(self, x: str, index: int) -> str:
        """Take one column of the last axis, the axis dropped."""
        return self.op("Gather", [x, self.constant(np.asarray(index, np.int64))], axis=-1)

    def unsqueeze(self, x: str, *axes: int) -> str:
        """Add axes of size one."""
        return self.op("Unsqueeze", [x, self.ints(*axes)])

    def embed(self) -> str:
        """Sum word, position and role embeddings; words are stored as int8 with row scales."""
        shape = self.shape
        table = self.external("word_embeddings.weight", INT8, shape.vocabulary, shape.width)
        scales = self.external("word_embeddings.scale", FLOAT, shape.vocabulary)
        rows = self.op("Cast", [self.op("Gather", [table, "input_ids"])], to=FLOAT)
        words = self.op("Mul", [rows, self.unsqueeze(self.op("Gather", [scales, "input_ids"]), -1)])
        positions = self.external(
            "position_embeddings.weight", FLOAT, shape.n_positions, shape.width
        )
        roles = self.external("role_embeddings.weight", FLOAT, shape.n_roles, shape.width)
        total = self.op("Add", [words, self.op("Gather", [positions, "position_ids"])])
        total = self.op("Add", [total, self.op("Gather", [roles, "role_ids"])])
        return self.norm(total, "embedding_norm")

    def seen(
        self,
        columns: Sequence[int] = LISTENS,
        names: Sequence[str] = KEY_INPUTS,
        *,
        asking: str = "blocks",
        has_past: bool = True,
    ) -> AttendedKeys:
        """Build the block mask: 0 where a token attends, ``MASKED`` where it does not.

        ``columns`` of the blocks name the channels that a token listens to, ``names`` the inputs
        with the keys of each row, and ``asking`` the blocks of the tokens that attend.
        """
        zero = self.constant(np.asarray(0, np.int32))
        nothing = self.constant(np.asarray(NO_BLOCK, np.int32))
        block = self.unsqueeze(self.column(asking, 0), 2)
        listens = [self.unsqueeze(self.column(asking, index), 2) for index in columns]
        visible, keys = [], []
        if has_past:
            visible.append(self.any_equal(listens, self.unsqueeze("past_channels", 0, 1)))
        for name in names:
            index = self.op("Max", [name, zero])
            none = self.op("Less", [name, zero])
            of_keys = []
            for column in (0, 1):
                flat = self.op("Reshape", [self.column("blocks", column), self.ints(-1)])
                gathered = self.op("Gather", [flat, index])
                of_keys.append(self.unsqueeze(self.op("Where", [none, nothing, gathered]), 1))
            same = self.op("Equal", [block, of_keys[0]])
            visible.append(self.op("Or", [same, self.any_equal(listens, of_keys[1])]))
            keys.append(index)
        biases = tuple(map(self.bias, visible))
        return AttendedKeys(tuple(keys), biases, has_past, tuple(listens))

    def bias(self, visible: str) -> str:
        """Return the term added to scores: 0 where a token attends, ``MASKED`` where it does not."""
        open_, closed = (self.constant(np.float32(value)) for value in (0.0, MASKED))
        return self.unsqueeze(self.op("Where", [visible, open_, closed]), 0)

    def any_equal(self, listens: Sequence[str], channels: str) -> str:
        """Return where a token listens to a channel."""
        matches = ""
        for listen in listens:
            heard = self.op("Equal", [listen, channels])
            matches = self.op("Or", [matches, heard]) if matches else heard
        return matches

    def heads(self, x: str, n_heads: int, order: Sequence[int]) -> str:
        """Split the last axis into heads and reorder (row, token, head, feature)."""
        split = self.op("Reshape", [x, self.ints(0, 0, n_heads, self.shape.width // n_heads)])
        return self.op("Transpose", [split], perm=list(order))

    def tokens_of_heads(self, x: str, n_heads: int) -> str:
        """Return (heads, tokens of all rows, features) of a tensor (rows, tokens, width)."""
        split = self.op("Reshape", [x, self.ints(-1, n_heads, self.shape.width // n_heads)])
        return self.op("Transpose", [split], perm=[1, 0, 2])

    def layer(
        self, x: str, name: str, seen: AttendedKeys, index: int | None, attending: str | None = None
    ) -> str:
        """Add one post-norm transformer layer; ``index`` is None for the set layer.

        With ``attending``, rows of flat indices of tokens, only these tokens attend and are returned.
        """
        shape, is_set = self.shape, index is None
        n_heads = shape.set_heads if is_set else shape.n_heads
        inner = shape.set_feed_forward if is_set else shape.feed_forward
        width = shape.width
        qkv = self.linear(x, f"{name}.qkv", width, 3 * width, exact=is_set)
        names = [f"{kind}_{name if is_set else index}" for kind in ("query", "key", "value")]
        self.nodes.append(helper.make_node("Split", [qkv], names, axis=-1, num_outputs=3))
        if is_set:
            # (decisions, heads, outcomes, features)
            q, k, v = (self.heads(x, n_heads, (0, 2, 1, 3)) for x in names)
            parts = [(k, v)]
        else:
            # (heads, rows, tokens, features): then keys of any row are taken without reordering.
            asking = names[0] if attending is None else self.tokens_at(names[0], attending)
            q = self.heads(asking, n_heads, (2, 0, 1, 3))
            k, v = (self.tokens_of_heads(x, n_heads) for x in names[1:])
            parts = []
            if seen.has_past:
                past = (self.unsqueeze(f"past_{x}", 1) for x in names[1:])
                parts.append((next(past), next(past)))
            parts += (
                (self.op("Gather", [k, keys], axis=1), self.op("Gather", [v, keys], axis=1))
                for keys in seen.keys
            )
        attended = self.attend(q, parts, seen.biases, self.earlier(name, seen, index))
        order = [0, 2, 1, 3] if is_set else [1, 2, 0, 3]
        merged = self.op("Transpose", [attended], perm=order)
        merged = self.op("Reshape", [merged, self.ints(0, 0, width)])
        if attending is not None:
            x = self.tokens_at(x, attending)
        out = self.linear(merged, f"{name}.attention_output", width, width, exact=is_set)
        x = self.norm(self.op("Add", [x, out]), f"{name}.attention_norm")
        fed = self.linear(x, f"{name}.feed_forward_in", width, inner, exact=is_set)
        fed = self.op("Gelu", [fed], approximate="none")
        fed = self.linear(fed, f"{name}.feed_forward_out", inner, width, exact=is_set)
        return self.norm(self.op("Add", [x, fed]), f"{name}.output_norm")

    def tokens_at(self, x: str, index: str) -> str:
        """Take tokens of any row, by flat indices."""
        return self.op("Gather", [self.op("Reshape", [x, self.ints(-1, self.shape.width)]), index])

    def earlier(self, name: str, seen: AttendedKeys, index: int | None) -> EarlierKeys | None:  # noqa: ARG002
        """Return a layer's keys that come in chunks, where the graph has such."""
        return None

    def attend(
        self,
        query: str,
        parts: Sequence[tuple[str, str]],
        biases: Sequence[str],
        earlier: EarlierKeys | None = None,
    ) -> str:
        """Weigh values by the softmax of scores, over keys that come in parts.

        A result must not depend on the rest of the pass, to the last bit: in the int8 graph a last
        bit's difference can move an activation across a rounding boundary, and the difference then
        grows from layer to layer. So no sum may depend on where in a row a token is. A matrix product
        adds up its terms one after the other; masked tokens add exact zeros between them. The
        denominators are therefore products too, not a sum over an axis.
        """
        last = self.ints(-1)
        scores = [
            self.scores(query, key, bias) for (key, _), bias in zip(parts, biases, strict=True)
        ]
        bounds = [self.op("ReduceMax", [part, last], keepdims=1) for part in scores]
        bound = self.op("Max", bounds) if len(bounds) > 1 else bounds[0]
        numerators, denominators = [], []
        if earlier is not None:
            bound = earlier.bound(query, bound)
            numerator, denominator = earlier.sums(query, bound)
            numerators.append(numerator)
            denominators.append(denominator)
        for part, (_, value) in zip(scores, parts, strict=True):
            weights = self.weights(self.op("Sub", [part, bound]))
            numerators.append(self.op("MatMul", [weights, value]))
            denominators.append(self.count(weights))
        total = self.op("Slice", [self.total(denominators), self.ints(0), self.ints(1), last])
        return self.op("Div", [self.total(numerators), total])

    def scores(self, query: str, key: str, bias: str) -> str:
        """Multiply queries with keys."""
        return self.op("Add", [self.op("MatMul", [query, self.turned(key)]), bias])

    def count(self, weights: str) -> str:
        """Add weights up, in every one of ``COUNTERS`` columns."""
        size = self.op(
            "Concat", [self.op("Shape", [weights], start=3), self.ints(COUNTERS)], axis=0
        )
        ones = self.op("Expand", [self.constant(np.float32(1.0)), size])
        return self.op("MatMul", [weights, ones])

    def weights(self, scores: str) -> str:
        """Raise e to scores of at most 0; masked and negligible ones weigh 0.

        ONNX Runtime's kernel takes ten times as long for results too small for a normal number, as all
        masked ones are.
        """
        raised = self.op("Exp", [self.op("Max", [scores, self.constant(np.float32(LOWEST_SCORE))])])
        return self.op("ThresholdedRelu", [raised], alpha=LEAST_WEIGHT)

    def turned(self, x: str) -> str:
        """Swap the last two of four axes."""
        return self.op("Transpose", [x], perm=[0, 1, 3, 2])

    def total(self, terms: Sequence[str]) -> str:
        """Add terms up in their order."""
        total = terms[0]
        for term in terms[1:]:
            total = self.op("Add", [total, term])
        return total

    def unit(self, x: str) -> str:
        """Scale the last axis to length one; zero stays zero."""
        norm = self.op("ReduceL2", [x, self.ints(-1)], keepdims=1)
        return self.op("Div", [x, self.op("Max", [norm, self.constant(np.float32(1e-12))])])

    def decide(self, hidden: str, blocks: str = "blocks") -> None:
        """Add pooling, markers, similarity, set attention and logits."""
        width = self.shape.width
        flat = self.op("Reshape", [hidden, self.ints(-1, width)])
        channels = self.op("Reshape", [self.column(blocks, 1), self.ints(1, -1)])
        member = self.op("Equal", [self.unsqueeze("pool_channels", 1), channels])
        sums = self.op("MatMul", [self.op("Cast", [member], to=FLOAT), flat])
        self.nodes.append(helper.make_node("Add", [sums, "pooled_past"], ["pooled"]))
        zero = self.constant(np.asarray(0, np.int32))
        given = self.op("Less", ["marker_index", zero])
        gathered = self.op("Gather", [flat, self.op("Max", ["marker_index", zero])])
        self.nodes.append(
            helper.make_node(
                "Where", [self.unsqueeze(given, -1), "marker_past", gathered], ["marker_vectors"]
            )
        )
        contexts = self.op("Gather", [self.unit("pooled"), "context_pool"])
        similarity = self.op(
            "MatMul", ["outcome_vectors", self.unsqueeze(contexts, -1)]
        )  # (n_decisions, n_outcomes, 1)
        if self.shape.is_gated:
            similarity = self.op("Mul", [similarity, self.gate()])
        level = self.external("level_projection.weight", FLOAT, 3, width)
        projection = self.external("similarity_projection.weight", FLOAT, 1, width)
        state = self.op("Add", ["marker_vectors", self.op("MatMul", ["levels", level])])
        state = self.op("Add", [state, self.op("MatMul", [similarity, projection])])
        absent = self.op("Less", ["marker_index", self.constant(np.asarray(-1, np.int32))])
        open_, closed = (self.constant(np.float32(value)) for value in (0.0, MASKED))
        bias = self.unsqueeze(self.op("Where", [absent, closed, open_]), 1, 2)
        state = self.layer(state, "set_layer", AttendedKeys((), (bias,)), None)
        logits = self.op("MatMul", [state, self.external("logit.weight", FLOAT, width, 1)])
        strength = self.op("Gather", [self.external("similarity_weight", FLOAT, 3), "kinds"])
        weighted = self.op("Mul", [similarity, self.unsqueeze(strength, 1, 2)])
        total = self.op("Squeeze", [self.op("Add", [logits, weighted]), self.ints(-1)])
        self.nodes.append(helper.make_node("Identity", [total], ["logits"]))

    def gate(self) -> str:
        """Return the factor of each outcome's similarity, (n_decisions, n_outcomes, 1)."""
        weight = self.external("similarity_gate.weight", FLOAT, self.shape.width, 3)
        gates = self.op("Tanh", [self.op("MatMul", ["marker_vectors", weight])])
        kind = self.op(
            "Equal", [self.unsqueeze("kinds", 1, 2), self.constant(np.arange(3, dtype=np.int32))]
        )
        own = self.op("Mul", [gates, self.op("Cast", [kind], to=FLOAT)])
        total = self.op("ReduceSum", [own, self.ints(-1)], keepdims=1)
        span, unit = (self.constant(np.float32(value)) for value in (GATE_SPAN, 1.0))
        return self.op("Add", [self.op("Mul", [total, span]), unit])

    def token_inputs(self) -> list[onnx.ValueInfoProto]:
        """Declare the inputs that tokens are embedded of."""
        return [
            helper.make_tensor_value_info(name, INT32, ["rows", "length"])
            for name in ("input_ids", "position_ids", "role_ids")
        ]

    def block_input(self) -> onnx.ValueInfoProto:
        """Declare the blocks of the tokens."""
        return helper.make_tensor_value_info("blocks", INT32, ["rows", "length", 5])

    def key_input(self, name: str) -> onnx.ValueInfoProto:
        """Declare the keys of the rows."""
        size = {"context_index": "context_keys", "key_index": "keys"}[name]
        return helper.make_tensor_value_info(name, INT32, ["rows", size])

    def inputs(self, first: int = 0) -> list[onnx.ValueInfoProto]:
        """Declare the graph's inputs, with the past of its layers from the first."""
        info, width = helper.make_tensor_value_info, self.shape.width
        return [
            *self.token_inputs(),
            self.block_input(),
            *map(self.key_input, KEY_INPUTS),
            info("pool_channels", INT32, ["pools"]),
            info("pooled_past", FLOAT, ["pools", width]),
            info("marker_index", INT32, ["decisions", "outcomes"]),
            info("marker_past", FLOAT, ["decisions", "outcomes", width]),
            info("outcome_vectors", FLOAT, ["decisions", "outcomes", width]),
            info("levels", FLOAT, ["decisions", "outcomes", 3]),
            info("kinds", INT32, ["decisions"]),
            info("context_pool", INT32, ["decisions"]),
            *self.past_inputs(first),
        ]

    def past_inputs(self, first: int) -> list[onnx.ValueInfoProto]:
        """Declare the past of the layers from the first."""
        info, head = helper.make_tensor_value_info, self.shape.width // self.shape.n_heads
        declared = [info("past_channels", INT32, ["past"])]
        for i in range(first, self.shape.n_layers):
            declared.append(info(f"past_key_{i}", FLOAT, [self.shape.n_heads, "past", head]))
            declared.append(info(f"past_value_{i}", FLOAT, [self.shape.n_heads, "past", head]))
        return declared

    def outputs(self, first: int = 0) -> list[onnx.ValueInfoProto]:
        """Declare the graph's outputs, with keys and values of its layers from the first."""
        info, shape = helper.make_tensor_value_info, self.shape
        return [
            info("logits", FLOAT, ["decisions", "outcomes"]),
            info("marker_vectors", FLOAT, ["decisions", "outcomes", shape.width]),
            info("pooled", FLOAT, ["pools", shape.width]),
            *self.past_outputs(first),
            *(info(name, FLOAT, None) for name in self.probed),
        ]

    def past_outputs(self, first: int) -> list[onnx.ValueInfoProto]:
        """Declare the node that joins the past of the layers from the first."""
        info = helper.make_tensor_value_info
        return [
            info(f"{part}_{i}", FLOAT, ["rows", "length", self.shape.width])
            for i in range(first, self.shape.n_layers)
            for part in ("key", "value")
        ]

    def model(
        self,
        name: str,
        inputs: Sequence[onnx.ValueInfoProto],
        outputs: Sequence[onnx.ValueInfoProto],
    ) -> onnx.ModelProto:
        """Return the graph that was written, as a model."""
        graph = helper.make_graph(self.nodes, name, inputs, outputs, self.initializers)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)]
        model: onnx.ModelProto = helper.make_model(
            graph, opset_imports=opsets, producer_name="steelyard"
        )
        model.ir_version = IR_VERSION
        return model


def build(
    shape: Shape, activations: Mapping[str, ActivationScale] | None = None, *, probes: bool = False
) -> onnx.ModelProto:
    """Build the graph; float32 without static scales of the activations."""
    builder = GraphBuilder(shape, activations, probes)
    hidden, seen = builder.embed(), builder.seen()
    lower = builder.seen(LISTENS_APART) if shape.apart else seen
    for index in range(shape.n_layers):
        hidden = builder.layer(
            hidden, f"layers.{index}", lower if index < shape.apart else seen, index
        )
    builder.decide(hidden)
    return builder.model("packed_scorer", builder.inputs(), builder.outputs())
