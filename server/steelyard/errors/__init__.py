"""Every error Steelyard raises on purpose: one tree, one body on the wire.

Here: the exceptions, their codes and statuses, and the body each gives. Not here: the HTTP headers
that go with them (``steelyard.api``). Every module may import this one; it imports none of ours.

::

    SteelyardError
    ├── MalformedRequestError            400  malformed_request             ValueError
    ├── MissingApiKeyError               401  missing_api_key               PermissionError
    ├── InvalidApiKeyError               401  invalid_api_key               PermissionError
    ├── InsufficientCreditError          402  insufficient_credit           RuntimeError
    ├── KeyCapReachedError               402  key_cap_reached               RuntimeError
    ├── KeyScopeError                    403  key_scope                     PermissionError
    ├── InvalidRequestError              422  invalid_request               ValueError
    ├── InvalidReferenceError            422  invalid_reference             ValueError
    ├── TooManyTokensError               422  too_many_tokens               ValueError
    ├── ContextTooLongError              422  context_too_long              ValueError
    ├── ImagesNotSupportedError          422  images_not_supported          ValueError
    ├── TaskMismatchError                422  task_mismatch                 ValueError
    ├── SupervisionMismatchError         422  supervision_mismatch          ValueError
    ├── SideConflictError                422  side_conflict                 ValueError
    ├── EvaluationOnlyError              422  evaluation_only               ValueError
    ├── NoRowsError                      422  no_rows                       ValueError
    ├── NoNewRowsError                   422  no_new_rows                   ValueError
    ├── InvalidExampleError              422  invalid_example               ValueError
    ├── InvalidCsvError                  422  invalid_csv                   ValueError
    ├── TooFewRowsError                  422  too_few_rows                  ValueError
    ├── NotMeasurableError               422  not_measurable                ValueError
    ├── InvalidNameError                 422  invalid_name                  ValueError
    ├── DatasetMismatchError             422  dataset_mismatch              ValueError
    ├── NotFoundError                    404  not_found                     LookupError
    ├── MethodNotAllowedError            405  method_not_allowed            RuntimeError
    ├── RequestTimeoutError              408  request_timeout               TimeoutError     retryable
    ├── IdempotencyConflictError         409  idempotency_conflict          ValueError
    ├── IdempotencyResponseExpiredError  409  idempotency_response_expired  LookupError
    ├── OutcomeUnknownError              409  outcome_unknown               RuntimeError
    ├── RequestInProgressError           409  request_in_progress           RuntimeError     retryable
    ├── DatasetArchivedError             409  dataset_archived              RuntimeError
    ├── DatasetChangedError              409  dataset_changed               RuntimeError
    ├── PriceChangedError                409  price_changed                 RuntimeError
    ├── StorageAllowanceError            409  storage_allowance             RuntimeError
    ├── VersionInUseError                409  version_in_use                RuntimeError
    ├── ModelUnavailableError            409  model_unavailable             RuntimeError
    ├── EvaluationNotReadyError          409  evaluation_not_ready          RuntimeError
    ├── EvaluationNotRetryableError      409  evaluation_not_retryable      RuntimeError
    ├── DraftConflictError               409  draft_conflict                RuntimeError
    ├── DraftChangedError                409  draft_changed                 RuntimeError
    ├── DraftSealedError                 409  draft_sealed                  RuntimeError
    ├── NothingToUndoError               409  nothing_to_undo               LookupError
    ├── FamilyOffError                   409  family_off                    RuntimeError
    ├── FamilyEmptyError                 409  family_empty                  LookupError
    ├── FamilyExistsError                409  family_exists                 ValueError
    ├── FamilyTrainingError              409  family_training               RuntimeError
    ├── FamilyAnswersError               409  family_answers                RuntimeError
    ├── FamilyChangedError               409  family_changed                RuntimeError
    ├── ServedChangedError               409  served_changed                RuntimeError
    ├── ModelOffError                    409  model_off                     RuntimeError
    ├── ModelAnswersError                409  model_answers                 RuntimeError
    ├── LatestModelError                 409  latest_model                  RuntimeError
    ├── LiveLimitError                   409  live_limit                    RuntimeError
    ├── WarmLimitError                   409  warm_limit                    RuntimeError
    ├── NothingToRollBackError           409  nothing_to_roll_back          RuntimeError
    ├── RollbackChangedError             409  rollback_changed              RuntimeError
    ├── NoNewDataError                   409  no_new_data                   RuntimeError
    ├── NotEnoughEvaluationDataError     409  not_enough_evaluation_data    RuntimeError
    ├── ModelChangedError                409  model_changed                 RuntimeError
    ├── DatasetDeletedError              410  dataset_deleted               LookupError
    ├── FamilyDeletedError               410  family_deleted                LookupError
    ├── ModelDeletedError                410  model_deleted                 LookupError
    ├── ModelDiscardedError              410  model_discarded               LookupError
    ├── PayloadTooLargeError             413  payload_too_large             ValueError
    ├── TooManyLinesError                413  too_many_lines                ValueError
    ├── TooManyRowsError                 413  too_many_rows                 ValueError
    ├── UnsupportedMediaTypeError        415  unsupported_media_type        ValueError
    ├── UnsupportedEncodingError         415  unsupported_encoding          ValueError
    ├── RateLimitedError                 429  rate_limited                  RuntimeError     retryable
    ├── TenantQueueFullError             429  tenant_queue_full             RuntimeError     retryable
    ├── InternalError                    500  internal_error                RuntimeError
    ├── EngineUnavailableError           503  engine_unavailable            RuntimeError     retryable
    ├── StorageUnavailableError          503  storage_unavailable           RuntimeError     retryable
    ├── QueueFullError                   503  queue_full                    RuntimeError     retryable
    ├── ModelWarmingError                503  model_warming                 RuntimeError     retryable
    ├── WarmCapacityError                503  warm_capacity                 RuntimeError     retryable
    ├── TokensCountingError              503  tokens_counting               RuntimeError     retryable
    ├── TrainingUnavailableError         503  training_unavailable          RuntimeError
    └── DeadlineExceededError            504  deadline_exceeded             TimeoutError     retryable
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.errors.base import MAX_DETAILS as MAX_DETAILS
from steelyard.errors.base import Operation as Operation
from steelyard.errors.base import PathStep as PathStep
from steelyard.errors.base import SteelyardError as SteelyardError
from steelyard.errors.base import Violation as Violation
from steelyard.errors.drafts import DraftChangedError as DraftChangedError
from steelyard.errors.drafts import DraftConflictError as DraftConflictError
from steelyard.errors.drafts import DraftSealedError as DraftSealedError
from steelyard.errors.drafts import NothingToUndoError as NothingToUndoError
from steelyard.errors.evaluations import EvaluationNotReadyError as EvaluationNotReadyError
from steelyard.errors.evaluations import EvaluationNotRetryableError as EvaluationNotRetryableError
from steelyard.errors.evaluations import NotMeasurableError as NotMeasurableError
from steelyard.errors.families import DatasetMismatchError as DatasetMismatchError
from steelyard.errors.families import FamilyAnswersError as FamilyAnswersError
from steelyard.errors.families import FamilyChangedError as FamilyChangedError
from steelyard.errors.families import FamilyDeletedError as FamilyDeletedError
from steelyard.errors.families import FamilyEmptyError as FamilyEmptyError
from steelyard.errors.families import FamilyExistsError as FamilyExistsError
from steelyard.errors.families import FamilyOffError as FamilyOffError
from steelyard.errors.families import FamilyTrainingError as FamilyTrainingError
from steelyard.errors.families import InvalidNameError as InvalidNameError
from steelyard.errors.families import LatestModelError as LatestModelError
from steelyard.errors.families import LiveLimitError as LiveLimitError
from steelyard.errors.families import ModelAnswersError as ModelAnswersError
from steelyard.errors.families import ModelChangedError as ModelChangedError
from steelyard.errors.families import ModelDeletedError as ModelDeletedError
from steelyard.errors.families import ModelDiscardedError as ModelDiscardedError
from steelyard.errors.families import ModelOffError as ModelOffError
from steelyard.errors.families import ModelWarmingError as ModelWarmingError
from steelyard.errors.families import NoNewDataError as NoNewDataError
from steelyard.errors.families import NotEnoughEvaluationDataError as NotEnoughEvaluationDataError
from steelyard.errors.families import NothingToRollBackError as NothingToRollBackError
from steelyard.errors.families import RollbackChangedError as RollbackChangedError
from steelyard.errors.families import ServedChangedError as ServedChangedError
from steelyard.errors.families import TokensCountingError as TokensCountingError
from steelyard.errors.families import TrainingUnavailableError as TrainingUnavailableError
from steelyard.errors.families import WarmCapacityError as WarmCapacityError
from steelyard.errors.families import WarmLimitError as WarmLimitError
from steelyard.errors.models import ModelUnavailableError as ModelUnavailableError


class MalformedRequestError(SteelyardError, ValueError):
    """Bytes that are no well-formed HTTP request."""

    code, status = "malformed_request", 400


class MissingApiKeyError(SteelyardError, PermissionError):
    """A call that needs an API key, without one."""

    code, status = "missing_api_key", 401


class InvalidApiKeyError(SteelyardError, PermissionError):
    """An API key that is malformed, unknown or revoked."""

    code, status = "invalid_api_key", 401


class InsufficientCreditError(SteelyardError, RuntimeError):
    """Less credit than the most that the request may cost."""

    code, status = "insufficient_credit", 402


class KeyCapReachedError(SteelyardError, RuntimeError):
    """A key that has spent its cap of the month."""

    code, status = "key_cap_reached", 402


class KeyScopeError(SteelyardError, PermissionError):
    """A call outside the scope of its API key."""

    code, status = "key_scope", 403


class InvalidRequestError(SteelyardError, ValueError):
    """A request with something wrong in it; ``details`` says what, field by field.

    Parameters
    ----------
    message : str, optional
        Left out, it is made of the violations.
    violations : sequence of Violation
        Everything found wrong, in the order found.
    n_unlisted : int
        How many more were found than ``violations`` holds.

    Examples
    --------
    >>> error = InvalidRequestError(violations=[Violation(("body", "a"), "Remove a.", "x")])
    >>> error.status, error.message, error.details[0]["path"]
    (422, 'Remove a.', ['body', 'a'])
    """

    code, status = "invalid_request", 422

    def __init__(
        self,
        message: str | None = None,
        *,
        violations: Sequence[Violation] = (),
        n_unlisted: int = 0,
        details: Sequence[Mapping[str, Any]] | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        listed = tuple(violations[:MAX_DETAILS])
        n_unlisted += len(violations) - len(listed)
        if message is None:
            message = _summary(listed, n_unlisted)
        if details is None and listed:
            details = [violation.body() for violation in listed]
        super().__init__(message, details=details, retry_after_s=retry_after_s)
        self.violations = listed


class InvalidReferenceError(SteelyardError, ValueError):
    """A name of a model in a form that the route does not take."""

    code, status = "invalid_reference", 422


class TooManyTokensError(SteelyardError, ValueError):
    """More input tokens in one request than the caller may send in a minute."""

    code, status = "too_many_tokens", 422


class ContextTooLongError(SteelyardError, ValueError):
    """More input tokens than one request may have."""

    code, status = "context_too_long", 422


class ImagesNotSupportedError(SteelyardError, ValueError):
    """Images sent to a model that reads text alone."""

    code, status = "images_not_supported", 422


class TaskMismatchError(SteelyardError, ValueError):
    """Rows that ask other decisions than their dataset, or word them otherwise."""

    code, status = "task_mismatch", 422


class SupervisionMismatchError(SteelyardError, ValueError):
    """Rows with targets where rewards are needed, or the other way round."""

    code, status = "supervision_mismatch", 422


class SideConflictError(SteelyardError, ValueError):
    """A context sent for a side that it is not on."""

    code, status = "side_conflict", 422


class EvaluationOnlyError(SteelyardError, ValueError):
    """Training rows for a dataset that has none."""

    code, status = "evaluation_only", 422


class NoRowsError(SteelyardError, ValueError):
    """A dataset or an addition without rows."""

    code, status = "no_rows", 422


class NoNewRowsError(SteelyardError, ValueError):
    """An addition of rows that the dataset has already."""

    code, status = "no_new_rows", 422


class InvalidExampleError(SteelyardError, ValueError):
    """Rows with something wrong in them; ``details`` has the first hundred, line by line."""

    code, status = "invalid_example", 422


class InvalidCsvError(SteelyardError, ValueError):
    """A CSV file that cannot be read as rows."""

    code, status = "invalid_csv", 422


class TooFewRowsError(SteelyardError, ValueError):
    """Fewer rows than the work needs."""

    code, status = "too_few_rows", 422


class NotFoundError(SteelyardError, LookupError):
    """A resource, model or route that is not there."""

    code, status = "not_found", 404


class MethodNotAllowedError(SteelyardError, RuntimeError):
    """A route asked with a method that it does not have."""

    code, status = "method_not_allowed", 405


class RequestTimeoutError(SteelyardError, TimeoutError):
    """A request that did not arrive in time."""

    code, status = "request_timeout", 408
    retryable = True


class IdempotencyConflictError(SteelyardError, ValueError):
    """An idempotency key that was used with another request."""

    code, status = "idempotency_conflict", 409


class IdempotencyResponseExpiredError(SteelyardError, LookupError):
    """An idempotency key whose answer is no longer kept; the request is not run again."""

    code, status = "idempotency_response_expired", 409


class OutcomeUnknownError(SteelyardError, RuntimeError):
    """A request without a key whose end the server cannot tell."""

    code, status = "outcome_unknown", 409


class RequestInProgressError(SteelyardError, RuntimeError):
    """An idempotency key whose request has not ended."""

    code, status = "request_in_progress", 409
    retryable = True
    default_retry_after_s = 2.0


class DatasetArchivedError(SteelyardError, RuntimeError):
    """New work on an archived dataset."""

    code, status = "dataset_archived", 409


class DatasetChangedError(SteelyardError, RuntimeError):
    """A dataset that got a version while another was made."""

    code, status = "dataset_changed", 409


class PriceChangedError(SteelyardError, RuntimeError):
    """A price above the most that the caller would pay."""

    code, status = "price_changed", 409


class StorageAllowanceError(SteelyardError, RuntimeError):
    """No room to store the result."""

    code, status = "storage_allowance", 409


class VersionInUseError(SteelyardError, RuntimeError):
    """A deletion of what work still reads."""

    code, status = "version_in_use", 409


class DatasetDeletedError(SteelyardError, LookupError):
    """A dataset that was deleted for good."""

    code, status = "dataset_deleted", 410


class PayloadTooLargeError(SteelyardError, ValueError):
    """A body over the bound."""

    code, status = "payload_too_large", 413


class TooManyLinesError(SteelyardError, ValueError):
    """An upload of more lines than rows may be sent."""

    code, status = "too_many_lines", 413


class TooManyRowsError(SteelyardError, ValueError):
    """More rows than a dataset may have."""

    code, status = "too_many_rows", 413


class UnsupportedMediaTypeError(SteelyardError, ValueError):
    """A body of a content type that the route does not read."""

    code, status = "unsupported_media_type", 415


class UnsupportedEncodingError(SteelyardError, ValueError):
    """A body compressed in a way that the server does not undo."""

    code, status = "unsupported_encoding", 415


class RateLimitedError(SteelyardError, RuntimeError):
    """More requests than the caller may send now."""

    code, status = "rate_limited", 429
    retryable = True
    default_retry_after_s = 1.0


class TenantQueueFullError(SteelyardError, RuntimeError):
    """An account's own queue of jobs without a place."""

    code, status = "tenant_queue_full", 429
    retryable = True
    default_retry_after_s = 5.0


