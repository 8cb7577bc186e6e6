"""An operator's calls of the judge routes: one function a route."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.client.calls import Call, read, segment, write
from steelyard.models.judge_wire import Judge, JudgeList
from steelyard.models.qualification_wire import QualificationList
from steelyard.models.setup_wire import ModelSetup
from steelyard.wire.origins import LabelledBy

_JUDGES = "/v1/judges"


def list_judges() -> Call[JudgeList]:
    """Return the judges of the catalogue and of the server: ``GET /v1/judges``."""
    return read(_JUDGES, JudgeList)


def get_setup(setup_id: str) -> Call[ModelSetup]:
    """Return a job that sets up a judge or a route: ``GET /v1/setups/{setup}``."""
    return read(f"/v1/setups/{segment(setup_id)}", ModelSetup)


def download(name: str) -> Call[Judge]:
    """Begin to download a judge: ``POST /v1/judges/{judge}/download``."""
    return write(f"{_JUDGES}/{segment(name)}/download", Judge, {}, key=None)


def stop(name: str) -> Call[Judge]:
    """Stop a judge's work; a download can be resumed: ``POST /v1/judges/{judge}/stop``."""
    return write(f"{_JUDGES}/{segment(name)}/stop", Judge, {}, key=None)


def connect(name: str) -> Call[Judge]:
    """Connect a judge that was downloaded: ``POST /v1/judges/{judge}/connect``."""
    return write(f"{_JUDGES}/{segment(name)}/connect", Judge, {}, key=None)


def check(name: str) -> Call[Judge]:
    """Begin to check a judge: ``POST /v1/judges/{judge}/check``."""
    return write(f"{_JUDGES}/{segment(name)}/check", Judge, {}, key=None)


def calibrate(name: str, dataset_id: str, *, rows: int | None = None) -> Call[Judge]:
    """Begin to calibrate a judge on a dataset: ``POST /v1/judges/{judge}/calibrate``.

    At most ``rows`` of each side are asked; 200 by default.
    """
    fields = {"dataset_id": dataset_id, "rows": rows}
    return write(f"{_JUDGES}/{segment(name)}/calibrate", Judge, fields, key=None)


def qualifications(name: str) -> Call[QualificationList]:
    """Return a judge's qualifications: ``GET /v1/judges/{judge}/qualifications``."""
    return read(f"{_JUDGES}/{segment(name)}/qualifications", QualificationList)


def qualify(
    name: str,
    dataset_id: str,
    *,
    rows: int | None = None,
    labelled_by: Sequence[LabelledBy] | None = None,
) -> Call[Judge]:
    """Begin to hold a judge to labels of people: ``POST /v1/judges/{judge}/qualifications``.

    At most ``rows`` held-out rows are asked, 50 to 2,000; 200 by default. Labels of ``person`` and
    ``expert`` count by default.
    """
    origins = None if labelled_by is None else list(labelled_by)
    fields = {"dataset_id": dataset_id, "rows": rows, "labelled_by": origins}
    return write(f"{_JUDGES}/{segment(name)}/qualifications", Judge, fields, key=None)


def use_in_route(name: str, route: str = "auto") -> Call[Judge]:
    """Use a judge in a route, where the shipped model is unsure: ``POST /v1/judges/{judge}/route``."""
    return write(f"{_JUDGES}/{segment(name)}/route", Judge, {"route": route}, key=None)
