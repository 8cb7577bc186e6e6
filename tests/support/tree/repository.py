"""Where the repository is, for tests that read its files."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "server" / "steelyard"
#: The recipe of the base model: in the repository and in no wheel.
RECIPE = ROOT / "server" / "steelyard_base_recipe"


def python_files(*folders: Path) -> list[Path]:
    """Return every Python file under the folders."""
    return sorted(path for folder in folders for path in folder.rglob("*.py"))


def read_pyproject() -> dict[str, Any]:
    """Return ``pyproject.toml`` as values."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def copied_tree(target: Path, *folders: str) -> Path:
    """Copy the package, without its models, and further folders and ``pyproject.toml`` into a folder."""
    left_out = shutil.ignore_patterns("assets")  # what is compiled stays so
    for folder in ("server", *folders):
        shutil.copytree(ROOT / folder, target / folder, ignore=left_out)
    shutil.copy(ROOT / "pyproject.toml", target)
    return target
