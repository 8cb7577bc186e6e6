"""The graph of the upper layers for a long past, which it reads in chunks.

Keys and values of a context of 70,000 tokens take 430 MB, and the scores of a question's tokens as much
again. This graph takes the inputs of each layer instead, which in int8 are an eighth, and makes keys
and values of a chunk at a time: once for the highest score, and again for the weighed values. Its
results have the bits of those of the graph that takes keys and values, since a matrix product adds up
its terms in runs: of ``MAX_KEYS`` keys where its result has a head's columns, of twice as many where it
counts weights (see ``steelyard.scoring.rows``). So a chunk is one run of the counts and two of the
values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper

from steelyard_base_recipe.graph import (
    FLOAT,
    INT8,
    INT32,
    KEY_INPUTS,
    LISTENS,
    AttendedKeys,
    GraphBuilder,
)


@dataclass(slots=True)
class LongGraphBuilder(GraphBuilder):
    """Writes the graph; its past is ``past_input_…`` of each layer, (chunks, keys, width)."""

    def seen(
        self,
        columns: Sequence[int] = LISTENS,
        names: Sequence[str] = KEY_INPUTS,
        *,
        asking: str = "blocks",
        has_past: bool = False,
    ) -> AttendedKeys:
        """Build the block mask, without the past's."""
        return GraphBuilder.seen(self, columns, names, asking=asking, has_past=has_past)

    def earlier(self, name: str, seen: AttendedKeys, index: int | None) -> Chunks | None:
        """Return the past of a layer."""
        return None if index is None else Chunks(self, name, index, seen.listens)

    def linear(self, x: str, name: str, n_in: int, n_out: int, *, exact: bool = False) -> str:
        """Multiply by a weight and add its bias; give out the input of a layer."""
        out = GraphBuilder.linear(self, x, name, n_in, n_out, exact=exact)
        if name.endswith(".qkv") and not exact:
            index = name.split(".")[1]
            # In int8 the product's own input.
            taken = x if self.activations is None else self.nodes[-1].input[0]
            self.nodes.append(helper.make_node("Identity", [taken], [f"input_{index}"]))
        return out

    def columns(self, x: str, name: str, start: int, stop: int) -> str:
        """Return some columns of a linear layer's output for its input, int8 where that is."""
        width = self.shape.width
        bounds = [self.ints(start), self.ints(stop), self.ints(-1)]
        bias = self.op("Slice", [self.external(f"{name}.bias", FLOAT, 3 * width), *bounds])
        kind = FLOAT if self.activations is None else INT8
        weight = self.op(
            "Slice", [self.external(f"{name}.weight", kind, width, 3 * width), *bounds]
        )
        if self.activations is None:
            return self.op("Add", [self.op("MatMul", [x, weight]), bias])
        scale, zero_point = self.activation(name)
        weight_scale = self.op("Slice", [self.external(f"{name}.scale", FLOAT, 3 * width), *bounds])
        weight_zero = self.constant(np.zeros(stop - start, np.int8))
        return self.op(
            "MatMulIntegerToFloat",
            [x, weight, scale, weight_scale, zero_point, weight_zero, bias],
            domain="com.microsoft",
        )

    def each_chunk(
        self, carried: Sequence[str], body: Callable[[str, Sequence[str]], Sequence[str]]
    ) -> list[str]:
        """Return a body's results for the number of each chunk and its result of the one before."""
        info = helper.make_tensor_value_info
        trips = self.op("Squeeze", [self.op("Shape", ["past_channels"], end=1)])
        outer, self.nodes = self.nodes, []
        self.counter += 1
        chunk, goes = f"chunk_{self.counter}", f"goes_{self.counter}"
        taken = [f"carried_{self.counter}_{i}" for i in range(len(carried))]
        given = [self.op("Identity", [goes]), *body(chunk, taken)]
        inputs = [info(chunk, TensorProto.INT64, []), info(goes, TensorProto.BOOL, [])]
        inputs += [info(name, FLOAT, None) for name in taken]
        outputs = [info(given[0], TensorProto.BOOL, [])]
        outputs += [info(name, FLOAT, None) for name in given[1:]]
        graph = helper.make_graph(self.nodes, f"each_{self.counter}", inputs, outputs)
        self.nodes = outer
        return self.ops("Loop", [trips, "", *carried], len(carried), body=graph)

    def past_inputs(self, first: int) -> list[onnx.ValueInfoProto]:
        """Declare the input of each layer from the first, and the channels, in chunks."""
        info, kind = helper.make_tensor_value_info, self.input_kind
        return [
            info("past_channels", INT32, ["chunks", "keys_of_chunk"]),
            *(
                info(f"past_input_{i}", kind, ["chunks", "keys_of_chunk", self.shape.width])
                for i in range(first, self.shape.n_layers)
            ),
        ]

    def past_outputs(self, first: int) -> list[onnx.ValueInfoProto]:
        """Declare the input of each layer from the first."""
        size = ["rows", "length", self.shape.width]
        return [
            helper.make_tensor_value_info(f"input_{i}", self.input_kind, size)
            for i in range(first, self.shape.n_layers)
        ]

    @property
    def input_kind(self) -> int:
        """The type of the input of a layer's first product."""
        return FLOAT if self.activations is None else TensorProto.UINT8


