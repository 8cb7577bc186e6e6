"""The room of rows and their versions."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlalchemy import Connection

from steelyard.datasets.routes import ROUTES, ROW_ROUTES
from steelyard.datasets.service import DatasetService
from steelyard.datasets.store import manifests
from steelyard.room import House, NamedFile, Room


def _files(connection: Connection) -> Iterator[NamedFile]:
    for manifest in manifests(connection):
        needed_by = f"version {manifest.version} of the dataset {manifest.dataset_id}"
        sizes = {part.sha256: part.bytes for part in manifest.parts}
        for sha256 in sorted(manifest.files()):
            yield NamedFile("datasets", sha256, needed_by, sizes.get(sha256))


def _sweep(house: House) -> Callable[[], object]:
    return house.get(DatasetService).sweep


ROOM = Room(
    name="datasets",
    routes=ROUTES,
    files=(_files,),
    sweeps=(_sweep,),
)

#: What is in a version; documents show it after what reads versions.
ROWS = Room(name="rows", nouns=("datasets",), routes=ROW_ROUTES)
