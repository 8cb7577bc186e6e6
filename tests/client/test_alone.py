"""The client where ``steelyard-client`` is installed with its requirements, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

import steelyard
from support.tree.repository import ROOT, read_pyproject

REQUIRED = {"httpx", "msgspec", "tenacity"}
#: What these require.
INSTALLED = {*REQUIRED, "anyio", "certifi", "h11", "httpcore", "idna", "typing_extensions"}


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("client")
    script = ROOT / "scripts" / "client_wheel.py"
    subprocess.run([sys.executable, script, folder], check=True)
    return folder


@pytest.fixture(scope="module")
def site_packages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site-packages")
    for name in INSTALLED:
        file = Path(find_spec(name).origin)
        source = file.parent if file.stem == "__init__" else file
        (folder / source.name).symlink_to(source)
    return folder


@pytest.fixture
def run(project, site_packages, tmp_path):
    """Run code without this environment's own packages."""

    def run(code: str) -> list[str]:
        env = {**os.environ, "PYTHONPATH": f"{project}{os.pathsep}{site_packages}"}
        command = [sys.executable, "-S", "-c", f"import sys, steelyard\n{code}"]
        done = subprocess.run(
            command, env=env, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return run


def test_it_asks_a_server(project, run):
    with steelyard.embed(engine="hashing") as server:
        lines = run(f"""
from steelyard.client.progress import progress_bar
decision = {{"id": "refund", "kind": "binary", "question": "Money back?"}}
targets = {{"refund": {{"yes": 1.0}}}}
rows = [{{"context": f"Order {{n}}", "decisions": [decision], "targets": targets}} for n in range(4)]
sys.stderr.isatty = lambda: True
with steelyard.connect({server.url!r}) as client, progress_bar("Decide") as show:
    show(1, 4, "rows")
    print(steelyard.__file__)
    print(sorted(client.decide("Where is it?", [decision]).decisions["refund"].probabilities))
    dataset = client.datasets.create("orders", rows, evaluation_fraction=0.5)
    page = client.datasets.rows(dataset.id)
    print(len(page.data))
    for frame in (page.to_polars, lambda: client.datasets.to_polars(dataset.id)):
        try:
            frame()
        except ModuleNotFoundError as error:
            print(error)
""")
    assert lines == [
        str(project / "steelyard" / "__init__.py"),
        "['no', 'yes']",
        "4",
        *["A frame needs polars: pip install polars, and try again."] * 2,
    ]


def test_missing_functions_name_the_other_package(run):
    calls = [
        *("decide('a', [])", "decide_frame([], [])", "lint('a', [])", "embed()"),
        "SteelyardClassifier",
    ]
    code = "".join(
        f"try:\n    steelyard.{call}\nexcept ModuleNotFoundError as error:\n    print(error)\n"
        for call in calls
    )
    lines = run(code)
    assert len(lines) == len(calls)
    assert all("pip install steelyard." in line for line in lines)


def test_its_project_has_the_requirements_of_the_package(project):
    text = (project / "pyproject.toml").read_text(encoding="utf-8")
    client = tomllib.loads(text)["project"]
    assert client["version"] == steelyard.__version__
    assert set(client["dependencies"]) <= set(read_pyproject()["project"]["dependencies"])
    assert {line.partition(">")[0] for line in client["dependencies"]} == REQUIRED
