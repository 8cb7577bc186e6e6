"""Rules of the tree that no linter knows."""

from __future__ import annotations

import pytest

from repository import PACKAGE, ROOT, python_files, read_pyproject

MAX_LINES = 600
NAMELESS = {"common", "helpers", "manager", "misc", "processor", "util", "utils"}
SOURCES = [PACKAGE, ROOT / "tests"]


@pytest.mark.parametrize("path", python_files(*SOURCES), ids=lambda p: str(p.relative_to(ROOT)))
def test_a_module_is_short_enough_to_read(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_LINES


def test_modules_are_named_for_what_they_hold():
    assert [path for path in python_files(*SOURCES) if path.stem in NAMELESS] == []


@pytest.mark.parametrize("folder", ["datasets", "notebooks"])
def test_folders_of_data_are_no_packages(folder):
    assert list((ROOT / folder).rglob("__init__.py")) == []


def test_every_package_has_an_init_with_a_docstring():
    for folder in {path.parent for path in python_files(PACKAGE)}:
        init = folder / "__init__.py"
        assert init.exists(), folder
        assert init.read_text(encoding="utf-8").startswith('"""'), init


#: Packages and modules that may know frameworks, engines or the environment.
OUTER = {
    "api",
    "base_models",
    "bootstrap",
    "cli",
    "client",
    "embedded",
    "scoring",
    "settings",
    "training",
    "triton",
    "version",
}


def packages() -> set[str]:
    present = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__", "__main__"}
    return present | {init.parent.name for init in PACKAGE.glob("*/__init__.py")}


def contract(contract_id: str):
    contracts = read_pyproject()["tool"]["importlinter"]["contracts"]
    return next(contract for contract in contracts if contract["id"] == contract_id)


def test_every_domain_package_is_held_pure():
    held = contract("domain-is-pure")["source_modules"]
    assert sorted(name.removeprefix("steelyard.") for name in held) == sorted(packages() - OUTER)


def test_layers_name_every_package():
    layers = contract("layers")
    named = {
        name.strip(" ()").removeprefix("steelyard.")
        for line in layers["layers"]
        for name in line.split("|")
    }
    assert packages() <= named


def test_the_licence_is_apache_2():
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text
    assert read_pyproject()["project"]["license"] == "Apache-2.0"


def test_the_package_is_typed():
    assert (PACKAGE / "py.typed").exists()
