"""A throw-away PostgreSQL server for tests, on a Unix socket in a temporary folder.

It syncs nothing to disk unless it is asked to: a test that needs the machine to survive is no test of
this, and a benchmark is.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from sqlalchemy import create_engine, make_url

from steelyard.storage.migrate import bring_to_head
from support.waiting import started

_START_S = 60
_USER = "steelyard"


class PostgresMissingError(Exception):
    """No PostgreSQL server is installed; the message names the searched places."""


class PostgresServer:
    """A running server; it makes databases, and can be stopped and started."""

    def __init__(self, programs: Path, folder: Path, *, syncs: bool = False) -> None:
        self._syncs = "on" if syncs else "off"
        self._programs = programs
        self._folder = folder
        self._numbers = count()
        self._process: subprocess.Popen[bytes] | None = None
        self._state: str | None = None

    def new_database(self, template: str = "template1") -> str:
        """Make a database, empty or as another is, and give its URL."""
        import psycopg

        name = f"test_{next(self._numbers)}"
        with psycopg.connect(self._conninfo("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return f"postgresql+psycopg://{_USER}@/{name}?host={self._folder}"

    def new_state(self) -> str:
        """Make a database with the tables of a new state and give its URL."""
        if self._state is None:
            url = make_url(self.new_database())
            engine = create_engine(url)
            bring_to_head(engine)
            engine.dispose()
            self._state = url.database
        return self.new_database(self._state)

    def start(self) -> None:
        """Start, and wait until it takes connections."""
        command = [self._programs / "postgres", "-D", self._folder / "data", "-k", self._folder]
        options = {"listen_addresses": "", "fsync": self._syncs, "max_connections": "200"}
        arguments = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        log = (self._folder / "log").open("ab")
        with log:
            self._process = subprocess.Popen(
                [*command, *arguments], stdout=log, stderr=log, cwd=self._folder, **_owner()
            )
        self._wait()

    def stop(self) -> None:
        """Stop at once: connections are cut, and nothing is tidied up."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(timeout=_START_S)
            self._process = None

    def _wait(self) -> None:
        import psycopg

        assert self._process is not None
        started(
            self._process,
            lambda: psycopg.connect(self._conninfo("postgres")),
            _START_S,
            last=(self._folder / "log").read_text,
            not_yet=(psycopg.OperationalError,),
        ).close()

    def _conninfo(self, database: str) -> str:
        return f"host={self._folder} user={_USER} dbname={database}"


@contextmanager
def postgres_server(*, syncs: bool = False) -> Iterator[PostgresServer]:
    """Run a server; one that syncs makes every commit durable.

    Raises
    ------
    PostgresMissingError
        When none is installed.
    """
    programs = _find_programs()
    folder = Path(tempfile.mkdtemp(prefix="steelyard-pg-"))
    try:
        if os.geteuid() == 0:
            # PostgreSQL refuses to run as root.
            shutil.chown(folder, "nobody")
        subprocess.run(
            [programs / "initdb", "-D", folder / "data", "-U", _USER, "-A", "trust", "--no-sync"],
            check=True,
            capture_output=True,
            cwd=folder,
            **_owner(),
        )
        server = PostgresServer(programs, folder, syncs=syncs)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _owner() -> dict[str, str]:
    return {"user": "nobody"} if os.geteuid() == 0 else {}


def _find_programs() -> Path:
    found = shutil.which("postgres")
    candidates = [Path(found).resolve().parent] if found else []
    config = shutil.which("pg_config")
    if config:
        done = subprocess.run([config, "--bindir"], capture_output=True, text=True, check=False)
        candidates.append(Path(done.stdout.strip()))
    for folder in candidates:
        if (folder / "postgres").exists() and (folder / "initdb").exists():
            return folder
    raise PostgresMissingError(
        "no PostgreSQL server: neither postgres on the PATH nor in the folder of pg_config"
    )
