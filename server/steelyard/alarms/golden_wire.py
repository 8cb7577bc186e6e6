"""Wire forms of golden rows: a rule's, and what their checks found. Times are Unix seconds."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from steelyard.evaluations.wire import Change
from steelyard.wire.schemas import doc

CheckStatus = Literal["running", "frozen", "unchanged", "moved", "failed"]


class GoldenRows(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Held-out rows of a dataset that a model is asked again and again, and how often."""

    dataset_id: Annotated[str, Meta(min_length=1, max_length=64)]
    every_hours: Annotated[
        Annotated[float, Meta(ge=1, le=720)],
        doc(
            "Also asked at once when the model's name at its provider or its settings "
            "change and, of a model that runs here, after an upgrade."
        ),
    ] = 24.0


class CheckGoldenRows(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Whose golden rows are asked now."""

    model: Annotated[str, Meta(min_length=1, max_length=128, description="As in the rule.")]


class GoldenResult(Struct, frozen=True, kw_only=True):
    """Answers beside those that were frozen."""

    n: Annotated[int, doc("Decisions that both answered.")]
    moved: Annotated[float, doc("Share with another answer than the frozen one.")]
    moved_by_chance: Annotated[
        float, doc("The share that was another when it was asked again right after.")
    ]
    beyond_chance: Annotated[Change, doc("From the one to the other, with a 95 % interval.")]
    right: Annotated[Change | None, doc("The share that is right by the rows' labels.")]
    frozen_latency_ms: float | None
    latency_ms: Annotated[float | None, doc("The median of an answer.")]
    has_moved: Annotated[
        bool,
        doc(
            "Whether more moved, or fewer are right, beyond chance; all checks together "
            "find so wrongly once in 20."
        ),
    ]


class GoldenCheck(Struct, frozen=True, kw_only=True):
    """Golden rows that were asked once."""

    number: int
    status: CheckStatus
    evaluation_id: Annotated[str | None, doc("Has every answer.")]
    started_at: float
    ended_at: float | None
    subject: Annotated[str, doc("The model that answered; another one is frozen anew.")] = ""
    because: Annotated[str, doc("Why it was asked then.")] = ""
    result: GoldenResult | None = None
    message: Annotated[str, doc("What it found, in a sentence.")] = ""
    #: What decides the answers, this version of the software, and the provider's name of the model.
    model_key: str = ""
    software: str = ""
    provider_model: str = ""


class GoldenState(Struct, frozen=True, kw_only=True):
    """The golden rows of a model, and their newest checks."""

    model: str
    golden: GoldenRows
    checked_at: Annotated[float | None, doc("When the last check succeeded.")]
    is_stale: Annotated[bool, doc("Whether that is twice its hours ago; an alarm says so too.")]
    checks: Annotated[list[GoldenCheck], doc("The newest 10, the newest first.")]
