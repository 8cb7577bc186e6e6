"""Pages of a draft's queues, and edits of all the rows of one.

The rows that a filter holds for, in an order, are found once and kept: a version never changes. How
they stand is in the review at hand, so that a page reads the rows that it shows and no other.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET
from numpy.typing import NDArray
from sqlalchemy import Connection

from steelyard import errors
from steelyard.caller import Caller
from steelyard.datasets.filters import AsksFilter, Filter, LabelFilter, Sort
from steelyard.datasets.frames.pages import RowStore
from steelyard.datasets.frames.suspects import SuspectTable
from steelyard.datasets.versions import Manifest
from steelyard.operations.idempotency import SECONDS_A_DAY, KeyedWrites
from steelyard.operations.write import Write
from steelyard.recent import Recent
from steelyard.review import log, serializers, wire
from steelyard.review import store as rows
from steelyard.review.duties import Duties
from steelyard.review.frames import labelled_by, tasks_of
from steelyard.review.labels import Originals, outcomes_of, read_label, store_body
from steelyard.review.outcomes import OutcomeNames, Renamings
from steelyard.review.requests import AssignRows, BulkEdit, DraftRowsSearch
from steelyard.review.reviews import Reviews
from steelyard.review.service import DraftService, OpenDraft
from steelyard.review.suspects import SuspectSearch
from steelyard.storage.frame_store import FrameStore
from steelyard.wire.decoding import decoder_of
from steelyard.wire.origins import LabelledBy
from steelyard.wire.violations import BODY, Violations

#: Rows of the queue of audits: a share found in so many is known to within five points.
AUDIT_ROWS = 400
#: Rows of all the orders that are kept at hand, each of eight bytes, and how many orders there are:
#: one that no row is in takes memory, too.
CACHED_ROWS, CACHED_ORDERS = 8_000_000, 256
#: A target this near 1 is one.
WHOLE = 1 - 1e-9

#: Members of metadata that say where a label came from.
_ORIGIN = ("by", "who")

Mask = NDArray[np.bool_]
_decode_expected = decoder_of(dict[str, wire.ExpectedOutcome]).decode


@dataclass(frozen=True, slots=True)
class SelectedRows:
    """The rows of a queue in order, and the state they were chosen in."""

    places: log.Places
    counts: dict[str, int]
    revision: int
    state: NDArray[np.uint8]
    is_assigned: Mask
    is_blind: Mask
    n_duties: int

    @property
    def is_free(self) -> Mask:
        """The places without a decision and without a reviewer."""
        mask: Mask = is_open(self.state) & ~self.is_assigned
        return mask


class DraftRows:
    """Reads drafts a page at a time, and edits whole queues."""

    def __init__(
        self,
        drafts: DraftService,
        store: FrameStore,
        reviews: Reviews,
        suspects: SuspectSearch,
        writes: KeyedWrites,
    ) -> None:
        self._drafts = drafts
        self._store = store
        self._rows = RowStore(store)
        self._reviews = reviews
        self._suspects = suspects
        self._writes = writes
        self._orders = _Orders(self._rows)

    async def page(
        self, caller: Caller, draft_id: str, search: DraftRowsSearch
    ) -> wire.DraftRowPage:
        """Return a page of a queue."""
        draft = await self._drafts.find(caller, draft_id)
        await self._drafts.check_apart(caller, draft.row.dataset_id, besides=draft_id)
        return await asyncio.to_thread(self._page, draft, search, only_reviews=caller.only_reviews)

    async def bulk(self, write: Write, draft_id: str, request: BulkEdit) -> wire.EditReceipt:
        """Edit every row of a queue that a filter holds for."""
        await self._writes.replay_known(write)
        caller = write.caller
        draft = await self._drafts.find(caller, draft_id)
        serializers.require_open(draft.row)
        work = await asyncio.to_thread(self._prepare_bulk, caller, draft, request)
        return await self._writes.once(write, work, window_s=SECONDS_A_DAY)

    def _page(
        self, draft: OpenDraft, search: DraftRowsSearch, *, only_reviews: bool
    ) -> wire.DraftRowPage:
        manifest = draft.at.manifest
        progress, suspects = self._suspects.look(manifest, is_requested=search.queue == "suspect")
        chosen = self._choose(
            draft,
            search.queue,
            search.where,
            search.sort,
            search.reviewer,
            suspects,
            only_reviews=only_reviews,
        )
        places = chosen.places[search.offset : search.offset + search.limit].tolist()
        originals = self._drafts.originals(draft, places)
        with self._reviews.current(draft.row.id, draft.n_places) as review:
            now = serializers.rows_now(review, places, originals)
        with self._reviews.current_duties(draft.row.id, draft.n_places) as all_duties:
            duties = all_duties.among(places)
        blind = {
            place: serializers.blind_to_wire(duties, place, search.reviewer, originals)
            for place in places
        }
        known = set() if only_reviews else set(duties.rows[duties.is_known].tolist())
        return wire.DraftRowPage(
            data=[
                _draft_row(
                    place,
                    originals,
                    now[place],
                    suspects,
                    blind[place],
                    is_known=place in known,
                    only_reviews=only_reviews,
                )
                for place in places
            ],
            queue=search.queue,
            total=len(chosen.places),
            offset=search.offset,
            limit=search.limit,
            has_more=search.offset + len(places) < len(chosen.places) and bool(places),
            counts=chosen.counts,
            # What was decided since they were chosen is not in the total.
            revision=chosen.revision,
            suspects=progress,
        )

    def choose_of(
        self, caller: Caller, draft: OpenDraft, request: BulkEdit | AssignRows
    ) -> SelectedRows:
        """Return the rows of a queue that a filter holds for; it blocks."""
        queue = request.queue
        _, suspects = self._suspects.look(draft.at.manifest, is_requested=queue == "suspect")
        return self._choose(
            draft,
            queue,
            request.where,
            None,
            request.reviewer,
            suspects,
            only_reviews=caller.only_reviews,
        )

    def labelled_by(self, draft: OpenDraft, by: LabelledBy) -> log.Places:
        """Return the rows whose labels in the version came from somewhere; it blocks."""
        return labelled_by(self._store, draft.at.manifest, by)

    def _choose(
        self,
        draft: OpenDraft,
        queue: wire.Queue,
        where: Filter | None,
        sort: Sort | None,
        reviewer: str | None,
        suspects: SuspectTable | None,
        *,
        only_reviews: bool,
    ) -> SelectedRows:
        """Return the rows of a queue that a filter holds for, in order, every queue counted; it blocks."""
        manifest = draft.at.manifest
        ordered = self._orders.of(manifest, where, sort)
        sample = _audit_of(draft.row.id, self._orders.of(manifest, None, None))
        with self._reviews.current(draft.row.id, draft.n_places) as review:
            masks = _masks_of(review, reviewer, suspects)
            state, revision = review.state.copy(), review.revision
        with self._reviews.current_duties(draft.row.id, draft.n_places) as duties:
            if duties.number:
                masks.update(_masks_of_duties(duties, masks, reviewer, state))
                if not only_reviews:
                    masks["disagreement"] &= ~duties.is_known
            is_assigned, is_blind, n_duties = duties.is_assigned, duties.is_blind, duties.number
            is_mixed = bool(duties.is_known.any())
        is_audited = np.zeros(draft.n_places, dtype=np.bool_)
        is_audited[sample] = True
        masks["audit"] = is_audited
        counts = {"all": len(ordered)}
        counts.update((name, int(mask[ordered].sum())) for name, mask in masks.items())
        places = (
            ordered
            if queue == "all"
            else ordered[masks[queue][ordered]]
            if (queue in masks)
            else ordered[:0]
        )
        if sort is None and len(places):
            if queue == "assigned" and is_mixed:
                # In the order of the dataset, known rows may all come last.
                keys = _keys_of(draft.row.id, draft.n_places)
                places = places[np.argsort(keys[places], kind="stable")]
            if queue in ("to_review", "assigned"):
                places = places[np.argsort(state[places] == log.SKIPPED, kind="stable")]
            elif queue == "suspect" and suspects is not None:
                places = places[np.argsort(-suspects.score[places], kind="stable")]
            elif queue == "audit":
                places = sample[np.isin(sample, places, assume_unique=True)]
        return SelectedRows(places, counts, revision, state, is_assigned, is_blind, n_duties)

    def _prepare_bulk(
        self, caller: Caller, draft: OpenDraft, request: BulkEdit
    ) -> Callable[[Connection], wire.EditReceipt]:
        chosen = self.choose_of(caller, draft, request)
        places = np.sort(chosen.places)
        if len(places) != request.expected:
            raise errors.DraftChangedError(
                f"{len(places)} rows match by now, and {request.expected} were confirmed; nothing "
                "was changed. Look at the queue again.",
                details=[{"matching": len(places), "expected": request.expected}],
            )
        if len(places) == 0:
            raise errors.InvalidRequestError.at(
                (*BODY, "filter"), "No row matches; choose others.", "empty"
            )
        body, same = self._body_of(draft, request, places)
        listed = places[: wire.MAX_LISTED_ROWS].tolist()
        originals = self._drafts.originals(draft, listed)
        draft_id = str(draft.row.id)

        def work(connection: Connection) -> wire.EditReceipt:
            row = serializers.require_open(
                serializers.lock_draft(connection, caller.account_id, draft_id)
            )
            self._drafts.require_not_apart(connection, draft, places)
            with self._reviews.cached(draft_id, draft.n_places) as review:
                later = rows.entries_after(connection, draft_id, review.revision)
                if _have_moved(review, later, request, places, chosen.revision):
                    raise errors.DraftChangedError(
                        "Others edited some of these rows since they were looked at, and nothing was "
                        "changed; look at the queue again."
                    )
                made = log.Entry(
                    number=row.revision + 1,
                    reviewer=request.reviewer,
                    action=request.action,
                    row=int(places[0]) if len(places) == 1 else None,
                    places=None if len(places) == 1 else places,
                    body=body,
                    same=same,
                )
                self._drafts.append(connection, draft_id, [made])
                return serializers.receipt_of(
                    draft_id, review, [*later, made], listed, len(places), originals
                )

        return work

    def _body_of(
        self, draft: OpenDraft, request: BulkEdit, places: log.Places
    ) -> tuple[log.EntryBody, log.Places | None]:
        """Return the content of the entry, and the rows whose label stays as it is."""
        decision, outcome, manifest = request.decision, request.outcome, draft.at.manifest
        if request.action != "relabel" or decision is None or outcome is None:
            return log.EntryBody(), None
        if manifest.method == "reward":
            raise errors.SupervisionMismatchError(
                "The rows have rewards, and an outcome's name is none; relabel them one by one, "
                "with rewards.",
                path=(*BODY, "outcome"),
            )
        asking = self._orders.of(manifest, AsksFilter(decision=decision), None)
        violations = Violations()
        if n_others := int((~np.isin(places, asking, assume_unique=True)).sum()):
            message = f"is not asked by {n_others} of the {len(places)} rows; filter them out."
            violations.add((*BODY, "decision"), message, "unknown")
            violations.raise_if_any()
        names = self._drafts.renamings(draft).get(decision, OutcomeNames({}))
        worded = [
            outcomes_of(task.encode())[decision] for task in tasks_of(self._store, manifest, places)
        ]
        body: log.EntryBody | None = None
        for outcomes in worded:
            renamed = tuple(dict.fromkeys(names.name_of(name) for name in outcomes))
            path = (*BODY, "outcome")
            body = read_label(
                "targets", decision, outcome, renamed, path=path, violations=violations
            )
        violations.raise_if_any()
        if body is None:
            raise RuntimeError("The rows ask nothing, though they were found by what they ask.")
        shared = tuple(name for name in worded[0] if all(name in other for other in worded))
        if names.stored_name(outcome, shared) is None:
            message = "is worded apart in these rows; relabel them one wording at a time."
            violations.add((*BODY, "outcome"), message, "refused")
            violations.raise_if_any()
        body = store_body(body, names, shared)
        same = places[:0]
        for name in {name for outcomes in worded for name in outcomes}:
            if names.name_of(name) == outcome:
                where = LabelFilter(decision=decision, outcome=name, op="ge", value=WHOLE)
                same = np.union1d(same, self._orders.of(manifest, where, None))
        same = np.intersect1d(places, same, assume_unique=True)
        if len(places) == 1 and len(same) == 1:
            return msgspec.structs.replace(body, labels=None), None
        if len(same) == 0 or len(places) == 1:
            return body, None
        return msgspec.structs.replace(body, same=log.pack_places(same)), same


def _have_moved(
    review: log.Review,
    later: Sequence[log.Entry],
    request: BulkEdit,
    places: log.Places,
    revision: int,
) -> bool:
    """Return whether rows were edited since they were chosen, or by another since they were seen."""
    # The review may know of edits that came after the rows were chosen: others read it meanwhile.
    if (review.edit[places] > revision).any():
        return True
    seen = request.revision
    if seen is not None and review.edited_since(seen, request.reviewer)[places].any():
        return True
    return any(
        np.isin(entry.rows(), places, assume_unique=True).any()
        for entry in later
        if entry.number > revision
        or (
            seen is not None
            and entry.number > seen
            and (request.reviewer is None or entry.reviewer != request.reviewer)
        )
    )


class _Orders:
    """Rows that filters hold for, in orders, kept at hand; safe to use from several threads."""

    def __init__(self, rows: RowStore) -> None:
        self._rows = rows
        self.cached: Recent[bytes, log.Places] = Recent(
            CACHED_ROWS,
            lambda _, places: len(places),
            most_entries=CACHED_ORDERS,
            stores_any=True,
        )

    def of(self, manifest: Manifest, where: Filter | None, sort: Sort | None) -> log.Places:
        """Return the places of the rows."""
        if where is None and sort is None and manifest.next_index == manifest.rows:
            return np.arange(manifest.rows, dtype=np.int64)
        # A filter may be as long as a request: only its hash is kept.
        query = msgspec.json.encode([manifest.dataset_id, manifest.version, where, sort])
        key = hashlib.blake2b(query, digest_size=32).digest()
        places = self.cached.find(key)
        if places is None:
            places = self._rows.indexes(manifest, where=where, order=sort)
            self.cached.note(key, places)
        return places


def _masks_of(
    review: log.Review, reviewer: str | None, suspects: SuspectTable | None
) -> dict[str, Mask]:
    """Return by queue, but ``all`` and ``audit``, which places are in it."""
    state = review.state
    undecided = is_open(state)
    is_noted = np.zeros(len(state), dtype=np.bool_)
    is_noted[list(review.notes)] = True
    masks: dict[str, Mask] = {
        "to_review": undecided,
        "excluded": state == log.EXCLUDED,
        "noted": is_noted,
        "changed": (state == log.EXCLUDED) | (state == log.RELABELLED),
    }
    if suspects is not None:
        masks["suspect"] = undecided & (np.nan_to_num(suspects.score) > 0)
    if reviewer is not None:
        masks["mine"] = review.last_edited_by(reviewer)
    return masks


def _masks_of_duties(
    duties: Duties, masks: Mapping[str, Mask], reviewer: str | None, state: NDArray[np.uint8]
) -> dict[str, Mask]:
    """Return the masks as changed by duties: open queues exclude rows that two still label apart."""
    is_waiting, undecided = duties.is_waiting, is_open(state)
    changed = {
        name: masks[name] & ~is_waiting for name in ("to_review", "suspect") if name in masks
    }
    changed["disagreement"] = duties.is_disputed & undecided
    if reviewer is not None:
        changed["assigned"] = duties.to_do_of(reviewer, undecided)
    return changed


def is_open(state: NDArray[np.uint8]) -> Mask:
    """Return the rows without a decision."""
    mask: Mask = (state == log.UNTOUCHED) | (state == log.SKIPPED)
    return mask


def _audit_of(draft_id: str, places: log.Places) -> log.Places:
    """Draw the rows of the audit, in a random order that is the draft's for ever."""
    return places[np.argsort(_keys_of(draft_id, len(places)), kind="stable")[:AUDIT_ROWS]]


