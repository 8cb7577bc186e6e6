"""Wire forms of rows made of feedback: outcomes of stored decisions, as targets."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from steelyard.datasets.wire import Dataset, DatasetName, Fraction
from steelyard.decision_log.wire import FeedbackBy, NamedFilter
from steelyard.decisions.wire import Name
from steelyard.wire.limits import MAX_DECISIONS
from steelyard.wire.schemas import doc

#: The most stored decisions that may be named one by one.
MAX_NAMED = 500

Time = Annotated[float, Meta(ge=0)]


class RowsFromFeedback(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which stored decisions become rows, and of which dataset: ``name`` or ``dataset_id``."""

    name: Annotated[DatasetName | None, doc("Of a new dataset; not blank.")] = None
    dataset_id: Annotated[
        Annotated[str, Meta(min_length=1, max_length=64)] | None,
        doc("The dataset to add to; its next version is made."),
    ] = None
    dataset_version: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        doc("Refuse with `dataset_changed` unless this is its newest version."),
    ] = None
    since: Annotated[
        Time | None, doc("Decisions answered at this time or later, in Unix seconds.")
    ] = None
    until: Annotated[Time | None, doc("Decisions answered before this time, in Unix seconds.")] = (
        None
    )
    model: Annotated[
        Name | None, doc("Decisions that this model answered: a base model, a family or a number.")
    ] = None
    named: NamedFilter = None
    decisions: Annotated[
        Annotated[list[Name], Meta(min_length=1, max_length=MAX_DECISIONS)] | None,
        doc("Ids of the decisions to take; all that have feedback when left out."),
    ] = None
    decision_ids: Annotated[
        Annotated[list[Name], Meta(min_length=1, max_length=MAX_NAMED)] | None,
        doc("Ids of the stored decisions to take, `dec_…`; all when left out."),
    ] = None
    by: FeedbackBy = None
    evaluation_fraction: Annotated[
        Fraction | None,
        doc("Share of the new contexts to put aside for evaluation; 0.2 by default."),
    ] = None


class FeedbackRowCounts(Struct, frozen=True, kw_only=True):
    """How many of the requested stored decisions became rows, and why others did not."""

    stored: Annotated[int, doc("Stored decisions in the range, of the model.")]
    added: Annotated[int, doc("Rows that the dataset gained.")]
    without_feedback: Annotated[
        int, doc("Left out: they have no feedback of the origins that count.")
    ]
    already_there: Annotated[
        int, doc("Left out: the dataset has a row of the same stored decision.")
    ]
    other_decisions: Annotated[
        int,
        doc(
            "Left out: what was observed is of no decision that was asked for, or that "
            "the dataset words alike."
        ),
    ]
    without_text: Annotated[int, doc("Left out: their text is not stored.")] = 0
    duplicates: Annotated[int, doc("Left out: the dataset has a row with the same content.")]


class DatasetFromFeedback(Dataset, frozen=True, kw_only=True):
    """The dataset with the new rows, and the decisions left out."""

    feedback: FeedbackRowCounts
