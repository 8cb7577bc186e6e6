"""Why a job failed, as its row keeps it."""

from __future__ import annotations

from msgspec import Struct


class Failure(Struct, frozen=True, kw_only=True):
    """Why a job failed."""

    code: str
    message: str
