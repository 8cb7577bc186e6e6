"""Computing a map: vectors of the rows, pairs of them, and iterations of their layout.

The durable parts are vectors by blocks, then the pairs, then the layout every few iterations: a run
that is taken up again repeats at most one of these. All of it is deterministic, so that a map that
was interrupted is the one that was not.
"""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray
from sqlalchemy import Row, Table

from steelyard import errors
from steelyard.caller import Caller
from steelyard.datasets.frames.vectors import (
    Embed,
    Vectors,
    read_contexts,
    rendered,
    scorer_of,
    stored_vectors,
    vectors_of,
)
from steelyard.datasets.service import DatasetService
from steelyard.datasets.versions import Part
from steelyard.jobs.store import PendingJob
from steelyard.jobs.work import Run, TableWork
from steelyard.maps import store as rows
from steelyard.maps.layout import (
    MapLayout,
    Pairs,
    decode_layout,
    decode_pairs,
    find_pairs,
    iterate,
)
from steelyard.maps.neighbours import StoppedError
from steelyard.maps.points import taken_of, write_points
from steelyard.maps.progress import BLOCK_ROWS, ITERATIONS, Made, decode_made
from steelyard.maps.tables import dataset_maps
from steelyard.serving.registry import ModelRegistry
from steelyard.storage import State
from steelyard.storage.frame_store import FrameStore

#: Name of this kind of job.
MAP = "map"
#: Iterations between two commits.
STEP = 25
#: Texts that are embedded between two looks whether to stop.
_BATCH = 128
_SUFFIX = ".file"


@dataclass(eq=False, slots=True)
class MapRuns(TableWork):
    """Maps as a kind of job."""

    name: ClassVar[str] = MAP
    table: ClassVar[Table] = dataset_maps
    move = staticmethod(rows.MAPS.move)

    state: State
    store: FrameStore
    datasets: DatasetService
    dataset_files: FrameStore
    models: ModelRegistry
    _: KW_ONLY
    now: Callable[[], float] = time.time

    def open(self, job: PendingJob) -> MapRun:
        """Return the run of a map."""
        return MapRun(job, self)

    def sweep(self) -> None:
        """Remove the files that no map refers to."""
        rows.sweep_files(self.state, self.store)


class MapRun(Run):
    """A map that is computed here."""

    def __init__(self, job: PendingJob, work: MapRuns) -> None:
        super().__init__(job)
        self._work = work
        self._taken: _TakenRows | None = None
        self._pairs: Pairs | None = None
        self._layout: MapLayout | None = None

    def advance(self) -> bool:
        """Embed a block of rows, pair them, lay them out further, or keep the points and end."""
        row = self._work.find(self.job)
        made = self._made(row)
        if self._taken is None:
            self._taken = self._open(row)
        if made.pairs is None and made.n_embedded(row.points) < row.points:
            self._embed(self._taken, made)
        elif made.pairs is None:
            self._compare(row, made)
        elif made.iteration < ITERATIONS:
            self._lay_out(made)
        else:
            self._finish(self._taken, made)
            self.close()
            return False
        return True

    def close(self) -> None:
        """Release the loaded data."""
        self._taken = self._pairs = self._layout = None

    def _made(self, row: Row[Any]) -> Made:
        """Return the finished parts of the map; nothing where a file was removed meanwhile."""
        made = Made() if row.progress is None else decode_made(row.progress)
        if self._taken is None and not all(map(self._is_there, made.files)):
            return Made()
        return made

    def _is_there(self, sha256: str) -> bool:
        return self._work.store.damage_of(f"{sha256}{_SUFFIX}", deep=False) is None

    def _open(self, row: Row[Any]) -> _TakenRows:
        work = self._work
        model = work.models.find(row.model)
        if model is None or model.embed is None or model.evaluation_key != row.model_sha256:
            raise errors.ModelUnavailableError(
                f"The worker has no such model {row.model} as the map was asked for; start it with "
                "the settings of the server, and ask for the map again."
            )
        caller = Caller(row.account_id, None, "full", "worker")
        at = asyncio.run(
            work.datasets.dataset_at(caller, row.dataset_id, row.dataset_version, is_new_work=False)
        )
        scorer = scorer_of(model.evaluation_key)
        taken = taken_of(at.manifest.rows, row.points)
        return _TakenRows(work.dataset_files, at.manifest.parts, taken, model.embed, scorer)

    def _embed(self, taken: _TakenRows, made: Made) -> None:
        start = made.n_embedded(taken.n)
        vectors = taken.vectors(start, min(start + BLOCK_ROWS, taken.n), self.stopping.is_set)
        if vectors is not None:
            block = self._put(_encode(vectors))
            self._save(msgspec.structs.replace(made, blocks=(*made.blocks, block)))

    def _compare(self, row: Row[Any], made: Made) -> None:
        first = self._block(made.blocks[0])
        vectors = np.empty((row.points, first.shape[1]), dtype=np.float32)
        for number, sha256 in enumerate(made.blocks):
            start = number * BLOCK_ROWS
            vectors[start : start + BLOCK_ROWS] = self._block(sha256)
        try:
            self._pairs = find_pairs(vectors, self.stopping.is_set)
        except StoppedError:
            return
        pairs = self._put(self._pairs.encode())
        # The vectors have done their part: nothing refers to their files any more.
        self._save(msgspec.structs.replace(made, blocks=(), pairs=pairs))

    def _lay_out(self, made: Made) -> None:
        if self._pairs is None:
            self._pairs = decode_pairs(self._read(made.pairs))
        if self._layout is None:
            self._layout = (
                MapLayout.begin(self._pairs)
                if made.layout is None
                else decode_layout(self._read(made.layout))
            )
        iterate(self._layout, self._pairs, STEP, self.stopping.is_set)
        if not self.stopping.is_set():
            layout = self._put(self._layout.encode())
            iteration = self._layout.iteration
            self._save(msgspec.structs.replace(made, layout=layout, iteration=iteration))

    def _finish(self, taken: _TakenRows, made: Made) -> None:
        work = self._work
        layout = self._layout or decode_layout(self._read(made.layout))
        result = write_points(work.store, *taken.described(), layout.points)
        work.write(
            lambda connection: rows.MAPS.finish(
                connection, self.job, at=work.now(), result_sha256=result, progress=None
            )
        )

    def _block(self, sha256: str) -> Vectors:
        vectors: Vectors = np.load(io.BytesIO(self._read(sha256)), allow_pickle=False)
        return vectors

    def _read(self, sha256: str | None) -> bytes:
        return self._work.store.read(f"{sha256}{_SUFFIX}")

    def _put(self, data: bytes) -> str:
        return self._work.store.put(data, _SUFFIX)

    def _save(self, made: Made) -> None:
        encoded, at = msgspec.json.encode(made), self._work.now()
        self._work.write(
            lambda connection: rows.MAPS.save(connection, self.job, at=at, progress=encoded)
        )


