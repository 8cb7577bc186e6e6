"""``steelyard serve``: the HTTP server, in this process or in several workers."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import shlex
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from steelyard.cli.failures import FAILED
from steelyard.cli.options import ENGINE_SETTINGS, SERVER_SETTINGS, setting_options
from steelyard.processes import bound_socket, count_processors, is_running
from steelyard.settings import Settings
from steelyard.version import __version__
from steelyard.wire.hosts import is_loopback

if TYPE_CHECKING:
    from steelyard.serving.fitted import FittedEngine

_EPILOG = """\b
Examples:
  steelyard serve
  steelyard serve --port 9000
  steelyard serve --port 0 --home ./steelyard-home     (serve.json there has the address)
  steelyard serve --accounts on --host 0.0.0.0 --workers 4
"""

#: Seconds to wait for a server that may be there.
_LOOK_S = 1.0
#: Connections that wait to be accepted.
_BACKLOG = 1024

_EXAMPLE = {
    "context": "Invoice 118 was paid twice. Please send the second payment back.",
    "decisions": [
        {
            "id": "team",
            "question": "Which team should answer this?",
            "outcomes": ["billing", "shipping", "technical support"],
        }
    ],
}


@click.command("serve", epilog=_EPILOG)
@setting_options(*SERVER_SETTINGS, "workers", *ENGINE_SETTINGS)
def command(**given: str | None) -> None:
    """Answer decisions over HTTP until Ctrl-C; a second Ctrl-C does not wait.

    Without accounts anybody who reaches the server may use it, so it then listens on loopback
    addresses only.
    """
    from steelyard.cli.first_operator import first_operator
    from steelyard.settings import read_server_settings

    settings = read_server_settings(given)
    if settings.first_owner:
        first_operator(settings, None)
    serve(settings)
    click.echo("Stopped.")


@dataclass(frozen=True, slots=True)
class Running:
    """A server that answers; ``example`` is a command that asks it a decision."""

    url: str
    model: str
    engine: str
    example: str

    def tell(self) -> None:
        """Write on the output stream where it is."""
        click.echo(f"{self.model} on {self.engine}")
        click.echo(f"Listening on {self.url} (Ctrl-C stops). Try:\n")
        click.echo(f"  {self.example}\n")


def serve(
    settings: Settings,
    *,
    on_ready: Callable[[Running], None] = Running.tell,
    moves_port: bool = False,
) -> None:
    """Serve until stopped; on a free port where the default one is taken."""
    from steelyard.serving.fitted import fitted
    from steelyard.settings import home_of

    address = listen_address(settings.host, accounts=settings.accounts == "on")
    port = settings.port
    if moves_port and address_of_running(home_of(settings)) is None:
        port = free_port(address, port)
    listener = bind(address, port)
    with listener, address_file(home_of(settings)) as write_address:
        settings = fitted(settings, _measure)
        url = url_of(listener)

        def announce(model: str, engine: str) -> None:
            write_address(url)
            example = curl_command(url, with_key=settings.accounts == "on")
            on_ready(Running(url, model, engine, example))

        if settings.workers == 1:
            serve_here(settings, listener, announce, prepares_jobs=True)
        else:
            _serve_in_workers(settings, listener, announce)


def _measure() -> FittedEngine | None:
    from steelyard.serving.fitted import measure_apart

    click.echo(
        "Measuring which engine suits this processor, once: about 5 seconds. --engine skips it.",
        err=True,
    )
    return measure_apart()


def serve_here(
    settings: Settings,
    listener: socket.socket,
    announce: Callable[[str, str], None],
    *,
    prepares_jobs: bool,
) -> None:
    """Serve on a bound socket until stopped; announce the default model and its engine."""
    from steelyard.app.application import create_app
    from steelyard.app.bootstrap import open_service
    from steelyard.http.logs import configure_logging
    from steelyard.http.server import run_server

    configure_logging(settings.log_level, settings.log_format)
    with open_service(settings, prepares_jobs=prepares_jobs) as services:
        model = services.models.default
        run_server(
            create_app(services),
            listener,
            on_ready=lambda: announce(model.name, model.runs_on),
        )


def _serve_in_workers(
    settings: Settings, listener: socket.socket, announce: Callable[[str, str], None]
) -> None:
    from steelyard.cli.supervisor import Supervisor, WorkerFailedError, supervise
    from steelyard.http.logs import configure_logging

    configure_logging(settings.log_level, settings.log_format)
    listener.listen(_BACKLOG)
    shared = dataclasses.replace(
        settings, threads=settings.threads or threads_of_worker(settings.workers)
    )
    with _metrics_folder() as metrics:
        try:
            supervise(
                lambda: Supervisor(
                    listener,
                    dataclasses.asdict(shared),
                    n_workers=settings.workers,
                    shutdown_s=settings.leaving_s + settings.shutdown_s,
                    metrics=metrics,
                ),
                lambda worker: announce(worker["model"], worker["engine"]),
            )
        except WorkerFailedError as error:
            raise click.exceptions.Exit(error.status if error.status > 0 else FAILED) from None


@contextmanager
def _metrics_folder() -> Iterator[Path]:
    try:
        folder = tempfile.TemporaryDirectory(prefix="steelyard-metrics-")
    except OSError as error:  # also where no folder for temporary files can be written
        raise click.ClickException(
            f"Cannot make a temporary folder: {error.strerror}. Free space, or set TMPDIR."
        ) from None
    with folder as name:
        yield Path(name)


def threads_of_worker(n_workers: int) -> int:
    """Return each worker's engine its share of the processors, and one at least."""
    return max(1, count_processors() // n_workers)


def listen_address(host: str, *, accounts: bool) -> str:
    """Return the address to listen on; without accounts, a loopback one alone."""
    address = "127.0.0.1" if host == "localhost" else host
    if not is_loopback(address) and (not accounts or not host):
        raise click.UsageError(
            f"Without accounts anyone who could reach {host} could use the server, so it listens "
            "on loopback only. Give --host 127.0.0.1, ::1 or localhost; or --accounts on, and keys "
            "to those who may call."
        )
    return address


def bind(address: str, port: int, flag: str = "--port") -> socket.socket:
    """Return a socket bound to the address, before any slow work begins."""
    try:
        return bound_socket(address, port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise click.ClickException(
                f"Port {port} of {address} is in use; give another {flag}, or 0 for a free one."
            ) from None
        raise click.ClickException(
            f"Cannot listen on {address} port {port}: {error.strerror}."
        ) from None


def free_port(address: str, port: int) -> int:
    """Return a port, or 0, which takes a free one, where it is in use; say so then."""
    try:
        bind(address, port).close()
    except click.ClickException:
        click.echo(f"Port {port} of {address} is in use; a free one is used instead.", err=True)
        return 0
    return port


def url_of(listener: socket.socket) -> str:
    """Return the address of a bound socket, as a URL."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def curl_command(url: str, *, with_key: bool = False) -> str:
    """Return a command that asks the server one decision."""
    words = ["curl", "-s", f"{url}/v1/decide", "-H", "Content-Type: application/json"]
    if with_key:
        words += ["-H", "Authorization: Bearer YOUR_API_KEY"]
    return shlex.join([*words, "-d", json.dumps(_EXAMPLE)])


@contextmanager
def address_file(home: Path) -> Iterator[Callable[[str], None]]:
    """Keep ``serve.json`` in a home directory while the server runs; one of a server that runs stays."""
    from steelyard.storage.home import check_room, make_home, write_private

    path = home / "serve.json"
    written: bytes | None = None
    try:
        check_room(make_home(home))
    except OSError as error:
        raise click.ClickException(
            f"Cannot use {home}: {error.strerror}. Free space there, or give another --home that can "
            "be written."
        ) from None

    def write(url: str) -> None:
        nonlocal written
        first = address_of_running(home)
        if first is not None:
            click.echo(f"{path} stays that of the server on {first}, which runs too.", err=True)
            return
        note = json.dumps({"url": url, "pid": os.getpid(), "version": __version__}).encode()
        write_private(path, note)
        written = note

    try:
        yield write
    finally:
        # A server may have found this one's process gone, as one on another machine does.
        with suppress(OSError):
            if written is not None and path.read_bytes() == written:
                path.unlink(missing_ok=True)


def address_of_running(home: Path) -> str | None:
    """Return where another server of a home runs, as ``serve.json`` says; ``None`` without one."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        known = json.loads((home / "serve.json").read_bytes())
        url, pid = urlsplit(known["url"]), int(known["pid"])
        if pid == os.getpid() or not is_running(pid):
            return None
        # Another program may have its number since.
        socket.create_connection((url.hostname or "", url.port or 80), _LOOK_S).close()
        return str(known["url"])
    return None
