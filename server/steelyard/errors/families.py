"""Errors of families, their models and their fine-tunes."""

from steelyard.errors.kinds import ConflictError, GoneError, UnavailableError, UnprocessableError


class InvalidNameError(UnprocessableError):
    """A name that a family may not have."""


class DatasetMismatchError(UnprocessableError):
    """A dataset that does not go with the family or the model started from."""


class FamilyOffError(ConflictError):
    """A family that is switched off."""


class FamilyEmptyError(ConflictError, LookupError):
    """A family that serves no model yet."""


class FamilyExistsError(ConflictError, ValueError):
    """A name that a family has, or had with models."""


class FamilyTrainingError(ConflictError):
    """A family whose fine-tune has not ended."""


class FamilyAnswersError(ConflictError):
    """A family that answers calls, so that it cannot be deleted."""


class FamilyChangedError(ConflictError):
    """A family that is no longer as the caller saw it."""


class ServedChangedError(ConflictError):
    """A family that serves another model than the caller saw."""


class ModelOffError(ConflictError):
    """A model whose own switch is off."""


class ModelAnswersError(ConflictError):
    """A model that answers calls, so that it cannot be deleted."""


class LatestModelError(ConflictError):
    """The latest model of a family, which is rolled back and not deleted."""


class LiveLimitError(ConflictError):
    """As many models answering as the account may have; ``details`` lists them."""


class WarmLimitError(ConflictError):
    """As many models kept warm as the account may have; ``details`` lists them."""


class NothingToRollBackError(ConflictError):
    """A rollback to the model that is the latest."""


class RollbackChangedError(ConflictError):
    """A rollback that would discard other models than the caller confirmed."""


class BoundNotCertifiedError(ConflictError):
    """A bound that the held-out rows do not certify; ``details`` says how many more would."""


class NoveltyUnknownError(ConflictError):
    """A model that cannot tell texts unlike its training rows, at the false alarms allowed."""


class NoNewDataError(ConflictError):
    """A family that has no rows to continue on."""


class NotEnoughEvaluationDataError(ConflictError):
    """Fewer new evaluation decisions than the gate needs."""


class ModelChangedError(ConflictError):
    """A number that is another model than the caller saw."""


class FamilyDeletedError(GoneError):
    """A family that was deleted."""


class ModelDeletedError(GoneError):
    """A model that was deleted."""


class ModelDiscardedError(GoneError):
    """A model that a rollback discarded."""


class ModelWarmingError(UnavailableError):
    """A model that is still loading."""

    default_retry_after_s = 2.0


class WarmCapacityError(UnavailableError):
    """No room to keep another model of the size loaded."""

    default_retry_after_s = 15.0


class TokensCountingError(UnavailableError):
    """A large dataset whose tokens are being counted; a later attempt answers."""

    default_retry_after_s = 3.0


class TrainingUnavailableError(UnavailableError):
    """A server that does not train."""

    retryable = False
