"""Figures of a route, and its certificate."""

from __future__ import annotations

from msgspec import Struct

from steelyard.wire.measures import Measure


class Figures(Struct, frozen=True, kw_only=True):
    """The quality of a model or a route on the decisions of some rows, and its cost."""

    name: str
    accuracy: Measure
    #: In nats.
    log_loss: Measure
    #: Decisions that the first model did not decide; none where there is one model.
    share_escalated: Measure | None = None
    #: For 1,000 decisions.
    price_usd_per_1000: Measure


class CertifiedAccuracy(Struct, frozen=True, kw_only=True):
    """The least accuracy of a route, and its confidence."""

    accuracy: float
    confidence: float
