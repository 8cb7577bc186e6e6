"""What is made of other files and committed is what they make now."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import yaml

from steelyard.app import openapi
from support.tree.repository import PACKAGE, ROOT


def test_the_blocking_client_is_what_the_asynchronous_one_makes(tmp_path):
    script = ROOT / "scripts" / "blocking_client.py"
    subprocess.run([sys.executable, script, tmp_path], check=True)
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    committed = (PACKAGE / "client" / "blocking").glob("*.py")
    assert made == {path.name: path.read_bytes() for path in committed}, "run: scripts/fix"


def test_every_hook_runs_what_is_there():
    [local] = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))[
        "repos"
    ]
    entries = [hook["entry"] for hook in local["hooks"]]
    for module in re.findall(r"python -m (\S+)", "\n".join(entries)):
        spec = find_spec(module)
        assert spec is not None, module
        if spec.submodule_search_locations:
            spec = find_spec(f"{module}.__main__")
        assert "__main__" in Path(spec.origin).read_text(encoding="utf-8"), module
    for script in re.findall(r"python (scripts/\S+)", "\n".join(entries)):
        assert (ROOT / script).exists()


def test_the_hook_of_the_document_rewrites_a_stale_one(tmp_path, monkeypatch):
    stale = tmp_path / "openapi.json"
    stale.write_text("{}", encoding="utf-8")
    committed = openapi.COMMITTED.read_bytes()
    monkeypatch.setattr(openapi, "COMMITTED", stale)
    assert openapi.main(["--write"]) == 0
    assert stale.read_bytes() == committed
