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
@click.argument(
    "folder", metavar="[DIR]", required=False, type=click.Path(file_okay=False, path_type=Path)
)
@setting_option("home")
def command(*, folder: Path | None, home: str | None) -> None:
    """Copy a home into a new folder of DIR, named by the time in UTC; its server may run.

    Without DIR it goes where the workbench puts one: the setting `backups`, else beside the home.

    Everything that was acknowledged before is in it. Every file is compared with its hash, and files
    that the copy before has are not stored twice. `steelyard restore` checks a copy and uses it.
    """
    from steelyard.app.backup import make_backup
    from steelyard.backups.copies import BackupError, folder_of
    from steelyard.settings import read_settings

    settings = read_settings({"home": home})
    try:
        copy, manifest = make_backup(settings, folder or folder_of(settings))
    except BackupError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"{copy}: {len(manifest.files)} files, {manifest.n_bytes / 1024**2:.1f} MiB")
