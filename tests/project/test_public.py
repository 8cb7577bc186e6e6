"""The public face: exports, documents, and imports."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version

import pytest

import steelyard
from steelyard.http.openapi import API_VERSION
from support.tree.documents import PAGES, ROOT_PAGES
from support.tree.repository import PACKAGE, RECIPE, ROOT, python_files, read_pyproject

HEAVY = {
    "click",
    "httpx",
    "msgspec",
    "grpc",
    "numpy",
    "onnxruntime",
    "panel",
    "rich",
    "sanic",
    "sqlalchemy",
    "tokenizers",
    "torch",
    "tritonclient",
}


def modules_after(statement: str) -> set[str]:
    script = f"{statement}\nimport sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_the_package_loads_nothing_heavy():
    assert modules_after("import steelyard") & HEAVY == set()


def test_answering_in_process_loads_no_framework():
    loaded = modules_after("import steelyard.app.deployment")
    assert loaded & {"sanic", "sqlalchemy", "click", "rich", "torch", "panel"} == set()


def test_serving_loads_nothing_of_training_pages_and_other_servers():
    runs = (path.relative_to(PACKAGE.parent) for path in PACKAGE.rglob("run.py"))
    jobs = ", ".join(str(path.with_suffix("")).replace("/", ".") for path in runs)
    loaded = modules_after(
        f"import {jobs}, steelyard.app.application, steelyard.app.bootstrap, steelyard.scoring.remote.engine_host;"
        "import steelyard.scoring.tuned; from steelyard.serving.base import open_models"
    )
    triton = {"grpc", "google.protobuf", "tritonclient"}
    assert loaded & (triton | {"bokeh", "lightgbm", "pandas", "panel", "scipy", "sklearn"}) == set()


def test_linting_in_process_loads_no_engine():
    loaded = modules_after(
        "import steelyard; steelyard.lint('x', [{'id': 'a', 'question': 'Why?', 'outcomes': ['b', 'c']}])"
    )
    assert loaded & (HEAVY - {"msgspec"}) == set()


def test_a_client_loads_no_server():
    loaded = modules_after("import steelyard; steelyard.connect('http://127.0.0.1:1').close()")
    assert loaded & {"numpy", "onnxruntime", "sanic", "sqlalchemy"} == set()


def test_exported_names():
    assert steelyard.__all__ == [
        "SteelyardClassifier",
        "__version__",
        "connect",
        "connect_async",
        "decide",
        "decide_frame",
        "embed",
        "lint",
        "multi_label",
    ]
    assert all(hasattr(steelyard, name) for name in steelyard.__all__)


def test_the_installed_version_is_the_stated_one():
    try:
        installed = version("steelyard")
    except PackageNotFoundError:
        pytest.skip("steelyard is on the path but not installed")
    assert installed == steelyard.__version__


#: Lines of a version in the changelog, which users read; git has the rest.
MAX_CHANGES = 60


def test_the_versions_agree():
    """The package has one number, the last of the changelog; the wire has its own."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"^## (\d+\.\d+\.\d+) - \d{4}-\d\d-\d\d$", changelog, re.MULTILINE)
    assert released[0] == steelyard.__version__
    sections = re.split(r"^## (?=\d)", changelog, flags=re.MULTILINE)[1:]
    assert max(len(section.splitlines()) for section in sections) <= MAX_CHANGES
    project = read_pyproject()["project"]
    assert (project["name"], project["dynamic"]) == ("steelyard", ["version"])
    shown = "\n".join(path.read_text(encoding="utf-8") for path in (*PAGES, *ROOT_PAGES))
    wheels = re.findall(r"steelyard(?:_client)?-(\d+\.\d+\.\d+)-py3", shown)
    assert len(wheels) > 2
    assert set(wheels) == {steelyard.__version__}
    document = json.loads((PACKAGE / "http" / "openapi.json").read_text(encoding="utf-8"))
    assert document["info"]["version"] == API_VERSION


def public_definitions(tree: ast.Module):
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if node.name.startswith("_"):
                continue
            yield node
            if isinstance(node, ast.ClassDef):
                for member in node.body:
                    is_function = isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef)
                    if is_function and not member.name.startswith("_"):
                        yield member


def test_public_names_have_docstrings():
    missing = []
    for path in python_files(PACKAGE, RECIPE):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        nodes = [tree, *public_definitions(tree)]
        names = [
            getattr(node, "name", "the module") for node in nodes if not ast.get_docstring(node)
        ]
        missing += [f"{path.relative_to(ROOT)}: {name}" for name in names]
    assert missing == []


def test_files_name_no_place_outside_the_repository():
    files = [
        *python_files(PACKAGE, RECIPE, ROOT / "tests"),
        # Of a work tree, ".git" is a file that names its place.
        *(path for path in ROOT.glob("*.*") if path.is_file() and path.name != ".git"),
        *(path for path in (ROOT / "scripts").iterdir() if path.is_file()),
        ROOT / ".ci" / "run",
    ]
    # Cut in two, so that this file has none of them.
    places = ("/work" + "/", "/home" + "/", "/root" + "/", "design" + ".md", "contract" + ".md")
    found = [
        f"{path.relative_to(ROOT)}: {place}"
        for path in files
        for place in places
        if place in path.read_text(encoding="utf-8")
    ]
    assert found == []
