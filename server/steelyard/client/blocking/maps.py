"""``client.maps``: the rows of a dataset as points in a plane."""

# Made of asynchronous/maps.py by scripts/blocking_client.py: edit that one.

from __future__ import annotations

from pathlib import Path

from steelyard.client import map_calls as calls
from steelyard.client.blocking.resource import JobResource, pages
from steelyard.client.calls import blocking_method as _method
from steelyard.client.saving import check_free, format_of
from steelyard.client.waiting import MAPS
from steelyard.maps.wire import DatasetMap
from steelyard.wire.queries import ExportFormat


class Maps(JobResource[DatasetMap]):
    """The rows of a dataset as points in a plane: ``client.maps``."""

    _kind = MAPS
    _look = staticmethod(calls.get)
    list = pages(calls.page)
    create = _method(calls.create)
    get = _method(calls.get)
    points = _method(calls.points)
    values = _method(calls.values)
    cancel = _method(calls.cancel)

    def export_to(
        self,
        map_id: str,
        path: str | Path,
        *,
        decision: str | None = None,
        evaluation: str | None = None,
        format: ExportFormat | None = None,  # noqa: A002
        force: bool = False,
    ) -> Path:
        """Write a map's points to a file, or to a folder that Hugging Face ``datasets`` loads.

        Parameters
        ----------
        path : path
            A file, or a folder where the format is ``hf`` and the path does not end with ``.zip``.
        decision : str, optional
            Whose labels stand beside the points.
        evaluation : str, optional
            Id of an evaluation of the dataset, whose model's answers to the decision are there too.
        format : {"csv", "parquet", "hf"}, optional
            That of the path's ending when left out; a path without one of them is a folder.
        force : bool, default False
            Whether to replace what is there.

        Raises
        ------
        ValueError
            When an evaluation is named without a decision.
        """
        if evaluation is not None and decision is None:
            raise ValueError("evaluation needs decision: name the decision that it answered.")
        from steelyard.client.map_table import write_points  # noqa: PLC0415  Arrow loads slowly

        path = Path(path)
        check_free(path, force=force)
        points = self.send(calls.points(map_id))
        values = None
        if decision is not None:
            values = self.send(calls.values(map_id, decision, evaluation=evaluation))
        return write_points(points, values, path, format_of(path, format), force=force)
