"""The reviewers of a draft's rows, and their answers to rows that they label apart.

A row of one reviewer is labelled in the draft itself. A row of two, or of more who labelled it
elsewhere, is blind: each answers apart, and the draft has nothing of it until all did. So is every row
of an assignment with known rows, whose labels are right: they look like the others to their reviewers,
score them, and keep their labels when the draft is sealed. Like a review, this is a fold of a log.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from steelyard.review.log import Mask, Places, pack_places, unpack_places

DutyAction = Literal["assign", "drop", "answer"]

_NOBODY = -1
_TWO = 2


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A reviewer's separate answer to a row: outcomes by decision, or that the row should go."""

    outcomes: dict[str, str] = {}
    is_excluded: bool = False


class Apart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Assigned rows that are blind, also those of one reviewer; ``known`` of them, packed, score."""

    known: bytes

    @classmethod
    def of(cls, known: Places) -> Apart:
        """Return the body of an assignment with known rows, ascending."""
        return cls(known=pack_places(known))


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """An answer, with who gave it and when, in Unix seconds."""

    reviewer: str
    at: float
    answer: Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Duty:
    """One entry of the log: rows that a reviewer gets or no longer has, or an answer."""

    number: int
    at: float
    reviewer: str
    action: DutyAction
    places: Places
    body: Answer | Apart | None = None


class Duties:
    """The reviewers of some rows, and their answers; for one thread at a time.

    A row has a place for each who labels it, the first filled first: ``_who`` has their codes and
    ``_has_answered`` who of them answered, a line a place.
    """

    def __init__(self, rows: Places) -> None:
        self.rows = rows
        self.number = 0
        self.reviewers: list[str] = []
        self._who: NDArray[np.int16] = np.full((_TWO, len(rows)), _NOBODY, dtype=np.int16)
        self._has_answered: NDArray[np.bool_] = np.zeros((_TWO, len(rows)), dtype=np.bool_)
        self._differs: Mask = np.zeros(len(rows), dtype=np.bool_)
        self._is_apart: Mask = np.zeros(len(rows), dtype=np.bool_)
        self._is_known: Mask = np.zeros(len(rows), dtype=np.bool_)
        self._given: dict[int, list[Given]] = {}

    @classmethod
    def of_all(cls, n_places: int) -> Duties:
        """Return the duties before the first entry of a draft's log."""
        return cls(np.arange(n_places, dtype=np.int64))

    def among(self, rows: Sequence[int] | Places, later: Iterable[Duty] = ()) -> Duties:
        """Return the duties of some rows alone, with later entries applied."""
        row_indexes = np.unique(np.asarray(rows, dtype=np.int64))
        part = self._part(row_indexes, np.searchsorted(self.rows, row_indexes))
        part.extend(later)
        return part

    def copy(self) -> Duties:
        """Return the same, which no later entry changes."""
        return self._part(self.rows, np.arange(len(self.rows)))

    def _part(self, rows: Places, at: Places) -> Duties:
        part = Duties(rows)
        part.number, part.reviewers = self.number, list(self.reviewers)
        if self.number:
            part._who, part._has_answered = self._who[:, at], self._has_answered[:, at]
            part._differs, part._is_apart = self._differs[at], self._is_apart[at]
            part._is_known = self._is_known[at]
            answered = rows[part._has_answered.any(axis=0)].tolist()
            part._given = {row: self._given[row] for row in answered}
        return part

    def extend(self, duties: Iterable[Duty]) -> None:
        """Apply the next entries of the log."""
        for duty in duties:
            at = self._among(duty.places)
            if duty.action == "assign":
                self._assign(at, self._code_of(duty.reviewer))
                if isinstance(duty.body, Apart):
                    self._is_apart[at] = True
                    self._is_known[self._among(unpack_places(duty.body.known))] = True
            elif duty.action == "drop":
                self._drop(at, self._code_of(duty.reviewer))
            elif len(at):
                self._answer(int(at[0]), duty)
            self.number = duty.number

    @property
    def is_assigned(self) -> Mask:
        """The rows that a reviewer is to label."""
        mask: Mask = self._who[0] != _NOBODY
        return mask

    @property
    def is_blind(self) -> Mask:
        """Which rows are labelled apart: those of two or more, and those among known ones."""
        return self.is_shared | self._is_apart

    @property
    def is_shared(self) -> Mask:
        """Which rows two or more are to label, or did."""
        mask: Mask = self._who[1] != _NOBODY
        return mask

    @property
    def is_known(self) -> Mask:
        """Which rows have labels that are known to be right, and score their reviewers."""
        return self._is_known

    @property
    def is_waiting(self) -> Mask:
        """Which blind rows an answer is missing of."""
        is_missing = (self._who != _NOBODY) & ~self._has_answered
        mask: Mask = self.is_blind & is_missing.any(axis=0)
        return mask

    @property
    def is_begun(self) -> Mask:
        """Which blind rows have some answers, and miss others."""
        mask: Mask = self.is_waiting & self._has_answered.any(axis=0)
        return mask

    @property
    def is_disputed(self) -> Mask:
        """Which rows got answers that differ, decided since or not."""
        return self._differs

    def assigned_to(self, reviewer: str) -> Mask:
        """Return which rows a reviewer is to label, or did."""
        mask: Mask = np.any(self._is_of(reviewer), axis=0)
        return mask

    def answered_by(self, reviewer: str) -> Mask:
        """Return which blind rows a reviewer answered."""
        mask: Mask = np.any(self._is_of(reviewer) & self._has_answered, axis=0)
        return mask

    def to_do_of(self, reviewer: str, is_open: Mask) -> Mask:
        """Return which rows a reviewer has still to label.

        ``is_open`` says which rows are undecided in the draft.
        """
        blind = self.is_waiting & ~self.answered_by(reviewer)
        mask: Mask = self.assigned_to(reviewer) & np.where(self.is_blind, blind, is_open)
        return mask

    def reviewers_of(self, row: int) -> list[str]:
        """Return who is to label a row."""
        codes = self._who[:, self._at(row)].tolist()
        return [self.reviewers[code] for code in codes if code != _NOBODY]

    def answers_of(self, row: int) -> list[Given]:
        """Return the answers about a row, that of the reviewer named first first."""
        return list(self._given.get(row, ()))

    def answered(self) -> dict[int, list[Given]]:
        """Return the answers of the rows of two or more that all of them answered."""
        whole = self.rows[self.is_shared & ~self.is_waiting].tolist()
        return {row: self._given[row] for row in whole}

    def scored(self) -> dict[int, list[Given]]:
        """Return the answers to known rows."""
        known = self.rows[self._is_known].tolist()
        return {row: self._given[row] for row in known if row in self._given}

    def _is_of(self, reviewer: str) -> NDArray[np.bool_]:
        code = self.reviewers.index(reviewer) if reviewer in self.reviewers else _NOBODY - 1
        is_theirs: NDArray[np.bool_] = self._who == code
        return is_theirs

    def _assign(self, at: Places, code: int) -> None:
        at = at[(self._who[:, at] != code).all(axis=0)]
        if (self._who[-1, at] != _NOBODY).any():
            more = np.full((1, len(self.rows)), _NOBODY, dtype=np.int16)
            self._who = np.concatenate([self._who, more])
            self._has_answered = np.concatenate([self._has_answered, more != _NOBODY])
        place = (self._who[:, at] == _NOBODY).argmax(axis=0)
        self._who[place, at] = code

    def _drop(self, at: Places, code: int) -> None:
        """Take rows from a reviewer who answered none of them; the others' answers stay."""
        at = at[(self._who[:, at] == code).any(axis=0)]
        who = np.where(self._who[:, at] == code, np.int16(_NOBODY), self._who[:, at])
        # Those that are left move up, in their order.
        order = np.argsort(who == _NOBODY, axis=0, kind="stable")
        self._who[:, at] = np.take_along_axis(who, order, axis=0)
        self._has_answered[:, at] = np.take_along_axis(self._has_answered[:, at], order, axis=0)
        free = at[self._who[0, at] == _NOBODY]
        self._is_apart[free] = self._is_known[free] = False

    def _answer(self, at: int, duty: Duty) -> None:
        if not isinstance(duty.body, Answer):
            raise TypeError(f"Entry {duty.number} answers nothing.")
        row, code = int(self.rows[at]), self._code_of(duty.reviewer)
        self._has_answered[:, at] |= self._who[:, at] == code
        others = [each for each in self._given.get(row, ()) if each.reviewer != duty.reviewer]
        given = [*others, Given(reviewer=duty.reviewer, at=duty.at, answer=duty.body)]
        order = self.reviewers_of(row)
        self._given[row] = sorted(given, key=lambda each: order.index(each.reviewer))
        self._differs[at] = len(given) >= _TWO and not agree(each.answer for each in given)

    def is_blind_at(self, row: int) -> bool:
        """Return whether a row is labelled apart."""
        return bool(self.is_blind[self._at(row)])

    def _among(self, places: Places) -> Places:
        """Return where rows stand, those that are here."""
        if not len(self.rows):
            return places[:0]
        nearest = np.minimum(np.searchsorted(self.rows, places), len(self.rows) - 1)
        at: Places = nearest[self.rows[nearest] == places]
        return at

    def _at(self, row: int) -> int:
        return int(np.searchsorted(self.rows, row))

    def _code_of(self, reviewer: str) -> int:
        if reviewer not in self.reviewers:
            self.reviewers.append(reviewer)
        return self.reviewers.index(reviewer)


