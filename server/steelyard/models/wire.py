"""Wire forms of models: their description, price and state."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from steelyard.families.fine_tune_wire import JobMetrics
from steelyard.families.wire import LoadState, OffReason, Window
from steelyard.models.stress_wire import StressReport
from steelyard.wire.schemas import doc

ModelStatus = Literal["ready", "unavailable", "deleted", "discarded"]
#: The statuses of a model that is gone for good.
GONE: frozenset[ModelStatus] = frozenset(("deleted", "discarded"))
#: Why a model does not answer at the moment.
UnreadyReason = Literal["model_not_ready", "engine_unavailable", "no_adapter_engine"]
#: Why a model is unavailable: its engine cannot be reached, the base under it is not here, or its
#: files cannot be used.
AvailabilityReason = Literal["engine_unavailable", "engine_unconfigured", "no_engine"]


class EvaluatedDataset(Struct, frozen=True, kw_only=True):
    """The dataset that a model was trained and judged on."""

    id: str
    name: str | None
    archived_at: float | None
    deleted: bool


class EvaluationSet(Struct, frozen=True, kw_only=True):
    """The rows that a model was trained and judged on."""

    dataset: EvaluatedDataset
    training_examples: int | None
    validation_examples: int | None
    earlier_examples: Annotated[
        int | None, doc("Of the training rows, those of earlier fine-tunes.")
    ]


class Model(Struct, frozen=True, kw_only=True):
    """A model that requests may name: a base model, or a number of a family.

    From ``base`` on the fields are a tuned model's alone.
    """

    id: Annotated[str, doc("A base model's name, or a number such as `router@3`.")]
    name: str
    status: Annotated[
        ModelStatus, doc("`unavailable` when no call would be answered now, loaded or not.")
    ]
    description: str
    evaluation_key: Annotated[
        str,
        doc(
            "SHA-256 of what decides its answers: files, engine, calibration. Models "
            "with one key answer alike."
        ),
    ]
    decision_price_nano: Annotated[
        str | None, doc("Price of an input token in nano-dollars: billionths of a dollar.")
    ]
    family: Annotated[str, doc("The base model that it is, or is tuned from.")]
    lora: Annotated[str | None, doc("Adapter id of a tuned model.")] = None
    adapter_capacity: dict[str, int] | None = None
    created_at: Annotated[float, doc("Unix seconds.")]
    max_input_tokens: Annotated[int, doc("Most input tokens of a request.")]
    max_prompt_tokens: Annotated[int, doc("The older name of `max_input_tokens`; the same number.")]
    max_questions: Annotated[int, doc("Most decisions of a request.")]
    calibration: str
    engine: Annotated[str, doc("Engine and precision.")]
    release_date: Annotated[str, doc("`YYYY-MM-DD`.")]
    base: str | UnsetType = UNSET
    stress: Annotated[
        StressReport | UnsetType,
        doc("How often its answers flip under pressure, where that was tested."),
    ] = UNSET
    job_id: Annotated[str | UnsetType, doc("The fine-tune that made it.")] = UNSET
    model_name: Annotated[str | UnsetType, doc("Its family.")] = UNSET
    version: Annotated[int | UnsetType, doc("Its number in the family.")] = UNSET
    parent: Annotated[
        str | UnsetType | None,
        doc(
            "Adapter id of the model that it was trained from, or on another base model "
            "was compared with."
        ),
    ] = UNSET
    state: LoadState | UnsetType = UNSET
    availability_reason: Annotated[
        AvailabilityReason | UnsetType, doc("Why it is unavailable; absent when it is not.")
    ] = UNSET
    metrics: JobMetrics | UnsetType | None = UNSET
    heldout: Annotated[dict[str, float] | UnsetType, doc("What was measured on held-out rows.")] = (
        UNSET
    )
    evaluation_set: EvaluationSet | UnsetType = UNSET
    deleted_at: float | UnsetType = UNSET
    discarded_at: float | UnsetType = UNSET
    on_at: Annotated[float | UnsetType | None, doc("When its own switch went on.")] = UNSET
    used_at: float | UnsetType | None = UNSET
    switches_off_at: float | UnsetType | None = UNSET
    off_reason: OffReason | UnsetType | None = UNSET
    off_at: float | UnsetType | None = UNSET
    keep_warm: Annotated[bool | UnsetType, doc("Kept warm on its own switch.")] = UNSET
    keep_warm_window: Window | UnsetType | None = UNSET
    keep_warm_stopped_at: Annotated[
        float | UnsetType | None, doc("Stopped because the next hour could not be reserved.")
    ] = UNSET


class ModelName(Struct, frozen=True, kw_only=True):
    """A model or an alias of one, as TypeSafe clients list them."""

    name: str
    description: str
    release_date: Annotated[str, doc("`YYYY-MM-DD`.")]


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
    hosts: Annotated[
        int | UnsetType, doc("Of a base or connected model where several share a state: the hosts.")
    ] = UNSET
    hosts_ready: Annotated[int | UnsetType, doc("How many of them would answer now.")] = UNSET


class DeleteModelQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which model a number is to be."""

    adapter: Annotated[
        Annotated[str, Meta(min_length=1, max_length=128)] | None,
        doc("Refuse with `model_changed` unless the number is this adapter."),
    ] = None
