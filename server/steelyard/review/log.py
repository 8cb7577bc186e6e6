"""A review: a log of edits over the rows of a version, and how every row stands after it.

A row's state is a fold of the entries about it that hold, in the order of the log: undoing an entry
takes it out of the fold, so that edits of others to its rows stay. Not here: where the log is kept
(``steelyard.review.store``), who may write it (``steelyard.review.service``).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
from numpy.typing import NDArray

from steelyard.review.outcomes import OutcomeNames
from steelyard.review.outcomes_wire import OutcomeChange
from steelyard.review.wire import EntryAction, RowState

Places = NDArray[np.int64]
Mask = NDArray[np.bool_]

#: States in the order of their codes.
STATES: tuple[RowState, ...] = ("untouched", "accepted", "skipped", "relabelled", "excluded")
UNTOUCHED, ACCEPTED, SKIPPED, RELABELLED, EXCLUDED = range(5)
_NOBODY = -1


class EntryBody(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The content of an entry beside its rows, as the state stores it."""

    decision: str | None = None
    labels: dict[str, float] | None = None
    outcome: str | None = None
    note: str | None = None
    same: bytes | None = None
    outcomes: dict[str, OutcomeChange] | None = None
    guideline: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry of a log."""

    number: int
    reviewer: str | None
    action: EntryAction
    row: int | None = None
    places: Places | None = None
    target: int | None = None
    body: EntryBody = field(default_factory=EntryBody)
    same: Places | None = None

    def rows(self) -> Places:
        """Return the rows that it is about, ascending."""
        if self.places is not None:
            return self.places
        return np.array([] if self.row is None else [self.row], dtype=np.int64)

    def touches(self, row: int) -> bool:
        """Return whether it is about a row."""
        if self.places is None:
            return row == self.row
        return _holds(self.places, row)

    def keeps_label(self, row: int) -> bool:
        """Return whether a relabelling gives a row the label that the version has."""
        if self.same is not None:
            return _holds(self.same, row)
        return self.body.labels is None


@dataclass(slots=True)
class RowFold:
    """One row while the entries about it are applied."""

    base: int = UNTOUCHED
    is_excluded: bool = False
    labels: dict[str, dict[str, float]] = field(default_factory=dict)
    note: str | None = None

    @property
    def state(self) -> RowState:
        """How the row stands."""
        if self.is_excluded:
            return STATES[EXCLUDED]
        return STATES[RELABELLED if self.labels else self.base]

    def apply(self, entry: Entry, row: int) -> None:
        """Apply an entry that is about the row."""
        body = entry.body
        match entry.action:
            case "relabel":
                self.base = ACCEPTED
                if body.decision is None:
                    raise ValueError(f"Entry {entry.number} relabels no decision.")
                if entry.keeps_label(row) or body.labels is None:
                    self.labels.pop(body.decision, None)
                else:
                    self.labels[body.decision] = body.labels
            case "exclude" | "include":
                self.is_excluded = entry.action == "exclude"
            case "accept":
                self.base = ACCEPTED
            case "skip":
                self.base = SKIPPED
                self.labels = {}
            case _:
                pass
        if body.note is not None:
            self.note = body.note or None


class Review:
    """A log, and how every row stands after it; for one thread at a time.

    By place, ``state`` holds codes of ``STATES``, and ``edit`` the last entry about the row, an
    undone and an undoing one too; 0 for none.
    """

    def __init__(self, n_places: int) -> None:
        self.revision = 0
        self.state: NDArray[np.uint8] = np.zeros(n_places, dtype=np.uint8)
        self.edit: NDArray[np.int32] = np.zeros(n_places, dtype=np.int32)
        self.notes: dict[int, str] = {}
        self._editor: NDArray[np.int32] = np.full(n_places, _NOBODY, dtype=np.int32)
        self._holder: NDArray[np.int32] = np.full(n_places, _NOBODY, dtype=np.int32)
        self._editors: list[str | None] = []
        self._base: NDArray[np.uint8] = np.zeros(n_places, dtype=np.uint8)
        self._is_excluded: Mask = np.zeros(n_places, dtype=np.bool_)
        self._relabelled: dict[str, Mask] = {}
        self._entries: dict[int, Entry] = {}
        self._dead: set[int] = set()
        self._of_row: dict[int, list[Entry]] = {}
        self._of_many: list[Entry] = []
        self._of_outcomes: list[Entry] = []

    def extend(self, entries: Iterable[Entry]) -> None:
        """Apply the next entries of the log."""
        for entry in entries:
            if entry.number != self.revision + 1:
                raise ValueError(f"Entry {entry.number} does not follow {self.revision}.")
            self._apply(entry)
            self.revision = entry.number

    def renamings(self) -> dict[str, OutcomeNames]:
        """Return the draft's latest names of outcomes and guidelines, by decision."""
        renamings: dict[str, OutcomeNames] = {}
        for entry in self._of_outcomes:
            body = entry.body
            if entry.number in self._dead or body.decision is None:
                continue
            names = renamings.get(body.decision, OutcomeNames({}))
            renamings[body.decision] = OutcomeNames(
                names.changes if body.outcomes is None else body.outcomes,
                guideline=names.guideline if body.guideline is None else body.guideline,
            )
        return {
            decision: names
            for decision, names in renamings.items()
            if names.has_changes or names.guideline is not None
        }

    def fold(self, row: int, later: Sequence[Entry] = ()) -> RowFold:
        """Return one row as it stands, with its labels."""
        return self.folds([row], later)[row]

    def folds(self, rows: Sequence[int], later: Sequence[Entry] = ()) -> dict[int, RowFold]:
        """Return rows as they stand, by row; see ``fold``."""
        dead = self._dead if not later else self._dead.copy()
        for entry in later:
            _judge(entry, dead)
        row_folds: dict[int, RowFold] = {}
        for row, entries in self._about(rows, later).items():
            fold = row_folds[row] = RowFold()
            for entry in entries:
                if entry.number not in dead:
                    fold.apply(entry, row)
        return row_folds

    def states(self, later: Sequence[Entry] = ()) -> NDArray[np.uint8]:
        """Return the codes of how all rows stand, with later entries applied."""
        states = self.state.copy()
        if later:
            rows = np.unique(np.concatenate([entry.rows() for entry in later]))
            for row, fold in self.folds(rows.tolist(), later).items():
                states[row] = STATES.index(fold.state)
        return states

    def last_edits(
        self, rows: Sequence[int], later: Sequence[Entry] = ()
    ) -> dict[int, tuple[int, str | None]]:
        """Return the number of the last entry about each row, 0 for none, and whose it was."""
        row_indexes = np.unique(np.asarray(rows, dtype=np.int64))
        last: dict[int, tuple[int, str | None]] = {}
        for row in row_indexes.tolist():
            number = int(self.edit[row])
            last[row] = (number, None if number == 0 else self._editors[self._editor[row]])
        for entry in later:
            for row in _shared(row_indexes, entry.rows()):
                last[row] = (entry.number, entry.reviewer)
        return last

    def edited_by(self, reviewer: str) -> Mask:
        """Return the rows that a reviewer was the last to edit, an undo being an edit."""
        return self._by(reviewer, self._editor)

    def last_edited_by(self, reviewer: str) -> Mask:
        """Return the rows whose last edit that was not undone is a reviewer's."""
        return self._by(reviewer, self._holder)

    def _by(self, reviewer: str, codes: NDArray[np.int32]) -> Mask:
        if reviewer not in self._editors:
            return np.zeros(len(self.state), dtype=np.bool_)
        by_them: Mask = codes == self._editors.index(reviewer)
        return by_them

    def edited_since(self, revision: int, reviewer: str | None) -> Mask:
        """Return the rows whose last entry is newer than a revision, and another's."""
        is_newer: Mask = self.edit > revision
        return is_newer if reviewer is None else is_newer & ~self.edited_by(reviewer)

    def relabelled(self) -> Iterator[int]:
        """Yield the rows that have another label than the version, ascending, excluded ones too."""
        masks = list(self._relabelled.values())
        yield from np.flatnonzero(np.any(masks, axis=0)).tolist() if masks else ()

    def _about(self, rows: Sequence[int], later: Sequence[Entry]) -> dict[int, list[Entry]]:
        """Return the entries about each of some rows, in the order of the log."""
        row_indexes = np.unique(np.asarray(rows, dtype=np.int64))
        entries_by_row = {row: list(self._of_row.get(row, ())) for row in row_indexes.tolist()}
        for entry in self._of_many:
            for row in _shared(row_indexes, entry.rows()):
                entries_by_row[row].append(entry)
        for entries in entries_by_row.values():
            entries.sort(key=lambda entry: entry.number)
        for entry in later:
            if entry.target is None:
                for row in _shared(row_indexes, entry.rows()):
                    entries_by_row[row].append(entry)
        return entries_by_row

    def _apply(self, entry: Entry) -> None:
        rows = entry.rows()
        if entry.target is None:
            self._entries[entry.number] = entry
            if entry.action == "outcomes":
                self._of_outcomes.append(entry)
            elif entry.row is not None:
                self._of_row.setdefault(entry.row, []).append(entry)
            else:
                self._of_many.append(entry)
            self._apply_to(entry, rows)
        else:
            _judge(entry, self._dead)
            self._replay(rows)
        self._settle(rows)
        self.edit[rows] = entry.number
        self._editor[rows] = self._code_of(entry.reviewer)

    def _replay(self, rows: Places) -> None:
        """Fold all entries that hold over some rows again."""
        self._base[rows] = UNTOUCHED
        self._holder[rows] = _NOBODY
        self._is_excluded[rows] = False
        for relabelled in self._relabelled.values():
            relabelled[rows] = False
        for row in rows.tolist() if self.notes else ():
            self.notes.pop(row, None)
        is_replayed = np.zeros(len(self.state), dtype=np.bool_)
        is_replayed[rows] = True
        single = int(rows[0]) if len(rows) == 1 else None
        about = self._entries.values() if single is None else self._about([single], ())[single]
        for entry in about:
            if entry.number in self._dead:
                continue
            if entry.row is not None and not is_replayed[entry.row]:
                continue
            theirs = entry.rows()
            self._apply_to(entry, theirs[is_replayed[theirs]])

    def _apply_to(self, entry: Entry, rows: Places) -> None:
        body = entry.body
        self._holder[rows] = self._code_of(entry.reviewer)
        match entry.action:
            case "relabel":
                self._base[rows] = ACCEPTED
                mask = self._mask_of(body.decision or "")
                mask[rows] = body.labels is not None
                if entry.same is not None:
                    mask[np.intersect1d(entry.same, rows, assume_unique=True)] = False
            case "exclude" | "include":
                self._is_excluded[rows] = entry.action == "exclude"
            case "accept":
                self._base[rows] = ACCEPTED
            case "skip":
                self._base[rows] = SKIPPED
                for relabelled in self._relabelled.values():
                    relabelled[rows] = False
            case _:
                pass
        if body.note is not None:
            for row in rows.tolist():
                if body.note:
                    self.notes[row] = body.note
                else:
                    self.notes.pop(row, None)

    def _settle(self, rows: Places) -> None:
        state = self._base[rows]
        for relabelled in self._relabelled.values():
            state = np.where(relabelled[rows], np.uint8(RELABELLED), state)
        self.state[rows] = np.where(self._is_excluded[rows], np.uint8(EXCLUDED), state)

    def _mask_of(self, decision: str) -> Mask:
        mask = self._relabelled.get(decision)
        if mask is None:
            mask = self._relabelled[decision] = np.zeros(len(self.state), dtype=np.bool_)
        return mask

    def _code_of(self, reviewer: str | None) -> int:
        if reviewer not in self._editors:
            self._editors.append(reviewer)
        return self._editors.index(reviewer)


