"""``steelyard up``: the server with its jobs and, on the first run, the sample datasets."""

from __future__ import annotations

import threading

import click

from steelyard.cli.options import setting_option

_EPILOG = """\b
Examples:
  steelyard up
  steelyard up --home ./steelyard-home --port 9000
"""


@click.command("up", epilog=_EPILOG)
@setting_option("host")
@setting_option("port")
@setting_option("home")
@setting_option("state_url")
@setting_option("accounts")
@setting_option("engine")
@setting_option("threads")
@click.option("--no-samples", is_flag=True, help="Do not load the sample datasets.")
def command(*, no_samples: bool, **given: str | None) -> None:
    """Start everything on this machine until Ctrl-C; a second Ctrl-C does not wait.

    The first run in a home loads two sample datasets: support tickets, and reply actions with
    rewards. What was deleted since is not loaded again.
    """
    from steelyard.cli.samples import load_samples
    from steelyard.cli.serve import serve
    from steelyard.settings import home_of, read_settings

    settings = read_settings({**given, "jobs": "on"})
    home = home_of(settings)

    def load(url: str) -> None:
        if settings.accounts == "on":
            click.echo("Accounts are on: load data with a key, `steelyard dataset create FILE`.")
            return
        # The server answers on this thread's loop: loading waits for its answers on another.
        threading.Thread(
            target=load_samples, args=(url, home), name="steelyard-samples", daemon=True
        ).start()

    serve(settings, on_ready=None if no_samples else load)
