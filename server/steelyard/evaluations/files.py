"""Files of predictions that no evaluation refers to any more.

A server sweeps them, since the process that it starts for its jobs ends soon after them; so does a
worker.
"""

from __future__ import annotations

import logging

from steelyard.datasets.store_owner import sweep_owned
from steelyard.evaluations.store import live_files
from steelyard.storage import State
from steelyard.storage.frame_store import FrameStore

_log = logging.getLogger(__name__)


def sweep_predictions(state: State, store: FrameStore) -> None:
    """Remove what evaluations left; it blocks."""
    removed = sweep_owned(state, store, live_files)
    if removed:
        _log.info("Removed %d files of predictions that nothing refers to.", len(removed))