@dataclass(frozen=True, slots=True)
class Chunks:
    """The past of a layer, as ``EarlierKeys``."""

    builder: LongGraphBuilder
    name: str
    index: int
    listens: tuple[str, ...]

    def bound(self, query: str, bound: str) -> str:
        """Return the highest score of all chunks and of the given scores."""
        builder, width = self.builder, self.builder.shape.width

        def highest(chunk: str, taken: Sequence[str]) -> list[str]:
            key = self._heads(builder.columns(self._input(chunk), self._qkv, width, 2 * width))
            scores = builder.scores(query, key, self._bias(chunk))
            most = builder.op("ReduceMax", [scores, builder.ints(-1)], keepdims=1)
            return [builder.op("Max", [taken[0], most])]

        return builder.each_chunk([bound], highest)[0]

    def sums(self, query: str, bound: str) -> tuple[str, str]:
        """Return the weighed values and the weights of all chunks, each added up."""
        builder, width = self.builder, self.builder.shape.width

        def more(chunk: str, taken: Sequence[str]) -> list[str]:
            made = builder.columns(self._input(chunk), self._qkv, width, 3 * width)
            parts = builder.ops("Split", [made], 2, axis=-1, num_outputs=2)
            key, value = (self._heads(part) for part in parts)
            scores = builder.scores(query, key, self._bias(chunk))
            weights = builder.weights(builder.op("Sub", [scores, bound]))
            sums = [
                builder.op("MatMul", [half, values])
                for half, values in zip(
                    builder.ops("Split", [weights], 2, axis=3, num_outputs=2),
                    builder.ops("Split", [value], 2, axis=2, num_outputs=2),
                    strict=True,
                )
            ]
            return [
                builder.total([taken[0], *sums]),
                builder.op("Add", [taken[1], builder.count(weights)]),
            ]

        nothing = builder.constant(np.zeros((1, 1, 1, 1), np.float32))
        numerator, denominator = builder.each_chunk([nothing, nothing], more)
        return numerator, denominator

    @property
    def _qkv(self) -> str:
        return f"{self.name}.qkv"

    def _input(self, chunk: str) -> str:
        """Return the input of the layer, (1, keys, width): two axes alone are multiplied otherwise."""
        number = self.builder.unsqueeze(chunk, 0)
        return self.builder.op("Gather", [f"past_input_{self.index}", number])

    def _heads(self, x: str) -> str:
        """Return (heads, 1, keys, features) of a tensor (1, keys, width)."""
        return self.builder.unsqueeze(
            self.builder.tokens_of_heads(x, self.builder.shape.n_heads), 1
        )

    def _bias(self, chunk: str) -> str:
        """Return the mask of a chunk's keys."""
        builder = self.builder
        channels = builder.op("Gather", ["past_channels", chunk])
        heard = builder.any_equal(self.listens, builder.unsqueeze(channels, 0, 1))
        return builder.bias(heard)
