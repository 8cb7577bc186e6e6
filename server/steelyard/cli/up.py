"""``steelyard up``: the server with its jobs, the workbench and, at first, the sample datasets."""

from __future__ import annotations

import sys
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from steelyard.cli.options import ENGINE_SETTINGS, PORT_NUMBER, SERVER_SETTINGS, setting_options
from steelyard.cli.serve import free_port
from steelyard.cli.workbench import PORT, is_installed, serving_workbench
from steelyard.settings import Settings, home_of
from steelyard.version import __version__

if TYPE_CHECKING:
    from steelyard.cli.serve import Running

_EPILOG = """\b
Examples:
  steelyard up
  steelyard up --home ./steelyard-home --port 9000
  steelyard up --accounts on --operator sam@example.org
"""


@click.command("up", epilog=_EPILOG)
@setting_options(*SERVER_SETTINGS, *ENGINE_SETTINGS)
@click.option(
    "--workbench-port",
    type=PORT_NUMBER,
    help=f"Port of the workbench, {PORT} or a free one where nothing is said; 0 takes a free one.",
)
@click.option("--no-workbench", is_flag=True, help="Do not start the workbench.")
@click.option(
    "--operator",
    metavar="ADDRESS",
    help="Where accounts are on: e-mail address of an operator, who is an owner of the account "
    "local. STEELYARD_FIRST_OWNER names the first; without it a first run on a terminal asks.",
)
@click.option("--no-samples", is_flag=True, help="Do not load the sample datasets.")
def command(
    *,
    no_samples: bool,
    no_workbench: bool,
    operator: str | None,
    workbench_port: int | None,
    **given: str | None,
) -> None:
    """Start everything on this machine until Ctrl-C; a second Ctrl-C does not wait.

    The server, its jobs, and the workbench where it is installed.
    The first run in a home loads two sample datasets: support tickets, and reply actions with
    rewards. Samples deleted since are not loaded again.
    """
    from steelyard.cli.first_operator import first_operator
    from steelyard.cli.serve import serve
    from steelyard.settings import read_server_settings, read_settings

    settings = read_server_settings({**given, "jobs": "on"})
    signs_in = first_operator(settings, operator)

    is_terminal = sys.stdout.isatty()
    with ExitStack() as beside:

        def start_workbench(running: Running) -> None:
            address = None
            if not no_workbench:
                address = _start_workbench(beside, running.url, workbench_port, settings)
            if is_terminal:
                panel = _panel(running, address, settings, signs_in)
                click.echo(panel)
            elif address is not None:
                click.echo(f"Workbench on {address}")

        def start(running: Running) -> None:
            if not is_terminal:
                running.tell()
                if signs_in is not None:
                    click.echo(f"Sign in as {signs_in}")
            elif not no_workbench:
                click.echo(f"The server answers on {running.url}. The workbench starts…")
            if not no_samples:
                _load_samples(running.url, settings)
            # It takes seconds to start, and the server answers on this thread's loop.
            starting = threading.Thread(
                target=start_workbench, args=(running,), name="steelyard-workbench"
            )
            beside.callback(starting.join)
            starting.start()

        # This default is read where neither an option nor the environment names a home.
        moves_port = read_settings(given, defaults={"port": 1}).port == 1
        serve(settings, on_ready=start, moves_port=moves_port)
    click.echo("Stopped.")


def _load_samples(url: str, settings: Settings) -> None:
    from steelyard.cli.samples import load_samples

    if settings.accounts == "on":
        click.echo("Accounts are on: load data with a key, `steelyard dataset create FILE`.")
        return
    # The server answers on this thread's loop: loading waits for its answers on another.
    threading.Thread(
        target=load_samples, args=(url, home_of(settings)), name="steelyard-samples", daemon=True
    ).start()


def _panel(
    running: Running, workbench: str | None, settings: Settings, signs_in: str | None
) -> str:
    """Return the addresses and hints to print after the start."""
    entries = {
        "API": running.url,
        **({} if workbench is None else {"Workbench": workbench}),
        "Model": f"{running.model} on {running.engine}",
        "Yes/no": _yes_no(settings),
        "Data": str(home_of(settings)),
        **({} if signs_in is None else {"Sign in": signs_in}),
        "Stop": "Ctrl-C; a second one does not wait",
    }
    lines = [
        f"  {click.style(f'{name:<9}', bold=True)}  {value}" for name, value in entries.items()
    ]
    title = click.style(f"Steelyard {__version__}", bold=True)
    return "\n".join(["", f"  {title}", "", *lines, "", "  Try:", f"  {running.example}", ""])


def _yes_no(settings: Settings) -> str:
    """Return which reader answers a plain yes/no, or the command that gets one."""
    from steelyard.scoring.shipped import default_name
    from steelyard.serving.auto import completed
    from steelyard.serving.connected.declarations import declared_in
    from steelyard.serving.reader.catalogue import READER, read_readers

    models = completed(declared_in(settings), default_name(settings)).models
    reader = next((name for name, model in models.items() if model.wire == "entailment"), None)
    if reader is not None:
        return f"{reader}, along the route auto"
    megabytes = read_readers()[READER].bytes / 1e6
    return f"steelyard model pull {READER} gets a model that reads them ({megabytes:.0f} MB)"


def _start_workbench(
    beside: ExitStack, url: str, port: int | None, settings: Settings
) -> str | None:
    """Start the workbench beside the server and return where; without it the server goes on."""
    if not is_installed():
        click.echo("The workbench is not installed: pip install 'steelyard[workbench]'.")
        return None
    try:
        address, _ = beside.enter_context(
            serving_workbench(
                url,
                port=free_port("127.0.0.1", PORT) if port is None else port,
                hosts=settings.hosts,
                api_key=settings.api_key,
                flag="--workbench-port",
                home=home_of(settings),
            )
        )
    except click.ClickException as error:
        click.echo(f"The workbench did not start: {error.message}", err=True)
        return None
    return address
