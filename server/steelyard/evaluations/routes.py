"""``/v1/evaluations``: models scored on a dataset's evaluation rows, and their measures."""

from __future__ import annotations

from functools import partial

from sanic import Request

from steelyard import errors
from steelyard.evaluations.figures import EvaluationFigures
from steelyard.evaluations.frontier import EvaluationFrontier
from steelyard.evaluations.queries_wire import EvaluationsQuery, ExportRecordsQuery
from steelyard.evaluations.service import EvaluationService
from steelyard.evaluations.wire import Evaluation, EvaluationDetail
from steelyard.exports import MEDIA_TYPES
from steelyard.http.bodies import send_stream
from steelyard.http.routing import KEY_ERRORS, Access, Call, row
from steelyard.job_frame.routes import job_routes
from steelyard.serving.routes import UNCALLABLE


async def get_export(request: Request, call: Call) -> None:
    """Send scored decisions as a Parquet file, as CSV or as a folder of ``datasets``."""
    query: ExportRecordsQuery = call.query
    pieces = await call.service(EvaluationFigures).export(
        call.caller, call.path["evaluation"], query
    )
    await send_stream(request, pieces, MEDIA_TYPES[query.format])


_route = partial(row, access=Access.KEYED, tags=("evaluations",))
_FULL = (errors.TenantQueueFullError, errors.QueueFullError)
_READ_ERRORS = (errors.DatasetDeletedError, errors.EvaluationNotReadyError)
_MEASURED = (*_READ_ERRORS, errors.NotMeasurableError, errors.SupervisionMismatchError)
_JOBS = job_routes(
    EvaluationService,
    "/v1/evaluations",
    "evaluation",
    tag="evaluations",
    job=Evaluation,
    query=EvaluationsQuery,
    summaries=(
        "Page a dataset's evaluations, the newest first.",
        "Return an evaluation: how far it is, and its metrics once it has succeeded.",
        "Stop an evaluation; its predictions are kept.",
    ),
)

ROUTES = (
    _route(
        "POST /v1/evaluations",
        EvaluationService.create,
        "Score models on a dataset's evaluation rows; what was scored already is reused.",
        errors=(
            *KEY_ERRORS,
            *_FULL,
            *UNCALLABLE,
            errors.DatasetArchivedError,
            errors.DatasetDeletedError,
            errors.SupervisionMismatchError,
            errors.TaskMismatchError,
            errors.TooFewRowsError,
        ),
    ),
    _JOBS.page,
    _route(
        "GET /v1/evaluations/compare",
        EvaluationFigures.compare,
        "Compare two evaluations on the decisions that both scored, with every flip.",
        errors=_MEASURED,
    ),
    _route(
        "GET /v1/evaluations/frontier",
        EvaluationFrontier.find,
        "Return a dataset's models by what they achieve, cost and take.",
        errors=(
            errors.DatasetDeletedError,
            errors.SupervisionMismatchError,
            errors.NotMeasurableError,
        ),
    ),
    _JOBS.get,
    _JOBS.cancel,
    _route(
        "POST /v1/evaluations/{evaluation}/retry",
        EvaluationService.retry,
        "Take up an evaluation that failed or was cancelled, from what it has scored.",
        errors=(
            *KEY_ERRORS,
            *_FULL,
            errors.DatasetArchivedError,
            errors.DatasetDeletedError,
            errors.EvaluationNotRetryableError,
            errors.ModelUnavailableError,
        ),
    ),
    _route(
        "GET /v1/evaluations/{evaluation}/detail",
        EvaluationFigures.detail,
        "Return every measure by decision, outcome and slice, with n and 95 % intervals.",
        response=EvaluationDetail,
        errors=_READ_ERRORS,
    ),
    _route(
        "GET /v1/evaluations/{evaluation}/records",
        EvaluationFigures.records,
        "Page the scored decisions: all, or those behind a figure, with their contexts.",
        errors=(*_READ_ERRORS, errors.NotMeasurableError),
    ),
    _route(
        "GET /v1/evaluations/{evaluation}/export",
        handler=get_export,
        summary="Export the scored decisions as Parquet, CSV or a folder of Hugging Face datasets.",
        query=ExportRecordsQuery,
        errors=(*_READ_ERRORS, errors.NotMeasurableError),
        media_type=MEDIA_TYPES["parquet"],
        also_answers=("text/csv", MEDIA_TYPES["hf"]),
    ),
    _route(
        "POST /v1/evaluations/{evaluation}/policy",
        EvaluationFigures.try_policy,
        "Return what a policy would have done on the scored decisions.",
        errors=_MEASURED,
    ),
    _route(
        "POST /v1/evaluations/{evaluation}/costs",
        EvaluationFigures.cost_curve,
        "Return the mean cost of acting by threshold.",
        errors=_MEASURED,
    ),
    _route(
        "POST /v1/evaluations/{evaluation}/threshold",
        EvaluationFigures.outcome_threshold,
        "Find from which probability on to act on an outcome, by precision or by costs.",
        errors=_MEASURED,
    ),
)
