"""kill -9 while unused files are removed: acknowledged data stays, whole."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from steelyard.app.foundation import open_frames
from steelyard.datasets import service as datasets_module
from steelyard.datasets.service import DatasetService
from steelyard.datasets.store import live_files
from steelyard.errors import SteelyardError
from steelyard.operations.write import Write
from steelyard.settings import child_environment
from support.datasets.swept_datasets import digest_of
from support.models.evaluated import ME, open_home
from support.tree.repository import ROOT


def run_until_killed(home: Path, first: int, after_s: float) -> list[list[str]]:
    """Return the output of a process that worked for a while after its first deletion."""
    process = subprocess.Popen(
        [sys.executable, "-m", "support.datasets.sweeping_process", str(home), str(first)],
        stdout=subprocess.PIPE,
        text=True,
        env=child_environment(PYTHONPATH=f"{ROOT / 'server'}:{ROOT / 'tests'}"),
    )
    assert process.stdout is not None
    # Not from its start on: on a busy machine that ends before anything was deleted.
    lines = [""]
    while not lines[-1].startswith("deleted "):
        lines.append(process.stdout.readline())
        assert lines[-1], "the process ended by itself"
    timer = threading.Timer(after_s, process.kill)
    timer.start()
    lines += process.stdout.readlines()
    timer.join()
    process.wait()
    process.stdout.close()
    # A line that was cut off was not acknowledged.
    return [line.split() for line in lines if line.endswith("\n")]


@pytest.mark.timeout(3600)
@pytest.mark.slow
@pytest.mark.parametrize("n_kills", [100])
def test_kill_9_while_files_are_swept(tmp_path, monkeypatch, n_kills):
    monkeypatch.setattr(datasets_module, "ERASE_AFTER_S", 0.0)
    chance = random.Random(f"sweep {n_kills}")
    digests: dict[str, str] = {}
    deleted: list[str] = []
    for kill in range(n_kills):
        for what, dataset_id, *digest in run_until_killed(
            tmp_path, kill * 1_000, chance.uniform(0.0, 0.4)
        ):
            if what == "made":
                [digests[dataset_id]] = digest
            elif what == "deleting":
                # Gone or still there, until it is told.
                del digests[dataset_id]
            else:
                deleted.append(dataset_id)
        with open_home(tmp_path) as services:
            for dataset_id, digest in digests.items():
                assert digest_of(services, dataset_id) == digest
            services.get(DatasetService).sweep()
            store = open_frames(services.settings, "datasets")
            live = services.state.read_now(live_files)
            assert {name.partition(".")[0] for name in store.names()} <= set(live)
            assert all(store.damage_of(name) is None for name in store.names())
            # Few are kept for the next round: each is looked at after every kill.
            for dataset_id in list(digests)[:-3]:
                asyncio.run(services.get(DatasetService).delete(Write(ME), dataset_id))
                del digests[dataset_id]
                deleted.append(dataset_id)
            for dataset_id in deleted[-5:]:
                with pytest.raises(SteelyardError):
                    digest_of(services, dataset_id)
    assert len(deleted) > n_kills // 2