def pack_places(places: Places) -> bytes:
    """Return ascending rows in few bytes."""
    gaps = np.diff(places, prepend=0).astype("<u4")
    return zlib.compress(gaps.tobytes(), 1)


def unpack_places(data: bytes) -> Places:
    """Return the places that ``pack_places`` packed."""
    gaps = np.frombuffer(zlib.decompress(data), dtype="<u4")
    return np.cumsum(gaps, dtype=np.int64)


def merge_labels(
    labels: Mapping[str, Mapping[str, float]], relabelled: Mapping[str, Mapping[str, float]]
) -> dict[str, dict[str, float]]:
    """Return a row's labels, with relabelled outcomes in place of the version's."""
    merged = {decision: dict(values) for decision, values in labels.items()}
    merged.update((decision, dict(values)) for decision, values in relabelled.items())
    return merged


def _judge(entry: Entry, dead: set[int]) -> None:
    """Note which entries an undo or a redo takes out of the fold, or puts back."""
    if entry.target is None:
        return
    if entry.action == "undo":
        dead.add(entry.target)
    else:
        dead.discard(entry.target)


def _shared(few: Places, places: Places) -> list[int]:
    """Return which of a few rows are among many; both ascend."""
    if not len(places):
        return []
    at = np.minimum(np.searchsorted(places, few), len(places) - 1)
    shared: list[int] = few[places[at] == few].tolist()
    return shared


def _holds(places: Places, row: int) -> bool:
    place = int(np.searchsorted(places, row))
    return place < len(places) and int(places[place]) == row
