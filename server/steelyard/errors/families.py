"""What is refused about families, their models and their fine-tunes."""

from __future__ import annotations

from steelyard.errors.base import SteelyardError


class InvalidNameError(SteelyardError, ValueError):
    """A name that a family may not have."""

    code = "invalid_name"
    status = 422


class DatasetMismatchError(SteelyardError, ValueError):
    """A dataset that does not go with the family or the model started from."""

    code = "dataset_mismatch"
    status = 422


class FamilyOffError(SteelyardError, RuntimeError):
    """A family that is switched off."""

    code = "family_off"
    status = 409


class FamilyEmptyError(SteelyardError, LookupError):
    """A family that serves no model yet."""

    code = "family_empty"
    status = 409


class FamilyExistsError(SteelyardError, ValueError):
    """A name that a family has, or had with models."""

    code = "family_exists"
    status = 409


class FamilyTrainingError(SteelyardError, RuntimeError):
    """A family whose fine-tune has not ended."""

    code = "family_training"
    status = 409


class FamilyAnswersError(SteelyardError, RuntimeError):
    """A family that answers calls, so that it cannot be deleted."""

    code = "family_answers"
    status = 409


class FamilyChangedError(SteelyardError, RuntimeError):
    """A family that is no longer as the caller saw it."""

    code = "family_changed"
    status = 409


class ServedChangedError(SteelyardError, RuntimeError):
    """A family that serves another model than the caller saw."""

    code = "served_changed"
    status = 409


class ModelOffError(SteelyardError, RuntimeError):
    """A model whose own switch is off."""

    code = "model_off"
    status = 409


class ModelAnswersError(SteelyardError, RuntimeError):
    """A model that answers calls, so that it cannot be deleted."""

    code = "model_answers"
    status = 409


class LatestModelError(SteelyardError, RuntimeError):
    """The latest model of a family, which is rolled back and not deleted."""

    code = "latest_model"
    status = 409


class LiveLimitError(SteelyardError, RuntimeError):
    """As many models answering as the account may have; ``details`` lists them."""

    code = "live_limit"
    status = 409


class WarmLimitError(SteelyardError, RuntimeError):
    """As many models kept warm as the account may have; ``details`` lists them."""

    code = "warm_limit"
    status = 409


class NothingToRollBackError(SteelyardError, RuntimeError):
    """A rollback to the model that is the latest."""

    code = "nothing_to_roll_back"
    status = 409


class RollbackChangedError(SteelyardError, RuntimeError):
    """A rollback that would discard other models than the caller confirmed."""

    code = "rollback_changed"
    status = 409


class NoNewDataError(SteelyardError, RuntimeError):
    """A family that has no rows to continue on."""

    code = "no_new_data"
    status = 409


class NotEnoughEvaluationDataError(SteelyardError, RuntimeError):
    """Fewer new evaluation decisions than the gate needs."""

    code = "not_enough_evaluation_data"
    status = 409


class FamilyDeletedError(SteelyardError, LookupError):
    """A family that was deleted."""

    code = "family_deleted"
    status = 410


class ModelDeletedError(SteelyardError, LookupError):
    """A model that was deleted."""

    code = "model_deleted"
    status = 410


class ModelDiscardedError(SteelyardError, LookupError):
    """A model that a rollback discarded."""

    code = "model_discarded"
    status = 410


class ModelWarmingError(SteelyardError, RuntimeError):
    """A model that is still loading."""

    code = "model_warming"
    status = 503
    retryable = True
    default_retry_after_s = 2.0


class WarmCapacityError(SteelyardError, RuntimeError):
    """No room to keep another model of the size loaded."""

    code = "warm_capacity"
    status = 503
    retryable = True
    default_retry_after_s = 15.0


class TrainingUnavailableError(SteelyardError, RuntimeError):
    """A server that does not train."""

    code = "training_unavailable"
    status = 503


class ModelChangedError(SteelyardError, RuntimeError):
    """A number that is another model than the caller saw."""

    code = "model_changed"
    status = 409


class TokensCountingError(SteelyardError, RuntimeError):
    """A large dataset whose tokens are being counted; a later attempt answers."""

    code = "tokens_counting"
    status = 503
    retryable = True
    default_retry_after_s = 3.0
