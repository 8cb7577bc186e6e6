"""The models that jobs use, so that none is removed under a job that has not ended."""

from __future__ import annotations

from msgspec import Struct


class ModelUse(Struct, frozen=True, kw_only=True):
    """A job that has not ended, and a model that it uses: its adapter or its number."""

    id: str
    adapter: str
    #: Whether the job is cancelled where a rollback discards the model; others hold it.
    yields: bool = False
