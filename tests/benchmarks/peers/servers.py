"""Environments, checkpoints and running servers of the contestants, below one folder that is kept."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
import venv
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from urllib.request import urlopen

from peers.bodies import Size, make_requests
from peers.contestants import HERE, OURS, PEERS, Contestant, server_command
from peers.load import Answers, closed_loop
from peers.processes import pin

from steelyard.scoring.assets import TOKENIZER
from steelyard.scoring.shipped import BASE
from steelyard.version import __version__

#: Seconds that a server may take to answer for the first time.
START_S = 180
_POLL_S = 0.2
_STAMP = "installed.txt"
#: What a server of ours counts of its context cache.
_KNOWN = 'steelyard_context_cache_lookups_total{result="hit"} '


class ServerError(Exception):
    """A server, or its needs, could not be made to run; the words are for the page."""


def prepare_environment(name: str, folder: Path, pip: Sequence[str]) -> Path:
    """Make a peer's virtual environment unless the same requirements are in it already."""
    place, wanted = folder / "environments" / name, "\n".join(PEERS[name].requirements)
    stamp = place / _STAMP
    if not wanted or (stamp.is_file() and stamp.read_text() == wanted):
        return place
    shutil.rmtree(place, ignore_errors=True)
    venv.create(place, with_pip=True)
    installed = run_logged(
        [str(place / "bin" / "pip"), "install", *pip, *PEERS[name].requirements],
        folder / f"pip-{name}.log",
    )
    if installed:
        raise ServerError(f"pip could not install {name}: {installed}")
    stamp.write_text(wanted)
    return place


def prepare_checkpoint(contestant: Contestant, folder: Path) -> Path:
    """Make a contestant's checkpoint of random weights unless it is there."""
    place = folder / "checkpoints" / contestant.checkpoint
    if contestant.peer == OURS or place.is_dir():
        return place
    for rest in place.parent.glob(f"{place.name}.*"):
        shutil.rmtree(rest)
    made = run_logged(
        [
            str(folder / "environments" / contestant.peer / "bin" / "python"),
            "-B",
            str(HERE / "weights.py"),
            contestant.peer,
            contestant.base,
            str(place),
            "--tokenizer",
            str(BASE / TOKENIZER),
            "--precision",
            contestant.precision,
        ],
        folder / f"weights-{contestant.checkpoint}.log",
        environment(1),
    )
    if made:
        raise ServerError(f"its checkpoint could not be made: {made}")
    return place


def run_logged(
    command: Sequence[str], log: Path, variables: dict[str, str] | None = None
) -> str | None:
    """Run a command with its output in a file; give the last line where it fails."""
    with log.open("wb") as file:
        code = subprocess.run(
            command, stdout=file, stderr=file, env=variables, check=False
        ).returncode
    return last_line(log) or f"it ended with {code}" if code else None


def last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else ""


def environment(threads: int) -> dict[str, str]:
    """Return the variables of every server: so many threads, and no hub, which is not reached."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("STEELYARD_")}
    quiet = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    return own | quiet | {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}


def version_of(name: str, folder: Path) -> str:
    if name == OURS:
        return f"steelyard {__version__}, onnxruntime {version('onnxruntime')}"
    script = (
        "from importlib.metadata import version as v\n"
        f"names = {[name if name != 'crossencoder' else 'sentence-transformers', 'torch']!r}\n"
        "print(', '.join(f'{n} {v(n)}' for n in [*names, 'transformers']))"
    )
    python = folder / "environments" / name / "bin" / "python"
    return subprocess.run(
        [python, "-c", script], capture_output=True, text=True, check=True
    ).stdout.strip()


class Server:
    """A contestant's server: started, asked whether it answers, and ended with all it started."""

    def __init__(self, contestant: Contestant, folder: Path, cores: set[int]) -> None:
        self.contestant = contestant
        self._folder = folder
        self._cores = cores
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def known_contexts(self) -> int:
        """Return how often ours had a context or a sentence of it at hand; the others keep none."""
        if self.contestant.peer != OURS:
            return 0
        with urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=START_S) as metrics:
            lines = metrics.read().decode().splitlines()
        [count] = [line for line in lines if line.startswith(_KNOWN)]
        return int(float(count.split()[1]))

    def start(self) -> None:
        """Start it, wait for its first right answer, and pin it to its cores.

        Until then it may run where this thread may, so that servers can start side by side.
        """
        with socket.create_server(("127.0.0.1", 0)) as found:
            self.port = found.getsockname()[1]
        slug = "".join(c if c.isalnum() else "-" for c in self.contestant.key)
        home = self._folder / "homes" / f"{slug}-{self.port}"
        home.mkdir(parents=True, exist_ok=True)
        command, variables = server_command(
            self.contestant,
            environments=self._folder / "environments",
            checkpoint=self._folder / "checkpoints" / self.contestant.checkpoint,
            port=self.port,
            home=home,
            threads=len(self._cores),
        )
        log = self._folder / f"server-{slug}.log"
        began = time.perf_counter()
        with log.open("wb") as file:
            self._process = subprocess.Popen(
                command,
                env=environment(len(self._cores)) | variables,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        answers = Answers()
        while time.perf_counter() - began < START_S:
            requests = make_requests(Size(1, 2, "short"), 0, 1)
            try:
                answers = closed_loop(self.port, requests, 1, START_S)
            except TimeoutError:
                break
            if answers.milliseconds:
                pin(self._process.pid, self._cores)
                return
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_POLL_S)
                raise ServerError(f"its server ended: {last_line(log)}")
        self.stop()
        raise ServerError(f"its server gave no right answer: {answers.last_error}")

    def stop(self) -> None:
        """End it and its children; a busy server gets a short time."""
        if self._process is None:
            return
        for end in (15, 9):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, end)
            try:
                self._process.wait(timeout=5)
                break
            except subprocess.TimeoutExpired:
                continue
        self._process = None


def log_progress(words: str) -> None:
    print(words, file=sys.stderr, flush=True)