class InternalError(SteelyardError, RuntimeError):
    """A fault of the server itself."""

    code, status = "internal_error", 500


class EngineUnavailableError(SteelyardError, RuntimeError):
    """The scoring engine cannot answer at the moment."""

    code, status = "engine_unavailable", 503
    retryable = True
    default_retry_after_s = 1.0


class StorageUnavailableError(SteelyardError, RuntimeError):
    """The state cannot be written at the moment: the disk is full, or the database is away."""

    code, status = "storage_unavailable", 503
    retryable = True
    default_retry_after_s = 5.0


class QueueFullError(SteelyardError, RuntimeError):
    """The server's queue of jobs without a place."""

    code, status = "queue_full", 503
    retryable = True
    default_retry_after_s = 5.0


class DeadlineExceededError(SteelyardError, TimeoutError):
    """No answer by the deadline, and nothing was charged."""

    code, status = "deadline_exceeded", 504
    retryable = True


def error_classes() -> dict[str, type[SteelyardError]]:
    """Give every class of the tree by its code.

    Examples
    --------
    >>> error_classes()["not_found"].__name__
    'NotFoundError'
    """
    found: dict[str, type[SteelyardError]] = {}
    pending: list[type[SteelyardError]] = SteelyardError.__subclasses__()
    while pending:
        cls = pending.pop()
        # Not a client's own, nor one that no route answers with yet: no server answers with it.
        if globals().get(cls.__name__) is cls:
            found[cls.code] = cls
        pending.extend(cls.__subclasses__())
    return dict(sorted(found.items()))