class _TakenRows:
    """The rows that are laid out, read from their parts, of which the last is kept at hand."""

    def __init__(
        self,
        store: FrameStore,
        parts: Sequence[Part],
        taken: NDArray[np.int64],
        embed: Embed,
        scorer: str,
    ) -> None:
        self._store, self._parts, self._taken = store, parts, taken
        self._embed, self._scorer = embed, scorer
        self._held: tuple[Part, pl.DataFrame, Vectors | None] | None = None

    @property
    def n(self) -> int:
        """How many they are."""
        return len(self._taken)

    def vectors(self, start: int, stop: int, is_stopped: Callable[[], bool]) -> Vectors | None:
        """Return the vectors of some of the rows in half precision; ``None`` when stopped."""
        made: list[Vectors] = []
        for part, places in self._by_part(self._taken[start:stop]):
            _, frame, cached = self._hold(part)
            if cached is None and len(places) == len(frame):
                # Stored for all who compare these rows: near copies, suspects, searches, other maps.
                cached = self._read_whole(part, is_stopped)
                if cached is None:
                    return None
            if cached is not None:
                made.append(cached[places])
                continue
            texts = rendered(frame[places])
            for at in range(0, len(texts), _BATCH):
                if is_stopped():
                    return None
                made.append(self._embed(texts[at : at + _BATCH]))
        return np.concatenate(made).astype(np.float16)

    def _read_whole(self, part: Part, is_stopped: Callable[[], bool]) -> Vectors | None:
        def watched(texts: Sequence[str]) -> Vectors:
            if is_stopped():
                raise StoppedError
            return self._embed(texts)

        try:
            return vectors_of(self._store, part, watched, self._scorer)[1]
        except StoppedError:
            return None

    def described(self) -> tuple[NDArray[np.int64], NDArray[np.bool_], list[str]]:
        """Return, of each row, its place in the dataset, whether it is held out, and its text."""
        indexes: list[NDArray[np.int64]] = []
        is_evaluation: list[NDArray[np.bool_]] = []
        texts: list[str] = []
        for part, places in self._by_part(self._taken):
            _, frame, _ = self._hold(part)
            indexes.append(frame["index"].to_numpy()[places])
            is_evaluation.append(np.full(len(places), part.side == "evaluation"))
            texts += frame["context"].gather(places).to_list()
        return np.concatenate(indexes), np.concatenate(is_evaluation), texts

    def _by_part(self, taken: NDArray[np.int64]) -> list[tuple[Part, NDArray[np.int64]]]:
        """Return each part that has some of the rows, with their places in it."""
        by_part: list[tuple[Part, NDArray[np.int64]]] = []
        before = 0
        for part in self._parts:
            low, high = np.searchsorted(taken, [before, before + part.rows])
            if high > low:
                by_part.append((part, taken[low:high] - before))
            before += part.rows
        return by_part

    def _hold(self, part: Part) -> tuple[Part, pl.DataFrame, Vectors | None]:
        if self._held is None or self._held[0] is not part:
            frame = read_contexts(self._store, part)
            self._held = part, frame, stored_vectors(self._store, part, self._scorer, frame)
        return self._held


def _encode(vectors: Vectors) -> bytes:
    written = io.BytesIO()
    np.save(written, vectors, allow_pickle=False)
    return written.getvalue()
