"""Measure the first family of the documents: its dataset, its base model and its gate.

``python docs/tools/first_family.py`` trains the family of the page *First family* on the sample
tickets with the shipped model, as the page does, and writes the figures that the documents show.
It takes minutes.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import steelyard
from steelyard.client.display_gates import GATE_COLUMNS, group_rows, slice_rows

ROOT = Path(__file__).resolve().parents[2]
FIGURES = ROOT / "docs" / "plots" / "first_family.json"
ROWS = ROOT / "datasets" / "support_triage.jsonl"


def measure() -> dict[str, Any]:
    """Return the figures, of a new home."""
    with tempfile.TemporaryDirectory() as home, steelyard.embed(home) as server:
        client = server.client
        dataset = client.datasets.create("tickets", ROWS)
        job = client.families.create(family="triage", dataset_id=dataset.id, method=dataset.method)
        job = client.jobs.wait(job, progress=False)
        [model] = client.families.get("triage").models
        gate = model.gate
    return {
        "base_model": job.model,
        "training_rows": dataset.split.training,
        "held_out_rows": dataset.split.evaluation,
        "columns": ["rows", *GATE_COLUMNS],
        "groups": list(group_rows(gate)),
        "slices": slice_rows(gate),
    }


if __name__ == "__main__":
    FIGURES.write_text(json.dumps(measure(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
