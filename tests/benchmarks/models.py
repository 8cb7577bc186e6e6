"""The model a benchmark measures: the shipped one, one in a folder, or the test double."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from steelyard.calibration.temperature import TemperatureTable

#: The scorer without a model; its answers mean nothing, and it runs no graph.
HASHING = "hashing"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of ``load_model`` to a script's."""
    parser.add_argument(
        "--engine",
        action="append",
        help="engine and precision, such as onnxruntime-int8; repeatable (default: the model's)",
    )
    parser.add_argument("--model", type=Path, help="folder of a base model (default: the shipped)")
    parser.add_argument("--threads", type=int, help="threads of a pass (default: every core)")


def add_also(parser: ArgumentParser) -> None:
    """Add further base models to a script's arguments, to be asked the same."""
    parser.add_argument(
        "--also",
        type=Path,
        action="append",
        default=[],
        metavar="DIR",
        help="folder of another base model, compared on the same rows; repeatable",
    )


def models_asked(options: Namespace) -> list[tuple[Path | None, str]]:
    """Return the folder and the engine of each model that the arguments name."""
    return [
        (folder, engine)
        for folder in (options.model, *options.also)
        for engine in options.engine or ["auto"]
    ]


def load_model(engine: str, *, folder: Path | None = None, threads: int | None = None) -> Any:
    """Return a model with a scorer, a tokenizer and temperatures."""
    if engine == HASHING:
        from steelyard.scoring.hashing import HashingScorer, WordCounter

        return SimpleNamespace(
            scorer=HashingScorer(), tokenizer=WordCounter(), temperatures=TemperatureTable()
        )
    from steelyard.scoring.assets import load_base_model

    return load_base_model(engine=engine, threads=threads, folder=folder)
