"""Reviews kept at hand: every log applied once, and only its new entries after that.

The cache holds committed entries alone: a transaction that writes reads the newest ones itself.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from steelyard.recent import Recent
from steelyard.review.duties import Duties
from steelyard.review.duty_store import duties_after
from steelyard.review.log import Places, Review
from steelyard.review.store import entries_after
from steelyard.storage import State

#: Places of rows kept in all reviews together; one is about thirty-five bytes.
_CACHED_PLACES = 8_000_000


@dataclass(slots=True)
class _CachedReview:
    review: Review
    duties: Duties
    lock: threading.Lock = field(default_factory=threading.Lock)


class Reviews:
    """The reviews of drafts, as far as this process knows them; safe to use from several threads."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._cached: Recent[str, _CachedReview] = Recent(
            _CACHED_PLACES, lambda _, cached: len(cached.review.state), stores_any=True
        )

    @contextlib.contextmanager
    def current(self, draft_id: str, n_places: int) -> Iterator[Review]:
        """Yield a review with all committed entries, locked meanwhile; it blocks."""
        with self.cached(draft_id, n_places) as review:
            review.extend(
                self._state.read_now(
                    lambda connection: entries_after(connection, draft_id, review.revision)
                )
            )
            yield review

    @contextlib.contextmanager
    def current_duties(self, draft_id: str, n_places: int) -> Iterator[Duties]:
        """Yield the duties with all committed entries; as ``current``."""
        with self.cached_duties(draft_id, n_places) as duties:
            duties.extend(
                self._state.read_now(
                    lambda connection: duties_after(connection, draft_id, duties.number)
                )
            )
            yield duties

    def known(self, draft_id: str, n_places: int) -> Places:
        """Return the known rows of a draft, whose labels stay whatever its log says; it blocks."""
        with self.current_duties(draft_id, n_places) as duties:
            return duties.rows[duties.is_known]

    @contextlib.contextmanager
    def cached(self, draft_id: str, n_places: int) -> Iterator[Review]:
        """Yield a review as of the last look, locked meanwhile."""
        cached = self._find(draft_id, n_places)
        with cached.lock:
            yield cached.review

    @contextlib.contextmanager
    def cached_duties(self, draft_id: str, n_places: int) -> Iterator[Duties]:
        """Yield the duties as of the last look; as ``cached``."""
        cached = self._find(draft_id, n_places)
        with cached.lock:
            yield cached.duties

    def _find(self, draft_id: str, n_places: int) -> _CachedReview:
        cached = self._cached.find(draft_id)
        if cached is None:
            cached = _CachedReview(Review(n_places), Duties.of_all(n_places))
            cached = self._cached.find_or_note(draft_id, cached)
        return cached

    def forget(self, draft_id: str) -> None:
        """Drop the review of a draft that was deleted."""
        self._cached.pop(draft_id)
