"""What may stand after the ``?`` of the addresses of fine-tunes and of their models."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from steelyard.evaluations.wire import DEFAULT_RECORDS, MAX_RECORDS, RecordGroup
from steelyard.families.wire import JobStatus
from steelyard.wire.queries import MAX_PAGE, Cursor, PageSize


class JobsQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which page of the account's fine-tunes."""

    status: Annotated[
        list[JobStatus],
        Meta(description="Those with one of these statuses; repeated, or separated by commas."),
    ] = []
    dataset_id: Annotated[
        Annotated[str, Meta(min_length=1, max_length=64)] | None,
        Meta(description="Only those that train on this dataset."),
    ] = None
    limit: Annotated[PageSize, Meta(description="Fine-tunes of a page.")] = MAX_PAGE
    cursor: Annotated[
        Cursor | None, Meta(description="`next_cursor` of the page before; the first by default.")
    ] = None


class JobRecordsQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which page of a fine-tune's held-out records."""

    group: Annotated[
        RecordGroup,
        Meta(description="Whose answers: the new model's, its base's, or its parent's if any."),
    ] = "adapted"
    offset: Annotated[Annotated[int, Meta(ge=0)], Meta(description="Records before the page.")] = 0
    limit: Annotated[
        Annotated[int, Meta(ge=1, le=MAX_RECORDS)], Meta(description="Records of the page.")
    ] = DEFAULT_RECORDS


class DeleteModelQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which model a number is to be."""

    adapter: Annotated[
        Annotated[str, Meta(min_length=1, max_length=128)] | None,
        Meta(description="Refuse with `model_changed` unless the number is this adapter."),
    ] = None
