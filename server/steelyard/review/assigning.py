"""Rows of a draft assigned to reviewers, a share of them to two; moved; how far and how right each is."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from sqlalchemy import Connection

from steelyard import errors
from steelyard.calibration.agreement import share
from steelyard.caller import Caller
from steelyard.datasets.access import require_dataset, require_version
from steelyard.datasets.version_service import StoredExample
from steelyard.operations.idempotency import SECONDS_A_DAY, KeyedWrites
from steelyard.operations.write import Write
from steelyard.review import store as rows
from steelyard.review.duties import Apart, Duties, Part, numbered, split_rows
from steelyard.review.duties_wire import (
    Assignment,
    Assignments,
    MovedAssignment,
    ReviewerProgress,
)
from steelyard.review.duty_store import append_duties, count_assigned, duties_after
from steelyard.review.log import Places
from steelyard.review.requests import AssignRows, MoveAssigned
from steelyard.review.reviews import Reviews
from steelyard.review.rows import WHOLE, DraftRows, SelectedRows, is_open
from steelyard.review.serializers import lock_draft, require_open
from steelyard.review.service import DraftService, OpenDraft
from steelyard.storage import State
from steelyard.wire.measures import Measure
from steelyard.wire.violations import BODY, Violations, refusal, show

#: The most rows of a draft that two label apart, and the most entries that assign rows in it.
MAX_BLIND, MAX_ENTRIES = 10_000, 2_000

#: Fields of a request that have rows labelled apart.
_APART = ("overlap", "known_share")
#: Rows that are looked through at once for known ones.
_BATCH = 2000

#: Returns the addresses of an account's members who may review, and whether each is only invited yet.
Candidates = Callable[[Connection, str], Mapping[str, bool]]


class DraftAssignments:
    """Knows whose rows are whose."""

    def __init__(
        self,
        state: State,
        drafts: DraftService,
        draft_rows: DraftRows,
        writes: KeyedWrites,
        reviews: Reviews,
        *,
        candidates: Candidates = lambda _connection, _account_id: {},
    ) -> None:
        self._state = state
        self._drafts, self._rows = drafts, draft_rows
        self._writes, self._reviews = writes, reviews
        self._candidates = candidates

    def register_candidates(self, candidates: Candidates) -> None:
        """Register the finder of an account's reviewers."""
        self._candidates = candidates

    async def assign(self, write: Write, draft_id: str, request: AssignRows) -> Assignment:
        """Split undecided rows of a queue evenly among reviewers."""
        await self._writes.replay_known(write)
        draft = await self._drafts.find(write.caller, draft_id)
        require_open(draft.row)
        reviewers = _names_of(write.caller, request.reviewers)
        apart = next((name for name in _APART if getattr(request, name)), None)
        if apart is not None and draft.at.manifest.method == "reward":
            raise errors.SupervisionMismatchError(
                f"The rows have rewards, and labels apart are outcomes; leave {apart} out.",
                path=(*BODY, apart),
            )
        work = await asyncio.to_thread(self._prepare, write.caller, draft, request, reviewers)
        return await self._writes.once(write, work, window_s=SECONDS_A_DAY)

    async def move(self, write: Write, draft_id: str, request: MoveAssigned) -> MovedAssignment:
        """Move a reviewer's unfinished rows to another, or to the open queue."""
        await self._writes.replay_known(write)
        draft = await self._drafts.find(write.caller, draft_id)
        to = request.to
        if to is not None:
            [to] = _names_of(write.caller, [to])
        if to == request.from_:
            raise refusal(
                (*BODY, "to"), "has them already; name another, or leave it out.", "refused"
            )
        await asyncio.to_thread(self._drafts.catch_up, draft)

        def work(connection: Connection) -> MovedAssignment:
            require_open(lock_draft(connection, write.caller.account_id, draft_id))
            if to is not None:
                self._check_names(connection, write.caller, [(("to",), to)])
            check_entries(count_assigned(connection, draft_id) + 2)
            return self._move(connection, draft_id, draft.n_places, request.from_, to)

        return await self._writes.once(write, work, window_s=SECONDS_A_DAY)

    def release(self, connection: Connection, account_id: str, reviewer: str) -> None:
        """Free the unfinished rows of a reviewer in every open draft of an account.

        Rows that another has answered apart stay theirs, until they are handed over.
        """
        for row in rows.drafts_assigned_to(connection, account_id, reviewer):
            lock_draft(connection, account_id, row.id)
            dataset = require_dataset(connection, account_id, row.dataset_id)
            version = require_version(connection, dataset, row.dataset_version)
            self._move(connection, row.id, version.manifest.next_index, reviewer, None)

    async def progress(self, caller: Caller, draft_id: str) -> Assignments:
        """Return who is to label which share of a draft's rows, and how far each is."""
        draft = await self._drafts.find(caller, draft_id)
        candidates: Mapping[str, bool] | None = None
        if caller.session is not None and not caller.only_reviews:
            account_id = caller.account_id
            candidates = await self._state.read(
                lambda connection: self._candidates(connection, account_id)
            )
        return await asyncio.to_thread(
            self._progress, draft, candidates, with_scores=not caller.only_reviews
        )

    def _progress(
        self, draft: OpenDraft, candidates: Mapping[str, bool] | None, *, with_scores: bool
    ) -> Assignments:
        with self._reviews.current(draft.row.id, draft.n_places) as review:
            undecided = is_open(review.state)
        with self._reviews.current_duties(draft.row.id, draft.n_places) as current:
            duties = current.copy()
        scores = self._scores(draft, duties) if with_scores else {}
        progress = []
        for reviewer in sorted(duties.reviewers):
            theirs = duties.assigned_to(reviewer)
            n_rows = int(theirs.sum())
            to_do = int(duties.to_do_of(reviewer, undecided).sum())
            if n_rows:
                progress.append(
                    ReviewerProgress(
                        reviewer=reviewer,
                        rows=n_rows,
                        done=n_rows - to_do,
                        blind=int((theirs & duties.is_blind).sum()),
                        known=scores.get(reviewer),
                    )
                )
        n_assigned = int((undecided & duties.is_assigned).sum())
        # A version may have fewer rows than places, and missing rows are undecided, too.
        n_open = int(undecided.sum()) - (draft.n_places - draft.at.manifest.rows)
        return Assignments(
            data=progress,
            unassigned=n_open - n_assigned,
            candidates=None if candidates is None else sorted(candidates),
            invited=sorted(name for name, is_invited in (candidates or {}).items() if is_invited),
        )

    def _scores(self, draft: OpenDraft, duties: Duties) -> dict[str, Measure | None]:
        """Return each reviewer's share of known rows that they answered right."""
        answers = duties.scored()
        known = self._drafts.originals(draft, list(answers))
        right: dict[str, list[bool]] = {}
        for row, given in answers.items():
            labels = known.rows[row][1].labels
            outcomes = {name: max(each, key=each.__getitem__) for name, each in labels.items()}
            for each in given:
                answer = known.outcomes_now(each.answer.outcomes)
                right.setdefault(each.reviewer, []).append(answer == outcomes)
        return {reviewer: share(sum(of), len(of)) for reviewer, of in right.items()}

    def _check_names(
        self,
        connection: Connection,
        caller: Caller,
        names: Sequence[tuple[tuple[str | int, ...], str]],
    ) -> None:
        """Refuse, in a session, names that are no addresses of members who may review."""
        if caller.session is None:
            return
        known, violations = self._candidates(connection, caller.account_id), Violations()
        for path, name in names:
            if name not in known:
                violations.add(
                    (*BODY, *path),
                    f"is {show(name)}, and no member of the account who may review has that address; "
                    "invite them, or name another.",
                    "unknown",
                )
        violations.raise_if_any()

    def _prepare(
        self, caller: Caller, draft: OpenDraft, request: AssignRows, reviewers: Sequence[str]
    ) -> Callable[[Connection], Assignment]:
        chosen = self._rows.choose_of(caller, draft, request)
        draft_id = str(draft.row.id)
        n_matching = len(chosen.places)
        free = np.sort(chosen.places[chosen.is_free[chosen.places]])
        if len(free) == 0:
            raise refusal(
                (*BODY, "filter"),
                f"leaves nothing to assign: of the {n_matching} matching rows every one is decided "
                "or assigned already; choose others.",
                "empty",
            )
        # By the draft and by how often rows were assigned: a try again draws the same.
        seed = [chosen.n_duties, int.from_bytes(draft_id.encode()[-16:], "big")]
        rng = np.random.default_rng(seed)
        drawn, known = rng.permutation(free), free[:0]
        if request.known_share:
            others, known = self._draw_known(draft, request, drawn)
            drawn = rng.permutation(np.concatenate([others, known]))
        else:
            drawn = drawn[: request.limit]
        n_blind = math.ceil(request.overlap * len(drawn)) if len(reviewers) > 1 else 0
        check_blind(len(drawn) if len(known) else n_blind, int(chosen.is_blind.sum()))
        shares = split_rows(drawn, reviewers, n_blind)

        def work(connection: Connection) -> Assignment:
            require_open(lock_draft(connection, caller.account_id, draft_id))
            names = [(("reviewers", place), name) for place, name in enumerate(reviewers)]
            self._check_names(connection, caller, names)
            check_entries(count_assigned(connection, draft_id) + len(shares))
            last = _check_unmoved(connection, draft_id, chosen, drawn)
            parts: list[Part] = [
                (
                    who,
                    "assign",
                    theirs,
                    Apart.of(np.intersect1d(theirs, known)) if len(known) else None,
                )
                for who, theirs in shares.items()
            ]
            append_duties(connection, draft_id, numbered(last, time.time(), parts))
            return Assignment(
                draft_id=draft_id,
                rows=len(drawn),
                blind=n_blind,
                known=len(known),
                left_out=n_matching - len(drawn),
                reviewers={name: len(places) for name, places in shares.items()},
            )

        return work

    def _draw_known(
        self, draft: OpenDraft, request: AssignRows, order: Places
    ) -> tuple[Places, Places]:
        """Return rows to label, and known rows for the share of both; refuse where there are none."""
        part, most = request.known_share, request.limit or len(order)
        is_by = np.isin(order, self._rows.labelled_by(draft, request.known_by))
        others, candidates, known = order[~is_by], order[is_by], order[:0]
        if request.limit is not None:
            others = others[: most - math.ceil(part * most)]
        n_known = min(round(part / (1 - part) * len(others)) or 1, most - len(others))
        for start in range(0, len(candidates), _BATCH):
            if len(known) >= n_known:
                break
            places = candidates[start : start + _BATCH]
            stored = self._drafts.stored(draft, places.tolist()).rows
            has_labels = [_is_labelled(stored[row][1]) for row in places.tolist()]
            known = np.concatenate([known, places[np.array(has_labels, dtype=np.bool_)]])
        known = known[:n_known] if len(others) else known[:0]
        if len(known) == 0:
            raise refusal(
                (*BODY, "known_by"),
                f"is {show(request.known_by)}, and the matching rows have no known ones beside others "
                "to label; choose other rows, or say where right labels came from.",
                "empty",
            )
        return others, known

    def _move(
        self, connection: Connection, draft_id: str, n_places: int, from_: str, to: str | None
    ) -> MovedAssignment:
        """Move what a reviewer has not done in a draft, which is locked."""
        with self._reviews.cached_duties(draft_id, n_places) as current:
            duties = current.copy()
        duties.extend(duties_after(connection, draft_id, duties.number))
        with self._reviews.cached(draft_id, n_places) as review:
            later = rows.entries_after(connection, draft_id, review.revision)
            undecided = is_open(review.states(later))
        to_do = duties.to_do_of(from_, undecided)
        stays = duties.is_begun if to is None else duties.assigned_to(to)
        places = duties.rows[to_do & ~stays]
        # Dropped first, rows without a reviewer would no longer be labelled apart.
        parts: list[Part] = [] if to is None else [(to, "assign", places, None)]
        parts.append((from_, "drop", places, None))
        moves = numbered(duties.number, time.time(), parts)
        if moves:
            append_duties(connection, draft_id, moves)
        return MovedAssignment(
            draft_id=draft_id, moved=len(places), kept=int((to_do & stays).sum())
        )


