"""Triton's server as a process of its own: started, watched, asked to load models, ended.

It answers passes over gRPC, on loopback by default; this module asks over HTTP for its health, its
figures and its models.

A server whose Python backend cannot load its program hangs in its start and hears no signal: past the
time given for the start it is killed. Its shared memory has names of this host, so that the files of a
killed server in ``/dev/shm`` are removed, here or by the next host of the same user and PID namespace.
"""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import httpx

from steelyard.errors import EngineUnavailableError
from steelyard.http_clients import open_http
from steelyard.processes import bound_socket
from steelyard.scoring.remote.process_marks import is_left_behind, mark
from steelyard.triton import launch
from steelyard.triton.environment import Environment, Tell

#: Seconds in which a server must be ready. It takes two to three, and a second for each model.
START_S = 60.0
#: Seconds that passes in flight have when it stops.
STOP_S = 10.0
#: Seconds that loading or unloading a model may take.
LOAD_S = 60.0
_POLL_S = 0.05
_LOOPBACK = "127.0.0.1"
_ASK_S = 2.0
_LOG_LINES = 200
_SHOWN_LINES = 6
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  it is where the system keeps it
_PREFIX = "steelyard-triton-"
#: A line of the log that tells of an error, and what its tables are drawn with.
_FAULT, _FRAME = re.compile(r"[EF]\d{4} |error", re.IGNORECASE), "+-| "
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class ServerTls:
    """Files in PEM with which a server takes gRPC over TLS."""

    certificate: Path
    key: Path
    clients: Path | None = None

    def flags(self) -> dict[str, str]:
        """Return the server's own flags."""
        flags = {
            "grpc-use-ssl": "true",
            "grpc-server-cert": str(self.certificate),
            "grpc-server-key": str(self.key),
        }
        if self.clients is not None:
            flags |= {"grpc-use-ssl-mutual": "true", "grpc-root-cert": str(self.clients)}
        return flags


