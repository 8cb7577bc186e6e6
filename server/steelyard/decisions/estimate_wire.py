"""The estimate of a decide request on the wire: what it would cost at most, before it runs."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from steelyard.decisions.wire import TokenizerInfo

UsdAmount = Annotated[str, Meta(pattern=r"^-?[0-9]+(\.[0-9]+)?$")]


class ModelQuote(Struct, frozen=True, kw_only=True):
    """What the request costs when this model answers it."""

    id: Annotated[str, Meta(description="A model that may answer: the one asked for is first.")]
    quote_usd: Annotated[UsdAmount, Meta(description="Exact dollars.")]


class EstimateResponse(Struct, frozen=True, kw_only=True):
    """What a request would cost at the prices of now; nothing runs and nothing is held."""

    currency: Literal["USD"] = "USD"
    input_tokens: Annotated[int, Meta(ge=0, description="Input tokens, as they are billed.")]
    tokenizer: TokenizerInfo
    maximum_charge_usd: Annotated[
        UsdAmount,
        Meta(description="Held while the request runs; a fallback never costs more than this."),
    ]
    models: list[ModelQuote]
