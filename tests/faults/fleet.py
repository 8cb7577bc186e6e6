"""Several hosts on one machine: servers and workers that share PostgreSQL and an S3 store, and HAProxy.

The proxy runs on the configuration that is shipped, ``deploy/chart/haproxy.cfg``.
"""

from __future__ import annotations

import http.client
import random
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from pyarrow import fs

from faults.processes import MODEL, ServeProcess, WorkerProcess, free_port
from support.servers.haproxy import haproxy, wait_for_servers
from support.servers.postgres_server import PostgresServer
from support.waiting import let_a_moment_pass, wait_until

#: Debian's libfaketime: what a process with another clock is started with.
FAKETIME = next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))), None)
N_HOSTS, N_WORKERS = 3, 2
#: Nano-USD of an input token.
PRICE = 7
#: Seconds that a host has to start beside all the others.
_START_S = 300
#: Seconds within which a process that finds no database has ended.
_BUCKET = "steelyard"
_KEY, _SECRET = "the-key", "the-secret"


class FaultyStore:
    """An S3 server behind a proxy that fails when a test says so."""

    def __init__(self) -> None:
        self.fails = False
        self.n_failed = 0
        store = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one(self) -> None:
                body = self._body()
                if store.fails:
                    store.n_failed += 1
                    self.send_response(500)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                there = http.client.HTTPConnection("127.0.0.1", store.port_behind, timeout=60)
                there.request(self.command, self.path, body, dict(self.headers.items()))
                answer = there.getresponse()
                content = answer.read()
                self.send_response_only(answer.status, answer.reason)
                for name, value in answer.getheaders():
                    if name.lower() not in {"transfer-encoding", "connection", "content-length"}:
                        self.send_header(name, value)
                length = answer.getheader("Content-Length") if self.command == "HEAD" else None
                self.send_header("Content-Length", length or str(len(content)))
                self.end_headers()
                self.wfile.write(content)
                there.close()

            def _body(self) -> bytes:
                if self.headers.get("Expect", "").lower() == "100-continue":
                    self.send_response_only(100)
                    self.end_headers()
                if "chunked" not in self.headers.get("Transfer-Encoding", ""):
                    return self.rfile.read(int(self.headers.get("Content-Length", 0)))
                del self.headers["Transfer-Encoding"]
                body = b""
                while size := int(self.rfile.readline().partition(b";")[0], 16):
                    body += self.rfile.read(size)
                    self.rfile.readline()
                while self.rfile.readline().strip():
                    pass
                return body

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = handle_one  # noqa: N815

            def handle_expect_100(self) -> bool:
                return True  # told when the body is read

            def log_message(self, *_: object) -> None:
                pass

        self.port_behind = free_port()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]  # its client died
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def fail_once_asked(self, moments: random.Random) -> None:
        """Fail from now on until a while after the first request, or until none came for a while."""
        before = self.n_failed
        self.fails = True
        with suppress(AssertionError):
            wait_until(lambda: self.n_failed > before, seconds=15)
            let_a_moment_pass(moments, 0.5, 2)
        self.fails = False

    @property
    def url(self) -> str:
        """The value of the setting ``frames_url``."""
        return f"s3://{_KEY}:{_SECRET}@{_BUCKET}/frames?{self._options(self._server.server_port)}"

    @staticmethod
    def _options(port: int) -> str:
        return f"endpoint_override=127.0.0.1%3A{port}&scheme=http&region=us-east-1"

    @contextmanager
    def running(self, log: Path) -> Iterator[FaultyStore]:
        """Run the server and the proxy, with an empty bucket."""
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1"]
        with log.open("ab") as file:
            behind = subprocess.Popen(
                [*command, "-p", str(self.port_behind)], stdout=file, stderr=file
            )
        try:
            wait_until(lambda: _takes(self.port_behind))
            s3 = fs.S3FileSystem(
                access_key=_KEY,
                secret_key=_SECRET,
                endpoint_override=f"127.0.0.1:{self.port_behind}",
                scheme="http",
                region="us-east-1",
                allow_bucket_creation=True,
            )
            s3.create_dir(_BUCKET)
            self._thread.start()
            yield self
            self._server.shutdown()
        finally:
            self._server.server_close()
            behind.kill()
            behind.wait()


