"""How near the int8 pass comes to the machine's int8 matrix products, kernel by kernel.

See README.md beside this file.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from machine import describe_machine
from onnx import TensorProto, helper, numpy_helper
from quality_tables import text_table
from speed import Pass, recorded_passes
from workloads import CONTEXTS, make_context, make_payload

from models import load_model
from steelyard.scoring.assets import apart_of, parts_of, read_base_files
from steelyard.scoring.engine import INT8, graph_weights
from steelyard.serving.decide import DecideService

ENGINE = "onnxruntime-int8"
PRODUCT = "MatMulIntegerToFloat"
#: The encoder's four products, (inner, outer); tokens of a pass that each is measured with.
KERNELS = {
    "qkv": (384, 1152),
    "attention output": (384, 384),
    "feed-forward in": (384, 1536),
    "feed-forward out": (1536, 384),
}
TOKENS = (16, 48, 96, 192, 384, 768)
#: A product large enough that little but the arithmetic counts, (tokens, inner, outer).
LARGE = (1_024, 1_024, 1_024)
#: What the operators of a pass do.
PARTS = {
    PRODUCT: "int8 products",
    "MatMul": "attention",
    "FusedMatMul": "attention",
    "QuantizeLinear": "quantising",
    "Gelu": "GELU",
    "Gather": "gathering",
    "Transpose": "moving",
    "Reshape": "moving",
    "Concat": "moving",
    "Split": "moving",
    "Expand": "moving",
}
ELSE = "softmax, norms, rest"
COLUMNS = ("int8 products", "attention", "quantising", "GELU", "gathering", "moving", ELSE)


@dataclass(slots=True)
class Size:
    """The passes of so many requests scored in one call."""

    context: str
    n_requests: int
    n_questions: int
    n_tokens: int = 0
    n_padded: int = 0
    n_passes: int = 0
    gop: float = 0.0
    #: Milliseconds by part, each operator at its fastest.
    parts: Counter[str] = field(default_factory=Counter)

    @property
    def ms(self) -> float:
        return sum(self.parts.values())


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    print("\n".join(describe_machine()))
    own = {
        name: [product_gops(n_tokens, *shape, options) for n_tokens in TOKENS]
        for name, shape in KERNELS.items()
    }
    peak = max(product_gops(*LARGE, options), *map(max, own.values()))
    print(f"int8 peak, the best of all products: {peak:.0f} GOP/s ({options.threads} thread)")
    print(kernel_table(own, peak))
    sizes = measure(options)
    print(size_table(sizes, peak))
    if options.json:
        figures = {
            "machine": describe_machine(),
            "peak": peak,
            "kernels": own,
            "sizes": [asdict(one) for one in sizes],
        }
        options.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", type=int, default=1, help="threads of a pass (default: 1)")
    parser.add_argument("--repeats", type=int, default=20, help="times that a pass is run")
    parser.add_argument("--questions", type=int, nargs="+", default=[1, 3])
    parser.add_argument("--outcomes", type=int, default=4)
    parser.add_argument("--requests", type=int, nargs="+", default=[1, 8], help="in one call")
    parser.add_argument("--contexts", nargs="+", choices=CONTEXTS, default=list(CONTEXTS))
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    return parser.parse_args(arguments)


def product_gops(n_tokens: int, inner: int, outer: int, options: argparse.Namespace) -> float:
    """Return 10⁹ operations a second of one product as the graph has it, at its fastest."""
    session = onnxruntime.InferenceSession(
        product_graph(inner, outer),
        session_options(options.threads),
        providers=["CPUExecutionProvider"],
    )
    given = {"a": np.random.default_rng(0).integers(0, 255, (n_tokens, inner), np.uint8)}
    seconds = []
    for _ in range(options.repeats):
        began = time.perf_counter()
        session.run(None, given)
        seconds.append(time.perf_counter() - began)
    return 2 * n_tokens * inner * outer / min(seconds) / 1e9


def product_graph(inner: int, outer: int) -> bytes:
    """Return a graph of one product: uint8 by int8, a scale for each column, and a bias."""
    rng = np.random.default_rng(1)
    constants = {
        "b": rng.integers(-127, 127, (inner, outer), np.int8),
        "a_scale": np.float32(0.02),
        "b_scale": rng.random(outer, np.float32),
        "a_zero": np.uint8(128),
        "b_zero": np.zeros(outer, np.int8),
        "bias": rng.random(outer, np.float32),
    }
    node = helper.make_node(
        PRODUCT,
        ["a", "b", "a_scale", "b_scale", "a_zero", "b_zero", "bias"],
        ["y"],
        domain="com.microsoft",
    )
    graph = helper.make_graph(
        [node],
        "product",
        [helper.make_tensor_value_info("a", TensorProto.UINT8, [None, inner])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, outer])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model: onnx.ModelProto = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    return model.SerializeToString()


def session_options(threads: int) -> Any:
    """Return options as the engine has them."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options


