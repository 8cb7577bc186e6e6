"""Which tests ``scripts/test --quick`` runs: those that need no process, no browser and no model.

A test is marked ``quick`` unless it stands in a folder of the others or uses one of their fixtures, or
it, a fixture of its or a function of the tests that they call uses ``subprocess``. The end of a run
says which were left out.
"""

from __future__ import annotations

import inspect
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

_HERE = Path(__file__).parents[2]
#: What a folder's tests need.
FOLDERS = {
    "benchmarks": "time and memory",
    "cli": "processes",
    "clients": "other people's clients",
    "conformance": "a server, at length",
    "trainer": "models",
    "faults": "processes",
    "jobs": "processes",
    "notebooks": "processes",
    "scoring": "models",
    "training": "models",
    "triton_server": "processes",
    "ui": "a browser",
}
#: What a fixture brings, or a parameter of one.
FIXTURES = {"load": "models", "postgresql": "processes", "random_folder": "models"}


class QuickTests:
    """The plugin: marks tests, and counts those that a run of ``-m quick`` leaves out."""

    def __init__(self) -> None:
        self._left_out: Counter[str] = Counter()

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Mark the quick tests, before pytest looks at marks."""
        for item in items:
            if need_of(item) is None:
                item.add_marker("quick")

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Count the tests left out, by folder and missing part."""
        for item in items:
            need = need_of(item)
            if need is not None:
                self._left_out[f"tests/{_folder(item.path)} ({need})"] += 1

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Hand the counts of a worker of pytest-xdist to the process that reports."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["left_out"] = dict(self._left_out)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take the counts of a worker: each has collected all."""
        self._left_out = Counter(getattr(node, "workeroutput", {}).get("left_out", {}))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the tests that a quick run left out."""
        if terminalreporter.config.option.markexpr.startswith("quick"):
            terminalreporter.section("left out of a quick run")
            for place, n in sorted(self._left_out.items()):
                terminalreporter.line(f"{place}: {n:,}")


def need_of(item: pytest.Item) -> str | None:
    """Return the part that a test needs and a quick run has not; ``None`` where it is quick."""
    folder = _folder(item.path)
    for name, need in FOLDERS.items():
        if folder == name or folder.startswith(f"{name}/"):
            return need
    call = getattr(item, "callspec", None)
    texts = [one for one in call.params.values() if isinstance(one, str)] if call else []
    brought = {*getattr(item, "fixturenames", ()), *texts}
    for name, need in FIXTURES.items():
        if name in brought:
            return need
    fixtures = item._fixtureinfo.name2fixturedefs.values()
    functions = [item.function, *(one.func for defs in fixtures for one in defs)]
    seen: set[Any] = set()
    return "processes" if any(_uses_subprocess(one, seen) for one in functions) else None


def _uses_subprocess(value: Any, seen: set[Any]) -> bool:
    """Whether a function or class of the tests, or one that it uses, uses ``subprocess``."""
    if value is subprocess:
        return True
    if isinstance(value, type):
        members = () if value in seen else vars(value).values()
        seen.add(value)
        return any(_uses_subprocess(one, seen) for one in members)
    if not inspect.isfunction(value):
        return False
    function = inspect.unwrap(value)
    if not inspect.isfunction(function) or function in seen:
        return False
    seen.add(function)
    if not function.__code__.co_filename.startswith(str(_HERE)):
        return False
    used = (function.__globals__.get(name) for name in _names(function.__code__))
    return any(_uses_subprocess(one, seen) for one in used)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _names(one)


def _folder(path: Path) -> str:
    return path.relative_to(_HERE).parent.as_posix() if path.is_relative_to(_HERE) else ""
