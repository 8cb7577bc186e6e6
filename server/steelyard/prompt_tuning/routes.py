"""``/v1/prompt-tuning``: a decision's wording rewritten, and the rewrite proved."""

from functools import partial

from steelyard import errors
from steelyard.http.routing import KEY_ERRORS, Access, row
from steelyard.job_frame.routes import job_routes
from steelyard.ledger.max_price import priced
from steelyard.prompt_tuning import wire
from steelyard.prompt_tuning.service import PromptTunings
from steelyard.serving.routes import UNCALLABLE

_route = partial(row, access=Access.KEYED, tags=("prompt tuning",))
_JOBS = "/v1/prompt-tuning/jobs"
_JOB = f"{_JOBS}/{{prompt_tuning_job}}"
_ROUTES = job_routes(
    PromptTunings,
    _JOBS,
    "prompt_tuning_job",
    tag="prompt tuning",
    job=wire.PromptTuningJob,
    query=wire.PromptTuningQuery,
    summaries=(
        "Page the account's prompt-tuning jobs, the newest first.",
        "Return a job: how far it is, and what it proved.",
        "Stop a job; nothing is charged.",
    ),
)

ROUTES = (
    _route(
        f"POST {_JOBS}",
        PromptTunings.create,
        "Tune a decision's wording; the price is held, and charged for an improvement.",
        read=priced(wire.CreatePromptTuning),
        errors=(
            *KEY_ERRORS,
            *UNCALLABLE,
            errors.DatasetArchivedError,
            errors.DatasetDeletedError,
            errors.SupervisionMismatchError,
            errors.ConflictingDecisionError,
            errors.StructuredWordingError,
            errors.TooFewRowsError,
            errors.TooManyTuningRowsError,
            errors.ImagesNotSupportedError,
            errors.TooFewPerOutcomeError,
            errors.UnbalancedSplitError,
            errors.InsufficientCreditError,
            errors.KeyCapReachedError,
            errors.PriceChangedError,
            errors.TenantQueueFullError,
            errors.QueueFullError,
        ),
    ),
    _ROUTES.page,
    _ROUTES.get,
    _route(
        f"PATCH {_JOB}",
        PromptTunings.change,
        "Dismiss the label issues of a job, or take that back; its result keeps them.",
        errors=(*KEY_ERRORS, errors.TuningNotSucceededError),
    ),
    _ROUTES.cancel,
)
