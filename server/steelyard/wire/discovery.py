"""Discovery on the wire: what a server can do, its bounds, and ready-made decisions."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from steelyard.wire.models import Model


class Recipe(Struct, frozen=True, kw_only=True):
    """Ready-made decisions for a common need: copy, change the words, send."""

    id: str
    title: str
    description: str
    decisions: Annotated[
        list[dict[str, Any]], Meta(description="As the `decisions` of `POST /v1/decide`.")
    ]
    example_context: Annotated[str, Meta(description="A context to try them on.")]


class RecipeList(Struct, frozen=True, kw_only=True):
    """Every recipe."""

    data: list[Recipe]
    has_more: bool = False
    next_cursor: str | None = None


class Availability(Struct, frozen=True, kw_only=True):
    """Whether a kind of work can be done on this server."""

    available: bool


class Pricing(Struct, frozen=True, kw_only=True):
    """List prices; amounts are exact decimal strings of dollars."""

    currency: Literal["USD"] = "USD"
    input_tokens_per_million_usd: Annotated[
        dict[str, str], Meta(description="Model to the price of a million input tokens.")
    ]


class DiscoveryWarning(Struct, frozen=True, kw_only=True):
    """Something that may slow or refuse a request sent now; none is no promise."""

    code: Literal["engine_busy", "queue_full", "tenant_queue_full"]
    message: str
    model: str | UnsetType = UNSET


class Discovery(Struct, frozen=True, kw_only=True):
    """What this server can do."""

    models: list[Model]
    recipes: list[Recipe]
    training_available: bool
    labeling_available: bool
    prompt_tuning: Availability
    limits: dict[str, int]
    pricing: Pricing
    warnings: list[DiscoveryWarning]
