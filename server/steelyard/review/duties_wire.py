"""The reviewers of a draft's rows, and how far two agree, on the wire.

Not here: requests (``steelyard.review.requests``), rows (``steelyard.review.wire``).
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from steelyard.datasets.wire import Version
from steelyard.review.wire import BlindStatus, RowNow
from steelyard.wire.measures import Measure
from steelyard.wire.origins import LabelledBy
from steelyard.wire.schemas import doc

#: The most reviewers of one call, and the most decisions whose agreement is reported.
MAX_REVIEWERS, MAX_AGREED = 50, 64


class AnswerReceipt(Struct, frozen=True, kw_only=True):
    """The result of an answer to a row that two reviewers label apart."""

    draft_id: str
    row: int
    status: Annotated[
        BlindStatus,
        doc(
            "`agreed`: the draft has what both said, as edits of the second. "
            "`disagreed`: the row is in the queue `disagreement`."
        ),
    ]
    revision: Annotated[int, doc("Number of the draft's last entry.")]
    rows: Annotated[list[RowNow], doc("The row as it is now, once both answered.")]


class ImportedAnswers(Struct, frozen=True, kw_only=True):
    """The results of answers that were given elsewhere."""

    draft_id: str
    rows: Annotated[int, doc("Rows that answers or notes were recorded of.")]
    several: Annotated[int, doc("Those of them that several answered, apart.")]
    disputed: Annotated[int, doc("Those on which they differ: in the queue `disagreement`.")]
    revision: Annotated[int, doc("Number of the draft's last entry.")]


class Assignment(Struct, frozen=True, kw_only=True):
    """The assigned rows."""

    draft_id: str
    rows: Annotated[int, doc("Rows that got a reviewer, or two.")]
    blind: Annotated[int, doc("Those of them that two label apart.")]
    known: Annotated[
        int, doc("Those of them whose labels are known, and score their reviewers.")
    ] = 0
    left_out: Annotated[
        int,
        doc(
            "Matching rows that were decided or assigned already, or too many; with "
            "known rows, also further ones whose labels are known."
        ),
    ]
    reviewers: Annotated[dict[str, int], doc("Reviewer to the rows that they got.")]


class MovedAssignment(Struct, frozen=True, kw_only=True):
    """The rows that a reviewer no longer has."""

    draft_id: str
    moved: Annotated[int, doc("Undone rows that another has now, or nobody.")]
    kept: Annotated[
        int,
        doc(
            "Undone rows that stay: the other has them already or, where they were to be "
            "nobody's, the other of two has answered."
        ),
    ]


class ReviewerProgress(Struct, frozen=True, kw_only=True):
    """How far one reviewer is."""

    reviewer: str
    rows: Annotated[int, doc("Assigned to them.")]
    done: Annotated[int, doc("Decided in the draft or, of blind ones, answered.")]
    blind: Annotated[int, doc("Those that they label apart from another, or without the label.")]
    known: Annotated[
        Measure | None,
        doc(
            "Share of the known rows that they answered right in every decision; null "
            "before any, and for sessions of the role reviewer."
        ),
    ] = None


class Assignments(Struct, frozen=True, kw_only=True):
    """The reviewers of a draft's rows, with their shares."""

    data: list[ReviewerProgress]
    unassigned: Annotated[int, doc("Undecided rows that nobody is to label.")]
    candidates: Annotated[
        list[str] | None,
        doc(
            "Members of the account whom rows can be assigned to; null without a session "
            "of an owner or a developer."
        ),
    ]
    invited: Annotated[list[str], doc("Those of the candidates who have not signed in yet.")] = []


class AgreementQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Of which rows the agreement is: all that reviewers label apart by default."""

    by: Annotated[
        LabelledBy | None,
        doc("Those whose labels in the version came from there, by `by` of metadata."),
    ] = None
    who: Annotated[
        Annotated[str, Meta(min_length=1, max_length=128)] | None,
        doc("Those that this reviewer answered."),
    ] = None


class PeopleQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Of which version of a dataset the agreement is."""

    dataset_id: Annotated[str, Meta(min_length=1, max_length=64)]
    version: Annotated[
        Version | None, doc("Drafts of it and of earlier versions count; the latest by default.")
    ] = None


class PeopleAgreement(Struct, frozen=True, kw_only=True):
    """How far people agree on the rows of a version that two or more labelled apart."""

    dataset_id: str
    version: int
    rows: Annotated[
        int, doc("Rows that all of theirs answered; those that one excludes count not.")
    ]
    agreement: Annotated[
        Measure | None, doc("Share of all answers to those rows in which everybody says the same.")
    ]
    decisions: Annotated[
        dict[str, Measure], doc(f"The same by decision, of the {MAX_AGREED} most asked.")
    ]


class AgreedDecision(Struct, frozen=True, kw_only=True):
    """How far two reviewers agree on one decision."""

    decision_id: str
    alpha: Annotated[
        Measure | None,
        doc(
            "Krippendorff's alpha, with an interval over rows: 1 is agreement, 0 "
            "chance. Null before two answered a row, or where all answers are one outcome."
        ),
    ]
    agreement: Annotated[Measure | None, doc("Share of rows on which both agree.")]


class DraftAgreement(Struct, frozen=True, kw_only=True):
    """How far reviewers agree on rows that two label apart."""

    blind: Annotated[int, doc("Rows that two label apart.")]
    answered: Annotated[
        int, doc("Those that both answered; this and what follows is of the rows asked for.")
    ]
    agreed: Annotated[int, doc("Those on which both said the same throughout.")]
    disputed: Annotated[int, doc("Those on which they did not.")]
    to_adjudicate: Annotated[int, doc("Disputed rows that nobody decided since.")]
    exclusions: Annotated[
        int, doc("Rows that one or both would exclude; they count for no decision.")
    ]
    decisions: Annotated[list[AgreedDecision], doc(f"The {MAX_AGREED} that most rows ask.")]
