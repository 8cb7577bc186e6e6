"""Writing a version: rows are staged as they are read, and stored once their sides are known.

A side is picked among all new contexts, so no row can be stored before the last one was read. Rows
wait in a file on the disk; one byte of each is in memory.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Raw

from steelyard import errors
from steelyard.datasets.definitions import Definition
from steelyard.datasets.findings import MAX_LISTED, RowFinding
from steelyard.datasets.frames.known import KnownRows
from steelyard.datasets.frames.picking import EvaluationPick
from steelyard.datasets.frames.placing import PlacedRows
from steelyard.datasets.frames.rows import SIDE_NUMBERS, STORED_SCHEMA, stage_rows, store_rows
from steelyard.datasets.frames.scanning import load_definitions, load_retired
from steelyard.datasets.frames.staging import StagedRows
from steelyard.datasets.labels import METHOD_OF
from steelyard.datasets.rows import Row
from steelyard.datasets.tasks import Task
from steelyard.datasets.versions import Manifest, Part, hash_version
from steelyard.datasets.wire import DEFAULT_FRACTION, MAX_FRACTION, SIDES, Side, Split
from steelyard.storage.frame_store import FrameStore
from steelyard.wire.methods import Method

#: Rows that are read together when one of them is; a page touches two groups at most.
GROUP_ROWS = 4096
#: Rows of a file.
PART_ROWS = 32 * GROUP_ROWS
PARQUET, JSON = ".parquet", ".json"


class VersionWriter:
    """Stages the rows of one request and makes them the next version of a dataset.

    A context manager, which removes staged files at its end. Files that ``finish`` stored stay: until
    the state refers to the manifest, no reader sees it, and a sweep takes it away.
    """

    def __init__(
        self, store: FrameStore, dataset_id: str, previous: Manifest | None = None
    ) -> None:
        self._store = store
        self._dataset_id = dataset_id
        self._previous = previous
        self._known = KnownRows(store, previous)
        self._tasks: list[Task] = []
        self._task_numbers: dict[bytes, int] = {}
        self._method: Method | None = None if previous is None else previous.method
        self._named: set[Side] = set()
        self._exit = contextlib.ExitStack()
        self._rows: StagedRows | None = None

    def __enter__(self) -> VersionWriter:
        path = self._exit.enter_context(self._store.draft())
        self._rows = self._exit.enter_context(contextlib.closing(StagedRows(path)))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # With the error, so that a full disk is reported as one wherever it was met.
        self._exit.__exit__(kind, error, trace)

    def add(self, rows: Sequence[Row], side: Side | None = None) -> None:
        """Stage rows."""
        if not rows:
            return
        if self._method is None:
            self._method = METHOD_OF[rows[0].labels.supervision]
        if side is not None:
            self._named.add(side)
        numbers = [self._number(row.task) for row in rows]
        self._staged.add(stage_rows(rows, numbers, side))

    def finish(
        self, *, fraction: float = DEFAULT_FRACTION, min_rows: int = 1, max_rows: int | None = None
    ) -> Manifest:
        """Store the staged rows durably; none of them when the version is refused."""
        self._staged.close()
        if self._staged.n_rows == 0:
            raise errors.NoRowsError("There are no rows; send at least one.")
        previous = self._previous
        if previous is not None and previous.evaluation_only:
            fraction = MAX_FRACTION
            if "training" in self._named:
                raise errors.EvaluationOnlyError(
                    "The dataset is for evaluation only; send the rows as evaluation, or make a "
                    "new dataset."
                )
        pick = EvaluationPick(self._dataset_id, self._exit.enter_context(self._store.draft()))
        placed = PlacedRows(self._staged, pick)
        placed.place(
            None if previous is None else self._known.find,
            load_retired(self._store, previous),
            max_listed=MAX_LISTED,
        )
        self._check_sides(placed)
        self._check_count(placed.n_new, min_rows, max_rows)
        pick.settle(fraction)
        return self._store_version(placed, fraction)

    @property
    def _staged(self) -> StagedRows:
        if self._rows is None:
            raise RuntimeError("A version is written inside a with statement.")
        return self._rows

    def _number(self, task: Task) -> int:
        # Two rows may word one task in two spellings; each comes back in its own.
        key = task.json.encode()
        number = self._task_numbers.get(key)
        if number is None:
            number = self._task_numbers[key] = len(self._tasks)
            self._tasks.append(task)
        return number

    def _check_sides(self, placed: PlacedRows) -> None:
        """Refuse contexts sent for a side they are not on, or for both at once."""
        if placed.n_conflicts == 0:
            return
        lines = self._staged.lines([conflict.place for conflict in placed.conflicts])
        details = []
        for conflict, line in zip(placed.conflicts, lines, strict=True):
            message = f"context is on the {conflict.side} side; a context keeps its side."
            finding = RowFinding(conflict.named, line, ("context",), message, "side_conflict")
            details.append(finding.violation().body())
        raise errors.SideConflictError(
            f"{placed.n_conflicts} of the rows were sent for a side that their context is not on; "
            "send each context for one side, the one it is on.",
            details=details,
        )

    def _check_count(self, n_added: int, min_rows: int, max_rows: int | None) -> None:
        if n_added == 0:
            raise errors.NoNewRowsError("The dataset has all of these rows; send others.")
        n_rows = n_added + (self._previous.rows if self._previous else 0)
        if n_rows < min_rows:
            raise errors.TooFewRowsError(
                f"The dataset would have {n_rows} rows; send at least {min_rows}."
            )
        if max_rows is not None and n_rows > max_rows:
            raise errors.TooManyRowsError(
                f"The dataset would have {n_rows} rows; {max_rows} are the most."
            )

    def _store_version(self, placed: PlacedRows, fraction: float) -> Manifest:
        previous, method = self._previous, self._method
        if method is None:
            raise RuntimeError("Rows were stored before any was staged.")
        first_index = next_index = previous.next_index if previous else 0
        writers = {side: PartWriter(self._store, side, self._exit) for side in SIDES}
        counts: Counter[tuple[Side, int]] = Counter()
        expected: Counter[tuple[int, str, str]] = Counter()
        for start, batch in self._staged.batches():
            sides = placed.side_numbers(start, batch["context_sha256"])
            indexes = np.cumsum(sides != 0) - 1 + next_index
            for side in SIDES:
                mask = pa.array(sides == SIDE_NUMBERS[side])
                rows = batch.filter(mask)
                if len(rows) == 0:
                    continue
                writers[side].add(
                    store_rows(rows, pa.array(indexes).filter(mask), self._tasks, side)
                )
                self._known.add(rows, side)
                _count(rows, side, counts, expected)
            next_index = int(indexes[-1]) + 1
        parts = [part for side in SIDES for part in writers[side].finish()]
        split = _add(previous.split if previous else Split(), parts, placed.count_new_contexts())
        definitions = self._define(counts, expected)
        is_evaluation_only = split.training == 0
        if previous is not None:
            fraction = previous.evaluation_fraction
        elif is_evaluation_only:  # all of it is put aside, whatever the request left to the default
            fraction = MAX_FRACTION
        return Manifest(
            dataset_id=self._dataset_id,
            version=previous.version + 1 if previous else 1,
            sha256=hash_version(placed.new_hashes(), previous.sha256 if previous else None),
            method=method,
            rows=(previous.rows if previous else 0) + placed.n_new,
            added=placed.n_new,
            contexts=split.training_contexts + split.evaluation_contexts,
            duplicates_removed=self._staged.n_rows
            - placed.n_new
            + (previous.duplicates_removed if previous else 0),
            split=split,
            evaluation_fraction=fraction,
            evaluation_only=is_evaluation_only,
            parts=(*(previous.parts if previous else ()), *parts),
            known=self._known.files_with(parts),
            definitions=self._store.put(msgspec.json.encode(definitions), JSON),
            places=first_index + placed.n_new if previous and previous.places else 0,
            retired=previous.retired if previous else None,
        )

    def _define(
        self, counts: Counter[tuple[Side, int]], expected: Counter[tuple[int, str, str]]
    ) -> list[Definition]:
        """Count every wording of the version before and of the rows added."""
        merged: dict[tuple[str, str], dict[str, Any]] = {}
        if self._previous is not None:
            for old in load_definitions(self._store, self._previous):
                merged[old.id, old.fingerprint] = msgspec.structs.asdict(old)
        labels: dict[tuple[int, str], Counter[str]] = {}
        for (number, id_, outcome), count in expected.items():
            labels.setdefault((number, id_), Counter())[outcome] += count
        for number, task in enumerate(self._tasks):
            rows = {side: counts[side, number] for side in SIDES}
            if not any(rows.values()):
                continue
            for decision in task.decisions:
                fields = merged.setdefault(
                    (decision.id, decision.fingerprint.hex()),
                    {
                        "id": decision.id,
                        "fingerprint": decision.fingerprint.hex(),
                        "decision": Raw(decision.json.encode()),
                        "outcomes": decision.outcomes,
                        "is_plain": decision.is_plain,
                        "training": 0,
                        "evaluation": 0,
                        "expected": {},
                    },
                )
                for side, count in rows.items():
                    fields[side] += count
                total = Counter(fields["expected"]) + labels.get((number, decision.id), Counter())
                fields["expected"] = {
                    name: total[name] for name in decision.outcomes if total[name]
                }
        return [Definition(**fields) for _, fields in sorted(merged.items())]


class PartWriter:
    """Writes the rows of one side to files of ``PART_ROWS``, in groups of ``GROUP_ROWS``.

    The bytes depend on the rows alone, however they are handed in.
    """

    def __init__(self, store: FrameStore, side: Side, owner: contextlib.ExitStack) -> None:
        owner.callback(self._leave)
        self._store = store
        self._side = side
        self._waiting: list[pa.Table] = []
        self._n_waiting = 0
        self._parts: list[Part] = []
        self._exit: contextlib.ExitStack | None = None
        self._draft: Path | None = None
        self._writer: Any = None
        self._rows = 0
        self._first = self._last = 0

    def add(self, rows: pa.Table) -> None:
        """Write stored rows, in the order of their indexes."""
        self._waiting.append(rows)
        self._n_waiting += len(rows)
        if self._n_waiting >= GROUP_ROWS:
            waiting = pa.concat_tables(self._waiting)
            n_whole = len(waiting) - len(waiting) % GROUP_ROWS
            for start in range(0, n_whole, GROUP_ROWS):
                self._write(waiting.slice(start, GROUP_ROWS))
            self._waiting = [waiting.slice(n_whole)]
            self._n_waiting = len(waiting) - n_whole

    def finish(self) -> list[Part]:
        """Return the parts that were written."""
        if self._n_waiting:
            self._write(pa.concat_tables(self._waiting))
        self._end_part()
        return self._parts

    def _write(self, group: pa.Table) -> None:
        if self._writer is None:
            self._exit = contextlib.ExitStack()
            self._draft = self._exit.enter_context(self._store.draft())
            self._writer = self._exit.enter_context(
                pq.ParquetWriter(
                    str(self._draft),
                    STORED_SCHEMA,
                    compression="zstd",
                    compression_level=3,
                    write_page_checksum=True,
                )
            )
            self._rows, self._first = 0, group["index"][0].as_py()
        self._writer.write_table(group.combine_chunks(), row_group_size=GROUP_ROWS)
        self._rows += len(group)
        self._last = group["index"][-1].as_py()
        if self._rows >= PART_ROWS:
            self._end_part()

    def _end_part(self) -> None:
        if self._writer is None or self._draft is None:
            return
        self._writer.close()
        sha256, n_bytes = self._store.adopt(self._draft, PARQUET)
        self._leave()
        self._parts.append(
            Part(
                sha256=sha256,
                side=self._side,
                rows=self._rows,
                bytes=n_bytes,
                first=self._first,
                last=self._last,
            )
        )

    def _leave(self) -> None:
        exit_, self._exit, self._writer = self._exit, None, None
        if exit_ is not None:
            exit_.close()


def _count(
    rows: pa.Table,
    side: Side,
    counts: Counter[tuple[Side, int]],
    expected: Counter[tuple[int, str, str]],
) -> None:
    """Count tasks, and the outcomes that training rows expect."""
    for task in rows["task"].value_counts().to_pylist():
        counts[side, task["values"]] += task["counts"]
    if side != "training":
        return
    frame = pl.DataFrame(pl.from_arrow(rows.select(["task", "labels"])))
    tops = (
        frame.lazy()
        .explode("labels")
        .unnest("labels")
        .filter(pl.col("is_top"))
        .group_by("task", "decision", "outcome")
        .len()
        .collect()
    )
    for task, decision, outcome, count in tops.rows():
        expected[task, decision, outcome] += count


def _add(split: Split, parts: Sequence[Part], contexts: Mapping[Side, int]) -> Split:
    """Return the split of a version that adds parts, and contexts, to those of another."""
    rows = {side: sum(part.rows for part in parts if part.side == side) for side in SIDES}
    return Split(
        training=split.training + rows["training"],
        evaluation=split.evaluation + rows["evaluation"],
        training_contexts=split.training_contexts + contexts["training"],
        evaluation_contexts=split.evaluation_contexts + contexts["evaluation"],
    )