class Fleet:
    """The processes; ``url`` is the proxy's."""

    def __init__(self, folder: Path, database: str, store: FaultyStore, **settings: str) -> None:
        self.database = database
        self.store = store
        self.faults: Counter[str] = Counter()
        shared = {
            "STEELYARD_ACCOUNTS": "on",
            "STEELYARD_PRICES": f"{MODEL}={PRICE}",
            "STEELYARD_JOBS": "off",
            "STEELYARD_STATE_URL": database,
            "STEELYARD_FRAMES_URL": store.url,
            "STEELYARD_DATASET_MIN_ROWS": "1",
            "STEELYARD_WEBHOOK_HOSTS": "127.0.0.1",
            **settings,
        }
        # The last of each has another clock than the others.
        clocks = [{}] * (N_HOSTS - 1) + [_clock("+60s")]
        self.hosts = [
            ServeProcess(folder / f"host-{number}", **shared, **clock)
            for number, clock in enumerate(clocks)
        ]
        clocks = [{}] * (N_WORKERS - 1) + [_clock("-60s")]
        self.workers = [
            WorkerProcess(folder / f"worker-{number}", **shared, **clock)
            for number, clock in enumerate(clocks)
        ]
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self._log = folder / "haproxy.log"

    @contextmanager
    def running(self) -> Iterator[Fleet]:
        """Run all, and leave nothing of it."""
        with ExitStack() as stack:
            for process in (*self.hosts, *self.workers):
                stack.callback(process.end)
                process.launch()
            stack.enter_context(haproxy(self._port, [host.port for host in self.hosts], self._log))
            for host in self.hosts:
                host.wait_until_ready(_START_S)
            wait_for_servers(self.url)
            yield self

    def go_wrong(self, moments: random.Random, postgres: PostgresServer) -> None:
        """Make one thing go wrong, and end it."""
        kinds = {"host killed": 6, "worker killed": 3, "database restarted": 1}
        kinds |= {"store failed": 1, "store slow": 1}
        # Each kind comes once before any comes again by its weight.
        weights = {kind: kinds[kind] for kind in kinds if not self.faults[kind]} or kinds
        [what] = moments.choices(list(weights), list(weights.values()))
        self.faults[what] += 1
        if what == "host killed":
            host = moments.choice(self.hosts)
            host.kill()
            let_a_moment_pass(moments, 0, 0.5)
            host.launch()
            host.wait_until_ready(_START_S)
        elif what == "worker killed":
            worker = moments.choice(self.workers)
            worker.kill()
            let_a_moment_pass(moments, 0, 0.5)
            worker.start()
        elif what == "database restarted":
            starting = [worker for worker in self.workers if not worker.is_running_jobs]
            postgres.stop()
            let_a_moment_pass(moments, 0, 1)
            postgres.start()
            self._start_again(starting)
        elif what == "store failed":
            self.store.fail_once_asked(moments)
        else:
            self.store.slow_s = 0.5
            let_a_moment_pass(moments, 1, 3)
            self.store.slow_s = 0.0

    def _start_again(self, starting: list[WorkerProcess]) -> None:
        """Start those that found no database as they started, as a supervisor of workers does."""
        wait_until(lambda: all(one.has_ended or one.is_running_jobs for one in starting))
        for worker in starting:
            if worker.has_ended:
                assert "storage_unavailable" in worker.logged, worker.logged
                worker.start()

    def stop(self) -> None:
        """End all in good order."""
        for process in (*self.hosts, *self.workers):
            process.stop()


def _clock(offset: str) -> dict[str, str]:
    if FAKETIME is None:
        return {}
    return {
        "LD_PRELOAD": str(FAKETIME),
        "FAKETIME": offset,
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


def _takes(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False
