"""Outcomes of drafts: renamed, described and merged in a review, with the number of rows of each."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping

import numpy as np
from sqlalchemy import Connection

from steelyard.caller import Caller
from steelyard.datasets.definitions import Definition
from steelyard.datasets.frames.pages import RowStore
from steelyard.datasets.frames.scanning import load_definitions
from steelyard.operations.idempotency import SECONDS_A_DAY, KeyedWrites
from steelyard.operations.write import Write
from steelyard.review import store as rows
from steelyard.review.log import EXCLUDED, Entry, EntryBody, merge_labels
from steelyard.review.outcomes import (
    OutcomeNames,
    check_changes,
    check_guideline,
    fixed_reason,
    read_wording,
)
from steelyard.review.outcomes_wire import (
    DecisionOutcomes,
    DraftOutcome,
    DraftOutcomes,
    EditOutcomes,
    OutcomeChange,
)
from steelyard.review.reviews import Reviews
from steelyard.review.serializers import lock_draft, receipt_of, require_open
from steelyard.review.service import DraftService, OpenDraft
from steelyard.review.wire import EditReceipt
from steelyard.storage.frame_store import FrameStore
from steelyard.wire.violations import BODY, Violations, show

#: Rows that are read at once to count their labels.
_BATCH = 2000


class DraftOutcomeService:
    """The outcomes of every draft."""

    def __init__(
        self, drafts: DraftService, store: FrameStore, writes: KeyedWrites, reviews: Reviews
    ) -> None:
        self._drafts, self._store, self._rows = drafts, store, RowStore(store)
        self._writes, self._reviews = writes, reviews

    async def list_outcomes(self, caller: Caller, draft_id: str) -> DraftOutcomes:
        """Return the outcomes of every decision of a draft, with their rows."""
        draft = await self._drafts.find(caller, draft_id)
        return await asyncio.to_thread(self._list, draft)

    async def edit(self, write: Write, draft_id: str, request: EditOutcomes) -> EditReceipt:
        """Name, describe and merge the outcomes of a decision, or give it a guideline."""
        await self._writes.replay_known(write)
        draft = await self._drafts.find(write.caller, draft_id)
        require_open(draft.row)
        changes = await asyncio.to_thread(self._check, draft, request)
        await asyncio.to_thread(self._drafts.catch_up, draft)
        originals = await asyncio.to_thread(self._drafts.originals, draft, ())

        def work(connection: Connection) -> EditReceipt:
            row = require_open(lock_draft(connection, write.caller.account_id, draft_id))
            with self._reviews.cached(draft_id, draft.n_places) as review:
                later = rows.entries_after(connection, draft_id, review.revision)
                entry = Entry(
                    number=row.revision + 1,
                    reviewer=request.reviewer,
                    action="outcomes",
                    body=EntryBody(
                        decision=request.decision, outcomes=changes, guideline=request.guideline
                    ),
                )
                self._drafts.append(connection, draft_id, [entry])
                return receipt_of(draft_id, review, [*later, entry], (), 0, originals)

        return await self._writes.once(write, work, window_s=SECONDS_A_DAY)

    def _check(self, draft: OpenDraft, request: EditOutcomes) -> dict[str, OutcomeChange] | None:
        violations, manifest = Violations(), draft.at.manifest
        if request.outcomes is None and request.guideline is None:
            message = "is missing; give outcomes, a guideline, or both."
            violations.add((*BODY, "outcomes"), message, "missing")
            violations.raise_if_any()
        wordings = _by_decision(load_definitions(self._store, manifest)).get(request.decision)
        if wordings is None:
            message = f"is {show(request.decision)}, which no row of the version asks."
            violations.add((*BODY, "decision"), message, "unknown")
            violations.raise_if_any()
            return None
        worded, changes = [read_wording(wording) for wording in wordings], None
        if request.guideline:
            check_guideline(request.guideline, worded, violations)
        if request.outcomes is not None:
            changes = check_changes(
                request.outcomes,
                worded,
                has_rewards=manifest.method == "reward",
                violations=violations,
            )
        violations.raise_if_any()
        return changes

    def _list(self, draft: OpenDraft) -> DraftOutcomes:
        with self._reviews.current(draft.row.id, draft.n_places) as review:
            renamings, revision = review.renamings(), review.revision
        counts = self._count(draft)
        decisions = [
            _decision_to_wire(id_, wordings, renamings.get(id_), counts)
            for id_, wordings in _by_decision(
                load_definitions(self._store, draft.at.manifest)
            ).items()
        ]
        decisions.sort(
            key=lambda decision: (
                -sum(outcome.rows for outcome in decision.outcomes),
                decision.decision,
            )
        )
        return DraftOutcomes(data=decisions, revision=revision)

    def _count(self, draft: OpenDraft) -> Counter[tuple[str, str]]:
        """Return the rows of each decision and outcome, by the version's names."""
        manifest = draft.at.manifest
        counts: Counter[tuple[str, str]] = Counter(
            {
                (decision, outcome): count
                for decision, outcomes in self._rows.facets(manifest).expected.items()
                for outcome, count in outcomes.items()
            }
        )
        with self._reviews.current(draft.row.id, draft.n_places) as review:
            excluded = np.flatnonzero(review.state == EXCLUDED)
            changed = np.union1d(excluded, np.array(list(review.relabelled()), dtype=np.int64))
            folds = review.folds(changed.tolist())
        for start in range(0, len(changed), _BATCH):
            places = changed[start : start + _BATCH].tolist()
            for place, (_, row) in self._drafts.stored(draft, places).rows.items():
                counts.subtract(_tops(row.labels))
                if not folds[place].is_excluded:
                    counts.update(_tops(merge_labels(row.labels, folds[place].labels)))
        return counts


def _by_decision(definitions: list[Definition]) -> dict[str, list[Definition]]:
    """Return the wordings that rows have, by decision, those with the most rows first."""
    worded: dict[str, list[Definition]] = {}
    for definition in sorted(
        definitions, key=lambda definition: -(definition.training + definition.evaluation)
    ):
        if definition.training + definition.evaluation:
            worded.setdefault(definition.id, []).append(definition)
    return worded


def _decision_to_wire(
    decision: str,
    wordings: list[Definition],
    names: OutcomeNames | None,
    counts: Mapping[tuple[str, str], int],
) -> DecisionOutcomes:
    names = names or OutcomeNames({})
    worded = [read_wording(wording) for wording in wordings]
    outcomes = dict.fromkeys(name for wording in wordings for name in wording.outcomes)
    described = names.descriptions(worded)
    return DecisionOutcomes(
        decision=decision,
        question=worded[0]["question"],
        kind=worded[0].get("kind") or "single",
        wordings=len(wordings),
        fixed=fixed_reason(worded),
        outcomes=[
            DraftOutcome(
                outcome=outcome,
                name=names.name_of(outcome),
                description=described.get(names.name_of(outcome)),
                same_as=None if (root := names.root_of(outcome)) == outcome else root,
                rows=counts.get((decision, outcome), 0),
            )
            for outcome in outcomes
        ],
        guideline=names.guide(worded[0]).get("guideline"),
        has_new_guideline=names.guideline is not None,
    )


def _tops(labels: Mapping[str, Mapping[str, float]]) -> list[tuple[str, str]]:
    return [(decision, max(values, key=values.__getitem__)) for decision, values in labels.items()]
