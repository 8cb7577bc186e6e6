"""The benchmarks are scripts beside these tests: give them by name, and forget them after."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

_FOLDER = Path(__file__).parent


@pytest.fixture
def script(monkeypatch):
    """Return a function from a script's name to its module."""
    monkeypatch.syspath_prepend(_FOLDER)
    yield importlib.import_module
    for path in _FOLDER.glob("*.py"):
        if not path.stem.startswith(("test_", "conftest")):
            sys.modules.pop(path.stem, None)