class TritonHost:
    """A server process; started by ``start`` or by entering a ``with`` block."""

    def __init__(
        self,
        repository: Path,
        environment: Environment,
        *,
        load: Sequence[str] = (),
        host: str = _LOOPBACK,
        port: int = 0,
        http_port: int = 0,
        metrics_port: int = 0,
        start_s: float = START_S,
        stop_s: float = STOP_S,
        on_line: Tell | None = None,
        tls: ServerTls | None = None,
    ) -> None:
        self._repository = repository
        self._environment = environment
        self._load = tuple(load)
        self._host = host
        self._wanted_ports = (port, http_port, metrics_port)
        self._ports = self._wanted_ports
        self._start_s, self._stop_s = start_s, stop_s
        self._on_line = on_line
        self._tls = tls
        # Where HTTP and the figures are.
        self._aside = host if tls is None else _LOOPBACK
        self._prefix = f"{_PREFIX}{mark()}-{next(_numbers)}-"
        self._log: deque[str] = deque(maxlen=_LOG_LINES)
        self._process: subprocess.Popen[str] | None = None
        self._begun = threading.Event()
        self._ended = threading.Event()
        self._fault: BaseException | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """The value of ``STEELYARD_SCORER``, such as ``triton://127.0.0.1:8001``."""
        scheme = "triton" if self._tls is None else "tritons"
        return f"{scheme}://{self.grpc_address}"

    @property
    def grpc_address(self) -> str:
        """Where it answers passes, such as ``127.0.0.1:8001``."""
        return _address(_reached(self._host), self._ports[0])

    @property
    def http_url(self) -> str:
        """Where it tells its health: ``/v2/health/live`` and ``/v2/health/ready``."""
        return f"http://{_address(_reached(self._aside), self._ports[1])}"

    @property
    def metrics_url(self) -> str:
        """Where it tells its figures."""
        return f"http://{_address(_reached(self._aside), self._ports[2])}/metrics"

    @property
    def pid(self) -> int | None:
        """The process; ``None`` while there is none."""
        return self._process.pid if self._process is not None and self.is_running else None

    @property
    def is_running(self) -> bool:
        """Whether the process lives."""
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> tuple[str, ...]:
        """The last lines of its log."""
        return tuple(self._log)

    def start(self) -> None:
        """Start it, and wait until it is ready; again after it ended, with the same ports."""
        if self.is_running:
            return
        sweep_shared_memory()
        self._ports = _free_ports((self._host, self._aside, self._aside), self._ports)
        self._begin()
        try:
            fault = self._await_ready()
        except BaseException:
            self.kill()
            raise
        if fault is not None:
            self.kill()
            raise EngineUnavailableError(f"{fault}: {self._log_errors()}")

    def is_live(self) -> bool:
        """Return whether it answers."""
        return self._is_healthy("live")

    def is_ready(self) -> bool:
        """Return whether it answers, and all that it was to load is loaded."""
        return self._is_healthy("ready")

    def load(self, name: str) -> None:
        """Load a model, or load it again where its files changed."""
        self._post(f"/v2/repository/models/{name}/load")

    def unload(self, name: str) -> None:
        """Unload a model; passes in flight end first."""
        self._post(f"/v2/repository/models/{name}/unload")

    def models(self) -> dict[str, str]:
        """Return the state of each model of the repository that was ever loaded, by name."""
        entries = self._post("/v2/repository/index").json()
        return {entry["name"]: entry.get("state", "UNLOADED") for entry in entries}

    def stop(self) -> None:
        """End it: passes in flight are answered, up to the time given; may be called twice."""
        try:
            self._signal(signal.SIGTERM)
            # It may wait that long for passes, and then ends its models.
            self.wait(self._stop_s + _ASK_S)
        finally:
            # Also where whoever waits has no more patience.
            self.kill()

    def kill(self) -> None:
        """End it at once, as ``kill -9`` does, with its models' processes."""
        self._signal(signal.SIGKILL)
        self._clean()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until it has ended; return whether it has."""
        if self._process is None:
            return True
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _command(self) -> list[str]:
        grpc, http, metrics = map(str, self._ports)
        options = {
            "model-repository": str(self._repository),
            "backend-directory": str(self._environment.backends),
            "model-control-mode": "explicit",
            "strict-readiness": "true",
            "exit-on-error": "true",
            "exit-timeout-secs": str(max(1, round(self._stop_s))),
            "grpc-address": self._host,
            "grpc-port": grpc,
            "http-address": self._aside,
            "http-port": http,
            "allow-metrics": "true",
            "metrics-address": self._aside,
            "metrics-port": metrics,
            "backend-config": f"python,shm-region-prefix-name={self._prefix}",
            "allow-gpu-metrics": "false",
            # Requests kept for reuse would keep the largest of them.
            "grpc-infer-allocation-pool-size": "0",
            **({} if self._tls is None else self._tls.flags()),
        }
        return [
            *(sys.executable, "-I", "-S", launch.__file__, str(os.getpid())),
            str(self._environment.server),
            *(f"--{name}={value}" for name, value in options.items()),
            "--disable-auto-complete-config",
            *(f"--load-model={name}" for name in self._load),
        ]

    def _await_ready(self) -> str | None:
        """Wait until it is ready; return the failure where it will not be."""
        give_up_at = time.monotonic() + self._start_s
        while not self.is_ready():
            if not self.is_running:
                status = None if self._process is None else self._process.returncode
                return f"Triton ended while it started (exit status {status})"
            if time.monotonic() > give_up_at:
                return f"Triton was not ready after {self._start_s:g} s and was ended"
            time.sleep(_POLL_S)
        return None

    def _begin(self) -> None:
        """Start the process on a thread that lives as long as it does.

        The kernel ends the process with the thread that started it, so that it outlives neither.
        """
        self._log.clear()
        self._fault = None
        self._begun.clear()
        self._ended.clear()
        threading.Thread(target=self._run, name="steelyard-triton", daemon=True).start()
        self._begun.wait()
        if self._fault is not None:
            message = f"Triton could not be started: {self._fault}."
            raise EngineUnavailableError(message) from self._fault

    def _run(self) -> None:
        try:
            process = subprocess.Popen(  # noqa: S603  the command is built here
                self._command(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                env=self._environment.variables(),
                # Ctrl-C reaches this process alone, which then ends the server as it should be.
                start_new_session=True,
            )
        except BaseException as error:  # noqa: BLE001  whoever starts it is told
            self._fault = error
            self._ended.set()
            self._begun.set()
            return
        self._process = process
        self._begun.set()
        assert process.stdout is not None  # noqa: S101  # it was asked for
        with process.stdout:
            for line in process.stdout:
                self._hear(line.rstrip())
        process.wait()
        self._ended.set()

    def _hear(self, line: str) -> None:
        self._log.append(line)
        if self._on_line is not None:
            with suppress(Exception):  # a reader that fails must not stop the server's output
                self._on_line(line)

    def _signal(self, number: signal.Signals) -> None:
        """Send the server a signal; to kill, its models' processes as well."""
        process = self._process
        if process is None:
            return
        with suppress(ProcessLookupError):
            if number == signal.SIGKILL:
                os.killpg(process.pid, number)  # it leads a group of its own
            elif process.poll() is None:
                process.send_signal(number)

    def _clean(self) -> None:
        """Wait for the end, end the rest of its models, and remove its shared memory."""
        if self._process is not None:
            self.wait()
            self._signal(signal.SIGKILL)
            self._ended.wait(_ASK_S)
        for path in _SHARED_MEMORY.glob(f"{self._prefix}*"):
            path.unlink(missing_ok=True)

    def _is_healthy(self, question: str) -> bool:
        try:
            url = f"{self.http_url}/v2/health/{question}"
            with open_http(timeout=_ASK_S) as client:
                return client.get(url).is_success
        except httpx.HTTPError:
            return False

    def _post(self, path: str) -> httpx.Response:
        try:
            with open_http(timeout=LOAD_S) as client:
                response = client.post(self.http_url + path, json={})
        except httpx.HTTPError as error:
            message = "Triton does not answer; see its log, and start it again."
            raise EngineUnavailableError(message, retry_after_s=1.0) from error
        if not response.is_success:
            raise EngineUnavailableError(f"Triton refused: {_reason(response)}")
        return response

    def _log_errors(self) -> str:
        """Return the errors of its log; its last lines where none is an error."""
        lines = [line for line in self._log if line.strip(_FRAME)]
        faults = [line for line in lines if _FAULT.match(line) and "Cuda" not in line]
        return " / ".join((faults or lines)[-_SHOWN_LINES:]) or "it said nothing"


