"""CPU time of a request by how many layers are apart: of known and new questions, and known contexts.

Run it as a script, on a quiet machine; ``README.md`` beside it says how, and explains the columns.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
from machine import describe_machine
from quality_tables import text_table
from speed import cpu_ms
from workloads import CONTEXTS, make_context, make_payload

from steelyard.decisions.rendering import RenderedRequest
from steelyard.scoring.assets import (
    MANIFEST,
    TOKENIZER,
    WEIGHTS,
    BaseModel,
    load_base_model,
    read_base_files,
    read_manifest,
)
from steelyard.scoring.shipped import BASE
from steelyard.serving.decide import DecideService
from steelyard.training.shape import Shape
from steelyard_base_recipe.graph_files import graph_files
from steelyard_base_recipe.quantize import activation_scales

#: Requests whose activations give the int8 graphs their scales, which change no cost.
_SAMPLE = 8


@dataclass(slots=True)
class Cell:
    """One number of layers apart: CPU times of requests in milliseconds, one a round."""

    apart: int
    known_ms: list[float] = field(default_factory=list)
    new_ms: list[float] = field(default_factory=list)
    again_ms: list[float] = field(default_factory=list)

    @property
    def known(self) -> float:
        return float(np.median(self.known_ms))

    @property
    def new(self) -> float:
        return float(np.median(self.new_ms))

    @property
    def again(self) -> float:
        return float(np.median(self.again_ms))


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    print("\n".join(describe_machine()))
    size = f"{options.questions} questions of {options.outcomes} outcomes"
    print(f"context of {CONTEXTS[options.context]} characters, {size}, {options.engine}")
    with tempfile.TemporaryDirectory() as place:
        models = {}
        for apart in options.apart:
            folder = Path(place) / str(apart)
            write_apart(folder, apart, options)
            models[apart] = load_base_model(options.engine, threads=options.threads, folder=folder)
        cells = measure(models, options)
    print(table(cells))
    if options.json:
        figures = {"machine": describe_machine(), "cells": [asdict(cell) for cell in cells]}
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--apart", type=int, nargs="+", default=[0, 2, 3, 4, 5])
    parser.add_argument("--engine", default="onnxruntime-int8")
    parser.add_argument("--threads", type=int, help="threads of a pass (default: every core)")
    parser.add_argument("--context", choices=CONTEXTS, default="short")
    parser.add_argument("--questions", type=int, default=3)
    parser.add_argument("--outcomes", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--json", type=Path, help="write every round's time to this file")
    return parser.parse_args(arguments)


def write_apart(folder: Path, apart: int, options: argparse.Namespace) -> None:
    """Write the shipped model with graphs whose lowest layers read questions apart.

    Its weights were not trained for that: its answers mean nothing, but cost as much as others.
    """
    folder.mkdir()
    for file in (TOKENIZER, *WEIGHTS):
        shutil.copyfile(BASE / file, folder / file)
    files = read_base_files("onnxruntime-float32")
    shape = Shape.of(files.weights, apart)
    sample = [make_request(files.tokenizer, options, number) for number in range(_SAMPLE)]
    scales = activation_scales(files.weights, shape, files.tokenizer, sample)
    manifest = {**read_manifest(), "apart": apart}
    for name, content in graph_files(shape, scales).items():
        (folder / name).write_bytes(content)
    manifest["files"] = {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()
    }
    (folder / MANIFEST).write_bytes(msgspec.json.encode(manifest))


def make_request(
    tokenizer: object, options: argparse.Namespace, number: int, first_question: int = 0
) -> RenderedRequest:
    """Return a request with a context of its own; other questions from another first one on."""
    body = make_payload(
        context=make_context(CONTEXTS[options.context], number),
        n_questions=options.questions,
        n_outcomes=options.outcomes,
        first_question=first_question,
    )
    service = DecideService(model_name="made", temperatures=None, tokenizer=tokenizer)
    return replace(service.prepare(body).rendered, owner="benchmark")


def measure(models: dict[int, BaseModel], options: argparse.Namespace) -> list[Cell]:
    """Measure requests on every model, taking turns; the first round warms up."""
    cells = {apart: Cell(apart) for apart in models}
    for turn in range(options.rounds + 1):
        for apart, model in models.items():
            make = partial(make_request, model.tokenizer, options)
            # Questions that are known, of the round before, on a context that was asked others.
            again = make(turn, first_question=turn * options.questions)
            new = make(turn, first_question=(turn + 1) * options.questions)
            requests = (make(turn), again, replace(new, owner=""))
            cell = cells[apart]
            for request, times in zip(
                requests, (cell.known_ms, cell.again_ms, cell.new_ms), strict=True
            ):
                spent = cpu_ms(partial(model.scorer.score, [request]))
                if turn:
                    times.append(spent)
    return list(cells.values())


def table(cells: Sequence[Cell]) -> str:
    """Return the times of every number of layers, beside the first one's."""
    first = cells[0]
    header = [
        "layers apart",
        "known, ms",
        "times fewer",
        "new, ms",
        "times fewer",
        "again, ms",
        "of known",
    ]
    lines = [
        [
            str(cell.apart),
            f"{cell.known:.2f}",
            f"{first.known / cell.known:.2f}",
            f"{cell.new:.2f}",
            f"{first.new / cell.new:.2f}",
            f"{cell.again:.2f}",
            f"{cell.again / cell.known:.2f}",
        ]
        for cell in cells
    ]
    return text_table(header, lines)


if __name__ == "__main__":
    sys.exit(main())
