"""An operator's calls of the judge routes: one function a route."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.client.calls import Call
from steelyard.client.routes import listed, route
from steelyard.models.judge_wire import Judge, JudgeList
from steelyard.models.qualification_wire import QualificationList
from steelyard.models.setup_wire import ModelSetup
from steelyard.wire.origins import LabelledBy


@route("GET /v1/judges", JudgeList)
def list_judges() -> Call[JudgeList]:
    """Return the judges of the catalogue and of the server: ``GET /v1/judges``."""


@route("GET /v1/setups/{setup_id}", ModelSetup)
def get_setup(setup_id: str) -> Call[ModelSetup]:
    """Return a job that sets up a judge or a route: ``GET /v1/setups/{setup}``."""


@route("POST /v1/judges/{name}/download", Judge)
def download(name: str) -> Call[Judge]:
    """Begin to download a judge: ``POST /v1/judges/{judge}/download``."""


@route("POST /v1/judges/{name}/stop", Judge)
def stop(name: str) -> Call[Judge]:
    """Stop a judge's work; a download can be resumed: ``POST /v1/judges/{judge}/stop``."""


@route("POST /v1/judges/{name}/connect", Judge)
def connect(name: str) -> Call[Judge]:
    """Connect a judge that was downloaded: ``POST /v1/judges/{judge}/connect``."""


@route("POST /v1/judges/{name}/disconnect", Judge)
def disconnect(name: str) -> Call[Judge]:
    """Disconnect a model; its file stays: ``POST /v1/judges/{judge}/disconnect``."""


@route("POST /v1/judges/{name}/think", Judge)
def think(name: str, below: float | None = None, *, tokens: int | None = None) -> Call[Judge]:
    """Set when a judge writes before it answers: ``POST /v1/judges/{judge}/think``.

    It writes where the top probability of its first answer is below ``below``, at most ``tokens``
    tokens, 200 by default. Without ``below`` it answers at once.
    """


@route("POST /v1/judges/{name}/check", Judge)
def check(name: str) -> Call[Judge]:
    """Begin to check a judge: ``POST /v1/judges/{judge}/check``."""


@route("POST /v1/judges/{name}/calibrate", Judge)
def calibrate(name: str, dataset_id: str, *, rows: int | None = None) -> Call[Judge]:
    """Begin to calibrate a judge on a dataset: ``POST /v1/judges/{judge}/calibrate``.

    At most ``rows`` of each side are asked; 200 by default.
    """


@route("GET /v1/judges/{name}/qualifications", QualificationList)
def qualifications(name: str) -> Call[QualificationList]:
    """Return a judge's qualifications: ``GET /v1/judges/{judge}/qualifications``."""


@route("POST /v1/judges/{name}/qualifications", Judge, labelled_by=listed)
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


@route("POST /v1/judges/{name}/route", Judge)
def use_in_route(name: str, route: str = "auto") -> Call[Judge]:
    """Use a judge in a route, where the shipped model is unsure: ``POST /v1/judges/{judge}/route``."""
