"""Work that stands back: by its nice value, and by its session where Linux shares by sessions."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from steelyard.jobs.standing_back import stand_back

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux's own files")


@pytest.fixture(params=[True, False], ids=["own session", "ours"])
def process(request):
    waits = [sys.executable, "-c", "input()"]
    with subprocess.Popen(waits, stdin=subprocess.PIPE, start_new_session=request.param) as running:
        running.has_session = request.param
        yield running
        running.kill()


def autogroup(pid):
    path = Path(f"/proc/{pid}/autogroup")
    return path.read_text() if path.exists() else None


def test_the_process_stands_back_and_its_own_session_alone(process):
    before = autogroup(os.getpid())
    stand_back(7, process.pid)
    assert os.getpriority(os.PRIO_PROCESS, process.pid) == 7
    if before is not None:
        found = autogroup(process.pid)
        assert found.strip().endswith("nice 7") if process.has_session else found == before


def test_a_process_that_is_gone_is_left_alone(process):
    process.kill()
    process.wait()
    stand_back(7, process.pid)
