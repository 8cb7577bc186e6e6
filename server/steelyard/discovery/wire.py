"""Wire forms of discovery: a server's features, bounds and prices."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Struct, UnsetType

from steelyard.models.wire import Model
from steelyard.serving.recipes_wire import Recipe
from steelyard.wire.schemas import doc


class Availability(Struct, frozen=True, kw_only=True):
    """Whether a kind of work can be done on this server."""

    available: bool


class Pricing(Struct, frozen=True, kw_only=True):
    """List prices; amounts are exact decimal strings of dollars."""

    currency: Literal["USD"] = "USD"
    input_tokens_per_million_usd: Annotated[
        dict[str, str], doc("Model to the price of a million input tokens.")
    ]
    fine_tune_tokens_per_million_usd: Annotated[
        str, doc("Price of a million trained tokens of a fine-tune.")
    ]
    fine_tune_minimum_usd: Annotated[str, doc("Least price of a fine-tune.")]
    keep_warm_hour_usd: Annotated[str, doc("Price of an hour in which a tuned model is kept warm.")]


class DiscoveryWarning(Struct, frozen=True, kw_only=True):
    """Something that may slow or refuse a request sent now; none is no promise."""

    code: Literal["engine_busy", "queue_full", "tenant_queue_full"]
    message: str
    model: str | UnsetType = UNSET


class Discovery(Struct, frozen=True, kw_only=True):
    """The server's features."""

    models: list[Model]
    recipes: list[Recipe]
    training_available: bool
    labeling_available: bool
    prompt_tuning: Availability
    limits: dict[str, int]
    pricing: Pricing
    warnings: list[DiscoveryWarning]
