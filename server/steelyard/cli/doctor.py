"""``steelyard doctor``: check the installation, and say how to mend it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from steelyard.cli.failures import FAILED
from steelyard.cli.local_state import show_json
from steelyard.cli.options import json_option, setting_option
from steelyard.cli.terminal import printable

if TYPE_CHECKING:
    from steelyard.cli.findings import CheckFinding

_EPILOG = """\b
Examples:
  steelyard doctor
  steelyard doctor --home ./steelyard-home --json
  steelyard doctor --home ./steelyard-home --deep
  steelyard doctor --url http://127.0.0.1:9000
"""

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}
_GRAVITY = ("ok", "warn", "fail")


@click.command("doctor", epilog=_EPILOG)
@click.option("--url", metavar="URL", help="A running server to ask. [default: the one found here]")
@setting_option("home")
@setting_option("state_url")
@click.option("--deep", is_flag=True, help="Read every stored file, and check its hash.")
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    *,
    url: str | None,
    home: str | None,
    state_url: str | None,
    deep: bool,
    as_json: bool,
) -> None:
    """Check this installation: packages, model, engine, state, stored files, disk and server.

    Nothing is changed. Each line is ok, warn (it works, and could be better) or fail, with the remedy.
    Exit status: 1 when something failed, else 0.
    """
    from steelyard.cli.checkup import examine

    findings = []
    for finding in examine(url, {"home": home, "state_url": state_url}, deep=deep):
        findings.append(finding)
        if not as_json:
            show_finding(finding)
    worst = max((finding.status for finding in findings), key=_GRAVITY.index)
    if as_json:
        show_json({"status": worst, "checks": findings})
    if worst == "fail":
        ctx.exit(FAILED)


def show_finding(finding: CheckFinding) -> None:
    """Write a line for a finding, and one for its remedy."""
    status = click.style(f"{finding.status:4}", fg=_COLOURS[finding.status])
    click.echo(f"{status}  {finding.check:14}  {printable(finding.message)}")
    if finding.advice is not None:
        click.echo(f"{'':22}{printable(finding.advice)}")
