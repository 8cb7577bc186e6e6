"""Models on the wire: what each is, what it costs and whether it answers."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

ModelStatus = Literal["ready", "deleted", "discarded"]
#: Why a model does not answer at the moment.
UnreadyReason = Literal["model_not_ready", "engine_unavailable", "no_adapter_engine"]


class Model(Struct, frozen=True, kw_only=True):
    """A model that requests may name."""

    id: str
    name: str
    status: ModelStatus
    description: str
    evaluation_key: Annotated[
        str,
        Meta(
            description="SHA-256 of what decides its answers: files, engine, calibration. Models "
            "with one key answer alike."
        ),
    ]
    decision_price_nano: Annotated[
        str | None,
        Meta(description="Price of an input token in nano-dollars: billionths of a dollar."),
    ]
    family: Annotated[str, Meta(description="The base model that it is, or is tuned from.")]
    lora: Annotated[str | None, Meta(description="Adapter id of a tuned model.")] = None
    adapter_capacity: dict[str, int] | None = None
    created_at: Annotated[float, Meta(description="Unix seconds.")]
    max_input_tokens: Annotated[int, Meta(description="Most input tokens of a request.")]
    max_prompt_tokens: Annotated[
        int, Meta(description="The older name of `max_input_tokens`; the same number.")
    ]
    max_questions: Annotated[int, Meta(description="Most decisions of a request.")]
    calibration: str
    engine: Annotated[str, Meta(description="Engine and precision.")]
    release_date: Annotated[str, Meta(description="`YYYY-MM-DD`.")]


class ModelName(Struct, frozen=True, kw_only=True):
    """A model or an alias of one, as TypeSafe clients list them."""

    name: str
    description: str
    release_date: Annotated[str, Meta(description="`YYYY-MM-DD`.")]


class ModelList(Struct, frozen=True, kw_only=True):
    """Every model: in full as `data`, and by name, aliases included, as `models`."""

    data: list[Model]
    models: list[ModelName]
    has_more: bool = False
    next_cursor: str | None = None


class ModelReadiness(Struct, frozen=True, kw_only=True):
    """Whether a call to the model would be answered now; nothing is loaded to find out."""

    model: str
    ready: bool
    reason: UnreadyReason | UnsetType = UNSET
