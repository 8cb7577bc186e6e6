"""The folder of a fine-tune as a job writes it, and the files that its trainer leaves there."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq

from steelyard.trainer.records import GROUPS, SCHEMA
from steelyard.trainer.task import (
    CardFacts,
    FineTuneResult,
    FineTuneTask,
    TaskBase,
    TaskRow,
)

TEAM = {
    "id": "team",
    "kind": "single",
    "question": "Which team?",
    "outcomes": ["billing", "sales", "support"],
}
URGENT = {"id": "urgent", "kind": "binary", "question": "Is it urgent?"}
WORDS = {
    "billing": ["invoice", "refund", "charge", "payment"],
    "sales": ["quote", "demo", "upgrade", "contract"],
    "support": ["crash", "error", "login", "broken"],
}
FILLER = ["please", "today", "the", "our", "about", "regarding", "again", "account", "it", "was"]
BASE = TaskBase(name="hashing", engine="hashing", double="hashing")
N_TRAINING, N_HELD_OUT = 80, 30
CARD = CardFacts(family="router", dataset_id="ds_1", dataset_version=2, base_licence="none")


def make_rows(
    n_rows: int, side: str, *, seed: int = 0, group: str = "new", method: str = "sft"
) -> Iterator[TaskRow]:
    """Make rows whose words tell the team, with a fifth of them labelled wrong or unsure."""
    rng = random.Random(f"{side} {seed}")
    for row in range(n_rows):
        team = rng.choice(list(WORDS))
        is_urgent = rng.random() < 0.4
        words = [rng.choice(WORDS[team]), *(rng.choice(FILLER) for _ in range(6))]
        words += ["now"] if is_urgent else []
        rng.shuffle(words)
        context = {"subject": " ".join(words), "number": row}
        sent = json.dumps([side, seed, context]).encode()
        told = team if rng.random() > 0.1 else rng.choice(list(WORDS))
        labels = {
            "team": {name: float(name == told) for name in WORDS},
            "urgent": {"yes": float(is_urgent), "no": float(not is_urgent)},
        }
        if method == "reward":
            labels["team"] = {name: 5.0 if name == told else -1.0 for name in WORDS}
        yield TaskRow(
            row=row,
            side=side,  # type: ignore[arg-type]
            group=group,  # type: ignore[arg-type]
            context=context,
            context_sha256=hashlib.sha256(sent).hexdigest(),
            decisions=[TEAM, URGENT],
            targets=labels if method == "sft" else None,
            rewards=labels if method == "reward" else None,
        )


def write_task(folder: Path, rows: list[TaskRow] | None = None, **changed: Any) -> Path:
    """Write a folder that the program may be run on."""
    folder.mkdir(parents=True, exist_ok=True)
    task = FineTuneTask(
        job_id="ftj_1",
        method="sft",
        seed=7,
        steps=20,
        learning_rate=1e-3,
        base=BASE,
        threads=1,
        card=CARD,
    )
    task = msgspec.structs.replace(task, **changed)
    (folder / "task.json").write_bytes(msgspec.json.encode(task))
    if rows is None:
        rows = [
            *make_rows(N_TRAINING, "training", method=task.method),
            *make_rows(N_HELD_OUT, "evaluation", method=task.method),
        ]
    (folder / "rows.jsonl").write_bytes(b"".join(msgspec.json.encode(r) + b"\n" for r in rows))
    return folder


def result_of(folder: Path) -> FineTuneResult:
    """Return the result of a fine-tune, but for measures of a clock."""
    return untimed(msgspec.json.decode((folder / "result.json").read_bytes(), type=FineTuneResult))


def untimed(result: FineTuneResult) -> FineTuneResult:
    if result.gate.words is msgspec.UNSET:
        return result
    words = msgspec.structs.replace(result.gate.words, cpu_ms=msgspec.UNSET)
    return msgspec.structs.replace(result, gate=msgspec.structs.replace(result.gate, words=words))


def records_of(folder: Path) -> dict[str, list[dict[str, Any]]]:
    table = pq.read_table(folder / "records.parquet")
    assert table.schema == SCHEMA
    rows = table.to_pylist()
    return {group: [row for row in rows if row["group"] == group] for group in GROUPS}
