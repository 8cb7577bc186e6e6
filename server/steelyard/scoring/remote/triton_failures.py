"""Errors of a Triton server or of the way to it, as the errors of the contract."""

from __future__ import annotations

from tritonclient.utils import InferenceServerException

from steelyard.errors import (
    DeadlineExceededError,
    EngineUnavailableError,
    ModelWarmingError,
    SteelyardError,
)

#: Statuses of which the same call may succeed a moment later: scoring changes nothing, so that it
#: may be tried again whatever became of it.
PASSING = frozenset({"UNAVAILABLE", "ABORTED", "RESOURCE_EXHAUSTED"})
#: Seconds to wait before trying again: after a passing failure, and after one to be mended.
SOON_S, LATER_S = 1.0, 15.0


def status_of(error: InferenceServerException) -> str:
    """Return the name of an error's gRPC status; ``UNKNOWN`` where it has none."""
    return str(error.status() or "UNKNOWN").rpartition(".")[2]


def lacks_model(error: InferenceServerException) -> bool:
    """Return whether a server answers, and only the model is not loaded in it."""
    if status_of(error) not in {"UNAVAILABLE", "NOT_FOUND", "INVALID_ARGUMENT"}:
        return False
    text = (error.message() or "").lower()
    return "unknown model" in text or ("model" in text and "not ready" in text)


def lacks_region(error: InferenceServerException) -> bool:
    """Return whether a server no longer knows the memory that it shared: it was started again."""
    return "shared memory region" in (error.message() or "").lower()


def is_passing(error: InferenceServerException) -> bool:
    """Return whether the same call may succeed a moment later."""
    return status_of(error) in PASSING and not lacks_model(error)


def failure_of(error: InferenceServerException, place: str, model: str) -> SteelyardError:
    """Return the contract's error for a failed call."""
    if lacks_model(error):
        return ModelWarmingError(
            f"The Triton server {place} has the model {model} not loaded at the moment; send the "
            "request again after Retry-After.",
            retry_after_s=SOON_S,
        )
    status = status_of(error)
    if status == "DEADLINE_EXCEEDED":
        return DeadlineExceededError(
            f"The Triton server {place} did not answer for {model} in time; send the request "
            "again, or raise STEELYARD_SCORER_TIMEOUT_S."
        )
    message = _SOON.get(status) or _LATER.get(status, _UNFORESEEN)
    return EngineUnavailableError(
        message.format(place=place, model=model, status=status),
        retry_after_s=LATER_S if status in _LATER else SOON_S,
        is_unreached=status == "UNAVAILABLE",
    )


_SOON = {
    "UNAVAILABLE": "The Triton server {place} cannot be reached for {model}; start it with "
    "`steelyard triton up`, or correct STEELYARD_SCORER.",
    "RESOURCE_EXHAUSTED": "The Triton server {place} has no room for another pass of {model}; "
    "send the request again after Retry-After.",
    "CANCELLED": "The pass of {model} in the Triton server {place} was ended; send the request "
    "again.",
}
_LATER = {
    "INVALID_ARGUMENT": "The Triton server {place} refuses a pass of {model}: its model is of "
    "another version; export it again with `steelyard triton export`.",
    "NOT_FOUND": "The Triton server {place} has no model {model} in its repository; export it "
    "again with `steelyard triton export`.",
    "UNIMPLEMENTED": "What answers at {place} is not a Triton server; correct STEELYARD_SCORER.",
    "UNAUTHENTICATED": "The way to the Triton server {place} requires credentials, and the service "
    "has none; correct STEELYARD_SCORER.",
    "PERMISSION_DENIED": "This service is not allowed to reach the Triton server {place}; "
    "correct STEELYARD_SCORER.",
}
_UNFORESEEN = "The Triton server {place} failed a pass of {model} ({status}); its log says why."
