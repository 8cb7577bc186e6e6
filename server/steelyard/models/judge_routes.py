"""``/v1/judges`` and ``/v1/routes``: models that operators set up on this server."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct

from steelyard import errors
from steelyard.errors import KeyScopeError
from steelyard.http.routing import KEY_ERRORS, Access, Call, Route, row
from steelyard.job_frame.routes import job_routes
from steelyard.models.judge_setup import JudgeSetup
from steelyard.models.qualifications import Qualifications
from steelyard.models.route_setup import RouteSetup
from steelyard.models.setup_wire import ModelSetup
from steelyard.models.setups import ModelSetups
from steelyard.wire.queries import PageQuery


def check_operator(call: Call) -> None:
    """Refuse a key that is not an operator's; sessions were checked already."""
    if call.caller.session is None and not call.caller.is_operator:
        raise KeyScopeError(
            "This is for operators of the server: sign in as one, or call with a key "
            "of scope full of the account local."
        )


_route = functools.partial(
    row, access=Access.KEYED, tags=("models",), for_operators=True, check=check_operator
)
_BUSY = (
    errors.ModelUnavailableError,
    errors.QueueFullError,
    errors.TenantQueueFullError,
    *KEY_ERRORS,
)


def _once(at: str, use: Callable[..., Awaitable[Struct]], summary: str, **fields: Any) -> Route:
    """Return a route whose use case is done once for each idempotency key."""
    route = _route(at, use, summary, **fields)
    change: Any = route.use

    def keyed(call: Call) -> Awaitable[Struct]:
        return call.service(ModelSetups).once(call.write, lambda: change(call))

    return dataclasses.replace(route, use=keyed)


JUDGE_ROUTES = (
    *job_routes(
        ModelSetups,
        "/v1/setups",
        "setup",
        tag="models",
        job=ModelSetup,
        query=PageQuery,
        summaries=(
            "Page the account's downloads, checks, calibrations and fits of models, the newest first.",
            "Return a setup of a model: how far it is.",
            "Stop a setup of a model; a download goes on where it was stopped.",
        ),
    ),
    _route(
        "GET /v1/judges",
        JudgeSetup.list,
        "List the readers and language models that can run on this server, and how far each is.",
        errors=(errors.ModelUnavailableError,),
    ),
    _once(
        "POST /v1/judges/{judge}/download",
        JudgeSetup.download,
        "Download a judge or a reader of the catalogue and check its hash, or go on with it.",
        errors=_BUSY,
    ),
    _once(
        "POST /v1/judges/{judge}/stop",
        JudgeSetup.stop,
        "End a download or a calibration; a download goes on where it was stopped.",
        errors=KEY_ERRORS,
    ),
    _once(
        "POST /v1/judges/{judge}/connect",
        JudgeSetup.connect,
        "Connect a judge that was downloaded, or whose file is here, so that requests may name it.",
        errors=_BUSY,
    ),
    _once(
        "POST /v1/judges/{judge}/disconnect",
        JudgeSetup.disconnect,
        "Disconnect a model, which requests may then no longer name; its file stays.",
        errors=(errors.ModelUnavailableError, *KEY_ERRORS),
    ),
    _once(
        "POST /v1/judges/{judge}/think",
        JudgeSetup.think,
        "Set when a connected judge writes before it answers: where its first answer is not sure.",
        errors=(errors.ModelUnavailableError, *KEY_ERRORS),
    ),
    _once(
        "POST /v1/judges/{judge}/check",
        JudgeSetup.check,
        "Ask a connected model a fixed set of questions, to see whether its answers hold.",
        errors=_BUSY,
    ),
    _once(
        "POST /v1/judges/{judge}/calibrate",
        JudgeSetup.calibrate,
        "Calibrate a connected model on a dataset; kept where the held-out log loss is lower.",
        errors=(*_BUSY, errors.DatasetDeletedError),
    ),
    _once(
        "POST /v1/judges/{judge}/route",
        JudgeSetup.use_in_route,
        "Use a connected model in a route, for what the shipped model is not sure of.",
        errors=_BUSY,
    ),
    _route(
        "GET /v1/judges/{judge}/qualifications",
        Qualifications.list,
        "List what a judge qualified by, the newest first, and what of it is otherwise since.",
        errors=(errors.ModelUnavailableError,),
    ),
    _once(
        "POST /v1/judges/{judge}/qualifications",
        Qualifications.qualify,
        "Ask a judge held-out rows that people labelled; how far it agrees with them is kept for ever.",
        errors=(*_BUSY, errors.DatasetDeletedError),
    ),
    _route(
        "GET /v1/routes",
        RouteSetup.list,
        "List the routes of this server, with what their last fit came to.",
        errors=(errors.ModelUnavailableError,),
    ),
    _once(
        "POST /v1/routes",
        RouteSetup.fit,
        "Fit a route on a dataset: a model decides what it is sure of, the next the rest.",
        errors=(*_BUSY, errors.DatasetDeletedError),
    ),
    _once(
        "DELETE /v1/routes/{route}",
        RouteSetup.remove,
        "Remove a route; its models stay, and what it answered stays stored.",
        errors=(errors.ModelUnavailableError, *KEY_ERRORS),
    ),
)
