"""``steelyard backup``: a copy of a home, whose server may run."""

from __future__ import annotations

from pathlib import Path

import click

from steelyard.cli.options import setting_option

_EPILOG = """\b
Examples:
  steelyard backup /backups/steelyard
  steelyard backup /backups/steelyard --home /srv/steelyard
"""


@click.command("backup", epilog=_EPILOG)
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@setting_option("home")
def command(*, folder: Path, home: str | None) -> None:
    """Copy a home into a new folder of DIR, named by the time in UTC; its server may run.

    Everything that was acknowledged before is in it. Every file is compared with its hash, and files
    that the copy before has are not stored twice. `steelyard restore` checks a copy and uses it.
    """
    from steelyard.app.backup import BackupError, make_backup
    from steelyard.settings import read_settings

    try:
        copy, manifest = make_backup(read_settings({"home": home}), folder)
    except BackupError as error:
        raise click.ClickException(str(error)) from error
    n_bytes = sum(entry.bytes for entry in manifest.files.values())
    click.echo(f"{copy}: {len(manifest.files)} files, {n_bytes / 1024**2:.1f} MiB")
