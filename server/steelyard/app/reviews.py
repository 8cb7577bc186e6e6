"""What answers for drafts, composed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from steelyard.app.foundation import Foundation
from steelyard.datasets.service import DatasetService
from steelyard.http.routing import REVIEWERS
from steelyard.people.member_store import members_of
from steelyard.review.answering import BlindAnswers
from steelyard.review.assigning import DraftAssignments
from steelyard.review.outcome_service import DraftOutcomeService
from steelyard.review.reviews import Reviews
from steelyard.review.rows import DraftRows
from steelyard.review.seal import DraftSeals
from steelyard.review.service import DraftService
from steelyard.review.store import erase_logs
from steelyard.review.suspects import SuspectSearch


@dataclass(frozen=True, slots=True)
class OpenedReviews:
    """What answers for drafts."""

    reviews: Reviews
    drafts: DraftService
    rows: DraftRows
    seals: DraftSeals
    assignments: DraftAssignments
    answers: BlindAnswers
    outcomes: DraftOutcomeService


def open_reviews(on: Foundation, datasets: DatasetService) -> OpenedReviews:
    """Compose what answers for drafts."""
    reviews, embedding = Reviews(on.state), on.models.default
    drafts = DraftService(on.state, datasets, on.rows, on.writes, reviews)
    datasets.register_reader(drafts.reader_of, erase_logs)
    suspects = SuspectSearch(on.rows, embed=embedding.embed, scorer=embedding.evaluation_key)
    on.closing.callback(suspects.close)
    rows = DraftRows(drafts, on.rows, reviews, suspects, on.writes)
    candidates = partial(members_of, roles=REVIEWERS)
    return OpenedReviews(
        reviews,
        drafts,
        rows,
        DraftSeals(drafts, datasets, on.rows, on.writes, reviews, bounds=on.bounds),
        DraftAssignments(on.state, drafts, rows, on.writes, reviews, candidates=candidates),
        BlindAnswers(drafts, on.rows, on.writes, reviews),
        DraftOutcomeService(drafts, on.rows, on.writes, reviews),
    )
