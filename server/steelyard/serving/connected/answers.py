"""The checks on a remote server's answer before it is used, and the refusal of others."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from steelyard.errors import ContextTooLongError, EngineUnavailableError

#: How far a sum of probabilities may be from 1.
SUM_TOLERANCE = 1e-3
#: The least probability of an outcome: log probabilities are finite.
LEAST = 1e-9

Probabilities = NDArray[np.float64]


class UnusableAnswerError(EngineUnavailableError):
    """A remote server's answer that breaks its wire."""


#: Characters of a server's own message.
_MOST_REPORTED = 300
#: Statuses with which servers refuse a context that is too long, and the words of their bodies.
TOO_LONG_STATUSES = (400, 413, 422, 500)
_TOO_LONG = (
    "context_too_long",
    "context_length",
    "context length",
    "context size",
    "context window",
    "exceed_context",
    "too many tokens",
    "too_many_tokens",
    "prompt is too long",
)


def context_refusal(name: str, status: int, body: bytes | bytearray) -> ContextTooLongError | None:
    """Return the refusal of a context that a model's server cannot read; ``None`` of any other."""
    if status not in TOO_LONG_STATUSES:
        return None
    text = body.decode("utf-8", "replace").lower()
    if status != HTTPStatus.REQUEST_ENTITY_TOO_LARGE and not any(map(text.__contains__, _TOO_LONG)):
        return None
    return ContextTooLongError(
        f"The request is longer than {name} reads; shorten the context, or ask its decisions in "
        "several requests."
    )


def reported_message(body: bytes | bytearray) -> str:
    """Return the message of a server's refusal; empty where it has none.

    >>> reported_message(b'{"error": {"message": "no logprobs"}}'), reported_message(b"<html>")
    ('no logprobs', '')
    """
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    for name in ("error", "message", "detail"):
        value = value.get(name, value) if isinstance(value, dict) else value
    return " ".join(value.split())[:_MOST_REPORTED] if isinstance(value, str) else ""


def checked(names: Sequence[str], shares: Any) -> Probabilities:
    """Return each outcome's probability, in order; raise where one is missing or they do not sum to 1."""
    if not isinstance(shares, Mapping):
        raise unusable("it has no object of probabilities")
    if missing := [name for name in names if name not in shares]:
        raise unusable(f"{len(missing)} of {len(names)} outcomes have no probability")
    values = [probability(shares[name]) for name in names]
    if abs(sum(values) - 1) > SUM_TOLERANCE:
        raise unusable(f"its probabilities sum to {sum(values):.4f}")
    return normalized(values)


def probability(value: Any) -> float:
    """Return a value that is a probability."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise unusable("a probability is not a number")
    if not math.isfinite(value) or not -SUM_TOLERANCE <= value <= 1 + SUM_TOLERANCE:
        raise unusable("a probability is not between 0 and 1")
    return min(max(float(value), 0.0), 1.0)


def normalized(values: Sequence[float] | Probabilities) -> Probabilities:
    """Return values, none below ``LEAST``, that sum to 1."""
    bounded = np.maximum(np.asarray(values, dtype=np.float64), LEAST)
    return np.asarray(bounded / bounded.sum(), dtype=np.float64)


def member(value: Any, key: str | int) -> Any:
    """Return a member of an object or an array of an answer."""
    if isinstance(key, str) and isinstance(value, Mapping) and key in value:
        return value[key]
    if isinstance(key, int) and isinstance(value, list) and -len(value) <= key < len(value):
        return value[key]
    raise unusable(f"it has no {key!r}")


def unusable(why: str) -> UnusableAnswerError:
    """Return the refusal of an answer."""
    return UnusableAnswerError(f"The model's server gave an answer that cannot be used: {why}.")
