"""Rules of the tree that no linter knows."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

from support.tree import file_spreading, quick_tests
from support.tree.repository import PACKAGE, RECIPE, ROOT, python_files, read_pyproject

#: The lines that nine of ten modules and functions of server, workbench and tests have at most, with
#: slack of 3 % over what they had when each was set: what reaches it is shortened, not the bound raised.
P90_MODULE, P90_FUNCTION = 336, 23
#: The lines of the longest, which does more than one thing.
MAX_MODULE, MAX_FUNCTION, MAX_SERVER_FUNCTION = 650, 120, 80
NAMELESS = {"common", "helpers", "manager", "misc", "processor", "util", "utils"}
SOURCES = [PACKAGE, RECIPE, ROOT / "tests"]


def test_modules_are_named_for_their_contents():
    assert [path for path in python_files(*SOURCES) if path.stem in NAMELESS] == []


@pytest.mark.parametrize("folder", ["datasets", "notebooks"])
def test_folders_of_data_are_no_packages(folder):
    assert list((ROOT / folder).rglob("__init__.py")) == []


def test_most_modules_and_functions_are_short():
    modules = sorted(source.n_lines for source in sources().values())
    functions = sorted(n for source in sources().values() for n in source.function_lines)
    of_server = [
        n
        for path, source in sources().items()
        if path.is_relative_to(PACKAGE.parent)
        for n in source.function_lines
    ]
    assert modules[len(modules) * 9 // 10] <= P90_MODULE
    assert functions[len(functions) * 9 // 10] <= P90_FUNCTION
    assert modules[-1] <= MAX_MODULE
    assert functions[-1] <= MAX_FUNCTION
    assert max(of_server) <= MAX_SERVER_FUNCTION


#: First words of docstrings that are no plain English of the field; "Return", "Raise", "Write",
#: "Load" or "Whether" say the same.
REFUSED_FIRST_WORDS = {"Give", "Gives", "Have", "Let", "Lets", "Say", "Says", "Tell", "Tells"}


@dataclass
class Source:
    """A file's facts for the rules here: read once, since its tree is thousands of objects."""

    n_lines: int = 0
    #: Of each function, its docstring with it.
    function_lines: list[int] = field(default_factory=list)
    first_words: list[tuple[str, str]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    n_private_of_others: int = 0
    n_sleeps: int = 0
    #: What is imported of what tests share.
    shared: set[str] = field(default_factory=set)


@cache
def sources() -> dict[Path, Source]:
    return {path: read(path) for path in python_files(*SOURCES, ROOT / "workbench")}


def read(path: Path) -> Source:
    text = path.read_text(encoding="utf-8")
    source = Source(len(text.splitlines()))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            source.function_lines.append(node.end_lineno - node.lineno + 1)
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            source.names.append(node.name)
            words = (ast.get_docstring(node) or "").split(maxsplit=1)
            if words:
                place = f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
                source.first_words.append((place, words[0]))
        elif isinstance(node, ast.ImportFrom):
            if (node.module or "").startswith("support."):
                source.shared.add(str(node.module))
        elif isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Store):
                source.names.append(node.id)
        elif isinstance(node, ast.arg):
            source.names.append(node.arg)
        elif isinstance(node, ast.Attribute):
            source.n_private_of_others += is_private_of_another(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            source.n_sleeps += node.func.attr == "sleep"
    return source


def is_private_of_another(node: ast.Attribute) -> bool:
    """Whether something private is read or written of an object that is not ``self``."""
    return (
        node.attr.startswith("_")
        and not node.attr.endswith("_")
        and not (isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"})
    )


def test_shared_helpers_are_imported_from_their_place():
    """A test that no run here has, for want of a program, would not say so itself."""
    shared = {module for source in sources().values() for module in source.shared}
    files = {ROOT.joinpath("tests", *module.split(".")) for module in shared}
    missing = [path for path in files if not (path.with_suffix(".py").exists() or path.is_dir())]
    assert missing == [], "look for it in the folders of tests/support"


def test_docstrings_begin_in_plain_english():
    found = [
        place
        for source in sources().values()
        for place, word in source.first_words
        if word in REFUSED_FIRST_WORDS
    ]
    assert found == []


#: Words that do not say what a thing is, and how many names still have them; the numbers only fall.
VAGUE_WORDS = {
    "asked": 5,
    "found": 5,
    "held": 31,
    "kept": 3,
    "one": 5,
    "said": 1,
    "told": 1,
    "wanted": 0,
}


def test_fewer_names_than_before_do_not_say_what_a_thing_is():
    names = (
        name
        for path, source in sources().items()
        if not path.is_relative_to(ROOT / "tests")
        for name in source.names
    )
    counts = Counter(word for name in names for word in set(name.strip("_").lower().split("_")))
    # Lower a number here when a name of its word goes.
    assert {word: counts[word] for word in VAGUE_WORDS} == VAGUE_WORDS


def test_what_makes_changes_hard_only_gets_less(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "scripts")
    import tree_counts

    too_many = {name: n for name, n, bound in tree_counts.fallen(sources()) if n > bound}
    assert not too_many, "let ruff lay it out, test what others may use, wait for what happens"


def test_every_package_has_an_init_with_a_docstring():
    for folder in {path.parent for path in python_files(PACKAGE, RECIPE)}:
        init = folder / "__init__.py"
        assert init.exists(), folder
        assert init.read_text(encoding="utf-8").startswith('"""'), init


def packages() -> set[str]:
    present = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__", "__main__"}
    return present | {init.parent.name for init in PACKAGE.glob("*/__init__.py")}


def test_contracts_and_the_table_of_packages_are_what_rooms_say(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "scripts")
    import layers

    assert layers.PROJECT.read_text(encoding="utf-8") == layers.project_text(), "run: scripts/fix"
    assert layers.PAGE.read_text(encoding="utf-8") == layers.page_text(), "run: scripts/fix"
    named = {name for layer in layers.layers() for name in layer.split(" | ")}
    assert packages() == named


def test_nothing_in_a_room_imports_in_a_circle():
    """Neither modules nor, taken as one, a folder and the modules beside it: nothing goes back up."""
    graph = grimp.build_graph("steelyard", "steelyard_workbench", cache_dir=None)
    for package in sorted(graph.modules):
        imported = {
            child: {
                ".".join(module.split(".")[: child.count(".") + 1])
                for member in {child} | graph.find_descendants(child)
                for module in graph.find_modules_directly_imported_by(member)
                if module.startswith(f"{package}.")
            }
            - {child}
            for child in graph.find_children(package)
        }
        TopologicalSorter(imported).prepare()


def test_the_licence_is_apache_2():
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text
    assert read_pyproject()["project"]["license"] == "Apache-2.0"


def test_the_package_is_typed():
    assert (PACKAGE / "py.typed").exists()


@pytest.mark.parametrize("place", [*file_spreading.LONGEST, *quick_tests.FOLDERS])
def test_places_of_tests_that_are_treated_apart_are_there(place):
    assert (ROOT / "tests" / place).exists()
