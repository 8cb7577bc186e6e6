"""The room of rows and their versions."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection

from steelyard.datasets.from_feedback import FeedbackRows
from steelyard.datasets.ingesting import RowBounds
from steelyard.datasets.routes import ROUTES, ROW_ROUTES
from steelyard.datasets.row_service import DatasetRows
from steelyard.datasets.service import DatasetService
from steelyard.datasets.store import manifests
from steelyard.decision_log.answers import StoredAnswers
from steelyard.errors import datasets as errors
from steelyard.errors import errors_of
from steelyard.house import House
from steelyard.room import NamedFile, Room
from steelyard.serving.registry import ModelRegistry


def _open_base(house: House) -> tuple[object, ...]:
    bounds = RowBounds(house.settings.dataset_min_rows, house.settings.dataset_rows)
    return bounds, DatasetService(
        house.state, house.frames("datasets"), house.writes, bounds=bounds
    )


def _open(
    house: House, datasets: DatasetService, registry: ModelRegistry, answers: StoredAnswers
) -> tuple[object, ...]:
    model = registry.default
    store = house.frames("datasets")
    rows = DatasetRows(datasets, store, embed=model.embed, scorer=model.evaluation_key)
    house.close_at_end(rows)
    return rows, FeedbackRows(
        house.state,
        datasets,
        store,
        house.writes,
        retention_days=house.settings.retention_days,
        answers=answers,
    )


def _files(connection: Connection) -> Iterator[NamedFile]:
    for manifest in manifests(connection):
        needed_by = f"version {manifest.version} of the dataset {manifest.dataset_id}"
        sizes = {part.sha256: part.bytes for part in manifest.parts}
        for sha256 in sorted(manifest.files()):
            yield NamedFile("datasets", sha256, needed_by, sizes.get(sha256))


def _sweep(datasets: DatasetService) -> None:
    datasets.sweep()


ROOM = Room(
    name="datasets",
    after=("decision_log",),
    errors=errors_of(errors),
    routes=ROUTES,
    base=_open_base,
    open=_open,
    files=(_files,),
    sweeps=(_sweep,),
)

#: What is in a version; documents show it after what reads versions.
ROWS = Room(name="rows", nouns=("datasets",), routes=ROW_ROUTES)
