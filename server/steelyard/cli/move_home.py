"""``steelyard move-home``: a home's state and files in another database and another store."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from steelyard.cli.options import setting_option

_EPILOG = """\b
Examples:
  steelyard move-home --to postgresql://steelyard@database/steelyard \\
      --object-store 's3://BUCKET/frames?region=eu-west-1'
  STEELYARD_STATE_URL=postgresql://… STEELYARD_FRAMES_URL=s3://… \\
      steelyard move-home --to ./home
"""


@click.command("move-home", epilog=_EPILOG)
@setting_option("home")
@setting_option("state_url")
@click.option(
    "--to",
    "place",
    required=True,
    metavar="URL|DIR",
    help="An empty PostgreSQL database; or the folder of a new home, for the way back.",
)
@click.option(
    "--object-store",
    metavar="URL",
    help="An empty place of an object store for the files, with a database; they stay without it.",
)
def command(*, place: str, object_store: str | None, **options: str | None) -> None:
    """Copy a home, whose servers are stopped, to a database and an object store; or back.

    Every copied row and file is compared with its original. A move that is cut short can be started
    again and copies only the rest. The home stays as it is: start no server on it any more.
    """
    from steelyard.app.moving import move_home
    from steelyard.backups.copies import BackupError
    from steelyard.settings import frames_url_of, read_settings

    settings = read_settings(options)
    if "://" in place:
        target = dataclasses.replace(
            settings, state_url=place, frames_url=object_store or frames_url_of(settings)
        )
    elif object_store is not None:
        raise click.UsageError("A folder has its own files; leave --object-store out.")
    else:
        target = dataclasses.replace(settings, home=Path(place), state_url=None, frames_url=None)
    try:
        moved = move_home(settings, target)
    except BackupError as error:
        raise click.ClickException(str(error)) from error
    click.echo(
        f"Moved and compared: {moved.n_rows:,} rows; {moved.n_files:,} files, "
        f"{moved.n_bytes / 1e6:,.1f} MB, of which {moved.n_there:,} were there."
    )
    click.echo(
        "Start the servers with STEELYARD_STATE_URL and STEELYARD_FRAMES_URL as given, and "
        "none on the old place."
    )
