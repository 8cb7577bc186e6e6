"""The composition of the room of maps."""

from __future__ import annotations

from collections.abc import Callable

from steelyard.app.foundation import Foundation
from steelyard.datasets.service import DatasetService
from steelyard.evaluations.service import EvaluationService
from steelyard.maps import store as map_rows
from steelyard.maps.service import DatasetMaps


def open_maps(
    on: Foundation,
    datasets: DatasetService,
    evaluations: EvaluationService,
    wake: Callable[[], None],
) -> DatasetMaps:
    """Return the maps of every account."""
    maps = DatasetMaps(
        on.state,
        on.frames("maps"),
        on.writes,
        datasets,
        evaluations,
        on.models,
        dataset_files=on.rows,
        prediction_files=on.frames("evaluations"),
        max_queue=on.settings.job_queue,
        max_queue_per_account=on.settings.job_queue_per_account,
        wake=wake,
    )
    datasets.register_reader(maps.reader_of, map_rows.erase_maps)
    return maps
