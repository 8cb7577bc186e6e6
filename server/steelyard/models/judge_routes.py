"""``/v1/judges``: language models that run on this server, for its operators."""

from __future__ import annotations

import functools

from steelyard import errors
from steelyard.errors import KeyScopeError
from steelyard.http.routing import Access, Call, Route
from steelyard.models.judge_setup import JudgeSetup
from steelyard.models.judge_wire import CalibrateJudge, Judge, JudgeList, RouteJudge


def _check_operator(call: Call) -> None:
    """Refuse a key that is not of whoever runs this server; sessions were checked already."""
    if call.caller.session is None and not call.caller.is_operator:
        raise KeyScopeError(
            "Judges are set up by whoever runs this server: sign in as an operator, or call with a key "
            "of scope full of the account local."
        )


async def get_judges(call: Call) -> JudgeList:
    """Return the judges of the catalogue and of this server."""
    return await call.service(JudgeSetup).list()


async def download_judge(call: Call) -> Judge:
    """Begin to download a judge."""
    return await call.service(JudgeSetup).download(call.path["judge"])


async def connect_judge(call: Call) -> Judge:
    """Connect a judge that was downloaded."""
    return await call.service(JudgeSetup).connect(call.path["judge"])


async def check_judge(call: Call) -> Judge:
    """Begin to check a judge."""
    return await call.service(JudgeSetup).check(call.path["judge"])


async def calibrate_judge(call: Call) -> Judge:
    """Begin to calibrate a judge."""
    return await call.service(JudgeSetup).calibrate(call.caller, call.path["judge"], call.body)


async def route_judge(call: Call) -> Judge:
    """Use a judge in a route."""
    return await call.service(JudgeSetup).use_in_route(call.path["judge"], call.body)


_route = functools.partial(
    Route, access=Access.KEYED, tags=("models",), for_operators=True, check=_check_operator
)
_change = functools.partial(_route, method="POST", response=Judge)
_BUSY = (errors.NotFoundError, errors.ModelUnavailableError, errors.QueueFullError)

JUDGE_ROUTES = (
    _route(
        method="GET",
        path="/v1/judges",
        use=get_judges,
        summary="List the language models that can run on this server, and how far each is set up.",
        response=JudgeList,
    ),
    _change(
        path="/v1/judges/{judge}/download",
        use=download_judge,
        summary="Download a judge of the catalogue and check its hash, or go on with it.",
        errors=_BUSY,
    ),
    _change(
        path="/v1/judges/{judge}/connect",
        use=connect_judge,
        summary="Connect a judge that was downloaded, so that requests may name it.",
        errors=_BUSY,
    ),
    _change(
        path="/v1/judges/{judge}/check",
        use=check_judge,
        summary="Ask a judge a fixed set of questions, to see whether its answers hold.",
        errors=_BUSY,
    ),
    _change(
        path="/v1/judges/{judge}/calibrate",
        use=calibrate_judge,
        summary="Calibrate a judge on a dataset; kept where the held-out log loss is lower.",
        request=CalibrateJudge,
        errors=(*_BUSY, errors.DatasetDeletedError),
    ),
    _change(
        path="/v1/judges/{judge}/route",
        use=route_judge,
        summary="Use a judge in a route, for what the shipped model is not sure of.",
        request=RouteJudge,
        errors=(*_BUSY, errors.InvalidRequestError),
    ),
)
