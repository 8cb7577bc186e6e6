"""An answer that is already encoded, so that a replay repeats it byte for byte."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reply:
    """An encoded answer.

    Parameters
    ----------
    body : bytes
        JSON in UTF-8.
    status : int, default 200
        The HTTP status.
    operation_id : str or None
        The operation that it answers, where there is one.
    is_replay : bool, default False
        Whether an earlier request with the same idempotency key was answered so.
    """

    body: bytes
    status: int = 200
    operation_id: str | None = None
    is_replay: bool = False
