"""The model a benchmark measures: the shipped one, one in a folder, or the test double."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from steelyard.calibration.temperature import TemperatureTable

#: The scorer without a model; its answers mean nothing, and it runs no graph.
HASHING = "hashing"


def add_arguments(parser: ArgumentParser) -> None:
    """Add what ``load_model`` needs to a script's arguments."""
    parser.add_argument(
        "--engine",
        action="append",
        help="engine and precision, such as onnxruntime-int8; repeatable (default: the model's)",
    )
    parser.add_argument("--model", type=Path, help="folder of a base model (default: the shipped)")
    parser.add_argument("--threads", type=int, help="threads of a pass (default: every core)")


def load_model(engine: str, *, folder: Path | None = None, threads: int | None = None) -> Any:
    """Return what has a scorer, a tokenizer and temperatures."""
    if engine == HASHING:
        from steelyard.scoring.hashing import HashingScorer, WordCounter

        return SimpleNamespace(
            scorer=HashingScorer(), tokenizer=WordCounter(), temperatures=TemperatureTable()
        )
    from steelyard.scoring.assets import load_base_model

    return load_base_model(engine=engine, threads=threads, folder=folder)
