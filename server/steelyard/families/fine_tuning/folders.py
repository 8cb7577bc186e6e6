"""The folder that a trainer is given: the rows, the model to train from, and then the task."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import UNSET

from steelyard.families.lineage.lineage import FineTune
from steelyard.trainer.durable import write_struct
from steelyard.trainer.task import ROWS, TASK, CardFacts, FineTuneTask, TaskBase, TaskRow

_PARENT = "parent"
#: The licence of a base model of another server, as far as it is known here.
_ELSEWHERE = "that of the model on its server"


def write_folder(
    folder: Path,
    job: FineTune,
    rows: Iterable[TaskRow],
    *,
    base: TaskBase,
    parent: Path | None,
    parent_base: TaskBase | None,
    needed: int,
    threads: int,
    reader: Path | None,
    stopping: threading.Event,
) -> None:
    """Write the input of a trainer; the task file comes last and marks the folder complete."""
    folder.mkdir(parents=True, exist_ok=True)
    encode = msgspec.json.Encoder().encode
    with (folder / ROWS).open("wb") as file:
        for row in rows:
            if stopping.is_set():
                return
            file.write(encode(row) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    parent_copy = None
    if parent is not None:
        parent_copy = folder / _PARENT
        shutil.rmtree(parent_copy, ignore_errors=True)
        # A copy: a model's folder in the cache of a store may go while this one is needed.
        shutil.copytree(parent, parent_copy, copy_function=_link_or_copy)
    chosen = job.hyperparameters
    task = FineTuneTask(
        job_id=job.id,
        method=job.method,
        seed=chosen.seed,
        steps=chosen.steps,
        learning_rate=chosen.learning_rate,
        lora_rank=chosen.lora_rank,
        heads="auto" if chosen.heads is UNSET else chosen.heads,
        reader=None if reader is None else str(reader),
        base=base,
        parent=None if parent_copy is None else str(parent_copy),
        parent_base=parent_base,
        against="base" if parent_copy is None else "parent",
        needed=needed,
        judged_on="new" if job.lineage is None else job.lineage.judged_on,
        judged_by=None if chosen.judged_by is UNSET else list(chosen.judged_by),
        threads=threads,
        card=CardFacts(
            family=job.family,
            dataset_id=job.dataset_id,
            dataset_version=job.dataset_version,
            **({"base_licence": _ELSEWHERE} if base.is_connected else {}),
        ),
    )
    write_struct(folder / TASK, task)


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        # Another file system, or one without links.
        shutil.copyfile(source, target)
