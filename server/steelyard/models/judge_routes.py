"""``/v1/judges`` and ``/v1/routes``: models that operators set up on this server."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import TypeVar

from msgspec import Struct

from steelyard import errors
from steelyard.errors import KeyScopeError
from steelyard.http.routing import Access, Call, row
from steelyard.job_frame.routes import job_routes
from steelyard.models.judge_setup import JudgeSetup
from steelyard.models.judge_wire import CalibrateJudge, Judge, JudgeList, RouteJudge
from steelyard.models.qualification_wire import QualificationList, QualifyJudge
from steelyard.models.qualifications import Qualifications
from steelyard.models.route_setup import RouteSetup
from steelyard.models.route_wire import FitRoute, ModelRoute, RemovedRoute, RouteList
from steelyard.models.setup_wire import ModelSetup, ModelSetupPage, ModelSetupsQuery
from steelyard.models.setups import ModelSetups

_Answer = TypeVar("_Answer", bound=Struct)


def _check_operator(call: Call) -> None:
    """Refuse a key that is not an operator's; sessions were checked already."""
    if call.caller.session is None and not call.caller.is_operator:
        raise KeyScopeError(
            "Judges and routes are set up by whoever runs this server: sign in as an operator, or call with a key "
            "of scope full of the account local."
        )


def _once(use: Callable[[Call], Awaitable[_Answer]]) -> Callable[[Call], Awaitable[_Answer]]:
    """Return a use case that is done once for each idempotency key."""

    @functools.wraps(use)
    def keyed(call: Call) -> Awaitable[_Answer]:
        return call.service(ModelSetups).once(call.write, lambda: use(call))

    return keyed


async def get_judges(call: Call) -> JudgeList:
    """Return the connected models and the judges of the catalogue."""
    return await call.service(JudgeSetup).list()


@_once
async def download_judge(call: Call) -> Judge:
    """Begin to download a judge."""
    return await call.service(JudgeSetup).download(call.caller, call.path["judge"])


@_once
async def stop_judge(call: Call) -> Judge:
    """Stop a judge's work."""
    return await call.service(JudgeSetup).stop(call.path["judge"])


@_once
async def connect_judge(call: Call) -> Judge:
    """Connect a judge that was downloaded."""
    return await call.service(JudgeSetup).connect(call.path["judge"])


@_once
async def check_judge(call: Call) -> Judge:
    """Begin to check a connected model."""
    return await call.service(JudgeSetup).check(call.caller, call.path["judge"])


@_once
async def calibrate_judge(call: Call) -> Judge:
    """Begin to calibrate a connected model."""
    return await call.service(JudgeSetup).calibrate(call.caller, call.path["judge"], call.body)


@_once
async def route_judge(call: Call) -> Judge:
    """Use a connected model in a route."""
    return await call.service(JudgeSetup).use_in_route(call.path["judge"], call.body)


async def get_qualifications(call: Call) -> QualificationList:
    """Return a judge's qualifications."""
    return await call.service(Qualifications).list(call.path["judge"])


@_once
async def qualify_judge(call: Call) -> Judge:
    """Begin to qualify a judge."""
    return await call.service(Qualifications).qualify(call.caller, call.path["judge"], call.body)


async def get_routes(call: Call) -> RouteList:
    """Return the routes of this server."""
    return await call.service(RouteSetup).list()


@_once
async def fit_route(call: Call) -> ModelRoute:
    """Begin to fit a route."""
    return await call.service(RouteSetup).fit(call.caller, call.body)


@_once
async def remove_route(call: Call) -> RemovedRoute:
    """Remove a route."""
    return await call.service(RouteSetup).remove(call.path["route"])


_route = functools.partial(
    row, access=Access.KEYED, tags=("models",), for_operators=True, check=_check_operator
)
_change = functools.partial(_route, response=Judge)
_KEYED = (errors.IdempotencyConflictError, errors.IdempotencyResponseExpiredError)
_BUSY = (
    errors.NotFoundError,
    errors.ModelUnavailableError,
    errors.QueueFullError,
    errors.TenantQueueFullError,
    *_KEYED,
)

JUDGE_ROUTES = (
    *job_routes(
        ModelSetups,
        "/v1/setups",
        "setup",
        tag="models",
        job=ModelSetup,
        page=ModelSetupPage,
        query=ModelSetupsQuery,
        summaries=(
            "Page the account's downloads, checks, calibrations and fits of models, the newest first.",
            "Return a setup of a model: how far it is.",
            "Stop a setup of a model; a download goes on where it was stopped.",
        ),
    ),
    _route(
        "GET /v1/judges",
        get_judges,
        "List the readers and language models that can run on this server, and how far each is.",
        errors=(errors.ModelUnavailableError,),
    ),
    _change(
        "POST /v1/judges/{judge}/download",
        download_judge,
        "Download a judge or a reader of the catalogue and check its hash, or go on with it.",
        errors=_BUSY,
    ),
    _change(
        "POST /v1/judges/{judge}/stop",
        stop_judge,
        "End a download or a calibration; a download goes on where it was stopped.",
        errors=(errors.NotFoundError, *_KEYED),
    ),
    _change(
        "POST /v1/judges/{judge}/connect",
        connect_judge,
        "Connect a judge that was downloaded, so that requests may name it.",
        errors=_BUSY,
    ),
    _change(
        "POST /v1/judges/{judge}/check",
        check_judge,
        "Ask a connected model a fixed set of questions, to see whether its answers hold.",
        errors=_BUSY,
    ),
    _change(
        "POST /v1/judges/{judge}/calibrate",
        calibrate_judge,
        "Calibrate a connected model on a dataset; kept where the held-out log loss is lower.",
        request=CalibrateJudge,
        errors=(*_BUSY, errors.DatasetDeletedError),
    ),
    _change(
        "POST /v1/judges/{judge}/route",
        route_judge,
        "Use a connected model in a route, for what the shipped model is not sure of.",
        request=RouteJudge,
        errors=(*_BUSY, errors.InvalidRequestError),
    ),
    _route(
        "GET /v1/judges/{judge}/qualifications",
        get_qualifications,
        "List what a judge qualified by, the newest first, and what of it is otherwise since.",
        errors=(errors.NotFoundError, errors.ModelUnavailableError),
    ),
    _change(
        "POST /v1/judges/{judge}/qualifications",
        qualify_judge,
        "Ask a judge held-out rows that people labelled; how far it agrees with them is kept for ever.",
        request=QualifyJudge,
        errors=(*_BUSY, errors.DatasetDeletedError),
    ),
    _route(
        "GET /v1/routes",
        get_routes,
        "List the routes of this server, with what their last fit came to.",
        errors=(errors.ModelUnavailableError,),
    ),
    _route(
        "POST /v1/routes",
        fit_route,
        "Fit a route on a dataset: a model decides what it is sure of, the next the rest.",
        request=FitRoute,
        errors=(*_BUSY, errors.DatasetDeletedError, errors.InvalidRequestError),
    ),
    _route(
        "DELETE /v1/routes/{route}",
        remove_route,
        "Remove a route; its models stay, and what it answered stays stored.",
        errors=(errors.NotFoundError, errors.ModelUnavailableError, *_KEYED),
    ),
)
