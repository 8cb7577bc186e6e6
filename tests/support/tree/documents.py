"""The documents as tests read them: pages, blocks of code, tables, and command lines."""

from __future__ import annotations

import re
from collections.abc import Sequence

import click

from steelyard.cli.main import main
from support.tree.repository import ROOT

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
ROOT_PAGES = [
    ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
]

_BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def page(name: str) -> str:
    """The Markdown of a page."""
    return (DOCS / name).read_text(encoding="utf-8")


def all_blocks(text: str) -> list[tuple[str, str, str]]:
    """Every block of code of a page: its language, its title, and its text."""
    return _BLOCK.findall(text)


def blocks(text: str, language: str) -> list[str]:
    """The blocks of a language; there must be one."""
    found = [code for name, _, code in all_blocks(text) if name == language]
    assert found
    return found


def first_cells(text: str) -> list[str]:
    """The texts in back quotes in the first cells of tables."""
    return [
        name
        for line in text.splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`([^`]+)`", line.split(" | ")[0])
    ]


def command_lines(block: str) -> list[str]:
    """The commands of a block of shell, each whole: continued lines and open quotes joined."""
    commands, held = [], ""
    for line in block.splitlines():
        held += line
        if held.endswith("\\"):
            held = held[:-1]
        elif held.count('"') % 2 or held.count("'") % 2:
            held += "\n"
        else:
            commands.append(held)
            held = ""
    assert not held, f"{held!r} does not end"
    return [command for command in commands if command.strip()]


def check_command(words: Sequence[str]) -> None:
    """Fail when a command line of ours has a command or an option that there is not."""
    command: click.Command | None = main
    context, rest = click.Context(main, info_name="steelyard"), list(words[1:])
    while isinstance(command, click.Group):
        assert rest, f"{words} names no command"
        name, command, rest = command.resolve_command(context, rest)
        assert command is not None
        context = click.Context(command, info_name=name, parent=context)
    assert command is not None
    command.make_parser(context).parse_args(list(rest))
