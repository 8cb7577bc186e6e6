"""Why a job failed, as its row keeps it."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from steelyard.wire.decoding import decoder_of


class Failure(Struct, frozen=True, kw_only=True):
    """Why a job failed."""

    code: str
    message: str


_decode = decoder_of(Failure).decode


def failure_of(row: Any) -> Failure | None:
    """Return why a job failed; ``None`` where it has not."""
    return None if row.error is None else _decode(row.error)
