"""``steelyard serve`` as a process of its own, for tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from support.waiting import started

T = TypeVar("T")

ENVIRONMENT = {**os.environ, "STEELYARD_ENGINE": "hashing", "PYTHONUNBUFFERED": "1"}

REQUEST = {
    "context": "Paid twice.",
    "decisions": [{"id": "d", "kind": "binary", "question": "Money back?"}],
}


@contextmanager
def serving(
    home: Path, *arguments: str, subcommand: str = "serve", **variables: str
) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """Start ``steelyard serve``, or ``up``, on a free port and wait for its address."""
    command = [sys.executable, "-m", "steelyard", subcommand, "--port", "0", "--home", str(home)]
    process = subprocess.Popen(
        [*command, *arguments],
        env={**ENVIRONMENT, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process, _wait_for_address(process, home / "serve.json")
    finally:
        process.kill()
        process.communicate(timeout=30)


def _wait_for_address(process: subprocess.Popen[str], path: Path) -> dict[str, Any]:
    started(process, path.exists, last=lambda: process.poll() is None or process.stderr.read())
    return json.loads(path.read_text())


def children_of(pid: int) -> set[int]:
    """Return the child processes of a process; Linux only."""
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return {int(child) for child in path.read_text().split()}


def lives(pid: int) -> bool:
    """Whether a process runs; one that ended and was not waited for does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def lines_until(process: subprocess.Popen[str], start: str) -> str:
    for line in process.stdout:
        if line.startswith(start):
            return line.strip()
    raise AssertionError(process.stderr.read())