def measure(options: argparse.Namespace) -> list[Size]:
    """Run the passes of every size in one session that times each operator."""
    model = load_model(ENGINE, threads=options.threads)
    service = DecideService(
        model_name=model.scorer.name, temperatures=model.temperatures, tokenizer=model.tokenizer
    )
    sizes = [
        Size(context, n_requests, n_questions)
        for context in options.contexts
        for n_requests in options.requests
        for n_questions in options.questions
    ]
    passes = [
        (size, each)
        for size in sizes
        for each in passes_of(model.scorer, service, size, options.outcomes)
    ]
    model.scorer.close()
    files = read_base_files(ENGINE)
    lower, upper = files.apart_graphs or (b"", files.graph)
    below, above = parts_of(files.weights, apart_of(files.manifest))
    if files.apart_graphs is None:
        above = files.weights
    for graph, weights, is_lower in ((lower, below, True), (upper, above, False)):
        of_graph = [(size, each) for size, each in passes if each.is_lower is is_lower]
        events = timed_operators(graph, [each for _, each in of_graph], weights, options)
        for runs in events.values():
            for index, (size, _) in enumerate(of_graph):
                # Each pass was run so many times, one after the other.
                mine = runs[index * options.repeats : (index + 1) * options.repeats]
                add_operator(size, min(mine, key=lambda event: event["dur"]))
    return sizes


def passes_of(scorer: Any, service: DecideService, size: Size, n_outcomes: int) -> list[Pass]:
    """Return the passes that requests of a size are scored in; their outcomes were met before."""

    def requests(turn: int) -> list[Any]:
        return [
            service.prepare(
                make_payload(
                    context=make_context(CONTEXTS[size.context], 100 * turn + number),
                    n_questions=size.n_questions,
                    n_outcomes=n_outcomes,
                )
            ).rendered
            for number in range(size.n_requests)
        ]

    scorer.score(requests(0))
    with recorded_passes(scorer) as passes:
        scorer.score(requests(1))
    blocks = [each.inputs["blocks"][..., 0] for each in passes if not each.is_lower]
    size.n_tokens = sum(int((block > 0).sum()) for block in blocks)
    size.n_padded = sum(block.size for block in blocks)
    size.n_passes = len(passes)
    return passes


def timed_operators(
    graph: bytes,
    passes: Sequence[Pass],
    weights: Mapping[str, Any],
    options: argparse.Namespace,
) -> dict[str, list[dict[str, Any]]]:
    """Run passes again and again; return ONNX Runtime's own events by operator, in their order."""
    if not passes:
        return {}
    tensors = graph_weights(weights, INT8)
    values = [onnxruntime.OrtValue.ortvalue_from_numpy(array) for array in tensors.values()]
    with tempfile.TemporaryDirectory(prefix="steelyard-kernels-") as folder:
        settings = session_options(options.threads)
        settings.enable_profiling = True
        settings.profile_file_prefix = str(Path(folder) / "profile")
        settings.add_external_initializers(list(tensors), values)
        session = onnxruntime.InferenceSession(graph, settings, providers=["CPUExecutionProvider"])
        # Every output, so that each pass runs every operator.
        names = [output.name for output in session.get_outputs()]
        for each in passes:
            for _ in range(options.repeats):
                session.run(names, each.inputs)
        events = json.loads(Path(session.end_profiling()).read_bytes())
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for event in events:
        if event["name"].endswith("_kernel_time"):
            found[event["name"]].append(event)
    return found


def add_operator(size: Size, event: dict[str, Any]) -> None:
    """Add an operator's fastest run to its part, and the operations of an int8 product."""
    told = event["args"]
    size.parts[PARTS.get(told["op_name"], ELSE)] += event["dur"] / 1e3
    if told["op_name"] == PRODUCT:
        # The weights were laid out anew: their shape is no longer told.
        (left,), (made,) = (told[f"{way}_type_shape"][0].values() for way in ("input", "output"))
        size.gop += 2 * math.prod(made) * left[-1] / 1e9


def kernel_table(own: dict[str, list[float]], peak: float) -> str:
    header = ["product", "inner x outer", *(f"{n} tokens" for n in TOKENS)]
    lines = [
        [name, " x ".join(map(str, KERNELS[name])), *(f"{100 * one / peak:.0f} %" for one in rates)]
        for name, rates in own.items()
    ]
    return text_table(header, lines)


def size_table(sizes: Sequence[Size], peak: float) -> str:
    header = ["context", "requests", "questions", "tokens", "padding", "passes", "ms"]
    header += [f"{part} ms" for part in COLUMNS]
    header += ["products of peak", "pass of peak"]
    lines = []
    for one in sizes:
        padding = f"{100 * (1 - one.n_tokens / one.n_padded):.0f} %"
        line = [str(CONTEXTS[one.context]), str(one.n_requests), str(one.n_questions)]
        line += [str(one.n_tokens), padding, str(one.n_passes), f"{one.ms:.2f}"]
        line += [f"{one.parts[part]:.2f}" for part in COLUMNS]
        products = one.gop / (one.parts["int8 products"] / 1e3) / peak
        whole = one.gop / (one.ms / 1e3) / peak
        lines.append([*line, f"{100 * products:.0f} %", f"{100 * whole:.0f} %"])
    return text_table(header, lines)


if __name__ == "__main__":
    sys.exit(main())
