"""Nothing on a page ends at a command line, and pages of people name no route and no code of an error."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

WORKBENCH = Path(__file__).parents[2] / "workbench" / "steelyard_workbench"
COMMAND = re.compile(r"`(?:steelyard|curl|pip|docker|npx?) ")
WIRE = re.compile(
    r"/v1/|\b[45]\d\d `|`[a-z]+(?:_[a-z]+)+`|\w\[\d\]\.\w|`[a-z_]+: |`[a-z_]+\.[a-z_.]+`"
)


def texts_of(path: Path) -> list[str]:
    """Return the texts of a module but for its docstrings and the texts under *Details*."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docs = {
        ast.get_docstring(node, clean=False)
        for node in ast.walk(tree)
        if isinstance(node, documented)
    }
    docs |= {
        text.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "with_details"
        for text in ast.walk(node.args[1])
        if isinstance(text, ast.Constant)
    }
    constants = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return [text for text in constants if isinstance(text, str) and text not in docs]


def modules_with(pattern: re.Pattern[str], folder: Path = WORKBENCH) -> set[str]:
    return {
        path.relative_to(WORKBENCH).as_posix()
        for path in folder.rglob("*.py")
        if any(map(pattern.search, texts_of(path)))
    }


def test_no_text_of_a_page_ends_at_a_command_line_but_under_details() -> None:
    assert modules_with(COMMAND) == set()


@pytest.mark.parametrize("folder", ["frame", "pages", "parts"])
def test_a_page_names_no_route_no_code_and_no_path_of_a_field(folder: str) -> None:
    assert modules_with(WIRE, WORKBENCH / folder) == set()
