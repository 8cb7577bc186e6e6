"""Sealing drafts: the reviewed version becomes a new dataset, or the next version.

As a dataset, every row is sent again, and is held to every rule of rows. As a version, parts of the
version that no decision touched are shared, excluded rows are gone, and a row with other labels is a
new row in place of the old and counts as one; with another guideline alone it is the same row. A context
keeps its side in both.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct
from sqlalchemy import Connection

from steelyard import errors
from steelyard.caller import Caller
from steelyard.datasets.access import require_dataset
from steelyard.datasets.filters import AsksFilter
from steelyard.datasets.frames.pages import RowStore
from steelyard.datasets.frames.scanning import load_definitions
from steelyard.datasets.ingest import RowReader
from steelyard.datasets.ingesting import MadeRows, RowBounds, read_sent
from steelyard.datasets.labels import SUPERVISION_OF
from steelyard.datasets.rows import Row
from steelyard.datasets.service import DatasetService
from steelyard.datasets.store import VersionRow, advance_dataset, insert_version
from steelyard.datasets.uploads import Upload
from steelyard.datasets.version_service import decode_example
from steelyard.datasets.versions import Manifest
from steelyard.datasets.wire import SIDES, CreateDataset, Side
from steelyard.operations.idempotency import SECONDS_A_DAY, KeyedWrites
from steelyard.operations.write import Write
from steelyard.review import outcomes
from steelyard.review.frames import iterate_side
from steelyard.review.log import EXCLUDED, Places
from steelyard.review.reviews import Reviews
from steelyard.review.revising import write_revision
from steelyard.review.serializers import draft_to_wire, lock_draft, require_open
from steelyard.review.service import DraftService, OpenDraft
from steelyard.review.store import seal_draft
from steelyard.review.wire import Draft, SealAs, SealDraft, SealedDraft
from steelyard.storage.frame_store import FrameStore
from steelyard.wire.violations import BODY

Labels = Mapping[str, Mapping[str, float]]


@dataclass(slots=True, kw_only=True)
class _Outcome:
    """The result of a review: excluded rows, new labels, and the names of outcomes."""

    excluded: Places
    relabelled: dict[int, Labels]
    renamings: dict[str, outcomes.OutcomeNames]
    draft: Draft

    def rewrite(self, place: int, line: bytes) -> bytes:
        """Return a stored row as the review has it."""
        labels = self.relabelled.get(place)
        if labels is None and not self.renamings:
            return line
        return rewrite_row(line, labels or {}, self.renamings)


class DraftSeals:
    """Makes drafts datasets and versions."""

    def __init__(
        self,
        drafts: DraftService,
        datasets: DatasetService,
        store: FrameStore,
        writes: KeyedWrites,
        reviews: Reviews,
        *,
        bounds: RowBounds,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._drafts = drafts
        self._datasets = datasets
        self._store = store
        self._writes = writes
        self._reviews = reviews
        self._bounds = bounds
        self._now = now

    async def seal(self, write: Write, draft_id: str, request: SealDraft) -> Struct:
        """Seal a draft; return a ``Draft`` with its new dataset or version."""
        await self._writes.replay_known(write)
        caller = write.caller
        draft = await self._drafts.find(caller, draft_id)
        require_open(draft.row)
        outcome = await asyncio.to_thread(self._decide, draft, drop_outcomes=request.drop_outcomes)
        seen = outcome.draft.revision
        if request.revision is not None and request.revision != seen:
            raise errors.DraftChangedError(
                f"The draft has {seen} entries by now, and {request.revision} were seen; look at "
                "what came since, and seal it again."
            )
        if request.as_ == "version":
            return await self._seal_version(write, draft, outcome)
        name = request.name or draft.row.name
        return await self._seal_dataset(write, draft, outcome, name)

    async def preview(self, caller: Caller, draft_id: str) -> Manifest:
        """Return the next version that a draft would be sealed as; nothing refers to it yet."""
        draft = await self._drafts.find(caller, draft_id)
        require_open(draft.row)
        outcome = await asyncio.to_thread(self._decide, draft)
        previous = await self._require_latest(caller, draft)
        return await asyncio.to_thread(self._write_version, previous, outcome)

    async def _require_latest(self, caller: Caller, draft: OpenDraft) -> Manifest:
        """Return the version that a draft is of, if a version may follow it."""
        previous = draft.at.manifest
        await self._datasets.dataset_at(caller, draft.at.dataset_id)  # refused when archived
        latest = await self._datasets.dataset_at(caller, draft.at.dataset_id, is_new_work=False)
        if latest.version != previous.version:
            raise _not_latest(latest.version, previous.version)
        return previous

    def _decide(self, draft: OpenDraft, *, drop_outcomes: bool = False) -> _Outcome:
        known = self._reviews.known(draft.row.id, draft.n_places)
        with self._reviews.current(draft.row.id, draft.n_places) as review:
            excluded = np.setdiff1d(np.flatnonzero(review.state == EXCLUDED), known)
            gone = {*excluded.tolist(), *known.tolist()}
            places = [place for place in review.relabelled() if place not in gone]
            relabelled: dict[int, Labels] = {
                place: fold.labels for place, fold in review.folds(places).items()
            }
            outcome = _Outcome(
                excluded=excluded,
                relabelled=relabelled,
                renamings=review.renamings(),
                draft=msgspec.structs.replace(
                    draft_to_wire(draft.row, review, known), revision=review.revision
                ),
            )
        if drop_outcomes:
            self._drop_outcomes(draft.at.manifest, outcome)
        return outcome

    def _drop_outcomes(self, manifest: Manifest, outcome: _Outcome) -> None:
        """Leave outcomes out of the decisions of which no row that stays has them."""
        if manifest.method == "reward":
            raise errors.SupervisionMismatchError(
                "Every outcome of these rows has a reward, so none is without rows; seal the draft "
                "without drop_outcomes.",
                path=(*BODY, "drop_outcomes"),
            )
        gone, used = set(outcome.excluded.tolist()), dict[str, set[str]]()
        for side in SIDES:
            for places, lines in iterate_side(self._store, manifest, side):
                for place, line in zip(places.tolist(), lines, strict=True):
                    if place in gone:
                        continue
                    row = decode_example(outcome.rewrite(place, line))
                    for decision, values in row.labels.items():
                        used.setdefault(decision, set()).update(
                            name for name, value in values.items() if value > 0
                        )
        worded: dict[str, list[dict[str, Any]]] = {}
        for definition in load_definitions(self._store, manifest):
            worded.setdefault(definition.id, []).append(outcomes.read_wording(definition))
        for decision, wordings in worded.items():
            names = outcome.renamings.get(decision, outcomes.OutcomeNames({}))
            dropped = names.unused(wordings, used.get(decision, set()))
            if dropped:
                outcome.renamings[decision] = replace(names, dropped=dropped)

    async def _seal_dataset(
        self, write: Write, draft: OpenDraft, outcome: _Outcome, name: str
    ) -> Struct:
        if len(outcome.excluded) >= draft.at.manifest.rows:
            raise errors.NoRowsError("Every row is excluded, so there is no row for a dataset.")
        made = MadeRows(
            lambda connection, dataset: self._mark(
                connection, write.caller, draft, outcome, "dataset", dataset.id, dataset.version
            )
        )
        with Upload("multipart", {"name": name}) as upload:
            await asyncio.to_thread(self._write_rows, upload, draft.at.manifest, outcome)
            sent = await asyncio.to_thread(read_sent, upload, CreateDataset)
            return await self._datasets.create(write, sent, made)

    def _write_rows(self, upload: Upload, manifest: Manifest, outcome: _Outcome) -> None:
        """Write the rows that are left to files of the upload, by side."""
        gone = set(outcome.excluded.tolist())
        for side in SIDES:
            file = None
            for places, lines in iterate_side(self._store, manifest, side):
                for place, line in zip(places.tolist(), lines, strict=True):
                    if place in gone:
                        continue
                    file = file or upload.add_file(side)
                    file.write(outcome.rewrite(place, line) + b"\n")

    async def _seal_version(self, write: Write, draft: OpenDraft, outcome: _Outcome) -> Draft:
        caller = write.caller
        previous = await self._require_latest(caller, draft)
        manifest = await asyncio.to_thread(self._write_version, previous, outcome)

        def work(connection: Connection) -> Draft:
            row = require_dataset(
                connection, caller.account_id, previous.dataset_id, is_new_work=True
            )
            if not advance_dataset(connection, previous.dataset_id, previous=previous.version):
                raise _not_latest(row.version, previous.version)
            now = self._now()
            insert_version(
                connection,
                VersionRow(
                    dataset_id=previous.dataset_id,
                    version=manifest.version,
                    created_at=now,
                    added_via="api",
                    added_from=None,
                    manifest=manifest,
                ),
            )
            return self._mark(
                connection, caller, draft, outcome, "version", previous.dataset_id, manifest.version
            )

        return await self._writes.once(write, work, window_s=SECONDS_A_DAY)

    def _write_version(self, previous: Manifest, outcome: _Outcome) -> Manifest:
        replaced = self._replaced(previous, outcome)
        guides = {
            decision: names.guide
            for decision, names in outcome.renamings.items()
            if names.guideline is not None
        }
        if len(outcome.excluded) == 0 and len(replaced) == 0 and not guides:
            raise errors.NoNewRowsError(
                "No row is changed or left out, so the next version would be the same as this one; "
                "change rows first, or finish it as a new dataset."
            )
        try:
            return write_revision(
                self._store,
                previous,
                excluded=outcome.excluded,
                replaced=replaced,
                rows={side: self._new_rows(previous, side, outcome, replaced) for side in SIDES},
                guides=guides,
                min_rows=self._bounds.min_rows,
            )
        except errors.TooFewRowsError as error:
            raise errors.TooFewRowsError(
                f"{error.message} A draft can be sealed as a dataset."
            ) from error

    def _replaced(self, manifest: Manifest, outcome: _Outcome) -> Places:
        """Return the rows that stay with other labels, or with other outcomes to choose from."""
        places = [np.array(sorted(outcome.relabelled), dtype=np.int64)]
        rows = RowStore(self._store)
        places += [
            rows.indexes(manifest, where=AsksFilter(decision=decision))
            for decision, names in outcome.renamings.items()
            if names.has_changes
        ]
        replaced: Places = np.setdiff1d(np.concatenate(places), outcome.excluded)
        return replaced

    def _new_rows(
        self, manifest: Manifest, side: Side, outcome: _Outcome, replaced: Places
    ) -> Iterator[Sequence[Row]]:
        """Yield the rows of a side that are others now, in the order of the dataset."""
        for places, lines in iterate_side(self._store, manifest, side, replaced):
            reader = RowReader(supervision=SUPERVISION_OF[manifest.method])
            changed = (
                outcome.rewrite(place, line) + b"\n"
                for place, line in zip(places.tolist(), lines, strict=True)
            )
            yield from reader.read_ndjson(changed)
            if reader.findings.n_found:
                # They were stored before, and their labels were read when they were relabelled.
                messages = "; ".join(finding.message for finding in reader.findings.listed)
                raise RuntimeError(f"Rows cannot be stored any more: {messages}")

    def _mark(
        self,
        connection: Connection,
        caller: Caller,
        draft: OpenDraft,
        outcome: _Outcome,
        sealed_as: SealAs,
        dataset_id: str,
        version: int,
    ) -> Draft:
        """Write the result of a draft, if the draft is unchanged since."""
        row = require_open(lock_draft(connection, caller.account_id, draft.row.id))
        if row.revision != outcome.draft.revision:
            raise errors.DraftChangedError(
                "The draft was edited while it was sealed, and nothing was made; look at what "
                "came since, and seal it again."
            )
        now = self._now()
        sealed = SealedDraft(
            dataset_id=dataset_id, version=version, sealed_as=sealed_as, sealed_at=now
        )
        seal_draft(connection, draft.row.id, at=now, sealed=msgspec.json.encode(sealed))
        return msgspec.structs.replace(
            outcome.draft, status="sealed", updated_at=now, sealed=sealed
        )


def rewrite_row(line: bytes, labels: Labels, renamings: outcomes.Renamings) -> bytes:
    """Return a stored row with some of its labels others, and under other names of outcomes."""
    row: dict[str, Any] = msgspec.json.decode(line)
    supervision = "targets" if "targets" in row else "rewards"
    row[supervision] = outcomes.rename_labels({**row[supervision], **labels}, renamings)
    row["decisions"] = outcomes.rename_decisions(row["decisions"], renamings)
    return msgspec.json.encode(row)


def _not_latest(latest: int, version: int) -> errors.DatasetChangedError:
    return errors.DatasetChangedError(
        f"The dataset has version {latest} by now, and the draft is of version {version}: a version "
        "follows the latest alone. Seal the draft as a dataset, or begin one of the latest version."
    )