def _is_labelled(row: StoredExample) -> bool:
    """Return whether every decision of a row has one outcome for a label."""
    labels = row.labels
    return all(
        max(labels.get(decision["id"], {}).values(), default=0) >= WHOLE
        for decision in row.decisions
    )


def _names_of(caller: Caller, names: Sequence[str]) -> list[str]:
    """Return reviewers' names; in a session as addresses are kept."""
    if caller.session is None:
        return list(names)
    return list(dict.fromkeys(name.strip().lower() for name in names))


def _check_unmoved(
    connection: Connection, draft_id: str, chosen: SelectedRows, places: Places
) -> int:
    """Refuse rows that others decided or assigned since they were chosen; return the last duty."""
    duties = duties_after(connection, draft_id, chosen.n_duties)
    entries = rows.entries_after(connection, draft_id, chosen.revision)
    ordered = np.sort(places)
    if any(duty.action != "answer" for duty in duties) or any(
        np.isin(entry.rows(), ordered).any() for entry in entries
    ):
        raise errors.DraftChangedError(
            "Others decided or assigned some of these rows meanwhile, and nothing was assigned; "
            "send it again."
        )
    return duties[-1].number if duties else chosen.n_duties


def check_blind(n_blind: int, n_before: int) -> None:
    """Refuse more rows that several label apart than a draft may have."""
    if n_blind and n_before + n_blind > MAX_BLIND:
        raise refusal(
            (*BODY, "overlap"),
            f"has {n_blind} rows labelled apart, beside {n_before} of before; a draft has at most "
            f"{MAX_BLIND} such rows. Give a smaller share or limit.",
            "too_many",
        )


def check_entries(n: int) -> None:
    """Refuse more entries that assign rows than a draft may have."""
    if n > MAX_ENTRIES:
        raise errors.InvalidRequestError(
            f"Rows of the draft were assigned or moved {MAX_ENTRIES} times, which is the most; seal it "
            "and begin another."
        )
