"""Answers to rows from other programs, imported with their authors: labels, disputes and notes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec
import numpy as np
from sqlalchemy import Connection

from steelyard import errors
from steelyard.operations.idempotency import SECONDS_A_DAY, KeyedWrites
from steelyard.operations.write import Write
from steelyard.review import store as rows
from steelyard.review.assigning import check_blind, check_entries
from steelyard.review.duties import Answer, Duties, Part, agree, numbered
from steelyard.review.duties_wire import ImportedAnswers
from steelyard.review.duty_store import append_duties, count_assigned, duties_after
from steelyard.review.labels import outcomes_of, read_label
from steelyard.review.log import Entry, EntryBody
from steelyard.review.requests import ImportAnswers, ImportedAnswer
from steelyard.review.reviews import Reviews
from steelyard.review.serializers import lock_draft, require_open
from steelyard.review.service import DraftService, OpenDraft
from steelyard.review.wire import MAX_NOTE, EntryAction
from steelyard.wire.violations import BODY, Violations, show

#: An answer with the labels that it gives its row.
_Read = tuple[ImportedAnswer, list[EntryBody]]


class AnswerImports:
    """Records answers that were given in another program."""

    def __init__(
        self,
        drafts: DraftService,
        writes: KeyedWrites,
        reviews: Reviews,
    ) -> None:
        self._drafts, self._writes, self._reviews = drafts, writes, reviews

    async def record(self, write: Write, draft_id: str, request: ImportAnswers) -> ImportedAnswers:
        """Record answers: rows of several get all of them apart, rows of one are labelled."""
        await self._writes.replay_known(write)
        draft = await self._drafts.find(write.caller, draft_id)
        require_open(draft.row)
        if draft.at.manifest.method == "reward":
            raise errors.SupervisionMismatchError(
                "The rows have rewards, and an answer names an outcome; import answers for rows with "
                "targets."
            )
        by_row = await asyncio.to_thread(self._read, draft, request.answers)
        await asyncio.to_thread(self._drafts.catch_up, draft)

        def work(connection: Connection) -> ImportedAnswers:
            row = require_open(lock_draft(connection, write.caller.account_id, draft_id))
            with self._reviews.cached_duties(draft_id, draft.n_places) as duties:
                later = duties_after(connection, draft_id, duties.number)
                part = duties.among(list(by_row), later)
                n_blind, last = int(duties.is_blind.sum()), part.number
            self._require_new(connection, draft, part)
            votes = {
                place: [answer for answer, _ in given if answer.is_vote]
                for place, given in by_row.items()
            }
            several = {place: given for place, given in votes.items() if len(given) > 1}
            check_blind(len(several), n_blind)
            parts = _parts_of(several)
            check_entries(
                count_assigned(connection, draft_id) + sum(p[1] == "assign" for p in parts)
            )
            if parts:
                append_duties(connection, draft_id, numbered(last, time.time(), parts))
            disputed = [
                place
                for place, given in several.items()
                if not agree(Answer(outcomes=a.outcomes, is_excluded=a.exclude) for a in given)
            ]
            entries = _entries_of(row.revision, by_row, disputed)
            if entries:
                self._drafts.append(connection, draft_id, entries)
            return ImportedAnswers(
                draft_id=draft_id,
                rows=len(by_row),
                several=len(several),
                disputed=len(disputed),
                revision=row.revision + len(entries),
            )

        return await self._writes.once(write, work, window_s=SECONDS_A_DAY)

    def _read(self, draft: OpenDraft, answers: Sequence[ImportedAnswer]) -> dict[int, list[_Read]]:
        """Check answers against the decisions of their rows, by row."""
        originals = self._drafts.originals(draft, [answer.row for answer in answers])
        violations = Violations()
        by_row: dict[int, list[_Read]] = {}
        for number, answer in enumerate(answers):
            path = (*BODY, "answers", number)
            known = originals.rows.get(answer.row)
            if known is None:
                message = f"is {answer.row}; the version has no such row."
                violations.add((*path, "row"), message, "unknown")
                continue
            row = known[1]
            decisions = outcomes_of(msgspec.json.encode(row.decisions))
            bodies, outcomes = [], {}
            for decision, outcome in answer.outcomes.items():
                place = (*path, "outcomes", decision)
                if decision not in decisions:
                    violations.add(
                        place, f"is {show(decision)}, which the row does not ask.", "unknown"
                    )
                    continue
                body = read_label(
                    "targets",
                    decision,
                    outcome,
                    decisions[decision],
                    path=place,
                    violations=violations,
                    known=row.labels.get(decision),
                )
                bodies += [] if body is None else [originals.store(answer.row, body)]
                outcomes[decision] = originals.stored_name(answer.row, decision, outcome)
            answer = msgspec.structs.replace(answer, outcomes=outcomes)  # noqa: PLW2901
            by_row.setdefault(answer.row, []).append((answer, bodies))
        violations.raise_if_any()
        return by_row

    def _require_new(self, connection: Connection, draft: OpenDraft, part: Duties) -> None:
        """Refuse rows that are assigned or edited: imported answers come first."""
        draft_id = str(draft.row.id)
        with self._reviews.cached(draft_id, draft.n_places) as review:
            later = rows.entries_after(connection, draft_id, review.revision)
            last = review.last_edits(part.rows.tolist(), later)
        taken = part.is_assigned | np.array([number > 0 for number, _ in last.values()])
        if taken.any():
            first = int(part.rows[taken][0])
            raise errors.DraftChangedError(
                f"{int(taken.sum())} of the rows, row {first} first, were assigned or edited already, "
                "and nothing was recorded; import the answers into a new draft."
            )


def _parts_of(several: Mapping[int, Sequence[ImportedAnswer]]) -> list[Part]:
    """Return whose rows are whose, and then their answers."""
    places: dict[str, list[int]] = {}
    answers: list[Part] = []
    for place, given in several.items():
        for reply in given:
            reviewer = reply.reviewer or ""
            places.setdefault(reviewer, []).append(place)
            answer = Answer(outcomes=reply.outcomes, is_excluded=reply.exclude)
            answers.append((reviewer, "answer", np.array([place], dtype=np.int64), answer))
    assigned: list[Part] = [
        (reviewer, "assign", np.array(sorted(theirs), dtype=np.int64), None)
        for reviewer, theirs in places.items()
    ]
    return [*assigned, *answers]


def _entries_of(
    revision: int, by_row: Mapping[int, Sequence[_Read]], disputed: Sequence[int]
) -> list[Entry]:
    """Return the edits of answers, in the name of the last author of each row.

    A label that the version has is accepted, all rows of a reviewer at once.
    """
    accepted: dict[str | None, list[int]] = {}
    made: list[tuple[str | None, EntryAction, int, EntryBody]] = []
    open_rows = set(disputed)
    for place, given in by_row.items():
        votes = [(reply, bodies) for reply, bodies in given if reply.is_vote]
        if votes and place not in open_rows:
            reply, _ = votes[-1]
            changed = {body.decision: body for _, bodies in votes for body in bodies if body.labels}
            if reply.exclude:
                made.append((reply.reviewer, "exclude", place, EntryBody()))
            elif changed:
                made += [(reply.reviewer, "relabel", place, body) for body in changed.values()]
            else:
                accepted.setdefault(reply.reviewer, []).append(place)
        notes = [(reply.reviewer, reply.note) for reply, _ in given if reply.note]
        if notes:
            reviewer, text = notes[-1]
            if len(notes) > 1:
                text = "\n".join(f"{name}: {note}" if name else note for name, note in notes)
            made.append((reviewer, "note", place, EntryBody(note=text[:MAX_NOTE])))
    entries = [
        Entry(
            number=0,
            reviewer=reviewer,
            action="accept",
            row=places[0] if len(places) == 1 else None,
            places=None if len(places) == 1 else np.array(sorted(places), dtype=np.int64),
        )
        for reviewer, places in accepted.items()
    ]
    entries += [
        Entry(number=0, reviewer=reviewer, action=action, row=place, body=body)
        for reviewer, action, place, body in made
    ]
    return [replace(entry, number=revision + n) for n, entry in enumerate(entries, 1)]
