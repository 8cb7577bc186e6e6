"""Generated files that are committed are up to date."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys

import pytest
import yaml

from support.tree.repository import ROOT, copied_tree


def hooks():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    [local] = config["repos"]
    return {hook["id"]: hook["entry"] for hook in local["hooks"]}


def run_hook(id_, *files, cwd, **environ):
    command = [sys.executable, *shlex.split(hooks()[id_].removeprefix("python ")), *files]
    return subprocess.run(
        command, cwd=cwd, env={**os.environ, **environ}, capture_output=True, text=True, check=False
    )


#: For each hook that refuses, a file that it lets pass and one that it does not.
REFUSED = {
    "ruff-check": ('"""Hold nothing."""\n', "import os\n"),
    "ruff-format": ("x = 1\n", "x=1\n"),
    "codespell": ("the rows\n", "teh rows\n"),  # codespell:ignore teh
    "commit-subject": ("datasets: refuse empty rows\n", "Refused empty rows\n"),
}
#: For each hook that writes, a file that it makes.
WRITTEN = {
    "openapi": "server/steelyard/http/openapi.json",
    "layers-made": "docs/contributors/architecture.md",
}


def test_every_hook_is_tried():
    assert hooks().keys() == {*REFUSED, *WRITTEN, "lint-imports"}


@pytest.mark.parametrize("id_", REFUSED)
def test_a_hook_refuses_wrong_files(id_, tmp_path):
    file = tmp_path / "__init__.py"
    for text, is_refused in zip(REFUSED[id_], (False, True), strict=True):
        file.write_text(text, encoding="utf-8")
        shown = run_hook(id_, file, cwd=ROOT)
        assert (shown.returncode != 0) is is_refused, shown.stdout + shown.stderr


def test_the_hook_of_layers_refuses_an_import_upward(tmp_path):
    package = tmp_path / "house"
    package.mkdir()
    for name, text in {"__init__": "", "roof": "", "cellar": "from house import roof\n"}.items():
        (package / f"{name}.py").write_text(text, encoding="utf-8")
    for layers, is_refused in ((["cellar", "roof"], False), (["roof", "cellar"], True)):
        (tmp_path / "pyproject.toml").write_text(
            f"""[tool.importlinter]
root_package = "house"
[[tool.importlinter.contracts]]
name = "downward"
type = "layers"
containers = ["house"]
layers = {layers}
""",
            encoding="utf-8",
        )
        shown = run_hook("lint-imports", cwd=tmp_path, PYTHONPATH=str(tmp_path))
        assert (shown.returncode != 0) is is_refused, shown.stdout + shown.stderr


@pytest.mark.parametrize("id_", WRITTEN)
def test_a_hook_rewrites_stale_files(id_, tmp_path):
    made = copied_tree(tmp_path, "scripts", "docs/contributors") / WRITTEN[id_]
    text = made.read_text(encoding="utf-8")
    made.write_text(text.replace("labeling", "stale"), encoding="utf-8")
    assert made.read_text(encoding="utf-8") != text
    shown = run_hook(id_, cwd=tmp_path, PYTHONPATH=str(tmp_path / "server"))
    assert shown.returncode == 0, shown.stderr
    assert made.read_text(encoding="utf-8") == text


def test_subjects_are_imperative():
    wrong = {
        f"datasets: {'x' * 72}": "has 82 characters",
        "datasets: refused empty rows": "tells what was done",
        "datasets: refusing empty rows": "tells what was done",
        "refuse empty rows": "begins otherwise",
    }
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(ROOT / "scripts")
        import subjects
    for subject, message in wrong.items():
        assert subjects.fault(subject).startswith(message)
    for subject in (
        "http, wire: press on",
        "models: embed texts",
        "cli: heed signals",
        'Revert "x: y"',
    ):
        assert subjects.fault(subject) is None
