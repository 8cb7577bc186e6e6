"""Refusals of requests that no model here can answer."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.decisions.validation import ValidRequest
from steelyard.errors import ContextTooLongError, InvalidRequestError, NotFoundError


def too_long(request: ValidRequest, n_tokens: str, most: int) -> ContextTooLongError:
    """Return the refusal of a request with more input tokens than its model reads."""
    return ContextTooLongError(
        f"The request has {n_tokens} input tokens, and {most} are allowed; shorten the context, or "
        "ask its decisions in several requests.",
        path=request.context_path,
    )


def unknown_model(name: str, known: Sequence[str]) -> NotFoundError:
    """Return the refusal of a name that no model has."""
    return NotFoundError(
        f"There is no model named {name!r}; the models here are: {', '.join(known)}."
    )


def not_in_playground(name: str, known: Sequence[str]) -> InvalidRequestError:
    """Return the playground's refusal of a name that no base model has."""
    models = ", ".join(known)
    message = f"model is {name!r}; the playground answers with base models alone: {models}."
    return InvalidRequestError.at(("body", "model"), message, "not_allowed")
