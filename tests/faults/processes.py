"""``steelyard serve`` as a process that is killed and started again on its home and port."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from steelyard.accounts.service import AccountService
from steelyard.serving.base import load_named_model
from steelyard.storage import open_state
from support.servers.serving import ENVIRONMENT, children_of, lives
from support.waiting import wait_until

#: The hashing engine's model.
MODEL = load_named_model("hashing", None).scorer.name
#: Nano-USD that an account begins with: no test uses them up.
CREDIT = 10**15
#: A request is far quicker; a test that waits as long has failed.
PATIENCE_S = 60
_NO_RATES = {
    "STEELYARD_REQUESTS_PER_MINUTE": "0",
    "STEELYARD_TOKENS_PER_MINUTE": "0",
    "STEELYARD_PUBLIC_REQUESTS_PER_MINUTE": "0",
}


class ServeProcess:
    """A server on a port that stays the same from start to start.

    Parameters
    ----------
    home : pathlib.Path
        Its home; the state is there.
    arguments : str
        Options of ``steelyard serve``.
    variables : str
        Further settings, by the names of their variables.
    """

    def __init__(self, home: Path, *arguments: str, **variables: str) -> None:
        self.home = home
        self.log = home.with_name(f"{home.name}.log")
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._command = [sys.executable, "-m", "steelyard", *self._subcommand()]
        self._command += ["--home", str(home), *arguments]
        self._variables = {**ENVIRONMENT, **_NO_RATES, **variables}
        self._process: subprocess.Popen[bytes] | None = None

    def _subcommand(self) -> list[str]:
        return ["serve", "--port", str(self.port)]

    @property
    def state(self) -> Path:
        """The state's database."""
        return self.home / "state.sqlite"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether it was started and runs no more."""
        return self._process is not None and self._process.poll() is not None

    @property
    def logged(self) -> str:
        """Everything that the servers of this home wrote to the error stream."""
        return self.log.read_text() if self.log.exists() else ""

    #: Whether it answers requests.
    answers = True
    #: Whether what it prints stands in its log too.
    logs_output = False

    def become(self, **variables: str) -> None:
        """Change the environment of the processes that are started from now on."""
        self._variables |= variables

    def launch(self, *prefix: str) -> None:
        """Start the process and wait for nothing; a prefix is a command that runs the rest."""
        self.home.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._logged_before = log.tell()
            self._process = subprocess.Popen(
                [*prefix, *self._command],
                env=self._variables,
                stdout=log if self.logs_output else subprocess.DEVNULL,
                stderr=log,
            )

    def start(self) -> None:
        """Start the process and wait until it answers."""
        self.launch()
        self.wait_until_ready()

    def wait_until_ready(self, seconds: float = PATIENCE_S) -> None:
        """Wait until the process answers."""
        process = self._process
        assert process is not None
        wait_until(
            lambda: self._is_announced() or process.poll() is not None,
            seconds,
            last=lambda: self.logged,
        )
        assert process.poll() is None, self.logged

    def kill(self) -> None:
        """End it as a power cut would: nothing of it runs any more."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(PATIENCE_S)

    def stop(self) -> None:
        """End it in good order."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        assert self._process.wait(PATIENCE_S) == 0, self.logged

    def wait(self) -> int:
        """Wait for its end, and give the exit status."""
        assert self._process is not None
        return self._process.wait(PATIENCE_S)

    def workers(self) -> list[int]:
        """Return the ids of the worker processes that have opened the state."""
        return sorted(worker for worker in children_of(self.pid) if _has_state_open(worker))

    def end(self) -> None:
        """Leave nothing running, whatever state it is in."""
        if self._process is None:
            return
        workers = children_of(self.pid) if lives(self.pid) else set()
        self._process.kill()
        self._process.wait(PATIENCE_S)
        for worker in workers:
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)

    def _is_announced(self) -> bool:
        # The file of a killed server is still there until the next one replaces it.
        with suppress(FileNotFoundError):
            if json.loads((self.home / "serve.json").read_text())["pid"] == self.pid:
                return True
        # Beside a server that runs on this home, it leaves the file to that one.
        return b"stays that of the server on" in self.log.read_bytes()[self._logged_before :]


class WorkerProcess(ServeProcess):
    """``steelyard worker`` as such a process; it has no port."""

    answers = False
    logs_output = True

    @property
    def is_running_jobs(self) -> bool:
        """Whether the process that was started last got as far as to say so."""
        return b"Running jobs" in self.log.read_bytes()[self._logged_before :]

    def _subcommand(self) -> list[str]:
        return ["worker"]

    def start(self) -> None:
        """Start the process."""
        self.launch()


@contextmanager
def serve_process(home: Path, *arguments: str, **variables: str) -> Iterator[ServeProcess]:
    """Return a server that is not started yet, and leave nothing of it running."""
    server = ServeProcess(home, *arguments, **variables)
    try:
        yield server
    finally:
        server.end()


def open_account(home: Path, name: str = "customer", credit: int = CREDIT) -> tuple[str, str]:
    """Make an account with credit; give its id and the secret of a key of scope ``full``."""
    return open_account_at(f"sqlite:///{home / 'state.sqlite'}", name, credit)


def open_account_at(url: str, name: str = "customer", credit: int = CREDIT) -> tuple[str, str]:
    """Do as ``open_account`` does in the state of an address."""
    state = open_state(url)
    try:
        accounts = AccountService(state, accounts_enabled=True)
        account = accounts.create_account(name)
        accounts.add_credit(account.id, credit)
        return account.id, accounts.create_key(account=account.id).secret
    finally:
        state.close()


def _has_state_open(pid: int) -> bool:
    with suppress(OSError):  # it may end meanwhile
        links = [descriptor.readlink() for descriptor in Path(f"/proc/{pid}/fd").iterdir()]
        return any(link.suffix == ".live" for link in links)
    return False


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port
