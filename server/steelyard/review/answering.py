"""Rows that two reviewers label apart: their answers, the resulting edits, and their agreement."""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec
import numpy as np
from sqlalchemy import Connection

from steelyard import errors
from steelyard.calibration.agreement import DecisionVotes
from steelyard.caller import Caller
from steelyard.decisions.validation import decisions_of
from steelyard.operations.idempotency import SECONDS_A_DAY, KeyedWrites
from steelyard.operations.write import Write
from steelyard.recent import Recent
from steelyard.review import store as rows
from steelyard.review.duties import Answer, Duties, Given, numbered
from steelyard.review.duties_wire import (
    MAX_AGREED,
    AgreedDecision,
    AgreementQuery,
    AnswerReceipt,
    DraftAgreement,
)
from steelyard.review.duty_store import append_duties, duties_after
from steelyard.review.frames import decisions_at
from steelyard.review.labels import Originals, outcomes_of, read_label
from steelyard.review.log import Entry, EntryBody
from steelyard.review.requests import AnswerRow
from steelyard.review.reviews import Reviews
from steelyard.review.rows import is_open
from steelyard.review.serializers import blind_to_wire, lock_draft, require_open, rows_now
from steelyard.review.service import DraftService, OpenDraft
from steelyard.storage.frame_store import FrameStore
from steelyard.wire.origins import origins_of
from steelyard.wire.violations import BODY, Violations, show

#: Lists of decisions, and drafts' figures, that are kept at hand.
_CACHED_TASKS, _CACHED_FIGURES = 1024, 32
#: A draft, and which of its rows.
_Key = tuple[str, str | None, str | None]


