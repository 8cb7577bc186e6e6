"""Writing a version: rows are staged as they are read, and stored once their sides are known.

A side is picked among all new contexts, so no row can be stored before the last one was read. Rows
wait in a file on the disk; only their hashes, 64 bytes a row, are in memory.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Raw
from numpy.typing import NDArray

from steelyard.datasets.definitions import Definition
from steelyard.datasets.findings import MAX_LISTED, Finding, Refusal
from steelyard.datasets.labels import METHOD_OF
from steelyard.datasets.rows import Row
from steelyard.datasets.sides import pick_evaluation
from steelyard.datasets.tasks import Task
from steelyard.datasets.versions import Manifest, Part, hash_version
from steelyard.storage.frames.rows import STAGED_SCHEMA, STORED_SCHEMA, stage_rows, store_rows
from steelyard.storage.frames.scanning import load_definitions, load_retired, scan
from steelyard.storage.frames.store import FrameStore
from steelyard.wire.datasets import DEFAULT_FRACTION, MAX_FRACTION, SIDES, Method, Side, Split

#: Rows that are read together when one of them is; a page touches two groups at most.
GROUP_ROWS = 4096
#: Rows of a file.
PART_ROWS = 32 * GROUP_ROWS
PARQUET, JSON = ".parquet", ".json"
_SIDE_NUMBERS: dict[Side, int] = {side: number for number, side in enumerate(SIDES, 1)}


def _numbered(column: str) -> pl.Expr:
    """Give sides as numbers, 0 for none."""
    return pl.col(column).replace_strict(_SIDE_NUMBERS, default=0, return_dtype=pl.Int8)


_NAMED_NUMBER = _numbered("named")


class VersionWriter:
    """Stages the rows of one request and makes them the next version of a dataset.

    Parameters
    ----------
    store : FrameStore
        Where the version's files go.
    dataset_id : str
        Whose version it will be.
    previous : Manifest, optional
        The newest version; left out for a new dataset.

    Notes
    -----
    A context manager, which removes what was staged at its end. What ``finish`` stored stays: until
    the state refers to the manifest, nobody reads it, and a sweep takes it away. Memory grows by the
    hashes of the rows and by every distinct list of decisions.
    """

    def __init__(
        self, store: FrameStore, dataset_id: str, previous: Manifest | None = None
    ) -> None:
        self._store = store
        self._dataset_id = dataset_id
        self._previous = previous
        self._tasks: list[Task] = []
        self._task_numbers: dict[bytes, int] = {}
        self._method: Method | None = None if previous is None else previous.method
        self._parts: list[str | None] = []
        self._exit = contextlib.ExitStack()
        self._path: Path | None = None
        self._sink: Any = None

    def __enter__(self) -> VersionWriter:
        self._path = self._exit.enter_context(self._store.draft())
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        self._sink = self._exit.enter_context(
            pa.ipc.new_file(str(self._path), STAGED_SCHEMA, options=options)
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # With the error, so that a full disk is told as one wherever it was met.
        self._exit.__exit__(kind, error, trace)

    def add(self, rows: Sequence[Row], side: Side | None = None) -> None:
        """Stage rows.

        Parameters
        ----------
        rows : sequence of Row
            Valid, and all with the same supervision.
        side : {"training", "evaluation"}, optional
            Named by the sender; picked when left out.

        Raises
        ------
        steelyard.errors.StorageUnavailableError
            When the disk is full.
        """
        if not rows:
            return
        if self._method is None:
            self._method = METHOD_OF[rows[0].labels.supervision]
        numbers = [self._number(row.task) for row in rows]
        self._sink.write_batch(stage_rows(rows, numbers, side))

    def finish(
        self,
        *,
        fraction: float = DEFAULT_FRACTION,
        min_rows: int = 1,
        max_rows: int | None = None,
    ) -> Manifest | Refusal:
        """Store what was staged.

        Parameters
        ----------
        fraction : float
            Share of the new contexts, among those whose side nobody named, to put aside.
        min_rows : int
            The fewest rows that a dataset may have.
        max_rows : int, optional
            The most.

        Returns
        -------
        Manifest or Refusal
            The manifest's files are durable. Refusals: ``no_rows``, ``no_new_rows``,
            ``side_conflict``, ``evaluation_only``, ``too_few_rows``, ``too_many_rows``; then
            nothing was stored.
        """
        self._sink.close()
        keys = self._staged("row_sha256", "context_sha256", _NAMED_NUMBER)
        if keys.is_empty():
            return Refusal("no_rows", "There are no rows; send at least one.")
        contexts = _Contexts(
            keys, self._known("context_sha256", "side"), load_retired(self._store, self._previous)
        )
        refusal = self._check_sides(contexts)
        if refusal is not None:
            return refusal
        hashes = keys["row_sha256"]
        del keys
        is_new = hashes.is_first_distinct().to_numpy()
        if self._previous is not None:
            held = self._known("row_sha256")["row_sha256"]
            is_new = is_new & ~hashes.is_in(held.implode()).to_numpy()
        n_added = int(is_new.sum())
        refusal = self._check_count(n_added, min_rows, max_rows)
        if refusal is not None:
            return refusal
        if self._previous is not None and self._previous.evaluation_only:
            fraction = MAX_FRACTION
        contexts.pick(self._dataset_id, fraction)
        added = hashes.filter(pl.Series(is_new)).sort()
        return self._store_version(added, is_new, contexts, fraction)

    def _number(self, task: Task) -> int:
        # Two rows may word one task in two spellings; each comes back in its own.
        key = task.json.encode()
        number = self._task_numbers.get(key)
        if number is None:
            number = self._task_numbers[key] = len(self._tasks)
            self._tasks.append(task)
        return number

    def _staged(self, *columns: str | pl.Expr) -> pl.DataFrame:
        return pl.scan_ipc(str(self._path)).select(*columns).collect()

    def _known(self, *columns: str) -> pl.DataFrame:
        """Give columns of the version before, each combination of values once."""
        if self._previous is None:
            return pl.DataFrame(schema=dict.fromkeys(columns, pl.Binary))
        return scan(self._store, self._previous).select(columns).unique().collect()

    def _check_sides(self, contexts: _Contexts) -> Refusal | None:
        """Find contexts sent for a side that they are not on, and for both sides at once."""
        previous = self._previous
        if previous is not None and previous.evaluation_only and contexts.names("training"):
            return Refusal(
                "evaluation_only",
                "The dataset is for evaluation only; send the rows as evaluation, or make a new "
                "dataset.",
            )
        places = contexts.settle()
        if places.size == 0:
            return None
        lines = self._staged("line")["line"].gather(places[:MAX_LISTED])
        findings = []
        for place, line in zip(places[:MAX_LISTED], lines, strict=True):
            named, side = contexts.sides_at(int(place))
            message = f"context is on the {side} side; a context keeps its side."
            findings.append(Finding(named, line, ("context",), message, "side_conflict"))
        return Refusal(
            "side_conflict",
            f"{places.size} of the rows were sent for a side that their context is not on; "
            "send each context for one side, the one it is on.",
            tuple(finding.violation().body() for finding in findings),
        )

    def _check_count(self, n_added: int, min_rows: int, max_rows: int | None) -> Refusal | None:
        if n_added == 0:
            return Refusal("no_new_rows", "The dataset has all of these rows; send others.")
        n_rows = n_added + (self._previous.rows if self._previous else 0)
        if n_rows < min_rows:
            return Refusal(
                "too_few_rows", f"The dataset would have {n_rows} rows; send at least {min_rows}."
            )
        if max_rows is not None and n_rows > max_rows:
            return Refusal(
                "too_many_rows", f"The dataset would have {n_rows} rows; {max_rows} are the most."
            )
        return None

    def _store_version(
        self,
        added: pl.Series,
        is_new: NDArray[np.bool_],
        contexts: _Contexts,
        fraction: float,
    ) -> Manifest:
        previous, method = self._previous, self._method
        if method is None:
            raise RuntimeError("Rows were stored before any was staged.")
        first_index = previous.next_index if previous else 0
        indexes = np.cumsum(is_new) - 1 + first_index
        is_evaluation = contexts.is_evaluation()
        writers = {side: PartWriter(self._store, side, self._exit) for side in SIDES}
        counts: Counter[tuple[Side, int]] = Counter()
        expected: Counter[tuple[int, str, str]] = Counter()
        for start, batch in self._batches():
            stop = start + len(batch)
            for side in SIDES:
                is_side = is_evaluation[start:stop] == (side == "evaluation")
                mask = pa.array(is_new[start:stop] & is_side)
                rows = batch.filter(mask)
                if len(rows) == 0:
                    continue
                place = pa.array(indexes[start:stop]).filter(mask)
                writers[side].add(store_rows(rows, place, self._tasks, side))
                _count(rows, side, counts, expected)
        parts = [part for side in SIDES for part in writers[side].finish()]
        split = _add(previous.split if previous else Split(), parts, contexts)
        definitions = self._define(counts, expected)
        return Manifest(
            dataset_id=self._dataset_id,
            version=previous.version + 1 if previous else 1,
            sha256=hash_version(iter(added), previous.sha256 if previous else None),
            method=method,
            rows=(previous.rows if previous else 0) + len(added),
            added=len(added),
            contexts=split.training_contexts + split.evaluation_contexts,
            duplicates_removed=len(is_new)
            - len(added)
            + (previous.duplicates_removed if previous else 0),
            split=split,
            evaluation_fraction=previous.evaluation_fraction if previous else fraction,
            evaluation_only=split.training == 0,
            parts=(*(previous.parts if previous else ()), *parts),
            definitions=self._store.put(msgspec.json.encode(definitions), JSON),
            places=first_index + len(added) if previous and previous.places else 0,
            retired=previous.retired if previous else None,
        )

    def _batches(self) -> Iterator[tuple[int, pa.Table]]:
        start = 0
        with pa.memory_map(str(self._path)) as source, pa.ipc.open_file(source) as reader:
            for number in range(reader.num_record_batches):
                batch = pa.Table.from_batches([reader.get_batch(number)])
                yield start, batch
                start += len(batch)

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
            for asked in task.decisions:
                fields = merged.setdefault(
                    (asked.id, asked.fingerprint.hex()),
                    {
                        "id": asked.id,
                        "fingerprint": asked.fingerprint.hex(),
                        "decision": Raw(asked.json.encode()),
                        "outcomes": asked.outcomes,
                        "is_plain": asked.is_plain,
                        "training": 0,
                        "evaluation": 0,
                        "expected": {},
                    },
                )
                for side, count in rows.items():
                    fields[side] += count
                total = Counter(fields["expected"]) + labels.get((number, asked.id), Counter())
                fields["expected"] = {name: total[name] for name in asked.outcomes if total[name]}
        return [Definition(**fields) for _, fields in sorted(merged.items())]


class _Contexts:
    """The contexts of staged rows, each once, and the sides that they are on.

    Rows hold the number of their context, and sides are numbers too (0 for none yet), so that a
    million rows take a few megabytes.
    """

    def __init__(
        self, keys: pl.DataFrame, known: pl.DataFrame, retired: pl.DataFrame | None = None
    ) -> None:
        self._number = keys["context_sha256"].rank("dense").to_numpy() - 1
        self._hashes = keys["context_sha256"].unique().sort()
        self._named = keys["named"].to_numpy()
        self._side: NDArray[np.int8] = np.zeros(len(self._hashes), dtype=np.int8)
        if not known.is_empty():
            self._side = self._sides_in(known)
        self._is_new = self._side == 0
        if retired is not None:
            # A context whose rows were all removed comes back to its side, as a new one.
            once = retired.select("context_sha256", "side").unique("context_sha256")
            self._side = np.where(self._is_new, self._sides_in(once), self._side)

    def _sides_in(self, known: pl.DataFrame) -> NDArray[np.int8]:
        frame = self._hashes.to_frame().join(
            known, on="context_sha256", how="left", maintain_order="left"
        )
        sides: NDArray[np.int8] = frame.select(_numbered("side")).to_series().to_numpy().copy()
        return sides

    def names(self, side: Side) -> bool:
        """Tell whether a row was sent for a side."""
        return bool((self._named == _SIDE_NUMBERS[side]).any())

    def settle(self) -> NDArray[np.intp]:
        """Put new contexts on the side named first; give the rows sent for another side."""
        places = np.flatnonzero(self._named)
        numbers = self._number[places]
        first = places[np.unique(numbers, return_index=True)[1]]
        fresh = first[self._side[self._number[first]] == 0]
        self._side[self._number[fresh]] = self._named[fresh]
        conflicts: NDArray[np.intp] = places[self._named[places] != self._side[numbers]]
        return conflicts

    def sides_at(self, row: int) -> tuple[Side, Side]:
        """Give the side that a row was sent for, and the one that its context is on."""
        return SIDES[self._named[row] - 1], SIDES[self._side[self._number[row]] - 1]

    def pick(self, dataset_id: str, fraction: float) -> None:
        """Pick the sides of the contexts that have none."""
        is_open = self._side == 0
        fresh = self._hashes.filter(pl.Series(is_open))
        is_evaluation = pick_evaluation(dataset_id, iter(fresh), fraction)
        self._side[is_open] = np.where(is_evaluation, 2, 1)

    def is_evaluation(self) -> NDArray[np.bool_]:
        """Give, by row, whether it is for evaluation."""
        is_evaluation: NDArray[np.bool_] = self._side[self._number] == _SIDE_NUMBERS["evaluation"]
        return is_evaluation

    def count_new(self, side: Side) -> int:
        """Count the contexts of a side that no version had before."""
        return int((self._is_new & (self._side == _SIDE_NUMBERS[side])).sum())


class PartWriter:
    """Writes the rows of one side to files of ``PART_ROWS``, in groups of ``GROUP_ROWS``.

    The bytes depend on the rows alone, however they are handed in.

    Parameters
    ----------
    store : FrameStore
        Where the files go.
    side : {"training", "evaluation"}
        Of all the rows.
    owner : contextlib.ExitStack
        Removes what was not finished when it closes.
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
        """Give the parts that were written."""
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
                    str(self._draft), STORED_SCHEMA, compression="zstd", compression_level=3
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


def _add(split: Split, parts: Sequence[Part], contexts: _Contexts) -> Split:
    """Give the split of a version that adds parts, and contexts, to those of another."""
    rows = {side: sum(part.rows for part in parts if part.side == side) for side in SIDES}
    return Split(
        training=split.training + rows["training"],
        evaluation=split.evaluation + rows["evaluation"],
        training_contexts=split.training_contexts + contexts.count_new("training"),
        evaluation_contexts=split.evaluation_contexts + contexts.count_new("evaluation"),
    )
