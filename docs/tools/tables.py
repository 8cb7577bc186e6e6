"""Tables of the documents, made from the code that they describe."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import click

from steelyard.app.rooms import ROOMS
from steelyard.cli.main import main
from steelyard.client import Client, ClientOptions
from steelyard.decisions.lint.registry import RULES
from steelyard.errors import SteelyardError, error_classes
from steelyard.settings import SETTINGS


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell(text) for text in row) + " |" for row in lines)


def cell(text: str) -> str:
    """Return a text as one cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def settings_table() -> str:
    """Return every setting with its variable, default and meaning."""
    return table(
        ("variable", "default", "what it does"),
        (
            (
                f"`{setting.variable}`",
                "unset" if setting.default in {None, ""} else f"`{setting.default}`",
                setting.help,
            )
            for setting in SETTINGS
        ),
    )


def errors_table() -> str:
    """Return every error by status."""
    rooms = {error: room.name for room in ROOMS for error in room.errors}
    classes = sorted(error_classes().items(), key=lambda entry: entry[1].status)
    return table(
        ("status", "code", "retry", "what it means", "room", "class of `steelyard.errors`"),
        (
            (
                str(cls.status),
                f"`{code}`",
                "yes" if cls.retryable else "",
                _first_line(cls),
                rooms.get(cls, ""),
                ", ".join([f"`{cls.__name__}`", *_with_another_status(cls)]),
            )
            for code, cls in classes
        ),
    )


def _with_another_status(cls: type[SteelyardError]) -> list[str]:
    """Return the narrower classes of a code that have a status of their own, with it."""
    return [
        f"`{below.__name__}` with {below.status}"
        for below in cls.__subclasses__()
        if below.code == cls.code and below.status != cls.status
    ]


def lint_table() -> str:
    """Return every rule of the linter."""
    return table(
        ("rule", "severity", "kinds", "what it finds"),
        (
            (
                f"`{rule.name}`",
                rule.severity,
                ", ".join(rule.kinds) if len(rule.kinds) < 3 else "all",
                rule.summary,
            )
            for rule in RULES
        ),
    )


def commands(
    command: click.Command = main, name: str = "steelyard"
) -> Iterator[tuple[str, click.Command]]:
    """Yield every command that does something, with its whole name, groups left out."""
    context = click.Context(command, info_name=name)
    if not isinstance(command, click.Group):
        yield name, command
        return
    for part in command.list_commands(context):
        inner = command.get_command(context, part)
        if inner is not None:
            yield from commands(inner, f"{name} {part}")


def commands_list() -> str:
    """Return every command with its usage, what it does, and its options."""
    parts = []
    group = ""
    for name, command in commands():
        first = " ".join(name.split()[:2])
        if first != group:
            group = first
            parts.append(f"## {group}")
        if name != group:
            parts.append(f"### {name}")
        context = click.Context(command, info_name=name, **main.context_settings)
        usage = " ".join(command.collect_usage_pieces(context))
        parts.append(f"```text\n{name} {usage}\n```")
        told = inspect.cleandoc(command.help or "").replace("\b\n", "").replace("<", "&lt;")
        parts.append(told)
        records = [
            record
            for option in command.get_params(context)
            if isinstance(option, click.Option) and "--help" not in option.opts
            if (record := option.get_help_record(context)) is not None
        ]
        if records:
            # Two brackets in a row are a reference in Markdown.
            rows = ((f"`{names}`", text.replace("]  [", "; ")) for names, text in records)
            parts.append(table(("option", "what it does"), rows))
    return "\n\n".join(parts)


def client_methods() -> str:
    """Return the methods of a client, group by group."""
    parts = []
    with Client(ClientOptions("http://127.0.0.1")) as client:
        groups = {"client": client} | {
            f"client.{name}": part
            for name, part in sorted(vars(client).items())
            if not name.startswith("_")
        }
        for name, part in groups.items():
            rows = [
                (f"`{method}{_arguments(found)}`", _first_line(found))
                for method, found in inspect.getmembers(part, inspect.ismethod)
                if not method.startswith("_") and method != "send"
            ]
            parts.append(f"### {name}")
            parts.append(table((f"`{name}.…`", "what it does"), rows))
    return "\n\n".join(parts)


def _arguments(function: Callable[..., object]) -> str:
    """Return the names of the arguments, those that may be left out in brackets."""
    names = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            names.append(f"**{parameter.name}")
        elif parameter.default is inspect.Parameter.empty:
            names.append(parameter.name)
        else:
            names.append(f"[{parameter.name}]")
    return f"({', '.join(names)})"


def _first_line(found: object) -> str:
    return inspect.cleandoc(found.__doc__ or "").split("\n\n")[0].replace("``", "`")


def loop_table() -> str:
    """Return what the gates of the loop measured, as the test that goes it wrote them down."""
    path = Path(__file__).resolve().parents[1] / "pictures" / "loop" / "figures.json"
    measured = json.loads(path.read_text(encoding="utf-8"))
    return table(
        ("model and rows of its gate", "decisions", "right before", "right after"),
        (
            (
                f"`{name}`",
                str(gate["decisions"]),
                share(gate["right_before"]),
                share(gate["right_after"]),
            )
            for name, gate in measured["gates"].items()
        ),
    )


def first_family_table() -> str:
    """Return the gate of the first family, as ``first_family.py`` measured it."""
    path = Path(__file__).resolve().parents[1] / "plots" / "first_family.json"
    measured = json.loads(path.read_text(encoding="utf-8"))
    return table(measured["columns"], measured["groups"])


def share(value: float) -> str:
    """Return a share with three digits after the point, or as whole."""
    return f"{value:.3f}".rstrip("0").rstrip(".")


TABLES: dict[str, Callable[[], str]] = {
    "client": client_methods,
    "commands": commands_list,
    "errors": errors_table,
    "first-family": first_family_table,
    "lint": lint_table,
    "loop": loop_table,
    "settings": settings_table,
}
