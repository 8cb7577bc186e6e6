"""What is refused about the models that calls and evaluations name."""

from __future__ import annotations

from steelyard.errors.base import SteelyardError


class ModelUnavailableError(SteelyardError, RuntimeError):
    """A model that can no longer be loaded."""

    code = "model_unavailable"
    status = 409
