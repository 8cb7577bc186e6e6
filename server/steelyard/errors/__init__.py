"""Every error Steelyard raises on purpose: one tree, one body on the wire.

Here: the exceptions, their codes and statuses, and the body each gives. Not here: the HTTP headers
that go with them (``steelyard.http``). Every module may import this one; it imports none of ours.

::

    SteelyardError
    ├── MalformedRequestError                400  malformed_request             ValueError
    ├── UnauthenticatedError
    │   ├── MissingApiKeyError               401  missing_api_key               PermissionError
    │   ├── InvalidApiKeyError               401  invalid_api_key               PermissionError
    │   ├── InvalidSignatureError            401  invalid_signature             PermissionError
    │   ├── NotSignedInError                 401  not_signed_in                 PermissionError
    │   └── InvalidCodeError                 401  invalid_code                  PermissionError
    ├── PaymentRequiredError
    │   ├── InsufficientCreditError          402  insufficient_credit           RuntimeError
    │   └── KeyCapReachedError               402  key_cap_reached               RuntimeError
    ├── CrossSiteError                       403  cross_site_request            PermissionError
    ├── KeyScopeError                        403  key_scope                     PermissionError
    ├── SignUpRefusedError                   403  sign_up_refused               PermissionError
    ├── ConsoleOnlyError                     403  console_only                  PermissionError
    ├── RoleForbiddenError                   403  role_forbidden                PermissionError
    ├── ConfirmSignInError                   403  confirm_sign_in               PermissionError
    ├── NotFoundError                        404  not_found                     LookupError
    ├── MethodNotAllowedError                405  method_not_allowed            RuntimeError
    ├── RequestTimeoutError                  408  request_timeout               TimeoutError     retryable
    ├── ConflictError
    │   ├── IdempotencyConflictError         409  idempotency_conflict          ValueError
    │   ├── IdempotencyResponseExpiredError  409  idempotency_response_expired  LookupError
    │   ├── OutcomeUnknownError              409  outcome_unknown               RuntimeError
    │   ├── RequestInProgressError           409  request_in_progress           RuntimeError     retryable
    │   ├── DatasetArchivedError             409  dataset_archived              RuntimeError
    │   ├── DatasetChangedError              409  dataset_changed               RuntimeError
    │   ├── PriceChangedError                409  price_changed                 RuntimeError
    │   ├── StorageAllowanceError            409  storage_allowance             RuntimeError
    │   ├── VersionInUseError                409  version_in_use                RuntimeError
    │   ├── ModelUnavailableError            409  model_unavailable             RuntimeError
    │   ├── EvaluationNotReadyError          409  evaluation_not_ready          RuntimeError
    │   ├── EvaluationNotRetryableError      409  evaluation_not_retryable      RuntimeError
    │   ├── LabelingNotReadyError            409  labeling_not_ready            RuntimeError
    │   ├── JobFinalizedError                409  job_finalized                 RuntimeError
    │   ├── MapNotReadyError                 409  map_not_ready                 RuntimeError
    │   ├── TuningNotSucceededError          409  tuning_not_succeeded          RuntimeError
    │   ├── DraftConflictError               409  draft_conflict                RuntimeError
    │   ├── DraftChangedError                409  draft_changed                 RuntimeError
    │   ├── DraftSealedError                 409  draft_sealed                  RuntimeError
    │   ├── RowsLabelledApartError           409  rows_labelled_apart           RuntimeError
    │   ├── NothingToUndoError               409  nothing_to_undo               LookupError
    │   ├── FamilyOffError                   409  family_off                    RuntimeError
    │   ├── FamilyEmptyError                 409  family_empty                  LookupError
    │   ├── FamilyExistsError                409  family_exists                 ValueError
    │   ├── FamilyTrainingError              409  family_training               RuntimeError
    │   ├── FamilyAnswersError               409  family_answers                RuntimeError
    │   ├── FamilyChangedError               409  family_changed                RuntimeError
    │   ├── ServedChangedError               409  served_changed                RuntimeError
    │   ├── BoundNotCertifiedError           409  bound_not_certified           RuntimeError
    │   ├── NoveltyUnknownError              409  novelty_unknown               RuntimeError
    │   ├── ModelOffError                    409  model_off                     RuntimeError
    │   ├── ModelAnswersError                409  model_answers                 RuntimeError
    │   ├── LatestModelError                 409  latest_model                  RuntimeError
    │   ├── LiveLimitError                   409  live_limit                    RuntimeError
    │   ├── WarmLimitError                   409  warm_limit                    RuntimeError
    │   ├── NothingToRollBackError           409  nothing_to_roll_back          RuntimeError
    │   ├── RollbackChangedError             409  rollback_changed              RuntimeError
    │   ├── NoNewDataError                   409  no_new_data                   RuntimeError
    │   ├── NotEnoughEvaluationDataError     409  not_enough_evaluation_data    RuntimeError
    │   ├── NoPaymentMethodError             409  no_payment_method             RuntimeError
    │   ├── PurchaseStateError               409  purchase_state                RuntimeError
    │   ├── ReferralRefusedError             409  referral_refused              RuntimeError
    │   ├── ModelChangedError                409  model_changed                 RuntimeError
    │   ├── WebhookLimitError                409  webhook_limit                 RuntimeError
    │   ├── WebhookOffError                  409  webhook_off                   RuntimeError
    │   ├── AccountNeededError               409  account_needed                RuntimeError
    │   ├── NamedDecisionExistsError         409  named_decision_exists         RuntimeError
    │   ├── NamedDecisionLimitError          409  named_decision_limit          RuntimeError
    │   ├── NamedDecisionArchivedError       409  named_decision_archived       RuntimeError
    │   ├── ComparisonNeededError            409  comparison_needed             RuntimeError
    │   ├── MoveRefusedError                 409  move_refused                  RuntimeError
    │   ├── AliasChangedError                409  alias_changed                 RuntimeError
    │   ├── ViewExistsError                  409  view_exists                   RuntimeError
    │   ├── ViewLimitError                   409  view_limit                    RuntimeError
    │   ├── PasskeyLimitError                409  passkey_limit                 RuntimeError
    │   ├── LastOwnerError                   409  last_owner                    RuntimeError
    │   └── MemberExistsError                409  member_exists                 RuntimeError
    ├── GoneError
    │   ├── DatasetDeletedError              410  dataset_deleted               LookupError
    │   ├── SourceDeletedError               410  source_deleted                LookupError
    │   ├── FamilyDeletedError               410  family_deleted                LookupError
    │   ├── ModelDeletedError                410  model_deleted                 LookupError
    │   └── ModelDiscardedError              410  model_discarded               LookupError
    ├── TooLargeError
    │   ├── PayloadTooLargeError             413  payload_too_large             ValueError
    │   ├── TooManyLinesError                413  too_many_lines                ValueError
    │   └── TooManyRowsError                 413  too_many_rows                 ValueError
    │       └── TooManyTuningRowsError       422  too_many_rows                 ValueError
    ├── UnsupportedError
    │   ├── UnsupportedMediaTypeError        415  unsupported_media_type        ValueError
    │   └── UnsupportedEncodingError         415  unsupported_encoding          ValueError
    ├── MisdirectedRequestError              421  misdirected_request           LookupError
    ├── UnprocessableError
    │   ├── InvalidRequestError              422  invalid_request               ValueError
    │   ├── InvalidReferenceError            422  invalid_reference             ValueError
    │   ├── TooManyTokensError               422  too_many_tokens               ValueError
    │   ├── ContextTooLongError              422  context_too_long              ValueError
    │   ├── ImagesNotSupportedError          422  images_not_supported          ValueError
    │   ├── TaskMismatchError                422  task_mismatch                 ValueError
    │   ├── SupervisionMismatchError         422  supervision_mismatch          ValueError
    │   ├── SideConflictError                422  side_conflict                 ValueError
    │   ├── EvaluationOnlyError              422  evaluation_only               ValueError
    │   ├── NoRowsError                      422  no_rows                       ValueError
    │   ├── NoNewRowsError                   422  no_new_rows                   ValueError
    │   ├── InvalidExampleError              422  invalid_example               ValueError
    │   ├── InvalidCsvError                  422  invalid_csv                   ValueError
    │   ├── TooFewRowsError                  422  too_few_rows                  ValueError
    │   ├── ConflictingDecisionError         422  conflicting_decision          ValueError
    │   ├── StructuredWordingError           422  structured_wording            ValueError
    │   ├── TooFewPerOutcomeError            422  too_few_per_outcome           ValueError
    │   ├── UnbalancedSplitError             422  unbalanced_split              ValueError
    │   ├── NotMeasurableError               422  not_measurable                ValueError
    │   ├── InvalidNameError                 422  invalid_name                  ValueError
    │   └── DatasetMismatchError             422  dataset_mismatch              ValueError
    ├── ThrottledError
    │   ├── RateLimitedError                 429  rate_limited                  RuntimeError     retryable
    │   └── TenantQueueFullError             429  tenant_queue_full             RuntimeError     retryable
    ├── InternalError                        500  internal_error                RuntimeError
    ├── DataDamagedError                     500  data_damaged                  RuntimeError
    ├── UnavailableError
    │   ├── EngineUnavailableError           503  engine_unavailable            RuntimeError     retryable
    │   ├── StorageUnavailableError          503  storage_unavailable           RuntimeError     retryable
    │   ├── QueueFullError                   503  queue_full                    RuntimeError     retryable
    │   ├── ModelWarmingError                503  model_warming                 RuntimeError     retryable
    │   ├── WarmCapacityError                503  warm_capacity                 RuntimeError     retryable
    │   ├── TokensCountingError              503  tokens_counting               RuntimeError     retryable
    │   ├── AccountsOffError                 503  accounts_off                  RuntimeError
    │   ├── IdentityProviderError            503  identity_provider_unavailable RuntimeError     retryable
    │   ├── OidcOffError                     503  oidc_off                      RuntimeError
    │   ├── PasskeysOffError                 503  passkeys_off                  RuntimeError
    │   ├── PaymentProviderError             503  payment_provider_unavailable  RuntimeError     retryable
    │   ├── VectorsUnavailableError          503  vectors_unavailable           RuntimeError
    │   ├── LabelingUnavailableError         503  labeling_unavailable          RuntimeError
    │   ├── TrainingUnavailableError         503  training_unavailable          RuntimeError
    │   └── MailUnavailableError             503  mail_unavailable              RuntimeError
    └── DeadlineExceededError                504  deadline_exceeded             TimeoutError     retryable
"""

