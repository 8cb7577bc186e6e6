"""Errors of families, their models and their fine-tunes."""

from __future__ import annotations

from steelyard.errors.kinds import ConflictError, GoneError, UnavailableError, UnprocessableError


class InvalidNameError(UnprocessableError):
    """A name that a family may not have."""

    code = "invalid_name"


class DatasetMismatchError(UnprocessableError):
    """A dataset that does not go with the family or the model started from."""

    code = "dataset_mismatch"


class FamilyOffError(ConflictError):
    """A family that is switched off."""

    code = "family_off"


class FamilyEmptyError(ConflictError, LookupError):
    """A family that serves no model yet."""

    code = "family_empty"


class FamilyExistsError(ConflictError, ValueError):
    """A name that a family has, or had with models."""

    code = "family_exists"


class FamilyTrainingError(ConflictError):
    """A family whose fine-tune has not ended."""

    code = "family_training"


class FamilyAnswersError(ConflictError):
    """A family that answers calls, so that it cannot be deleted."""

    code = "family_answers"


class FamilyChangedError(ConflictError):
    """A family that is no longer as the caller saw it."""

    code = "family_changed"


class ServedChangedError(ConflictError):
    """A family that serves another model than the caller saw."""

    code = "served_changed"


class ModelOffError(ConflictError):
    """A model whose own switch is off."""

    code = "model_off"


class ModelAnswersError(ConflictError):
    """A model that answers calls, so that it cannot be deleted."""

    code = "model_answers"


class LatestModelError(ConflictError):
    """The latest model of a family, which is rolled back and not deleted."""

    code = "latest_model"


class LiveLimitError(ConflictError):
    """As many models answering as the account may have; ``details`` lists them."""

    code = "live_limit"


class WarmLimitError(ConflictError):
    """As many models kept warm as the account may have; ``details`` lists them."""

    code = "warm_limit"


class NothingToRollBackError(ConflictError):
    """A rollback to the model that is the latest."""

    code = "nothing_to_roll_back"


class RollbackChangedError(ConflictError):
    """A rollback that would discard other models than the caller confirmed."""

    code = "rollback_changed"


class BoundNotCertifiedError(ConflictError):
    """A bound that the held-out rows do not certify; ``details`` says how many more would."""

    code = "bound_not_certified"


class NoveltyUnknownError(ConflictError):
    """A model that cannot tell texts unlike its training rows, at the false alarms allowed."""

    code = "novelty_unknown"


class NoNewDataError(ConflictError):
    """A family that has no rows to continue on."""

    code = "no_new_data"


class NotEnoughEvaluationDataError(ConflictError):
    """Fewer new evaluation decisions than the gate needs."""

    code = "not_enough_evaluation_data"


class ModelChangedError(ConflictError):
    """A number that is another model than the caller saw."""

    code = "model_changed"


class FamilyDeletedError(GoneError):
    """A family that was deleted."""

    code = "family_deleted"


class ModelDeletedError(GoneError):
    """A model that was deleted."""

    code = "model_deleted"


class ModelDiscardedError(GoneError):
    """A model that a rollback discarded."""

    code = "model_discarded"


class ModelWarmingError(UnavailableError):
    """A model that is still loading."""

    code = "model_warming"
    default_retry_after_s = 2.0


class WarmCapacityError(UnavailableError):
    """No room to keep another model of the size loaded."""

    code = "warm_capacity"
    default_retry_after_s = 15.0


class TokensCountingError(UnavailableError):
    """A large dataset whose tokens are being counted; a later attempt answers."""

    code = "tokens_counting"
    default_retry_after_s = 3.0


class TrainingUnavailableError(UnavailableError):
    """A server that does not train."""

    code = "training_unavailable"
    retryable = False
