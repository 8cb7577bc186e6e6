"""A parent with an adapter on another base model: compared with on its own, and not inherited."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest

from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.scoring.assets import load_base_model
from steelyard.scoring.tuned import check_artifact, load_tuned
from steelyard.trainer.program import run
from steelyard.trainer.task import TaskBase
from steelyard.triton.sources import base_source
from support.families.trainer_folders import BASE, URGENT, make_rows, records_of, write_task
from support.triton.triton_hosting import write_lora_artifact


@pytest.mark.slow
def test_an_adapter_stays_with_its_base(random_folder: Path, tmp_path: Path) -> None:
    below = base_source(random_folder)
    parent = tmp_path / "parent"
    write_lora_artifact(parent, below)
    rows = [
        msgspec.structs.replace(row, decisions=[URGENT])
        for row in [*make_rows(20, "training", group="earlier"), *make_rows(4, "evaluation")]
    ]
    engine = below.files.engine
    folder = write_task(
        tmp_path / "moved",
        rows,
        parent=str(parent),
        parent_base=TaskBase(name="random", engine=engine, folder=str(random_folder)),
        against="parent",
    )
    result = run(folder)
    assert result.report == run(write_task(tmp_path / "alone", rows)).report
    manifest = check_artifact(folder / "model")
    assert (manifest.base.name, manifest.has_adapter) == (BASE.name, False)
    base = load_base_model(engine, 1, random_folder)
    adapted = load_tuned(parent, base.scorer, threads=1)
    asked = RenderedDecision("binary", URGENT["question"], ("yes", "no"))
    for row, told in zip(rows[20:], records_of(folder)["parent"], strict=True):
        context = json.dumps(row.context, ensure_ascii=False)
        [[scored]] = adapted.score([RenderedRequest(context, (asked,))])
        [[plain]] = base.scorer.score([RenderedRequest(context, (asked,))])
        wanted, other = (
            base.temperatures.probabilities(one.logits, "binary") for one in (scored, plain)
        )
        np.testing.assert_allclose(told["probabilities"], wanted, atol=1e-5)
        assert np.abs(wanted - other).max() > 1e-4
