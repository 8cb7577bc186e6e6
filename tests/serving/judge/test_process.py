"""A judge's process at its end, and its files on the disk after its server was killed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

import pytest

from steelyard.serving.judge import process
from steelyard.serving.judge.process import JudgeOptions, JudgeProcess
from support.waiting import PATIENCE_S

OPTIONS = JudgeOptions(file="m.gguf", context_tokens=512, slots=1, threads=1, gpu_layers=0)
#: In place of llama.cpp: a server that is never through with its request.
THINKING = """
import threading
from types import SimpleNamespace

class CommonParams(SimpleNamespace):
    def __init__(self):
        threads = [SimpleNamespace(), SimpleNamespace()]
        super().__init__(model=SimpleNamespace(), cpuparams=threads[0], cpuparams_batch=threads[1])

class Server:
    def __init__(self, params): ...
    def __del__(self): threading.Event().wait()
"""
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
    for each in running:
        each.stop()
    assert list(tmp_path.iterdir()) == []


def test_a_judge_at_work_ends_at_once(tmp_path, monkeypatch):
    (tmp_path / "xllamacpp.py").write_text(THINKING)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    monkeypatch.setenv("PYTHONPATH", path)
    judge = JudgeProcess("judge", OPTIONS)
    killed = []
    monkeypatch.setattr(JudgeProcess, "kill", killed.append)
    monkeypatch.setattr(process, "_STOP_S", PATIENCE_S)  # a busy machine ends it late
    judge.start()
    judge.stop()
    assert not killed, "it leaves by itself"
