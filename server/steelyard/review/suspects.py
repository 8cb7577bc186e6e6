"""The search for suspect labels: one at a time, behind the requests that ask for it."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from steelyard.datasets.frames.suspects import METHOD, SuspectTable, find_suspects, load_suspects
from steelyard.datasets.frames.vectors import MAX_COMPARED, Embed, scorer_of
from steelyard.datasets.versions import Manifest
from steelyard.errors import SteelyardError
from steelyard.recent import Recent
from steelyard.review.wire import Suspects, SuspectStatus
from steelyard.storage.frame_store import FrameStore

_log = logging.getLogger(__name__)

#: Seconds that a page waits for a search that it began; most versions are small.
_WAIT_S = 2.0
#: Versions whose suspects are kept at hand.
_CACHED_VERSIONS = 8
_NO_VECTORS = (
    "This server's engine gives no vectors of texts, so rows cannot be compared; run the shipped "
    "model."
)


class _StoppedError(Exception):
    """The server ends, and the search with it."""


@dataclass(slots=True)
class _Search:
    rows: int
    future: Future[SuspectTable] | None = None
    done: int = 0


def _cancel(search: _Search) -> None:
    if search.future is not None:
        search.future.cancel()


class SuspectSearch:
    """Finds suspect labels, once for each version."""

    def __init__(self, store: FrameStore, *, embed: Embed | None = None, scorer: str = "") -> None:
        self._store = store
        self._embed = embed
        self._scorer = scorer_of(scorer)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="steelyard-suspects")
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._searches: Recent[str, _Search] = Recent(_CACHED_VERSIONS, on_evicted=_cancel)

    def look(
        self, manifest: Manifest, *, is_requested: bool
    ) -> tuple[Suspects, SuspectTable | None]:
        """Return the progress of a version's search, and its suspects; blocks briefly."""
        reason = self._reason(manifest)
        if reason is not None:
            return _status("unavailable", 0, manifest.rows, reason), None
        search = self._find(manifest)
        if search.future is None:
            if not is_requested:
                return _status(None, 0, manifest.rows), None
            self._begin(manifest, search)
        future = search.future
        if future is None:
            return _status("computing", 0, manifest.rows), None
        if is_requested:
            wait([future], _WAIT_S)
        if not future.done():
            return _status("computing", search.done, manifest.rows), None
        error = None if future.cancelled() else future.exception()
        if error is None and not future.cancelled():
            return _status("ready", manifest.rows, manifest.rows), future.result()
        with self._lock:
            search.future = None  # the next caller begins again
        message = error.message if isinstance(error, SteelyardError) else "The search failed."
        return _status("unavailable", 0, manifest.rows, f"{message} Ask again."), None

    def close(self) -> None:
        """End the search that runs."""
        with self._lock:
            self._stopped.set()
        self._pool.shutdown(cancel_futures=True)

    def _reason(self, manifest: Manifest) -> str | None:
        if self._embed is None:
            return _NO_VECTORS
        if manifest.rows > MAX_COMPARED:
            return (
                f"The version has {manifest.rows} rows, and up to {MAX_COMPARED} are compared; "
                "review a smaller dataset, or another queue."
            )
        return None

    def _find(self, manifest: Manifest) -> _Search:
        key = f"{manifest.dataset_id}@{manifest.version}"
        search = self._searches.find(key)
        if search is not None:
            return search
        search = _Search(manifest.rows)
        suspects = load_suspects(self._store, manifest, self._scorer)
        if suspects is not None:
            search.future = Future()
            search.future.set_result(suspects)
        return self._searches.find_or_note(key, search)

    def _begin(self, manifest: Manifest, search: _Search) -> None:
        with self._lock:
            if search.future is None and not self._stopped.is_set():
                search.done = 0
                search.future = self._pool.submit(self._run, manifest, search)

    def _run(self, manifest: Manifest, search: _Search) -> SuspectTable:
        def progress(done: int) -> None:
            if self._stopped.is_set():
                raise _StoppedError
            search.done = max(search.done, done)

        if self._embed is None:
            raise _StoppedError
        try:
            return find_suspects(
                self._store, manifest, self._embed, scorer=self._scorer, progress=progress
            )
        except _StoppedError:
            raise
        except Exception:
            # Nobody waits for the thread: without this, only a code would reach anybody.
            _log.warning("Labels of a dataset could not be compared.", exc_info=True)
            raise


def _status(
    status: SuspectStatus | None, done: int, rows: int, message: str | None = None
) -> Suspects:
    return Suspects(status=status, done=done, rows=rows, method=METHOD, message=message)
