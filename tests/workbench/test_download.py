"""Files: their names are those of the requested ones."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

from steelyard_workbench.parts.datasets.files import ExportBar

SOON = 30


def test_a_file_has_the_name_of_the_side_that_was_chosen_when_it_was_asked_for() -> None:
    began, go_on = threading.Event(), threading.Event()

    def download(_: str, *, partition: str, **__: Any) -> bytes:
        began.set()
        go_on.wait(SOON)
        return partition.encode()

    client: Any = SimpleNamespace(datasets=SimpleNamespace(download=download))
    bar = ExportBar(client, "ds_1", "desk", 1)
    bar.side.value = "training"

    async def choose_meanwhile() -> bytes:
        file = asyncio.create_task(bar.json_lines.get())
        assert await asyncio.to_thread(began.wait, SOON)
        bar.side.value = "evaluation"
        go_on.set()
        found = await file
        assert found is not None
        return found.read()

    assert asyncio.run(choose_meanwhile()) == b"training"
    assert bar.json_lines.button.filename == "desk-v1-training.jsonl"