def sweep_shared_memory() -> list[str]:
    """Remove shared memory of this user's hosts whose process no longer runs; return its names."""
    removed = []
    for path in sorted(_SHARED_MEMORY.glob(f"{_PREFIX}*")):
        # What cannot be removed is in nobody's way.
        with suppress(OSError):
            if is_left_behind(path.name, _PREFIX) and path.lstat().st_uid == os.geteuid():
                path.unlink()
                removed.append(path.name)
    return removed


def _reached(host: str) -> str:
    """Return the address at which this machine reaches one that listens there."""
    return {"0.0.0.0": _LOOPBACK, "::": "::1"}.get(host, host)  # noqa: S104


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _free_ports(hosts: tuple[str, str, str], ports: tuple[int, int, int]) -> tuple[int, int, int]:
    """Return the ports, with a free one for each 0; raise where one is taken."""
    listeners = []
    try:
        for host, port in zip(hosts, ports, strict=True):
            try:
                listeners.append(bound_socket(host, port))
            except OSError as error:
                message = f"Triton cannot listen on {_address(host, port)}: {error.strerror}."
                raise EngineUnavailableError(message) from error
        first, second, third = (listener.getsockname()[1] for listener in listeners)
        return first, second, third
    finally:
        for listener in listeners:
            listener.close()


def _reason(response: httpx.Response) -> str:
    try:
        return str(response.json()["error"])
    except (ValueError, KeyError, TypeError):
        return f"status {response.status_code}"
