"""The room of drafts."""

from __future__ import annotations

from steelyard.datasets.ingesting import RowBounds
from steelyard.datasets.service import DatasetService
from steelyard.errors import errors_of
from steelyard.errors import review as errors
from steelyard.house import House
from steelyard.review.answering import BlindAnswers
from steelyard.review.assigning import DraftAssignments
from steelyard.review.importing import AnswerImports
from steelyard.review.outcome_service import DraftOutcomeService
from steelyard.review.people_agreement import PeopleAgreements
from steelyard.review.reviews import Reviews
from steelyard.review.routes import ROUTES
from steelyard.review.rows import DraftRows
from steelyard.review.seal import DraftSeals
from steelyard.review.service import DraftService
from steelyard.review.store import erase_logs
from steelyard.review.suspects import SuspectSearch
from steelyard.room import Room
from steelyard.serving.registry import ModelRegistry


def _open(
    house: House, datasets: DatasetService, registry: ModelRegistry, bounds: RowBounds
) -> tuple[object, ...]:
    model = registry.default
    store, writes, reviews = house.frames("datasets"), house.writes, Reviews(house.state)
    drafts = DraftService(house.state, datasets, store, writes, reviews)
    datasets.register_reader(drafts.reader_of, erase_logs)
    datasets.register_apart(drafts.check_apart)
    suspects = SuspectSearch(store, embed=model.embed, scorer=model.evaluation_key)
    house.close_at_end(suspects)
    rows = DraftRows(drafts, store, reviews, suspects, writes)
    return (
        reviews,
        drafts,
        rows,
        DraftSeals(drafts, datasets, store, writes, reviews, bounds=bounds),
        DraftAssignments(house.state, drafts, rows, writes, reviews),
        BlindAnswers(drafts, store, writes, reviews),
        PeopleAgreements(house.state, datasets, drafts, reviews),
        AnswerImports(drafts, writes, reviews),
        DraftOutcomeService(drafts, store, writes, reviews),
    )


ROOM = Room(
    name="review",
    after=("datasets",),
    nouns=("drafts",),
    errors=errors_of(errors),
    routes=ROUTES,
    open=_open,
)
