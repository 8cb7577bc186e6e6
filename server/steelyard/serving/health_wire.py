"""Health on the wire: that the server lives, and that it can do its work."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct


class Health(Struct, frozen=True, kw_only=True):
    """The server answers; nothing else was tried."""

    status: Literal["ok"] = "ok"
    version: Annotated[str, Meta(description="Version of Steelyard.")]
    model: Annotated[str, Meta(description="The default model.")]
    engine: Annotated[str, Meta(description="Its engine and precision.")]


class Readiness(Struct, frozen=True, kw_only=True):
    """Every part was tried and works; where one does not, the answer is a 503."""

    status: Literal["ready"] = "ready"
    parts: Annotated[
        dict[str, str],
        Meta(
            description="`state` and each engine as `engine:MODEL`, all `ok`; for each engine that "
            "may be elsewhere, as `scorer:MODEL`, where its passes go, and why not there."
        ),
    ]
