"""The files of a judge's process on the disk after its server was killed."""

from __future__ import annotations

import subprocess
import sys
import tempfile

import pytest

from steelyard.serving.judge.process import JudgeOptions, JudgeProcess

OPTIONS = JudgeOptions(file="m.gguf", context_tokens=512, slots=1, threads=1, gpu_layers=0)
KILLED = f"""
import os, signal
from steelyard.serving.judge.process import JudgeOptions, JudgeProcess
process = JudgeProcess("judge", {OPTIONS!r})
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="marks of processes are Linux's")
def test_the_next_start_removes_the_folder_of_a_killed_server(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    subprocess.run([sys.executable, "-c", KILLED], check=False)
    [left] = tmp_path.iterdir()
    running = [JudgeProcess("judge", OPTIONS), JudgeProcess("other", OPTIONS)]
    assert not left.exists()
    assert len(list(tmp_path.iterdir())) == 2
    for process in running:
        process.stop()
    assert list(tmp_path.iterdir()) == []
