"""``steelyard serve``: the HTTP server, in one process on a loopback address."""

from __future__ import annotations

import errno
import ipaddress
import json
import logging
import os
import shlex
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from steelyard.cli.options import setting_option
from steelyard.version import __version__

_EPILOG = """\b
Examples:
  steelyard serve
  steelyard serve --port 9000
  steelyard serve --port 0 --home ./steelyard-home     (serve.json there has the address)
"""

_EXAMPLE = {
    "context": "Invoice 118 was paid twice. Please send the second payment back.",
    "decisions": [
        {"id": "refund", "kind": "binary", "question": "Does the writer ask for money back?"}
    ],
}


@click.command("serve", epilog=_EPILOG)
@setting_option("host")
@setting_option("port")
@setting_option("home")
@setting_option("engine")
@setting_option("threads")
def command(
    host: str | None, port: str | None, home: str | None, engine: str | None, threads: str | None
) -> None:
    """Answer decisions over HTTP until Ctrl-C.

    The server has no accounts yet, so whoever reaches it may use it: it listens on loopback
    addresses only.
    """
    from steelyard.api.app import create_app
    from steelyard.api.server import run_server
    from steelyard.bootstrap import api_services, open_deployment
    from steelyard.settings import read_settings

    given = {"host": host, "port": port, "home": home, "engine": engine, "threads": threads}
    settings = read_settings(given)
    address = loopback_address(settings.host)
    listener = bind(address, settings.port)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    with listener, address_file(settings.home) as write_address, open_deployment(settings) as ours:
        url = url_of(listener)

        def announce() -> None:
            write_address(url)
            click.echo(f"{ours.model_name} on {ours.engine}")
            click.echo(f"Listening on {url} (Ctrl-C stops). Try:\n")
            click.echo(f"  {curl_command(url)}\n")

        run_server(create_app(api_services(ours)), listener, on_ready=announce)
    click.echo("Stopped.")


def loopback_address(host: str) -> str:
    """Give the loopback address that a host names.

    Raises
    ------
    click.UsageError
        When it is not a loopback address.
    """
    address = "127.0.0.1" if host == "localhost" else host
    try:
        is_loopback = ipaddress.ip_address(address).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback:
        raise click.UsageError(
            f"Steelyard has no accounts yet, so anyone who could reach {host} could use it: it "
            "listens on loopback only. Give --host 127.0.0.1, ::1 or localhost."
        )
    return address


def bind(address: str, port: int) -> socket.socket:
    """Give a socket bound to the address, before any slow work begins."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address, port))
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise click.ClickException(
                f"Port {port} of {address} is in use; give another --port, or 0 for a free one."
            ) from None
        raise click.ClickException(
            f"Cannot listen on {address} port {port}: {error.strerror}."
        ) from None
    return listener


def url_of(listener: socket.socket) -> str:
    """Give the address of a bound socket, as a URL."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def curl_command(url: str) -> str:
    """Give a command that asks the server one decision."""
    words = ["curl", "-s", f"{url}/v1/decide", "-H", "Content-Type: application/json"]
    return shlex.join([*words, "-d", json.dumps(_EXAMPLE)])


@contextmanager
def address_file(home: Path | None) -> Iterator[Callable[[str], None]]:
    """Keep ``serve.json`` in a home directory while the server runs.

    Parameters
    ----------
    home : pathlib.Path or None
        Made when missing; with ``None`` nothing is written.

    Yields
    ------
    callable
        Takes the address and writes the file.
    """
    if home is None:
        yield lambda _: None
        return
    path = home / "serve.json"
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.ClickException(f"Cannot use {home}: {error.strerror}.") from None

    def write(url: str) -> None:
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps({"url": url, "pid": os.getpid(), "version": __version__}))
        partial.replace(path)

    try:
        yield write
    finally:
        path.unlink(missing_ok=True)
