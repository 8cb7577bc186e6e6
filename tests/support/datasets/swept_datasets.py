"""The agreement of a process that sweeps and the test that kills it."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

from steelyard.app.services import ApiServices
from steelyard.datasets.service import DatasetService
from support.datasets.dataset_rows import make_rows
from support.models.evaluated import ME

#: Datasets that the process leaves alone.
LEAST_KEPT = 2
N_ROWS = 30


def rows_from(number: int) -> list[dict[str, Any]]:
    """Rows that half the datasets share, so that their files are shared too."""
    return make_rows(N_ROWS, number // 2 * N_ROWS)


def digest_of(services: ApiServices, dataset_id: str) -> str:
    """SHA-256 of all that the rows of a dataset say."""
    at = asyncio.run(services.get(DatasetService).dataset_at(ME, dataset_id))
    told = hashlib.sha256()
    for row in services.get(DatasetService).evaluation_rows(at):
        told.update(repr(row).encode())
    return told.hexdigest()
