"""The conda environment and the package agree."""

from __future__ import annotations

import re

import pytest
import yaml

from support.tree.repository import ROOT, read_pyproject


@pytest.fixture(scope="module")
def environment():
    return yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))


def test_python_is_one_that_the_package_names(environment):
    [version] = re.findall(r"'python=(.+?)'", str(environment["dependencies"]))
    classifier = f"Programming Language :: Python :: {version}"
    assert classifier in read_pyproject()["project"]["classifiers"]


def test_pip_installs_this_package_with_every_extra(environment):
    [pip] = [entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict)]
    assert pip == ["-e .[all]"]
    assert "pip" in environment["dependencies"]


def test_all_is_every_other_extra():
    extras = read_pyproject()["project"]["optional-dependencies"]
    [everything] = extras["all"]
    named = re.fullmatch(r"steelyard\[(.*)\]", everything).group(1).split(",")
    assert sorted(named) == sorted(extras.keys() - {"all"})


def test_linters_are_pinned():
    pins = read_pyproject()["project"]["optional-dependencies"]["test"]
    for tool in ("codespell", "ruff", "mypy", "import-linter"):
        assert any(re.fullmatch(rf"{tool}==[\d.]+", pin) for pin in pins)
