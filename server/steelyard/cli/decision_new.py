"""``steelyard decision new``: a file of a named decision, of a question or of a template."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from steelyard.cli.local_state import show_rows, show_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.named.templates import Template

#: Where files are looked for when none is named.
FOLDER = "decisions"
folder_option = click.option(
    "--folder",
    default=FOLDER,
    type=click.Path(path_type=Path),
    help="Where the files of decisions are.",
)

_EPILOG = """\b
Examples:
  steelyard decision new --from moderation
  steelyard decision new support_triage --question "Which team should own this?" \\
      --outcome "billing=charges, refunds" --outcome "shipping=where a parcel is"
"""


@click.command("new", epilog=_EPILOG)
@click.argument("name", required=False)
@click.option(
    "--from",
    "template",
    is_flag=False,
    flag_value="",
    help="Start from this template, with its rows as examples; without a name, list them all.",
)
@click.option("--question", help="What is asked about a context.")
@click.option(
    "--kind",
    type=click.Choice(("single", "binary")),
    help="One of several outcomes, or yes or no. [default: single]",
)
@click.option(
    "--outcome", "outcomes", multiple=True, help="NAME or NAME=DESCRIPTION; repeated for more."
)
@click.option(
    "--model", help="The model that is asked. [default: auto for yes or no, else the server's]"
)
@folder_option
def command(
    *,
    name: str | None,
    template: str | None,
    question: str | None,
    kind: str | None,
    outcomes: tuple[str, ...],
    model: str | None,
    folder: Path,
) -> None:
    """Write FOLDER/NAME.toml with one decision, or one like a template; push it when it is right.

    A template's name is NAME where none is given.
    """
    from steelyard.named.files import read_file, to_toml
    from steelyard.named.templates import NEEDS_MORE, find_template, list_templates

    if template == "":
        _show_templates(list_templates())
        return
    if template is not None:
        if question or kind or outcomes:
            raise click.UsageError("A template has its question; change it in the file.")
        chosen = find_template(template)
        name = name or chosen.name
        _write_new(folder, name, chosen.to_toml(name, model))
        if chosen.needs_more and model is None:
            click.echo(f"{NEEDS_MORE} Name its model with --model, or in the file.", err=True)
        return
    if name is None or question is None:
        raise click.UsageError("Give NAME and --question, or --from TEMPLATE.")
    decision: dict[str, Any] = {"id": name[:128], "question": question}
    if kind is not None:
        decision["kind"] = kind
    if outcomes:
        pairs = (outcome.partition("=") for outcome in outcomes)
        decision["outcomes"] = {key.strip(): text.strip() for key, _, text in pairs}
    fields: dict[str, Any] = {"name": name, "decisions": [decision]}
    if kind == "binary":
        model = model or "auto"
    if model is not None:
        fields["model"] = model
    text = to_toml(fields)
    read_file(text)
    _write_new(folder, name, text)


def _write_new(folder: Path, name: str, text: str) -> None:
    path = folder / f"{name}.toml"
    if path.exists():
        raise click.ClickException(f"{path} exists already; change it, or take another name.")
    click.echo(write_text(path, text))


def write_text(path: Path, text: str) -> str:
    """Write a file and its folder; return a line that says so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return f"Wrote {path}."


def _show_templates(templates: Sequence[Template]) -> None:
    """Print each template's use, and how well models answer its rows."""
    show_rows(
        templates,
        "TEMPLATE:name, ROWS:examples, NEEDS:needs_more, FOR:description",
        examples=lambda each: len(each.examples),
        needs_more=lambda each: "another model" if each.needs_more else None,
    )
    lines = [
        [
            template.name,
            figures.decision,
            figures.model,
            f"{figures.right:.0%} [{figures.right_low:.0%}, {figures.right_high:.0%}]",
            f"{figures.wrong:.0%}",
            f"{figures.abstained:.0%}",
        ]
        for template in templates
        for figures in template.measured
    ]
    show_table(("TEMPLATE", "DECISION", "MODEL", "RIGHT [95 %]", "WRONG", "ABSTAINED"), lines)
