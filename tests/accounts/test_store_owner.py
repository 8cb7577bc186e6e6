"""Whose files a store holds: another state's are left alone."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from steelyard.accounts.store_owner import owns
from steelyard.app.foundation import open_frames
from steelyard.datasets.service import DatasetService
from steelyard.evaluations.store import sweep_predictions
from steelyard.families.fine_tuning.files import FineTuneFiles
from steelyard.operations.write import Write
from steelyard.storage import open_state
from steelyard.storage.artifacts import ArtifactStore
from steelyard.storage.frame_store import open_store
from support.datasets.dataset_rows import make_rows
from support.datasets.swept_datasets import digest_of
from support.models.evaluated import ME, make_dataset, open_home


@pytest.fixture
def states(tmp_path):
    opened = [open_state(f"sqlite:///{tmp_path / name}.sqlite") for name in ("one", "two")]
    yield opened
    for state in opened:
        state.close()


def put_old(store) -> str:
    """Put a file there that nothing refers to, written long ago."""
    name = f"{store.put(b'{}', '.json')}.json"
    long_ago = time.time() - 30 * 24 * 3600
    os.utime(Path(store.root, name), (long_ago, long_ago))
    return name


def test_the_first_state_that_asks_owns_a_store(tmp_path, states, caplog):
    one, two = states
    store = open_store(tmp_path / "frames", "datasets")
    assert owns(one, store)
    assert owns(one, open_store(tmp_path / "frames", "datasets"))
    assert not owns(two, store)
    assert "another state's" in caplog.text
    assert store.names() == []
    Path(store.root, "owner", "state").unlink()
    assert owns(two, store)


def test_jobs_sweep_their_own_files_alone(tmp_path, states):
    one, two = states
    predictions, models, records = (
        open_store(tmp_path / "frames", name) for name in ("evaluations", "models", "fine_tunes")
    )
    for state, is_left in ((one, False), (two, True)):
        names = {store: put_old(store) for store in (predictions, models, records)}
        sweep_predictions(state, predictions)
        artifacts = ArtifactStore(models, tmp_path / "cache")
        FineTuneFiles(state, artifacts, records, tmp_path / "folders").sweep()
        for store, name in names.items():
            assert (name in store.names()) is is_left


def test_a_server_with_another_state_leaves_the_datasets_whole(tmp_path):
    frames_url = str(tmp_path / "frames")
    with open_home(tmp_path / "one", frames_url=frames_url) as services:
        services.get(DatasetService).sweep()
        dataset_id = make_dataset(services, make_rows(6)).id
        digest = digest_of(services, dataset_id)
    long_ago = time.time() - 30 * 24 * 3600
    for file in (tmp_path / "frames" / "datasets").glob("*.*"):
        os.utime(file, (long_ago, long_ago))
    with open_home(tmp_path / "two", frames_url=frames_url) as services:
        assert services.get(DatasetService).sweep() == []
    with open_home(tmp_path / "one", frames_url=frames_url) as services:
        assert digest_of(services, dataset_id) == digest
        asyncio.run(services.get(DatasetService).delete(Write(ME), dataset_id))
        services.get(DatasetService).sweep()
        assert open_frames(services.settings, "datasets").names() == []