def _keys_of(draft_id: str, n: int) -> NDArray[np.uint64]:
    """Return random keys that are the draft's for ever."""
    seed = int.from_bytes(draft_id.encode()[-16:], "big")
    keys: NDArray[np.uint64] = np.random.PCG64(seed).random_raw(n)
    return keys


def _draft_row(
    place: int,
    originals: Originals,
    now: wire.RowNow,
    suspects: SuspectTable | None,
    blind: wire.BlindRow | None,
    *,
    is_known: bool,
    only_reviews: bool,
) -> wire.DraftRow:
    side, row = originals.rows[place]
    # Whoever labels a row apart from another sees no label of it, and nothing that speaks of one.
    is_hidden = blind is not None and blind.is_yours and blind.status == "waiting"
    if is_hidden:
        suspects = None
        now = msgspec.structs.replace(now, labels={}, relabelled=[])
    metadata = row.metadata
    if metadata is not None and blind is not None and (is_hidden or only_reviews):
        # Known rows are drawn by it.
        metadata = {name: value for name, value in metadata.items() if name not in _ORIGIN}
    score = None if suspects is None else float(suspects.score[place])
    doubts = None if suspects is None else suspects.expected.get(place)
    expected = None if doubts is None else _expected_now(doubts, now, originals.renamings)
    optional: dict[str, Any] = {
        name: UNSET if value is None else value
        for name, value in (
            ("images", row.images),
            ("targets", None if is_hidden else row.targets),
            ("rewards", row.rewards),
            ("metadata", metadata),
            ("blind", blind),
            ("known", True if is_known and blind is not None and not blind.is_yours else None),
        )
    }
    return wire.DraftRow(
        row=place,
        side=side,
        context=row.context,
        decisions=row.decisions,
        now=now,
        suspect=None if score is None or np.isnan(score) else score,
        expected=expected or None,
        **optional,
    )


def _expected_now(
    doubts: str, now: wire.RowNow, renamings: Renamings
) -> dict[str, wire.ExpectedOutcome]:
    """Return the models' expected outcomes, except those that a merge made the label."""
    expected: dict[str, wire.ExpectedOutcome] = {}
    for decision, doubt in _decode_expected(doubts).items():
        names = renamings.get(decision)
        outcome = doubt.outcome if names is None else names.name_of(doubt.outcome)
        if names is None or now.labels.get(decision, {}).get(outcome, 0) < WHOLE:
            expected[decision] = msgspec.structs.replace(doubt, outcome=outcome)
    return expected
