"""How far people agree on a version of a dataset, by the rows that two or more labelled apart in drafts."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence

from steelyard import errors
from steelyard.calibration.agreement import share
from steelyard.caller import Caller
from steelyard.datasets.service import DatasetService
from steelyard.datasets.version_service import DatasetAt
from steelyard.review import store as rows
from steelyard.review.duties import Answer
from steelyard.review.duties_wire import MAX_AGREED, PeopleAgreement, PeopleQuery
from steelyard.review.reviews import Reviews
from steelyard.review.serializers import summarise
from steelyard.review.service import DraftService, OpenDraft
from steelyard.storage import State


class PeopleAgreements:
    """Measures how far people agree, over all drafts behind a version."""

    def __init__(
        self, state: State, datasets: DatasetService, drafts: DraftService, reviews: Reviews
    ) -> None:
        self._state, self._datasets = state, datasets
        self._drafts, self._reviews = drafts, reviews

    async def find(self, caller: Caller, query: PeopleQuery) -> PeopleAgreement:
        """Return how far people agree on the rows of a version.

        Counted are the drafts of it and of the versions before it, and one that became the dataset.
        """
        at = await self._datasets.dataset_at(
            caller, query.dataset_id, query.version, is_new_work=False
        )
        answered = await self._state.read(
            lambda connection: rows.answered_drafts(connection, caller.account_id)
        )
        drafts = []
        for row in answered:
            sealed = summarise(row).sealed
            behind = [(row.dataset_id, row.dataset_version)]
            if sealed is not None and sealed.sealed_as == "dataset":
                behind.append((sealed.dataset_id, sealed.version))
            if any(id_ == at.dataset_id and version <= at.version for id_, version in behind):
                try:
                    drafts.append(await self._drafts.find(caller, row.id))
                except (errors.NotFoundError, errors.DatasetDeletedError):
                    continue  # with its log
        answers = await asyncio.to_thread(self._answers, drafts)
        return _measure(at, answers)

    def _answers(self, drafts: Sequence[OpenDraft]) -> list[list[Answer]]:
        """Return all answers about each row; of a row in several drafts, those of the newest."""
        answers: dict[tuple[str, int], list[Answer]] = {}
        for draft in drafts:
            with self._reviews.current_duties(draft.row.id, draft.n_places) as duties:
                answered, is_known = duties.answered(), duties.is_known
                for place, given in answered.items():
                    if not is_known[place]:
                        answers[draft.at.dataset_id, place] = [each.answer for each in given]
        return list(answers.values())


def _measure(at: DatasetAt, answers: Iterable[Sequence[Answer]]) -> PeopleAgreement:
    n_rows, n_answered, n_agreed = 0, Counter[str](), Counter[str]()
    for given in answers:
        if any(answer.is_excluded for answer in given):
            continue
        n_rows += 1
        for decision in {name for answer in given for name in answer.outcomes}:
            outcomes = [each.outcomes[decision] for each in given if decision in each.outcomes]
            if len(outcomes) > 1:
                n_answered[decision] += 1
                n_agreed[decision] += len(set(outcomes)) == 1
    measures = {name: share(n_agreed[name], n) for name, n in n_answered.most_common(MAX_AGREED)}
    return PeopleAgreement(
        dataset_id=at.dataset_id,
        version=at.version,
        rows=n_rows,
        agreement=share(n_agreed.total(), n_answered.total()),
        decisions={name: measure for name, measure in measures.items() if measure is not None},
    )