from __future__ import annotations

from collections.abc import Mapping

# Every class of these modules is public; the tree above lists them.
from steelyard.errors.accounts import *  # noqa: F403
from steelyard.errors.base import MAX_DETAILS as MAX_DETAILS
from steelyard.errors.base import Operation as Operation
from steelyard.errors.base import PathStep as PathStep
from steelyard.errors.base import SteelyardError as SteelyardError
from steelyard.errors.base import Violation as Violation
from steelyard.errors.base import errors_of as errors_of
from steelyard.errors.datasets import *  # noqa: F403
from steelyard.errors.evaluations import *  # noqa: F403
from steelyard.errors.families import *  # noqa: F403
from steelyard.errors.kinds import *  # noqa: F403
from steelyard.errors.labeling import *  # noqa: F403
from steelyard.errors.maps import *  # noqa: F403
from steelyard.errors.named import *  # noqa: F403
from steelyard.errors.people import *  # noqa: F403
from steelyard.errors.prompt_tuning import *  # noqa: F403
from steelyard.errors.purchases import *  # noqa: F403
from steelyard.errors.requests import *  # noqa: F403
from steelyard.errors.review import *  # noqa: F403
from steelyard.errors.serving import *  # noqa: F403
from steelyard.errors.views import *  # noqa: F403
from steelyard.errors.webhooks import *  # noqa: F403


def error_classes() -> dict[str, type[SteelyardError]]:
    """Return every class of the tree by its code.

    Examples
    --------
    >>> error_classes()["not_found"].__name__
    'NotFoundError'
    """
    by_code: dict[str, type[SteelyardError]] = {}
    pending: list[type[SteelyardError]] = SteelyardError.__subclasses__()
    while pending:
        cls = pending.pop()
        # Neither a kind, which has no code of its own, nor a client's own class.
        if "code" in vars(cls) and globals().get(cls.__name__) is cls:
            by_code[cls.code] = cls
        pending.extend(cls.__subclasses__())
    return dict(sorted(by_code.items()))


def error_from_body(
    status: int, body: object, *, retry_after_s: float | None = None
) -> SteelyardError:
    """Turn the body of a failed call back into the error that the server raised.

    Parameters
    ----------
    status : int
        The HTTP status, named in the message when the body is not one of ours.
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
