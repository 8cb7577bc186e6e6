"""Files of fine-tunes that nothing refers to any more: folders, models, held-out records.

A process that is killed leaves the folder of a fine-tune behind, rows and all, and files of a dataset or
a model had stays when it is deleted. A server sweeps them, since the process that it starts for its
jobs ends soon after them; so does a worker, whose folders may be on another machine.
"""

from __future__ import annotations

import functools
import logging
import shutil
from collections.abc import Collection
from pathlib import Path

from steelyard.accounts.store_owner import sweep_owned
from steelyard.families.fine_tune_store import live_artifacts, live_records
from steelyard.families.tables import fine_tunes
from steelyard.jobs.store import unfinished
from steelyard.storage import State
from steelyard.storage.artifacts import ArtifactStore
from steelyard.storage.frame_store import FrameStore, raised_as_unavailable

_log = logging.getLogger(__name__)


class FineTuneFiles:
    """Removes the files of fine-tunes."""

    def __init__(
        self, state: State, artifacts: ArtifactStore, records: FrameStore, folder: Path
    ) -> None:
        self._state = state
        self._artifacts = artifacts
        self._records = records
        self._folder = folder

    def remove(self, job_id: str) -> None:
        """Remove a fine-tune's folder, as far as it can be removed."""
        shutil.rmtree(self._folder / job_id, ignore_errors=True)

    def sweep(self, *, running: Collection[str] = ()) -> None:
        """Remove folders, models and records that nothing refers to any more; it blocks."""
        with raised_as_unavailable():
            names = (
                [folder.name for folder in self._folder.iterdir()] if self._folder.is_dir() else []
            )
        # Asked after the look at the folders: one made since belongs to a fine-tune that runs.
        unfinished_ids = {
            row.id for row in self._state.read_now(functools.partial(unfinished, table=fine_tunes))
        }
        for name in names:
            if name not in unfinished_ids and name not in running:
                self.remove(name)
        with raised_as_unavailable():
            removed = sweep_owned(self._state, self._artifacts, live_artifacts)
        removed += sweep_owned(self._state, self._records, live_records)
        if removed:
            _log.info("Removed %d files of fine-tunes that nothing refers to.", len(removed))
