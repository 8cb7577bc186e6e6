"""Health on the wire: that the server lives, and that it can do its work."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct, field

from steelyard.wire.schemas import doc


class HealthQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The query of a health check."""

    for_: Annotated[
        Literal["traffic"] | None,
        doc(
            "`traffic`: also whether the state can be read and written within a second, as "
            "a proxy asks before it sends requests; 503 where it cannot."
        ),
    ] = field(name="for", default=None)


class Health(Struct, frozen=True, kw_only=True):
    """The server answers; nothing else was tried, but for the state where that was asked."""

    status: Literal["ok"] = "ok"
    version: Annotated[str, doc("Version of Steelyard.")]
    model: Annotated[str, doc("The default model.")]
    engine: Annotated[str, doc("Its engine and precision.")]


class Readiness(Struct, frozen=True, kw_only=True):
    """Every part was tried and works; where one does not, the answer is a 503."""

    status: Literal["ready"] = "ready"
    parts: Annotated[
        dict[str, str],
        doc(
            "`state` and each engine as `engine:MODEL`, all `ok`; for each engine that "
            "may be elsewhere, as `scorer:MODEL`, where its passes go, and why not there."
        ),
    ]
