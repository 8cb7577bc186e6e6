"""A trainer that trains nothing: phases of known length, and an end as a test asks for it.

``python -m support.families.stand_in_trainer FOLDER`` keeps the promises of ``steelyard.trainer``.
``stand_in.json`` in the home says how: ``pause_s`` of a step, ``passed``, ``fails`` (a code, for the
first ``n_fails`` starts), ``dies_in`` (a phase) and ``gate`` (all of it). Every start is a line of ``starts.txt`` there.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from steelyard.decisions.validation import read_request
from steelyard.evaluations.gate_wire import BeforeAfter, Gate, GateDeltas
from steelyard.trainer.durable import write_struct
from steelyard.trainer.records import SCHEMA
from steelyard.trainer.task import (
    ERROR,
    FAILED,
    MODEL,
    PROGRESS,
    RECORDS,
    RESULT,
    ROWS,
    STOPPED,
    TASK,
    FineTuneFailure,
    FineTuneResult,
    FineTuneTask,
    Progress,
    RowCounts,
    TaskRow,
)
from steelyard.wire.training import CurvePoint

PHASES = ("features", "heads", "calibration", "scoring", "gate")
N_STEPS = 10


def main(folder: Path) -> int:
    """Go through the phases, those that were done before left out."""
    home = folder.parent.parent
    asked = _asked(home)
    with (home / "starts.txt").open("a") as file:
        file.write(f"{os.getpid()}\n")
    threading.Thread(target=_end_with_starter, daemon=True).start()
    if (folder / RESULT).exists():
        return 0
    n_starts = len((home / "starts.txt").read_text().splitlines())
    if "fails" in asked and n_starts <= asked.get("n_fails", 99):
        write_struct(folder / ERROR, FineTuneFailure(code=asked["fails"], message="As asked."))
        return FAILED
    task = msgspec.json.decode((folder / TASK).read_bytes(), type=FineTuneTask)
    rows = [
        msgspec.json.decode(line, type=TaskRow)
        for line in (folder / ROWS).read_bytes().splitlines()
    ]
    for phase in PHASES:
        _do(folder, phase, asked)
    _finish(folder, task, rows, passed=asked.get("passed", True), gate=asked.get("gate"))
    return 0


def _asked(home: Path) -> dict[str, Any]:
    path = home / "stand_in.json"
    return json.loads(path.read_text()) if path.exists() else {}


def _do(folder: Path, phase: str, asked: dict[str, Any]) -> None:
    done = folder / f"{phase}.done"
    with (folder / PROGRESS).open("ab") as file:
        for step in range(N_STEPS + 1):
            loss = 1.0 - step / 20 if phase == "heads" else None
            said = Progress(
                phase=phase, step=step, steps=N_STEPS, loss=loss, message=f"Doing {phase}."
            )
            file.write(msgspec.json.encode(said) + b"\n")
            file.flush()
            if done.exists():
                return
            if asked.get("dies_in") == phase:
                os._exit(9)
            time.sleep(asked.get("pause_s", 0.0))
    done.touch()


def _finish(
    folder: Path,
    task: FineTuneTask,
    rows: list[TaskRow],
    *,
    passed: bool,
    gate: dict[str, Any] | None = None,
) -> None:
    model = folder / MODEL
    model.mkdir(exist_ok=True)
    card = f"{task.job_id} {task.seed}".encode()
    (model / "MODEL_CARD.md").write_bytes(card)
    files = {"MODEL_CARD.md": hashlib.sha256(card).hexdigest()}
    manifest = msgspec.json.encode({"format": "stand-in", "files": files})
    (model / "manifest.json").write_bytes(manifest)
    judged = [row for row in rows if row.side == "evaluation"]
    groups = ["adapted", "base", *(["parent"] if task.parent else [])]
    made = [one for group in groups for row in judged for one in _records(group, row)]
    pq.write_table(pa.Table.from_pylist(made, schema=SCHEMA), folder / RECORDS)
    reasons = [] if passed else ["no_gain_on_new_rows"]
    result = FineTuneResult(
        artifact_sha256=hashlib.sha256(manifest).hexdigest(),
        gate=msgspec.convert(gate, Gate)
        if gate is not None
        else Gate(
            passed=passed,
            against=task.against,
            reasons=reasons,
            groups={},
            deltas=GateDeltas(),
            ece=BeforeAfter(before=None, after=None),
        ),
        sentences=[] if passed else ["The new rows became no better: as asked."],
        heldout={"n": float(len(judged)), "loss": 0.5},
        curve=[CurvePoint(step=N_STEPS, loss=0.5, learning_rate=0.0)],
        groups=groups,
        rows=RowCounts(
            new_training=sum(row.side == "training" and row.group == "new" for row in rows),
            earlier_training=sum(row.side == "training" and row.group == "earlier" for row in rows),
            new_evaluation=sum(row.group == "new" for row in judged),
            earlier_evaluation=sum(row.group == "earlier" for row in judged),
            training_decisions=0,
            evaluation_decisions=len(made) // len(groups),
        ),
        report={},
    )
    write_struct(folder / RESULT, result)


def _records(group: str, row: TaskRow) -> list[dict[str, Any]]:
    decisions = read_request({"context": row.context, "decisions": row.decisions}).decisions
    made = []
    for place, decision in enumerate(decisions):
        labels = (row.targets or row.rewards or {}).get(decision.id)
        if labels is None:
            continue
        names = decision.outcomes.names
        made.append(
            {
                "group": group,
                "row": row.row,
                "place": place,
                "context_sha256": row.context_sha256,
                "decision_id": decision.id,
                "kind": decision.kind,
                "outcomes": names,
                "probabilities": [1 / len(names)] * len(names),
                "labels": [labels.get(name, 0.0) for name in names],
            }
        )
    return made


def _end_with_starter() -> None:
    while os.read(0, 65536):
        pass
    os._exit(STOPPED)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
