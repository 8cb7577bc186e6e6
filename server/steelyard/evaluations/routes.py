"""``/v1/evaluations``: models scored on a dataset's evaluation rows, and their measures."""

from __future__ import annotations

from functools import partial

from sanic import Request

from steelyard import errors
from steelyard.evaluations.figures import EvaluationFigures
from steelyard.evaluations.frontier import EvaluationFrontier
from steelyard.evaluations.frontier_wire import Frontier
from steelyard.evaluations.queries_wire import (
    ComparisonQuery,
    CostTrial,
    CreateEvaluation,
    EvaluationsQuery,
    ExportRecordsQuery,
    FrontierQuery,
    PolicyTrial,
    RecordsQuery,
)
from steelyard.evaluations.service import EvaluationService
from steelyard.evaluations.thresholds_wire import OutcomeThreshold, ThresholdTrial
from steelyard.evaluations.wire import (
    CostCurve,
    Evaluation,
    EvaluationComparison,
    EvaluationDetail,
    EvaluationPage,
    EvaluationRecordPage,
    EvaluationSubmission,
    PolicyReport,
)
from steelyard.exports import MEDIA_TYPES
from steelyard.http.bodies import send_stream
from steelyard.http.routing import Access, Call, Route
from steelyard.job_frame.routes import KEYED_ERRORS, job_routes
from steelyard.serving.routes import UNCALLABLE


async def get_export(request: Request, call: Call) -> None:
    """Send scored decisions as a Parquet file, as CSV or as a folder of ``datasets``."""
    query: ExportRecordsQuery = call.query
    pieces = await call.service(EvaluationFigures).export(
        call.caller, call.path["evaluation"], query
    )
    await send_stream(request, pieces, MEDIA_TYPES[query.format])


_route = partial(Route, access=Access.KEYED, tags=("evaluations",))
_FULL = (errors.TenantQueueFullError, errors.QueueFullError)
_READ_ERRORS = (errors.NotFoundError, errors.DatasetDeletedError, errors.EvaluationNotReadyError)
_MEASURED = (*_READ_ERRORS, errors.NotMeasurableError, errors.SupervisionMismatchError)
_JOBS = job_routes(
    EvaluationService,
    "/v1/evaluations",
    "evaluation",
    tag="evaluations",
    job=Evaluation,
    page=EvaluationPage,
    query=EvaluationsQuery,
    summaries=(
        "Page a dataset's evaluations, the newest first.",
        "Return an evaluation: how far it is, and its metrics once it has succeeded.",
        "Stop an evaluation; its predictions are kept.",
    ),
    page_errors=(errors.NotFoundError,),
)

ROUTES = (
    _route(
        method="POST",
        path="/v1/evaluations",
        use=lambda call: call.service(EvaluationService).create(call.write, call.body),
        summary="Score models on a dataset's evaluation rows; what was scored already is reused.",
        request=CreateEvaluation,
        response=EvaluationSubmission,
        errors=(
            *KEYED_ERRORS,
            *_FULL,
            *UNCALLABLE,
            errors.DatasetArchivedError,
            errors.DatasetDeletedError,
            errors.TooFewRowsError,
        ),
    ),
    _JOBS.page,
    _route(
        method="GET",
        path="/v1/evaluations/compare",
        use=lambda call: call.service(EvaluationFigures).compare(call.caller, call.query),
        summary="Compare two evaluations on the decisions that both scored, with every flip.",
        query=ComparisonQuery,
        response=EvaluationComparison,
        errors=_MEASURED,
    ),
    _route(
        method="GET",
        path="/v1/evaluations/frontier",
        use=lambda call: call.service(EvaluationFrontier).find(call.caller, call.query),
        summary="Return a dataset's models by what they achieve, cost and take.",
        query=FrontierQuery,
        response=Frontier,
        errors=(
            errors.NotFoundError,
            errors.DatasetDeletedError,
            errors.SupervisionMismatchError,
            errors.NotMeasurableError,
        ),
    ),
    _JOBS.get,
    _JOBS.cancel,
    _route(
        method="POST",
        path="/v1/evaluations/{evaluation}/retry",
        use=lambda call: call.service(EvaluationService).retry(call.write, call.path["evaluation"]),
        summary="Take up an evaluation that failed or was cancelled, from what it has scored.",
        response=Evaluation,
        errors=(
            *KEYED_ERRORS,
            *_FULL,
            errors.DatasetArchivedError,
            errors.DatasetDeletedError,
            errors.EvaluationNotRetryableError,
            errors.ModelUnavailableError,
        ),
    ),
    _route(
        method="GET",
        path="/v1/evaluations/{evaluation}/detail",
        use=lambda call: call.service(EvaluationFigures).detail(
            call.caller, call.path["evaluation"]
        ),
        summary="Return every measure by decision, outcome and slice, with n and 95 % intervals.",
        response=EvaluationDetail,
        errors=_READ_ERRORS,
    ),
    _route(
        method="GET",
        path="/v1/evaluations/{evaluation}/records",
        use=lambda call: call.service(EvaluationFigures).records(
            call.caller, call.path["evaluation"], call.query
        ),
        summary="Page the scored decisions: all, or those behind a figure, with their contexts.",
        query=RecordsQuery,
        response=EvaluationRecordPage,
        errors=(*_READ_ERRORS, errors.NotMeasurableError),
    ),
    _route(
        method="GET",
        path="/v1/evaluations/{evaluation}/export",
        handler=get_export,
        summary="Export the scored decisions as Parquet, CSV or a folder of Hugging Face datasets.",
        query=ExportRecordsQuery,
        errors=(*_READ_ERRORS, errors.NotMeasurableError),
        media_type=MEDIA_TYPES["parquet"],
        also_answers=("text/csv", MEDIA_TYPES["hf"]),
    ),
    _route(
        method="POST",
        path="/v1/evaluations/{evaluation}/policy",
        use=lambda call: call.service(EvaluationFigures).try_policy(
            call.caller, call.path["evaluation"], call.body
        ),
        summary="Return what a policy would have done on the scored decisions.",
        request=PolicyTrial,
        response=PolicyReport,
        errors=_MEASURED,
    ),
    _route(
        method="POST",
        path="/v1/evaluations/{evaluation}/costs",
        use=lambda call: call.service(EvaluationFigures).cost_curve(
            call.caller, call.path["evaluation"], call.body
        ),
        summary="Return the mean cost of acting by threshold.",
        request=CostTrial,
        response=CostCurve,
        errors=_MEASURED,
    ),
    _route(
        method="POST",
        path="/v1/evaluations/{evaluation}/threshold",
        use=lambda call: call.service(EvaluationFigures).outcome_threshold(
            call.caller, call.path["evaluation"], call.body
        ),
        summary="Find from which probability on to act on an outcome, by precision or by costs.",
        request=ThresholdTrial,
        response=OutcomeThreshold,
        errors=_MEASURED,
    ),
)
