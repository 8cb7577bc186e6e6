"""``steelyard restore``: a copy of a home, checked and put in its place."""

from __future__ import annotations

from pathlib import Path

import click

from steelyard.cli.failures import FAILED
from steelyard.cli.options import setting_option

_EPILOG = """\b
Examples:
  steelyard restore /backups/steelyard --home /srv/steelyard
  steelyard restore /backups/steelyard/20261123T070000Z --home ./restored
"""


@click.command("restore", epilog=_EPILOG)
@click.argument("folder", metavar="DIR", type=click.Path(exists=True, path_type=Path))
@setting_option("home")
@click.option(
    "--force", is_flag=True, help="Restore over a home with data, which is renamed and kept."
)
@click.pass_context
def command(ctx: click.Context, /, *, folder: Path, home: str | None, force: bool) -> None:
    """Put a copy in the place of a home: DIR is one, or a folder of several, whose newest is used.

    No server may run on the home. The whole copy is checked before anything is written, and the
    restored home is checked again at the end, as `steelyard doctor --deep` does.
    """
    from steelyard.app.backup import find_backup, restore_backup
    from steelyard.backups.copies import BackupError
    from steelyard.cli.doctor import show_finding
    from steelyard.cli.state_checkup import check_state
    from steelyard.settings import home_of, read_settings

    settings = read_settings({"home": home})
    try:
        copy = find_backup(folder)
        aside = restore_backup(settings, copy, force=force)
    except BackupError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"Restored {copy} to {home_of(settings).absolute()}")
    if aside is not None:
        click.echo(f"What was there is in {aside}")
    findings = list(check_state(settings, deep=True))
    for finding in findings:
        show_finding(finding)
    if any(finding.status == "fail" for finding in findings):
        ctx.exit(FAILED)