def agree(answers: Iterable[Answer]) -> bool:
    """Return whether answers about a row say the same of each decision that several are about.

    >>> one, other = Answer(outcomes={"team": "a"}), Answer(outcomes={"team": "a", "urgent": "no"})
    >>> agree([one, other]), agree([one, Answer(is_excluded=True)])
    (True, False)
    """
    outcomes: dict[str, str] = {}
    exclusions = set()
    for answer in answers:
        exclusions.add(answer.is_excluded)
        for decision, outcome in answer.outcomes.items():
            if outcomes.setdefault(decision, outcome) != outcome:
                return False
    return len(exclusions) == 1


def split_rows(rows: Places, reviewers: Sequence[str], n_blind: int) -> dict[str, Places]:
    """Return which rows each reviewer gets, ascending; the first of them go to two.

    A reviewer gets at most two rows more than another, and every pair of reviewers shares
    about as many rows as any other.

    ``rows`` are in an order that was drawn at random, and ``n_blind`` of them go to two reviewers.

    >>> {name: rows.tolist() for name, rows in split_rows(np.arange(5), ["a", "b"], 1).items()}
    {'a': [0, 2, 4], 'b': [0, 1, 3]}
    """
    n = len(reviewers)
    turn = np.arange(len(rows))
    first = turn % n
    blind = turn[:n_blind]
    second = (blind + 1 + (blind // n) % max(n - 1, 1)) % n
    return {
        name: np.sort(np.concatenate([rows[first == place], rows[:n_blind][second == place]]))
        for place, name in enumerate(reviewers)
    }


#: The reviewer, the kind, the rows, and the body of an entry.
Part = tuple[str, DutyAction, Places, Answer | Apart | None]


def numbered(after: int, at: float, parts: Iterable[Part]) -> list[Duty]:
    """Return the next entries of a log, without those that are about no row."""
    number = itertools.count(after + 1)
    return [
        Duty(
            number=next(number),
            at=at,
            reviewer=reviewer,
            action=action,
            places=places,
            body=body,
        )
        for reviewer, action, places, body in parts
        if len(places)
    ]
