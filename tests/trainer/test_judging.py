"""Which held-out labels a gate judges by."""

from __future__ import annotations

from pathlib import Path

import msgspec

from steelyard.evaluations.gate_wire import labels_of
from steelyard.trainer.program import run
from support.families.trainer_folders import N_HELD_OUT, make_rows, write_task


def test_labels_of_clicks_are_judged_by_only_where_they_are_named(tmp_path: Path) -> None:
    held_out = [
        msgspec.structs.replace(row, by=["click"] if place % 3 else ["expert"])
        for place, row in enumerate(make_rows(N_HELD_OUT, "evaluation"))
    ]
    rows = [*make_rows(40, "training"), *held_out]
    result = run(write_task(tmp_path / "experts", rows))
    labels = result.gate.labels
    assert isinstance(labels, msgspec.Struct)
    assert (labels.counted, labels.left_out) == ({"expert": 20}, {"click": 40})
    assert result.gate.groups["new"].decisions == 20
    assert result.heldout["n"] == 60
    named = run(write_task(tmp_path / "clicks", rows, judged_by=["click"])).gate
    assert named.groups["new"].decisions == 40
    none = run(write_task(tmp_path / "none", rows, judged_by=["outcome"])).gate
    assert none.reasons == ["too_few_evaluation_decisions"]
    assert labels_of(none) == (
        "Held-out labels that count: none. Left out: 40 by click, 20 by expert."
    )