def error_from_body(
    status: int, body: object, *, retry_after_s: float | None = None
) -> SteelyardError:
    """Turn the body of a failed call back into the error that the server raised.

    Parameters
    ----------
    status : int
        The HTTP status, told in the message when the body is not one of ours.
    body : object
        The decoded JSON body, whatever it is.
    retry_after_s : float, optional
        Seconds, from the ``Retry-After`` header.

    Returns
    -------
    SteelyardError
        Of the class with the body's code; of the base class when the code or body is unknown.

    Examples
    --------
    >>> str(error_from_body(404, NotFoundError("There is no such row.").body("req_1")))
    'There is no such row.'
    """
    error = body.get("error") if isinstance(body, Mapping) else None
    if not isinstance(error, Mapping) or not isinstance(error.get("message"), str):
        return SteelyardError(
            f"The server answered {status} without an error body; is a Steelyard server there?",
            retry_after_s=retry_after_s,
        )
    details = error.get("details")
    if isinstance(details, list):  # of another server's, whatever they are
        details = [detail for detail in details if isinstance(detail, Mapping)]
    cls = error_classes().get(str(error.get("code")), SteelyardError)
    return cls(
        str(error["message"]),
        details=details if isinstance(details, list) else None,
        retry_after_s=retry_after_s,
    )


def _summary(violations: Sequence[Violation], n_unlisted: int) -> str:
    if not violations:
        return "The request is invalid; correct it and send it again."
    n_more = len(violations) - 1 + n_unlisted
    if n_more == 0:
        return violations[0].message
    are = "one more problem was found" if n_more == 1 else f"{n_more} more problems were found"
    all_listed = "" if n_unlisted == 0 else f" (the first {len(violations)} are listed)"
    return f"{violations[0].message} In all, {are}{all_listed}; see details."
