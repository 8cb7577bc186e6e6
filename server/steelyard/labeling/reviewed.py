"""Teachers beside people: how often each chose the outcome that reviews of a job's dataset settled on."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from sqlalchemy import Connection, Row

from steelyard.calibration.agreement import share
from steelyard.caller import Caller
from steelyard.datasets.rows import hash_context
from steelyard.datasets.version_service import decode_example
from steelyard.datasets.wire import SIDES
from steelyard.house import House
from steelyard.labeling.service import read_results, require_ready
from steelyard.labeling.sources import require_source
from steelyard.labeling.store import JOBS
from steelyard.labeling.wire import LabelingResult, ReviewedTeacher, ReviewedTeachers
from steelyard.review.frames import iterate_side
from steelyard.review.log import ACCEPTED, RELABELLED
from steelyard.review.reviews import Reviews
from steelyard.review.service import DraftService, OpenDraft
from steelyard.review.wire import DraftsQuery

#: What people settled on: a row's context and a decision, to the outcome.
Settled = Mapping[tuple[bytes, str], str]


class LabelingReviews:
    """Compares the teachers' answers with the reviews of the datasets made of them."""

    def __init__(
        self,
        house: House,
        drafts: DraftService,
        reviews: Reviews,
    ) -> None:
        self._state, self._store = house.state, house.frames("labeling")
        self._drafts, self._reviews, self._rows = drafts, reviews, house.frames("datasets")

    async def find(self, caller: Caller, job_id: str) -> ReviewedTeachers:
        """Return each teacher's agreement with the rows that people accepted or relabelled."""

        def read(connection: Connection) -> tuple[Row[Any], Row[Any]]:
            job = JOBS.require(connection, caller, job_id)
            source = require_source(connection, caller, job.source_id)
            return require_ready(job), source

        job, source = await self._state.read(read)
        settled: dict[tuple[bytes, str], str] = {}
        if job.dataset_id is not None:
            page = await self._drafts.page(caller, DraftsQuery(dataset_id=job.dataset_id))
            for item in reversed(page.data):  # the last decision stands
                draft = await self._drafts.find(caller, item.id)
                settled.update(await asyncio.to_thread(self._settled, draft, caller))
        results = await asyncio.to_thread(read_results, self._store, job, source)
        return beside(results, settled)

    def _settled(self, draft: OpenDraft, caller: Caller) -> dict[tuple[bytes, str], str]:
        # A reviewer would see known rows by what they do not add.
        known = () if caller.only_reviews else self._reviews.known(draft.row.id, draft.n_places)
        with self._reviews.current(draft.row.id, draft.n_places) as review:
            decided = np.flatnonzero(np.isin(review.state, (ACCEPTED, RELABELLED)))
            places = np.setdiff1d(decided, np.array(known, dtype=np.int64))
            folds = review.folds(places.tolist())
        settled: dict[tuple[bytes, str], str] = {}
        for side in SIDES:
            for indexes, texts in iterate_side(self._rows, draft.at.manifest, side, places):
                for index, text in zip(indexes.tolist(), texts, strict=True):
                    row = decode_example(text)
                    context = hash_context(row.context)
                    for decision, labels in {**row.labels, **folds[index].labels}.items():
                        settled[context, decision] = max(labels, key=labels.__getitem__)
        return settled


def beside(results: Sequence[LabelingResult], settled: Settled) -> ReviewedTeachers:
    """Count for each teacher the decisions on which it chose the outcome that people settled on."""
    names = [teacher.model for teacher in results[0].teachers] if results else []
    chosen, right = [0] * len(names), [0] * len(names)
    n_reviewed = 0
    for result in results:
        context = hash_context(result.context)
        settled_outcomes = {
            decision["id"]: settled[context, decision["id"]]
            for decision in result.decisions
            if (context, decision["id"]) in settled
        }
        n_reviewed += bool(settled_outcomes)
        for place, teacher in enumerate(result.teachers):
            labels = {} if teacher.labels is msgspec.UNSET else teacher.labels
            both = settled_outcomes.keys() & labels.keys()
            chosen[place] += len(both)
            right[place] += sum(labels[name] == settled_outcomes[name] for name in both)
    return ReviewedTeachers(
        reviewed_rows=n_reviewed,
        data=[
            ReviewedTeacher(model=name, agreement=share(right[place], chosen[place]))
            for place, name in enumerate(names)
        ],
    )
