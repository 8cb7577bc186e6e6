"""What scored decisions are about: contexts of evaluation rows, by their places among them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from itertools import groupby
from typing import Any

import msgspec

from steelyard.caller import Caller
from steelyard.datasets.frames.pages import RowStore
from steelyard.datasets.service import DatasetService
from steelyard.datasets.versions import Manifest
from steelyard.storage.frame_store import FrameStore

#: Places so near to each other are read together: they mostly lie in one group of rows.
_NEAR = 256


class _Row(msgspec.Struct):
    """The one field that is read of a row."""

    context: Any


_decode = msgspec.json.Decoder(_Row).decode


class EvaluatedContexts:
    """The contexts of evaluation rows."""

    def __init__(self, datasets: DatasetService, store: FrameStore) -> None:
        self._datasets = datasets
        self._rows = RowStore(store)

    async def at(
        self, caller: Caller, dataset_id: str, version: int, places: Collection[int]
    ) -> dict[int, Any]:
        """Return the context of each place."""
        at = await self._datasets.dataset_at(caller, dataset_id, version, is_new_work=False)
        return await asyncio.to_thread(self._read, at.manifest, sorted(set(places)))

    def _read(self, manifest: Manifest, places: list[int]) -> dict[int, Any]:
        found: dict[int, Any] = {}
        for first, last in _runs(places):
            page = self._rows.page(
                manifest, partition="evaluation", offset=first, limit=last - first + 1
            )
            found.update(
                (first + index, _decode(row.json).context) for index, row in enumerate(page)
            )
        return {place: found[place] for place in places if place in found}


def _runs(places: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last place of each run of places that lie near to each other."""
    for _, run in groupby(places, key=lambda place: place // _NEAR):
        near = list(run)
        yield near[0], near[-1]
