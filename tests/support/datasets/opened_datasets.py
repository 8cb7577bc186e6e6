"""The dataset service of one server on a folder, driven by tests without a loop of their own."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from steelyard.datasets.ingesting import RowBounds
from steelyard.datasets.service import DatasetService
from steelyard.datasets.uploads import Upload
from steelyard.operations.idempotency import KeyedWrites
from steelyard.storage import open_state
from steelyard.storage.frame_store import open_store
from support.datasets.dataset_rows import to_ndjson
from support.servers.calling import upload_rows


class OpenedDatasets:
    """A state, a store and the datasets in them; a test's other parts are in a subclass."""

    def __init__(self, folder: Path, *, min_rows: int = 2, state_url: str | None = None) -> None:
        self.state = open_state(state_url or f"sqlite:///{folder / 'state.sqlite'}")
        self.store = open_store(folder / "frames")
        self.writes = KeyedWrites(self.state)
        self.bounds = RowBounds(min_rows, 1000)
        self.datasets = DatasetService(self.state, self.store, self.writes, bounds=self.bounds)

    def close(self) -> None:
        self.state.close()

    def create(self, rows: Any, key: str | None = None, **fields: str) -> dict[str, Any]:
        return asyncio.run(self.send(None, rows, key, **{"name": "n", **fields}))

    def add(self, dataset_id: str, rows: Any, key: str | None = None, **fields: str) -> Any:
        return asyncio.run(self.send(dataset_id, rows, key, **fields))

    async def send(
        self, dataset_id: str | None, rows: Any, key: str | None = None, **fields: str
    ) -> dict[str, Any]:
        """Make a dataset of rows, or add them to one."""
        with Upload("jsonl", fields) as upload:
            upload.add_file("examples").write(to_ndjson(rows))
            sent = await upload_rows(self.datasets, upload, dataset_id, key=key)
        return sent.json
