"""The same passes of the packed graph on ONNX Runtime and on OpenVINO: CPU time and logits.

Run it as a script, on a quiet machine; ``README.md`` beside it says how, and explains the columns.
It skips, saying so, where OpenVINO or onnx is not installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from machine import describe_machine
from quality_tables import text_table
from speed import cpu_ms, recorded_passes
from workloads import CONTEXTS, make_context, make_payload

from models import load_model
from steelyard.scoring.assets import read_base_files
from steelyard.scoring.engine import FLOAT32, INT8, Engine, graph_weights
from steelyard.serving.decide import DecideService

#: Questions and outcomes of the requests whose passes are run.
SIZES = ((1, 2), (3, 4), (10, 4))
_LOGITS = "logits"
#: OpenVINO's compiled graphs: the graph's precision, and that of the arithmetic asked for.
_OPENVINO = (
    ("openvino-float32", FLOAT32, "f32"),
    ("openvino-bfloat16", FLOAT32, "bf16"),
    ("openvino-int8", INT8, "f32"),
)

Pass = tuple[dict[str, Any], Sequence[str]]
Run = Callable[[dict[str, Any], Sequence[str]], dict[str, Any]]


@dataclass(slots=True)
class Measured:
    """One engine on the passes of one context length: a figure a round, in milliseconds a pass."""

    context: str
    engine: str
    n_passes: int
    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    largest_difference: float = 0.0


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    lacking = [name for name in ("openvino", "onnx") if importlib.util.find_spec(name) is None]
    if lacking:
        print(f"skipped: not installed: {', '.join(lacking)}; pip install {' '.join(lacking)}")
        return 0
    import openvino

    print("\n".join([*describe_machine(), f"OpenVINO {openvino.__version__}"]), flush=True)
    names = [f"onnxruntime-{precision}" for precision in (FLOAT32, INT8)]
    models = {name: load_whole(name, options.threads) for name in names}
    runs: dict[str, Run] = {name: model.scorer.pass_engine.run for name, model in models.items()}
    runs |= {
        name: open_openvino(precision, hint, options.threads) for name, precision, hint in _OPENVINO
    }
    found: list[Measured] = []
    for context in options.contexts:
        passes = record(models[names[0]], context, options.requests)
        found += measure(context, passes, runs, options.rounds)
    print(table(found))
    if options.json:
        figures = {"machine": describe_machine(), "engines": [asdict(one) for one in found]}
        options.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", type=int, default=0, help="threads of a pass (0: every core)")
    parser.add_argument("--contexts", nargs="+", choices=CONTEXTS, default=list(CONTEXTS))
    parser.add_argument("--requests", type=int, default=6, help="requests of each size")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write every round's figures to this file")
    return parser.parse_args(arguments)


def load_whole(name: str, threads: int) -> Any:
    """Return a base model whose passes are of the whole graph, which the other engines run too."""
    files = read_base_files(name)
    engine = Engine(files.graph, files.weights, precision=files.precision, threads=threads)
    scorer = files.scorer(files.weights, threads=threads, engine=engine)
    return replace(load_model(name, threads=threads), scorer=scorer)


def open_openvino(precision: str, hint: str, threads: int) -> Run:
    """Compile the same graph with OpenVINO; return the function that runs a pass."""
    import openvino

    from steelyard.triton.repository import embed_weights

    files = read_base_files(f"onnxruntime-{precision}")
    graph = embed_weights(files.graph, graph_weights(files.weights, precision))
    core = openvino.Core()
    compiled = core.compile_model(
        core.read_model(graph, b""),
        "CPU",
        {
            "INFERENCE_PRECISION_HINT": hint,
            "INFERENCE_NUM_THREADS": threads,
            "PERFORMANCE_HINT": "LATENCY",
        },
    )
    request = compiled.create_infer_request()
    ports = {name: port for port in compiled.outputs for name in port.get_names()}

    def run(inputs: dict[str, Any], outputs: Sequence[str]) -> dict[str, Any]:
        values = request.infer(inputs, share_inputs=True)
        return {name: np.array(values[ports[name]]) for name in outputs}

    return run


def record(model: Any, context: str, n_requests: int) -> list[Pass]:
    """Return the passes that made-up requests are scored in, each request alone."""
    scorer = model.scorer
    service = DecideService(
        model_name=scorer.name, temperatures=model.temperatures, tokenizer=model.tokenizer
    )
    with recorded_passes(scorer) as passes:
        for n_questions, n_outcomes in SIZES:
            for number in range(n_requests):
                payload = make_payload(
                    context=make_context(CONTEXTS[context], number),
                    n_questions=n_questions,
                    n_outcomes=n_outcomes,
                )
                scorer.score([service.prepare(payload).rendered])
    return [(each.inputs, each.outputs) for each in passes]


def measure(
    context: str, passes: Sequence[Pass], runs: dict[str, Run], n_rounds: int
) -> list[Measured]:
    """Run the passes on every engine, taking turns; a first round warms up and is compared."""
    found = {name: Measured(context, name, len(passes)) for name in runs}
    wanted = None
    for turn in range(-1, n_rounds):
        for name, run in runs.items():
            if turn < 0:
                logits = [run(*one).get(_LOGITS) for one in passes]
                wanted = logits if wanted is None else wanted
                found[name].largest_difference = largest_difference(wanted, logits)
                continue
            began = time.perf_counter()
            cpu = cpu_ms(lambda run=run: [run(*one) for one in passes])
            found[name].cpu.append(cpu / len(passes))
            found[name].wall.append((time.perf_counter() - began) * 1e3 / len(passes))
    return list(found.values())


def largest_difference(wanted: Sequence[Any], given: Sequence[Any]) -> float:
    """Return the largest difference of two lists of logits; those of no outcome do not count."""
    largest = 0.0
    for one, other in zip(wanted, given, strict=True):
        if one is None:
            continue
        is_counted = np.isfinite(one)
        largest = max(
            largest,
            float(np.abs(one - other, where=is_counted, out=np.zeros_like(one)).max(initial=0.0)),
        )
    return largest


def table(found: Sequence[Measured]) -> str:
    """Return every engine's figures, CPU time beside that of the first engine in the same round."""
    header = [
        "context",
        "engine",
        "passes",
        "CPU ms",
        "times the first",
        "wall ms",
        "logits differ by",
    ]
    first = {one.context: one for one in reversed(found)}
    lines = []
    for one in found:
        ratios = [a / b for a, b in zip(one.cpu, first[one.context].cpu, strict=True)]
        lines.append(
            [
                one.context,
                one.engine,
                str(one.n_passes),
                f"{np.median(one.cpu):.2f}",
                f"{np.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})",
                f"{np.median(one.wall):.2f}",
                f"{one.largest_difference:.1e}",
            ]
        )
    return text_table(header, lines)


if __name__ == "__main__":
    sys.exit(main())
