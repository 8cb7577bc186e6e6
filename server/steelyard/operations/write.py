"""A write as the pipeline hands it to a use case, and the answer that an earlier one left behind."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from steelyard.caller import Caller


@dataclass(slots=True)
class Sent:
    """The written answer: the bytes that a key repeats, and the operation they end."""

    body: bytes | None = None
    operation_id: str | None = None


@dataclass(frozen=True, slots=True)
class Write:
    """The writer, and the key under which a write happens once."""

    caller: Caller
    route: str = ""
    key: str | None = None
    digest: str = ""
    sent: Sent = field(default_factory=Sent, compare=False, repr=False)

    def encode(self, answer: Any) -> bytes:
        """Return an answer as JSON: the key stores exactly the bytes that are sent."""
        self.sent.body = msgspec.json.encode(answer)
        return self.sent.body


class Replay(Exception):  # noqa: N818  an answer, and no error
    """The answer that an earlier request with the key got; the pipeline alone knows of it."""

    def __init__(self, body: bytes, operation_id: str | None = None) -> None:
        super().__init__(operation_id)
        self.body = body
        self.operation_id = operation_id


def payload_sha256(value: Any, *, is_short: bool = False) -> str:
    """Return the hash of a decoded payload, the same however its JSON was spelled.

    A short one is written in one go, which takes a third of the time.
    """
    hasher = hashlib.sha256()
    for piece in _pieces(value, 0 if is_short else _LEVELS):
        hasher.update(piece.encode("ascii"))
    return hasher.hexdigest()


#: Levels of a payload that are written one by one: a body in its scope, its fields, their rows. The
#: interpreter's other threads would wait for the whole of a long one.
_LEVELS = 3
_encode = json.JSONEncoder(
    default=msgspec.to_builtins, sort_keys=True, separators=(",", ":"), ensure_ascii=True
).encode


def _pieces(value: Any, levels: int) -> Iterator[str]:
    """Yield JSON without blanks and with its keys sorted, in pieces."""
    if levels and type(value) is list and value:
        for number, item in enumerate(value):
            yield "," if number else "["
            yield from _pieces(item, levels - 1)
        yield "]"
    elif levels and type(value) is dict and value and all(type(key) is str for key in value):
        for number, key in enumerate(sorted(value)):
            yield f"{',' if number else '{'}{_encode(key)}:"
            yield from _pieces(value[key], levels - 1)
        yield "}"
    else:
        yield _encode(value)