class BlindAnswers:
    """Takes the answers of two reviewers, and tells how far they agree."""

    def __init__(
        self,
        drafts: DraftService,
        store: FrameStore,
        writes: KeyedWrites,
        reviews: Reviews,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._drafts, self._store = drafts, store
        self._writes, self._reviews = writes, reviews
        self._now = now
        self._figures: Recent[_Key, tuple[int, list[AgreedDecision]]] = Recent(_CACHED_FIGURES)
        self._lock = threading.Lock()

    async def answer(self, write: Write, draft_id: str, request: AnswerRow) -> AnswerReceipt:
        """Store a reviewer's answer to a row; two equal answers make an edit."""
        await self._writes.replay_known(write)
        caller, reviewer = write.caller, request.reviewer
        if reviewer is None:
            raise _refusal("reviewer", "is missing; name who answers.", "missing")
        draft = await self._drafts.find(caller, draft_id)
        require_open(draft.row)
        bodies, originals = await asyncio.to_thread(self._prepare, draft, request)
        await asyncio.to_thread(self._drafts.catch_up, draft)
        outcomes = {
            decision: originals.stored_name(request.row, decision, outcome)
            for decision, outcome in (request.outcomes or {}).items()
        }
        answer = Answer(outcomes=outcomes, is_excluded=request.exclude)

        def work(connection: Connection) -> AnswerReceipt:
            row = require_open(lock_draft(connection, caller.account_id, draft_id))
            with self._reviews.cached_duties(draft_id, draft.n_places) as current:
                later = duties_after(connection, draft_id, current.number)
                number = later[-1].number if later else current.number
                duties = current.among([request.row], later)
            _require_missing(duties, request.row, reviewer)
            places = np.array([request.row], dtype=np.int64)
            made = numbered(number, self._now(), [(reviewer, "answer", places, answer)])
            append_duties(connection, draft_id, made)
            duties.extend(made)
            blind = blind_to_wire(duties, request.row, reviewer, originals)
            if blind is None:
                raise RuntimeError("The row was labelled by two a moment ago.")
            if blind.status == "waiting":
                return AnswerReceipt(
                    draft_id=draft_id,
                    row=request.row,
                    status="waiting",
                    revision=row.revision,
                    rows=[],
                )
            entries: list[Entry] = []
            if blind.status == "agreed":
                entries = _entries_of(row.revision, reviewer, request, bodies)
                self._drafts.append(connection, draft_id, entries)
            with self._reviews.cached(draft_id, draft.n_places) as review:
                others = rows.entries_after(connection, draft_id, review.revision)
                # What was just appended is among them.
                now = rows_now(review, [request.row], originals, others)
            return AnswerReceipt(
                draft_id=draft_id,
                row=request.row,
                status=blind.status,
                revision=row.revision + len(entries),
                rows=[now[request.row]],
            )

        return await self._writes.once(write, work, window_s=SECONDS_A_DAY)

    async def agreement(
        self, caller: Caller, draft_id: str, query: AgreementQuery | None = None
    ) -> DraftAgreement:
        """Return how far two reviewers agree, by decision."""
        draft = await self._drafts.find(caller, draft_id)
        query = query or AgreementQuery()
        return await asyncio.to_thread(
            self._agreement, draft, query, with_known=caller.only_reviews
        )

    def _prepare(self, draft: OpenDraft, request: AnswerRow) -> tuple[list[EntryBody], Originals]:
        """Check an answer against its row's decisions; return the changes to the row's labels."""
        originals = self._drafts.originals(draft, [request.row])
        known = originals.rows.get(request.row)
        if known is None:
            message = f"is {request.row}; the version has no such row."
            raise _refusal("row", message, "unknown")
        if request.outcomes is None:
            return [], originals
        row, violations = known[1], Violations()
        outcomes_by_decision = outcomes_of(msgspec.json.encode(row.decisions))
        path = (*BODY, "outcomes")
        for decision in sorted(request.outcomes.keys() - outcomes_by_decision.keys()):
            violations.add((*path, decision), "is not a decision that the row asks.", "unknown")
        bodies = []
        for decision, outcomes in outcomes_by_decision.items():
            if decision not in request.outcomes:
                violations.add((*path, decision), "is missing; answer every decision.", "missing")
                continue
            body = read_label(
                "targets",
                decision,
                request.outcomes[decision],
                outcomes,
                path=(*path, decision),
                violations=violations,
                known=row.labels.get(decision),
            )
            bodies += [] if body is None else [originals.store(request.row, body)]
        violations.raise_if_any()
        return bodies, originals

    def _agreement(
        self, draft: OpenDraft, query: AgreementQuery, *, with_known: bool
    ) -> DraftAgreement:
        draft_id = str(draft.row.id)
        with self._reviews.current(draft_id, draft.n_places) as review:
            undecided = is_open(review.state)
        with self._reviews.current_duties(draft_id, draft.n_places) as duties:
            answered = duties.answered()
            n_blind, disputed = int(duties.is_shared.sum()), duties.is_disputed.copy()
            settled = ~undecided if with_known else ~undecided | duties.is_known
        if query.by is not None or query.who is not None:
            answered = self._chosen(draft, answered, query)
            disputed &= np.isin(np.arange(len(disputed)), list(answered))
        n_disputed = int(disputed.sum())
        return DraftAgreement(
            blind=n_blind,
            answered=len(answered),
            agreed=len(answered) - n_disputed,
            disputed=n_disputed,
            to_adjudicate=int((disputed & ~settled).sum()),
            exclusions=sum(
                any(given.answer.is_excluded for given in both) for both in answered.values()
            ),
            decisions=self._figures_of(draft, answered, query),
        )

    def _chosen(
        self, draft: OpenDraft, answered: Mapping[int, Sequence[Given]], query: AgreementQuery
    ) -> dict[int, list[Given]]:
        """Return the answered rows that a query asks for."""
        chosen = {
            row: list(answers)
            for row, answers in answered.items()
            if query.who is None or query.who in {given.reviewer for given in answers}
        }
        if query.by is None:
            return chosen
        stored = self._drafts.stored(draft, list(chosen)).rows
        return {
            row: answers
            for row, answers in chosen.items()
            if query.by in origins_of(stored[row][1].metadata)
        }

    def _figures_of(
        self, draft: OpenDraft, answered: Mapping[int, Sequence[Given]], query: AgreementQuery
    ) -> list[AgreedDecision]:
        """Return the figures by decision; resampling takes a while, so those at hand are taken."""
        key = (str(draft.row.id), query.by, query.who)
        # One at a time: later callers get the result of the first.
        with self._lock:
            cached = self._figures.find(key)
            # Of rows that both answered, no answer changes: there are only more of them.
            if cached is None or cached[0] != len(answered):
                cached = (len(answered), self._measure(draft, answered))
                self._figures.note(key, cached)
        return cached[1]

    def _measure(
        self, draft: OpenDraft, answered: Mapping[int, Sequence[Given]]
    ) -> list[AgreedDecision]:
        labelled = {
            row: both
            for row, both in answered.items()
            if not any(given.answer.is_excluded for given in both)
        }
        places = np.array(sorted(labelled), dtype=np.int64)
        tasks = decisions_at(self._store, draft.at.manifest, places) if len(places) else {}
        read = functools.lru_cache(_CACHED_TASKS)(decisions_of)
        votes: dict[str, DecisionVotes] = {}
        for row, task in tasks.items():
            for decision in read(task):
                given = [each.answer.outcomes.get(decision.id) for each in labelled[row]]
                votes.setdefault(decision.id, DecisionVotes()).add(
                    decision.outcomes.names,
                    [outcome for outcome in given if outcome is not None],
                    is_ordinal=decision.kind == "ordinal",
                )
        most = sorted(votes, key=lambda name: (-len(votes[name]), name))[:MAX_AGREED]
        return [
            AgreedDecision(
                decision_id=name, alpha=votes[name].alpha(), agreement=votes[name].share()
            )
            for name in most
        ]


def _require_missing(duties: Duties, row: int, reviewer: str) -> None:
    """Refuse an answer that is not due."""
    names = duties.reviewers_of(row)
    if not duties.is_blind_at(row) or reviewer not in names:
        raise _refusal(
            "row",
            f"is {row}, which is not assigned to {show(reviewer)} to label apart; edit it with POST "
            "/v1/drafts/{draft}/edits.",
            "refused",
        )
    if len(duties.answers_of(row)) == len(names):
        raise errors.DraftChangedError(
            f"All reviewers have answered row {row}, and answers stay from then on; edit the row "
            "with POST /v1/drafts/{draft}/edits."
        )


def _entries_of(
    revision: int, reviewer: str | None, request: AnswerRow, bodies: Sequence[EntryBody]
) -> list[Entry]:
    """Return the edits of two equal answers, in the name of the later reviewer."""
    if request.exclude:
        bodies = [EntryBody()]
    return [
        Entry(
            number=revision + place,
            reviewer=reviewer,
            action="exclude" if request.exclude else "relabel",
            row=request.row,
            body=body,
        )
        for place, body in enumerate(bodies, start=1)
    ]


def _refusal(field: str, message: str, kind: str) -> errors.InvalidRequestError:
    violation = errors.Violation((*BODY, field), f"{field} {message}", kind)
    return errors.InvalidRequestError(violations=[violation])
