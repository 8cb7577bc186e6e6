"""Every notebook runs from top to bottom, without a network, and is kept without its outputs."""

from __future__ import annotations

import json
import os

import nbformat
import pytest

from support.models.knowing_model import knows_tickets
from support.models.remote_models import remote_model
from support.tree.repository import ROOT

#: Bytes of the outputs of a saved notebook.
MOST_BYTES = 300_000
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def test_there_are_notebooks():
    assert [path.name[:2] for path in NOTEBOOKS] == [
        f"{n:02d}" for n in range(1, len(NOTEBOOKS) + 1)
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_holds_no_outputs(path):
    notebook = nbformat.read(path, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert cells
    assert all(cell.outputs == [] and cell.execution_count is None for cell in cells)


@pytest.fixture
def local_model(monkeypatch):
    """A model of another server, where the notebooks look for one."""
    with remote_model(knows_tickets()) as model:
        monkeypatch.setenv("LOCAL_MODEL_URL", model.url)
        yield model


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "path",
    # The first stands for all; the others fit and wait.
    [pytest.param(path, marks=pytest.mark.slow if n else ()) for n, path in enumerate(NOTEBOOKS)],
    ids=lambda path: path.stem,
)
def test_it_runs(path, tmp_path, monkeypatch, local_model):
    client = pytest.importorskip("nbclient", reason="needs the notebook tools")
    for name in ("HOME", "IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    notebook = nbformat.read(path, as_version=4)
    client.NotebookClient(
        notebook,
        timeout=240,
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}},
    ).execute()
    shown = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.outputs]
    assert shown
    assert len(json.dumps([cell.outputs for cell in shown])) < MOST_BYTES
    if "LOCAL_MODEL_URL" in path.read_text(encoding="utf-8"):
        assert local_model.asked
        assert "Kept as calibration 1 of local." in str(shown)
        assert "asked: steelyard-base-2 (0." in str(shown)
        assert ", then local (0." in str(shown)
