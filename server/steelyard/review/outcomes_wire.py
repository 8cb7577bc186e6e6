"""Wire forms of outcomes of a draft's decisions: names, descriptions and merges."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from steelyard.decisions.wire import MAX_GUIDELINE, Kind, Name
from steelyard.review.wire import Reviewer
from steelyard.wire.schemas import SEVERAL_LINES, doc

#: The most characters of an outcome's name and of its description here.
MAX_OUTCOME_NAME, MAX_DESCRIPTION = 200, 2000
#: As many as a decision may have.
MAX_OUTCOME_CHANGES = 255


class OutcomeChange(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True
):
    """The change to one outcome."""

    name: Annotated[
        Annotated[str, Meta(min_length=1, max_length=MAX_OUTCOME_NAME)] | None,
        doc("Its name from now on; a name that another outcome has merges the two."),
    ] = None
    description: Annotated[
        Annotated[str, Meta(max_length=MAX_DESCRIPTION)] | None,
        doc("What it means; empty removes the description, null leaves it."),
    ] = None
    same_as: Annotated[
        str | None,
        doc(
            "Another outcome of the version that means the same: rows of this one become "
            "rows of that one, whose name and description count."
        ),
    ] = None


class EditOutcomes(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The outcomes of one decision or its guideline, in place of the draft's earlier changes."""

    decision: Annotated[Name, doc("Id of the decision.")]
    outcomes: Annotated[
        Annotated[dict[str, OutcomeChange], Meta(max_length=MAX_OUTCOME_CHANGES)] | None,
        doc(
            "Outcome, as the version names it, to what becomes of it. Outcomes that are "
            "left out stay; an empty object restores all of them, null leaves the draft's changes."
        ),
    ] = None
    guideline: Annotated[
        Annotated[str, Meta(max_length=MAX_GUIDELINE, pattern=SEVERAL_LINES)] | None,
        doc(
            "Markdown that reviewers and judges go by, of all rows that ask the "
            "decision; empty removes it, null leaves it."
        ),
    ] = None
    reviewer: Reviewer = None


class DraftOutcome(Struct, frozen=True, kw_only=True):
    """One outcome of the version, and its change."""

    outcome: Annotated[str, doc("As the version names it.")]
    name: Annotated[str, doc("As the draft names it.")]
    description: Annotated[
        Any, doc("As the draft has it: text in most decisions, else JSON; or null.")
    ]
    same_as: Annotated[str | None, doc("The outcome that it is merged into.")]
    rows: Annotated[int, doc("Rows of the draft that expect it, before merging; none excluded.")]


class DecisionOutcomes(Struct, frozen=True, kw_only=True):
    """The outcomes of one decision of a draft."""

    decision: str
    question: Any
    kind: Kind
    wordings: Annotated[int, doc("In how many ways the version words the decision.")]
    fixed: Annotated[str | None, doc("Why its outcomes cannot be changed; null if they can.")]
    outcomes: list[DraftOutcome]
    guideline: Annotated[
        str | None, doc("As the draft has it, else as the wording with the most rows does.")
    ] = None
    has_new_guideline: Annotated[bool, doc("Whether the draft has another.")] = False


class DraftOutcomes(Struct, frozen=True, kw_only=True):
    """The outcomes of every decision of a draft; the decisions with the most rows come first."""

    data: list[DecisionOutcomes]
    revision: Annotated[int, doc("Of the draft, which this shows.")]
