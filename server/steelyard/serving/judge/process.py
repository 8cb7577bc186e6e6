"""The process of one judge, as the server sees it: started, watched, and ended."""

from __future__ import annotations

import json
import os
import queue
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from steelyard.processes import count_processors
from steelyard.scoring.remote.process_marks import is_left_behind, mark
from steelyard.serving.connected.breaker import RemoteFailureError
from steelyard.settings import child_environment

MODULE = "steelyard.serving.judge.child"
_PREFIX = "steelyard-judge-"
#: Seconds that it may take to load, and to end before it is killed.
_START_S, _STOP_S = 300.0, 5.0


@dataclass(frozen=True, slots=True)
class JudgeOptions:
    """The options of a judge's process."""

    file: str
    context_tokens: int
    slots: int
    threads: int
    gpu_layers: int


class JudgeProcess:
    """One run of a judge's process. ``start`` and ``stop`` block."""

    def __init__(self, name: str, options: JudgeOptions) -> None:
        self._name = name
        self._options = options
        _remove_left_folders()
        self._folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{mark()}-"))
        self.socket = str(self._folder / "s.sock")
        self.key = secrets.token_hex(16)
        self.started_at = time.monotonic()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Id of the process while it runs."""
        return self._process.pid if self.is_running and self._process is not None else None

    @property
    def is_running(self) -> bool:
        """Whether the process has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def cpu_ms(self) -> float | None:
        """Milliseconds of processor time that it took so far; ``None`` where the system does not say."""
        with suppress(OSError):
            # After the name, in brackets: the state and 10 numbers, then ticks in user and system mode.
            stat = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii", errors="replace")
            user, system = stat.rpartition(")")[2].split()[11:13]
            return (int(user) + int(system)) * 1e3 / os.sysconf("SC_CLK_TCK")
        return None

    def start(self) -> None:
        """Start, and wait until it answers; raise ``RemoteFailureError`` where it does not."""
        options = {
            "file": self._options.file,
            "context_tokens": self._options.context_tokens,
            "slots": self._options.slots,
            "threads": self._options.threads or count_processors(),
            "gpu_layers": self._options.gpu_layers,
            "socket": self.socket,
            "key": self.key,
        }
        self._process = subprocess.Popen(  # noqa: S603  # our own module
            [sys.executable, "-m", MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=child_environment(),
        )
        assert self._process.stdin is not None  # noqa: S101  # it was asked for
        with suppress(OSError):
            self._process.stdin.write(json.dumps(options).encode() + b"\n")
            self._process.stdin.flush()
        line = self._first_line()
        report = json.loads(line) if line else {}
        if not report.get("ready"):
            self.stop()
            reason = report.get("error") or "its process ended while it loaded the file"
            raise RemoteFailureError(f"The judge {self._name} did not start: {reason}.")

    def stop(self) -> None:
        """End the process: it has a moment to leave by itself, then it is killed."""
        process = self._process
        if process is not None:
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):
                    if pipe is not None:
                        pipe.close()
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def kill(self) -> None:
        """End the process at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _first_line(self) -> bytes:
        lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        process = self._process
        assert process is not None  # noqa: S101
        assert process.stdout is not None  # noqa: S101
        threading.Thread(
            target=lambda pipe: lines.put(pipe.readline()),
            args=(process.stdout,),
            name="steelyard-judge-start",
            daemon=True,
        ).start()
        try:
            return lines.get(timeout=_START_S)
        except queue.Empty:
            self.kill()
            return b""


def _remove_left_folders() -> None:
    """Remove the folders of servers that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        if is_left_behind(folder.name, _PREFIX):
            shutil.rmtree(folder, ignore_errors=True)
