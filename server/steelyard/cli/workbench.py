"""``steelyard workbench``: the browser workbench of a server, in a process of its own."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from importlib.util import find_spec
from pathlib import Path

import click

from steelyard.cli.failures import FAILED
from steelyard.cli.options import PORT_NUMBER, setting_option
from steelyard.cli.serve import bind
from steelyard.settings import child_environment
from steelyard.wire.hosts import is_loopback

_EPILOG = """\b
Examples:
  steelyard workbench
  steelyard workbench --server http://127.0.0.1:9000 --port 9001
"""

PORT = 8421
_MODULE = "steelyard_workbench"
_LACKING = "The workbench is not installed: pip install 'steelyard[workbench]', and start it again."
#: Seconds to start, and to stop before it is killed.
_START_S, _STOP_S = 60.0, 10.0


@click.command("workbench", epilog=_EPILOG)
@setting_option("url")
@setting_option("hosts")
@click.option("--server", metavar="URL", help="Address of the server; the same as --url.")
@click.option(
    "--port",
    type=PORT_NUMBER,
    default=PORT,
    help="Port the workbench listens on; 0 takes a free one.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    metavar="ADDRESS",
    help="Loopback address the workbench listens on: it has no accounts of its own.",
)
@click.option("--open/--no-open", "opens", default=False, help="Open it in a browser.")
def command(
    url: str | None, hosts: str | None, server: str | None, port: int, host: str, *, opens: bool
) -> None:
    """Show a server's workbench in the browser until Ctrl-C.

    It asks the server with the key in STEELYARD_API_KEY, where accounts are on.
    """
    from steelyard.cli.connecting import client_options, client_settings
    from steelyard.settings import home_of

    settings = client_settings(url=server or url, hosts=hosts)
    client_options(settings)
    with (
        serving_workbench(
            settings.url,
            port=port,
            host=host,
            hosts=settings.hosts,
            api_key=settings.api_key,
            home=home_of(settings),
        ) as (address, process),
        suppress(KeyboardInterrupt),
    ):
        # Before the address is said: a program that reads it may stop it at once.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        click.echo(f"Workbench on {address} (Ctrl-C stops), of {settings.url}")
        if opens:
            webbrowser.open(address)
        if process.wait() != 0:
            raise click.exceptions.Exit(FAILED)
    click.echo("Stopped.")


def is_installed() -> bool:
    """Whether the workbench and its plotting packages are installed; nothing is imported."""
    return all(find_spec(name) is not None for name in (_MODULE, "panel", "panel_material_ui"))


@contextmanager
def serving_workbench(
    server: str,
    *,
    port: int,
    host: str = "127.0.0.1",
    hosts: str = "",
    api_key: str | None = None,
    home: Path | None = None,
    flag: str = "--port",
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Run the workbench beside this process, which it does not outlive.

    A server on the home lets its identity provider lead back to it.
    """
    if not is_installed():
        raise click.ClickException(_LACKING)
    if not is_loopback(host):
        raise click.UsageError(
            f"The workbench has no accounts of its own, so it listens on loopback only, not on "
            f"{host}. Give --host 127.0.0.1, and reach it through a tunnel."
        )
    bind(host, port, flag).close()  # so that one line says so where it is taken
    options = {"server": server, "port": port, "host": host, "hosts": hosts, "api_key": api_key}
    process = subprocess.Popen(  # noqa: S603  # our own module
        [sys.executable, "-m", _MODULE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
        env=child_environment(**_home_directory()),
    )
    try:
        assert process.stdin is not None  # noqa: S101  # it was asked for
        process.stdin.write(json.dumps(options).encode() + b"\n")
        process.stdin.flush()
        address = _wait_for_address(process, port)
        with nullcontext() if home is None else workbench_note(home, address):
            yield address, process
    finally:
        with suppress(OSError):
            if process.stdin is not None:
                process.stdin.close()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _home_directory() -> dict[str, str]:
    """Return the home directory, or a stand-in where the user has none: Bokeh looks into it."""
    try:
        Path.home()
    except RuntimeError:
        return {"HOME": os.sep}
    return {}


@contextmanager
def workbench_note(home: Path, url: str) -> Iterator[None]:
    """Keep a note of a workbench in the home of the server beside it, which its user alone writes."""
    from steelyard.people.own_pages import NOTES
    from steelyard.storage.home import make_home, write_private

    path = home / NOTES.replace("*", url.rpartition(":")[2])
    try:
        make_home(home)
        write_private(path, json.dumps({"url": url, "pid": os.getpid()}).encode())
    except OSError:  # the server is elsewhere, or has no way back to loopback
        yield
        return
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink()


def _wait_for_address(process: subprocess.Popen[bytes], port: int) -> str:
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def read() -> None:
        if process.stdout is not None:
            lines.put(process.stdout.readline())

    threading.Thread(target=read, name="steelyard-workbench", daemon=True).start()
    try:
        line = lines.get(timeout=_START_S)
    except queue.Empty:
        line = b""
    if not line:
        raise click.ClickException(
            f"The workbench did not start on port {port}; what it wrote above says why."
        )
    return line.decode().strip()
