"""``steelyard lint``: find wording that makes a request's answers worse; no model is loaded."""

from __future__ import annotations

from typing import Any

import click

from steelyard.cli.failures import FAILED
from steelyard.cli.local_state import show_json
from steelyard.cli.options import json_option
from steelyard.cli.requests import read_request, request_options
from steelyard.cli.terminal import printable

#: The fields of a finding, as a line of the table has them.
LINE = ("decision", "rule", "severity", "message")

_EPILOG = """\b
Examples:
  steelyard lint request.json
  steelyard lint request.json --strict        (status 1 when there is a warning)
  cat request.json | steelyard lint - --json
  steelyard lint --rules
"""


@click.command("lint", epilog=_EPILOG)
@request_options
@click.option("--strict", is_flag=True, help="Exit with 1 when a finding is a warning.")
@click.option("--rules", "lists_rules", is_flag=True, help="List the rules and read no request.")
@json_option
@click.pass_context
def command(ctx: click.Context, /, **flags: Any) -> None:
    """Show the wording in a request's decisions that makes their answers worse.

    The request is given as to steelyard decide: a JSON file (- reads it from the input stream), or,
    for one decision, flags. Exit status: 0, or 1 with --strict when a finding is a warning; infos
    never count.
    """
    if flags["lists_rules"]:
        from steelyard.decisions.lint.registry import RULES

        rules = [
            {"rule": rule.name, "severity": rule.severity, "summary": rule.summary}
            for rule in RULES
        ]
        if flags["as_json"]:
            show_json({"rules": rules})
            return
        width = max(len(rule["rule"]) for rule in rules)
        for rule in rules:
            click.echo(f"{rule['rule']:{width}}  {rule['severity']:7}  {rule['summary']}")
        return
    from steelyard.decisions.lint.service import lint_dict

    answer = lint_dict(read_request(ctx, flags))
    warnings: list[dict[str, str]] = answer["warnings"]
    if flags["as_json"]:
        show_json(answer)
    else:
        show_warnings(warnings)
    if flags["strict"] and any(warning["severity"] == "warning" for warning in warnings):
        ctx.exit(FAILED)


def show_warnings(warnings: list[dict[str, str]]) -> None:
    """Print a table, a row per finding; a line where there is none."""
    if not warnings:
        click.echo("Nothing found.")
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_edge=False, pad_edge=False)
    table.add_column("decision", overflow="fold")
    # A rule's name is never cut in two: it is what people search for.
    table.add_column("rule", no_wrap=True)
    table.add_column("severity", no_wrap=True)
    table.add_column("message", overflow="fold", ratio=1)
    for warning in warnings:
        table.add_row(*(Text(printable(warning[name])) for name in LINE))
    Console(highlight=False, markup=False).print(table)
