"""Reading labelled text for the benchmarks: rows as the scorer reads them, with their targets.

The files are one JSON object a line, gzipped: ``context``, ``decisions`` (``id``, ``kind``,
``question``, ``outcomes`` as a list of names or as names to descriptions, ``rubric``), ``targets``
(decision to outcome to share) and ``source``. They are not part of this repository.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from steelyard.decisions.rendering import (
    RenderedDecision,
    RenderedRequest,
    render_context,
    render_outcome,
)

SUFFIX = ".test.jsonl.gz"


@dataclass(frozen=True, slots=True)
class LabelledRow:
    """One context with its decisions and their targets, in the same order."""

    request: RenderedRequest
    decision_ids: tuple[str, ...]
    targets: tuple[np.ndarray, ...]


def find_sources(data: Path) -> dict[str, Path]:
    """Return the held-out files under a folder, or its ``heldout`` folder, by source."""
    folder = data / "heldout" if (data / "heldout").is_dir() else data
    return {path.name.removesuffix(SUFFIX): path for path in sorted(folder.glob(f"*{SUFFIX}"))}


def read_rows(path: Path, n_rows: int | None = None, seed: int = 0) -> list[LabelledRow]:
    """Read a file, or a seeded sample of its rows in file order."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        texts = list(lines)
    if n_rows is not None and n_rows < len(texts):
        chosen = np.random.default_rng(seed).choice(len(texts), n_rows, replace=False)
        texts = [texts[index] for index in sorted(chosen)]
    return [row_from_dict(json.loads(text)) for text in texts]


def distracted(
    rows: Sequence[LabelledRow], texts: Sequence[str], n_words: int, seed: int = 0
) -> list[LabelledRow]:
    """Put words of unrelated texts around every context: half before it, half after."""
    rng = np.random.default_rng(seed)

    def words(n: int) -> str:
        found: list[str] = []
        while len(found) < n:
            found += texts[int(rng.integers(len(texts)))].split()
        return " ".join(found[:n])

    return [
        replace(row, request=replace(row.request, context=f"{before}\n{context}\n{after}"))
        for row in rows
        for before, context, after in [
            (words(n_words // 2), row.request.context, words(n_words - n_words // 2))
        ]
    ]


def row_from_dict(value: dict) -> LabelledRow:
    """Render a row; decisions without a target are left out."""
    decisions = [decision for decision in value["decisions"] if decision["id"] in value["targets"]]
    return LabelledRow(
        RenderedRequest(
            render_context(value["context"]), tuple(_render_decision(one) for one in decisions)
        ),
        tuple(decision["id"] for decision in decisions),
        tuple(_target(one, value["targets"][one["id"]]) for one in decisions),
    )


def _render_decision(decision: dict) -> RenderedDecision:
    outcomes = decision["outcomes"]
    if isinstance(outcomes, dict):
        texts = [render_outcome(name, description) for name, description in outcomes.items()]
    else:
        rubric = decision.get("rubric") or [None] * len(outcomes)
        texts = [render_outcome(*pair) for pair in zip(outcomes, rubric, strict=True)]
    return RenderedDecision(decision["kind"], decision["question"], tuple(texts))


def _target(decision: dict, shares: dict[str, float]) -> np.ndarray:
    target = np.array([float(shares.get(name, 0.0)) for name in decision["outcomes"]])
    return target / target.sum()
