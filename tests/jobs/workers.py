"""Worker processes that tests start and kill."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from steelyard.settings import child_environment
from support.tree.repository import ROOT

_SCRIPT = Path(__file__).parent / "scribbling_worker.py"
_PLAIN_SCRIPT = Path(__file__).parent / "plain_worker.py"


def start_worker(
    home: Path, file: Path, *, pause_s: float = 0.0, commit_s: float = 0.05
) -> subprocess.Popen[str]:
    """A worker that is ready."""
    return _start(str(_SCRIPT), str(home), str(file), str(pause_s), str(commit_s))


def start_job_worker(home: Path, **settings: object) -> subprocess.Popen[str]:
    """A worker of every kind of job that is ready."""
    return _start(str(_PLAIN_SCRIPT), str(home), json.dumps(settings))


def _start(*command: str) -> subprocess.Popen[str]:
    paths = f"{ROOT / 'server'}:{ROOT / 'tests'}"
    process = subprocess.Popen(
        [sys.executable, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=child_environment(PYTHONPATH=paths),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def kill(process: subprocess.Popen[str]) -> None:
    """End a process as kill -9 does."""
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()


@contextmanager
def running_worker(home: Path, file: Path, **given: float) -> Iterator[subprocess.Popen[str]]:
    """A worker for the length of a block; it ends as a stopped one does."""
    process = start_worker(home, file, **given)
    try:
        yield process
    finally:
        if process.poll() is None:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(15)
            finally:
                kill(process)


def is_gone(pid: int) -> bool:
    """Whether a process has ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    # One whose parent was killed is nobody's to wait for here.
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
