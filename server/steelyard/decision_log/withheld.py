"""Stored requests without their text: a hash, a length and a language stand in its place."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from steelyard.decisions.contexts import read_context
from steelyard.decisions.rules import without_texts

#: The beginning of a stored request without its text.
WITHHELD = b'{"text":'


def features_of(context: Any) -> dict[str, Any]:
    """Return ``sha256``, ``characters`` and ``language`` of a context, which are stored in its place.

    Of a context that is no string, they are those of its JSON with sorted keys. A language is named
    where it is surely another than English.
    """
    text = (
        context
        if isinstance(context, str)
        else msgspec.json.encode(context, order="sorted").decode()
    )
    return {
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
        "characters": len(text),
        "language": read_context(text).language,
    }


def without_text(request: bytes) -> bytes:
    """Return the JSON of a stored request with the features of its context in place of it.

    Values of fields that are texts go too.
    """
    values = msgspec.json.decode(request)
    if "fields" in values:
        values["fields"] = without_texts(values["fields"])
    return msgspec.json.encode({"text": features_of(values.pop("context")), **values})


def has_text(request: bytes) -> bool:
    """Whether the JSON of a stored request has its context."""
    return not request.startswith(WITHHELD)


def describe_withheld(n: int, so: str) -> list[str]:
    """Return a sentence on stored answers without a text, and what follows; none where there are none.

    >>> describe_withheld(2, "make no rows")
    ['Of 2 stored answers no text is stored, so that they make no rows.']
    """
    answers = "1 stored answer" if n == 1 else f"{n:,} stored answers"
    return [f"Of {answers} no text is stored, so that they {so}."] if n else []
