"""CPU time of a request by questions, outcomes and context length, beside the bare forward.

Run it as a script, on a quiet machine; ``README.md`` beside it says how, and explains the columns.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import msgspec
import numpy as np
from machine import describe_machine, gemm_peak_gflops
from quality_tables import text_table
from workloads import CONTEXTS, OUTCOMES, QUESTIONS, make_context, make_payload

from models import add_arguments, load_model
from steelyard.serving.decide import DecideService

#: Multiplications and additions that the encoder's matrices spend on one token.
MFLOP_A_TOKEN = 2 * 6 * (4 * 384 * 384 + 2 * 384 * 1536) / 1e6
#: Most that so many questions may cost, as a multiple of one.
TARGETS = {3: 1.25, 64: 6.0}


@dataclass(slots=True)
class Cell:
    """One size of request on one engine; CPU times in milliseconds, one a round."""

    engine: str
    context: str
    n_outcomes: int
    n_questions: int
    n_tokens: int = 0
    n_padded: int = 0
    n_passes: int = 0
    score_ms: list[float] = field(default_factory=list)
    forward_ms: list[float] = field(default_factory=list)
    decide_ms: list[float] = field(default_factory=list)

    @property
    def score(self) -> float:
        return float(np.median(self.score_ms))

    @property
    def forward(self) -> float | None:
        return float(np.median(self.forward_ms)) if self.forward_ms else None

    @property
    def decide(self) -> float:
        return float(np.median(self.decide_ms))


class Pass(NamedTuple):
    """An engine's inputs, and the engine: of the whole graph, its lower or its upper half."""

    engine: Any
    inputs: dict[str, Any]
    outputs: Sequence[str]

    def run(self) -> dict[str, Any]:
        return self.engine.run(self.inputs, self.outputs)

    @property
    def is_lower(self) -> bool:
        return "states" in self.outputs


class _Recorder:
    """Stands before an engine and records each pass's inputs."""

    def __init__(self, engine: Any, passes: list[Pass]) -> None:
        self.pass_engine, self._passes = engine, passes

    def run(self, inputs: dict[str, Any], outputs: Sequence[str]) -> dict[str, Any]:
        self._passes.append(Pass(self.pass_engine, inputs, outputs))
        return self._passes[-1].run()


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    print("\n".join(describe_machine()))
    wall_peak, cpu_peak = gemm_peak_gflops()
    print(
        f"GEMM peak, float32, 1,024 x 1,024: {wall_peak:.0f} GFLOP/s; "
        f"{cpu_peak:.0f} GFLOP a second of CPU time\n"
    )
    cells: list[Cell] = []
    for name in options.engine or ["auto"]:
        model = load_model(name, folder=options.model, threads=options.threads)
        for context in options.contexts:
            found = [
                cell
                for n_outcomes in options.outcomes
                for cell in measure(model, context, n_outcomes, options)
            ]
            cells += found
            print(
                f"engine {model.scorer.engine}, {context} context: {CONTEXTS[context]} characters"
            )
            print(cell_table(found, cpu_peak))
        model.scorer.close()
    print(ratio_table(cells))
    if options.json:
        figures = {
            "machine": describe_machine(),
            "gemm_gflops": wall_peak,
            "gemm_gflop_a_cpu_second": cpu_peak,
            "cells": [asdict(cell) for cell in cells],
        }
        options.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add_arguments(parser)
    parser.add_argument("--repeats", type=int, default=9, help="rounds of each size, at most")
    parser.add_argument(
        "--seconds",
        type=float,
        default=10.0,
        help="start no more rounds of a size after so long (at least one is measured)",
    )
    parser.add_argument("--questions", type=int, nargs="+", default=list(QUESTIONS))
    parser.add_argument("--outcomes", type=int, nargs="+", default=list(OUTCOMES))
    parser.add_argument("--contexts", nargs="+", choices=CONTEXTS, default=list(CONTEXTS))
    parser.add_argument("--json", type=Path, help="write every round's time to this file")
    return parser.parse_args(arguments)


def measure(model: Any, context: str, n_outcomes: int, options: argparse.Namespace) -> list[Cell]:
    """Measure every number of questions on one context length, taking turns in each round.

    Every round has a context of its own; questions and labels are known from the warm-up.
    """
    scorer = model.scorer
    service = DecideService(
        model_name=scorer.name, temperatures=model.temperatures, tokenizer=model.tokenizer
    )
    cells = [Cell(scorer.engine, context, n_outcomes, n) for n in options.questions]
    spent_s = dict.fromkeys(options.questions, 0.0)
    for turn in range(-1, options.repeats):
        for cell in cells:
            if turn > 0 and spent_s[cell.n_questions] > options.seconds:
                continue
            began = time.perf_counter()
            measure_once(scorer, service, cell, turn)
            spent_s[cell.n_questions] += time.perf_counter() - began
    return cells


