"""``/v1/labeling``: queries labelled by other models, reviewed, and made datasets."""

from __future__ import annotations

from functools import partial

from msgspec import Struct
from sanic import Request

from steelyard import errors
from steelyard.datasets.upload_bodies import NDJSON
from steelyard.datasets.uploads import Upload
from steelyard.datasets.wire import Dataset
from steelyard.http.bodies import media_type_of, read_stream
from steelyard.http.routing import KEY_ERRORS, REVIEWERS, Access, Call, Form, row
from steelyard.job_frame.routes import job_routes
from steelyard.labeling import wire
from steelyard.labeling.finalizing import LabelingFinalizer, read_finalize
from steelyard.labeling.reviewed import LabelingReviews
from steelyard.labeling.service import LabelingJobs
from steelyard.labeling.sources import LabelingSources
from steelyard.labeling.teachers import Teachers
from steelyard.ledger.max_price import priced
from steelyard.serving.routes import UNCALLABLE

_route = partial(row, access=Access.KEYED, tags=("labeling",))
_read = partial(_route, roles=REVIEWERS)
_JOB = "/v1/labeling/jobs/{labeling_job}"
_SOURCE = "/v1/labeling/sources/{source}"


async def _upload(request: Request, call: Call) -> Struct:
    media_type_of(request, NDJSON)
    with Upload("jsonl") as upload:
        file = upload.add_file("examples")
        await read_stream(request, file.write)
        return await call.service(LabelingSources).upload(call.write, call.query, file)


_JOB_ROUTES = job_routes(
    LabelingJobs,
    "/v1/labeling/jobs",
    "labeling_job",
    tag="labeling",
    job=wire.LabelingJob,
    query=wire.LabelingQuery,
    summaries=(
        "Page the account's labeling jobs, the newest first.",
        "Return a job: how far it is, and how far teachers agree once labels are ready.",
        "Stop a job; nothing is charged unless its labels were ready.",
    ),
    readers=REVIEWERS,
)

ROUTES = (
    _read(
        "GET /v1/labeling/teachers",
        Teachers.available,
        "Return the models that may label rows; `reason` says why there are none.",
    ),
    _route(
        "POST /v1/labeling/sources",
        handler=_upload,
        summary="Upload queries to be labelled: rows without targets, one a line.",
        query=wire.UploadQuery,
        forms=(
            Form(
                NDJSON,
                {
                    "type": "string",
                    "description": "`context`, and `decisions` or those of the job.",
                },
            ),
        ),
        max_body="upload",
        response=wire.LabelingSource,
        errors=(
            *KEY_ERRORS,
            errors.TooManyLinesError,
            errors.NoRowsError,
            errors.InvalidExampleError,
        ),
    ),
    _read(
        "GET /v1/labeling/sources",
        LabelingSources.page,
        "Page the account's sources, the newest first.",
    ),
    _read(
        f"GET {_SOURCE}",
        LabelingSources.get,
        "Return a source.",
        errors=(errors.SourceDeletedError,),
    ),
    _read(
        f"GET {_SOURCE}/rows",
        LabelingSources.rows,
        "Page the queries of a source, in order.",
        errors=(errors.SourceDeletedError,),
    ),
    _route(
        f"DELETE {_SOURCE}",
        LabelingSources.delete,
        "Delete a source and what teachers said of it, for good; its datasets stay.",
        errors=(*KEY_ERRORS, errors.SourceDeletedError),
    ),
    _route(
        "POST /v1/labeling/jobs",
        LabelingJobs.create,
        "Ask teachers to label a source; the price is held, and charged once labels are ready.",
        read=priced(wire.CreateLabelingJob),
        errors=(
            *KEY_ERRORS,
            *UNCALLABLE,
            errors.SourceDeletedError,
            errors.InsufficientCreditError,
            errors.KeyCapReachedError,
            errors.PriceChangedError,
            errors.TenantQueueFullError,
            errors.QueueFullError,
            errors.LabelingUnavailableError,
        ),
    ),
    _JOB_ROUTES.page,
    _JOB_ROUTES.get,
    _read(
        f"GET {_JOB}/results",
        LabelingJobs.results,
        "Page the rows with what each teacher said of them, from `review_ready` on.",
        errors=(
            errors.LabelingNotReadyError,
            errors.SourceDeletedError,
            errors.RowsLabelledApartError,
        ),
    ),
    _read(
        f"GET {_JOB}/reviewed",
        LabelingReviews.find,
        "Return each teacher's agreement with the reviewed rows of the job's dataset.",
        errors=(
            errors.LabelingNotReadyError,
            errors.SourceDeletedError,
            errors.DatasetDeletedError,
        ),
    ),
    _JOB_ROUTES.cancel,
    _route(
        f"POST {_JOB}/discard",
        LabelingJobs.discard,
        "Drop a job whose labels are ready, without a dataset.",
        errors=(*KEY_ERRORS, errors.LabelingNotReadyError, errors.JobFinalizedError),
    ),
    _route(
        f"POST {_JOB}/finalize",
        LabelingFinalizer.finalize,
        "Make a dataset of accepted rows; the same selection gives the same dataset.",
        read=read_finalize,
        response=Dataset,
        errors=(
            *KEY_ERRORS,
            errors.LabelingNotReadyError,
            errors.JobFinalizedError,
            errors.SourceDeletedError,
            errors.DatasetDeletedError,
            errors.TooFewRowsError,
            errors.TooManyRowsError,
            errors.InvalidExampleError,
            errors.SideConflictError,
        ),
    ),
)
