"""Figures of a route, and what is certified of it."""

from __future__ import annotations

from msgspec import Struct

from steelyard.wire.measures import Measure


class Figures(Struct, frozen=True, kw_only=True):
    """How good a model or a route is on the decisions of some rows, and what it costs."""

    name: str
    accuracy: Measure
    #: In nats.
    log_loss: Measure
    #: Decisions that the first model did not decide; none where there is one model.
    share_escalated: Measure | None = None
    #: For 1,000 decisions.
    price_usd_per_1000: Measure


class CertifiedAccuracy(Struct, frozen=True, kw_only=True):
    """That a route is right at least so often, and with what confidence."""

    accuracy: float
    confidence: float