def measure_once(scorer: Any, service: DecideService, cell: Cell, turn: int) -> None:
    """Measure one request; turn -1 warms up and keeps no time."""
    text = make_context(CONTEXTS[cell.context], turn + 1)

    def payload(context: str) -> bytes:
        return make_payload(
            context=context, n_questions=cell.n_questions, n_outcomes=cell.n_outcomes
        )

    # Spaces make other texts of the same tokens: no measurement finds its context tokenised.
    rendered = replace(service.prepare(payload(f"{text} ")).rendered, context=text)
    body = payload(f" {text}")

    def decide() -> None:
        prepared = service.prepare(body)
        msgspec.json.encode(service.finish(prepared, scorer.score([prepared.rendered])[0]))

    if turn < 0:
        decide()
        return
    with recorded_passes(scorer) as passes:
        cell.score_ms.append(cpu_ms(lambda: scorer.score([rendered])))
    cell.decide_ms.append(cpu_ms(decide))
    if passes:
        blocks = [each.inputs["blocks"][..., 0] for each in passes if not each.is_lower]
        cell.n_tokens = sum(int((block > 0).sum()) for block in blocks)
        cell.n_padded = sum(block.size for block in blocks)
        cell.n_passes = len(passes)
        cell.forward_ms.append(cpu_ms(lambda: [each.run() for each in passes]))


@contextmanager
def recorded_passes(scorer: Any) -> Iterator[list[Pass]]:
    """Record the inputs of the graph's passes meanwhile; nothing where there is no graph."""
    passes: list[Pass] = []
    # What sentences are compared with has the engine too.
    halves = (scorer, *(getattr(scorer, name, None) for name in ("_lower", "_vectors")))
    with ExitStack() as patches:
        for half in halves:
            if hasattr(half, "pass_engine"):
                recorder = _Recorder(half.pass_engine, passes)
                patches.enter_context(patch.object(half, "pass_engine", recorder))
        yield passes


def cpu_ms(call: Callable[[], object]) -> float:
    """Return the CPU time of a call over all threads of this process, in milliseconds."""
    began = time.process_time()
    call()
    return (time.process_time() - began) * 1e3


def cell_table(cells: Sequence[Cell], cpu_peak: float) -> str:
    """Return the times of one engine and context length."""
    header = ["outcomes", "questions", "tokens", "padding", "passes", "score ms", "ms a decision"]
    header += ["forward ms", "over forward", "of GEMM peak", "decide ms", "decide over forward"]
    lines = []
    for cell in cells:
        forward = cell.forward
        padding = f"{100 * (1 - cell.n_tokens / cell.n_padded):.0f} %" if cell.n_padded else "-"
        line = [str(cell.n_outcomes), str(cell.n_questions), str(cell.n_tokens), padding]
        line += [str(cell.n_passes), f"{cell.score:.2f}", f"{cell.score / cell.n_questions:.3f}"]
        if forward:
            share = cell.n_tokens * MFLOP_A_TOKEN / forward / cpu_peak
            line += [f"{forward:.2f}", f"{cell.score / forward:.3f}", f"{100 * share:.0f} %"]
        else:
            line += ["-", "-", "-"]
        ratio = f"{cell.decide / forward:.3f} ({cell.decide - forward:+.2f} ms)" if forward else "-"
        lines.append([*line, f"{cell.decide:.2f}", ratio])
    return text_table(header, lines)


def ratio_table(cells: Sequence[Cell]) -> str:
    """Return the cost of more questions, as a multiple of one, beside the same multiple of tokens."""
    groups: dict[tuple[str, str, int], dict[int, Cell]] = {}
    for cell in cells:
        group = groups.setdefault((cell.engine, cell.context, cell.n_outcomes), {})
        group[cell.n_questions] = cell
    numbers = sorted({cell.n_questions for cell in cells} - {1})
    header = ["engine", "context", "outcomes"]
    for number in numbers:
        target = f" (at most {TARGETS[number]:g})" if number in TARGETS else ""
        header += [f"{number} questions{target}", "tokens"]
    lines = []
    for (engine, context, n_outcomes), group in groups.items():
        if 1 not in group:
            continue
        line = [engine, context, str(n_outcomes)]
        for number in numbers:
            one, many = group[1], group.get(number)
            if many is None or not one.score:
                line += ["-", "-"]
                continue
            ratio, verdict = many.score / one.score, ""
            if number in TARGETS:
                verdict = " kept" if ratio <= TARGETS[number] else " over"
            line.append(f"{ratio:.2f}{verdict}")
            line.append(f"{many.n_tokens / one.n_tokens:.2f}" if one.n_tokens else "-")
        lines.append(line)
    return f"CPU time as a multiple of one question\n{text_table(header, lines)}"


if __name__ == "__main__":
    sys.exit(main())
