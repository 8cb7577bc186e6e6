"""``steelyard model``: describe the shipped model, and manage models of other servers."""

from __future__ import annotations

import click

from steelyard.cli import connected_models, judges, model_stress
from steelyard.cli.local_state import show_answer
from steelyard.cli.options import json_option, setting_option

_EPILOG = """\b
Examples:
  steelyard model show
  steelyard model show --json
  steelyard model add qwen --wire chat --url http://127.0.0.1:11434/v1 --model qwen2.5:7b
  steelyard model list
  steelyard model stress steelyard-base-2 ds_01k…
"""


@click.group("model", epilog=_EPILOG)
def command() -> None:
    """Show the model that ships, connect models of other servers, and test models."""


for _command in (*connected_models.COMMANDS, *judges.COMMANDS, model_stress.command):
    command.add_command(_command)


@command.command("show", epilog=_EPILOG)
@json_option
@setting_option("engine")
def show(*, as_json: bool, engine: str | None) -> None:
    """Show the model's name, engine, card and the hashes of its files."""
    from steelyard.app.deployment import open_deployment
    from steelyard.settings import read_settings

    with open_deployment(read_settings({"engine": engine})) as deployment:
        model = deployment.model
        shown = {
            "name": deployment.model_name,
            "engine": deployment.engine,
            "card": None if model.card is None else str(model.card),
            "tokenizer": {
                "name": model.tokenizer.name,
                "revision": model.tokenizer.revision,
                "sha256": model.tokenizer.sha256,
            },
            "manifest": dict(model.manifest),
        }
    show_answer(shown, _print, as_json=as_json)


def _print(value: object, indent: int = 0) -> None:
    pad = "  " * indent
    if isinstance(value, dict):
        for name, member in value.items():
            if isinstance(member, dict | list) and member:
                click.echo(f"{pad}{name}:")
                _print(member, indent + 1)
            else:
                click.echo(f"{pad}{name}: {'-' if member is None else member}")
    elif isinstance(value, list):
        for member in value:
            _print(member, indent)
    else:
        click.echo(f"{pad}{value}")
