"""The rows of a queue, a page of them ahead of the one that is shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import structs

from steelyard.review.wire import BlindStatus, DraftRow, DraftRowPage, RowNow
from steelyard_workbench.pages.review.apart import is_disputed, is_to_do, is_undecided, with_status

#: Rows of a page, and how many must be ahead of the shown one.
PAGE_ROWS, LEAST_AHEAD = 25, 10
#: Whether an edited row is still in a queue, where not every row is.
_IS_IN: dict[str, Callable[[DraftRow], bool]] = {
    "to_review": is_undecided,
    "assigned": is_to_do,
    "suspect": is_undecided,
    "disagreement": is_disputed,
    "excluded": lambda row: row.now.state == "excluded",
    "changed": lambda row: row.now.state in ("relabelled", "excluded"),
    "noted": lambda row: bool(row.now.note),
}
#: Whether it also keeps its place: a skipped row goes to the end of the undone ones.
_STAYS = _IS_IN | {
    "to_review": lambda row: row.now.state == "untouched",
    "assigned": lambda row: is_to_do(row) and row.now.state != "skipped",
}


class RowsAhead:
    """A walk over a queue, in which decided rows stay, so that one can go back to them."""

    def __init__(self, queue: str) -> None:
        self.queue = queue
        self.rows: list[DraftRow] = []
        self.place = 0
        self.is_complete = False
        self._total = 0
        self._guests: set[int] = set()
        self._unsent: set[int] = set()

    @property
    def current(self) -> DraftRow | None:
        """The row that is shown; ``None`` at the end."""
        return self.rows[self.place] if self.place < len(self.rows) else None

    @property
    def total(self) -> int:
        """Rows of the walk: those of the queue, and those that left it on the way."""
        return max(self._total, len(self.rows))

    @property
    def place_text(self) -> str:
        """Return in words where the shown row is, as ``12 of 403``."""
        return f"{self.place + 1:,} of {self.total:,}"

    @property
    def undecided(self) -> list[DraftRow]:
        """The undecided rows from the present one on."""
        return [row for row in self.rows[self.place :] if is_undecided(row)]

    @property
    def is_wanting(self) -> bool:
        """Whether more rows should be fetched now."""
        return not self.is_complete and len(self.rows) - self.place <= LEAST_AHEAD

    @property
    def offset(self) -> int:
        """How many rows of the queue, as the server has it now, are here."""
        stays = _STAYS.get(self.queue)
        own = [row for row in self.rows if row.row not in self._guests]
        return len(own) if stays is None else sum(stays(row) for row in own)

    def take(self, page: DraftRowPage) -> list[DraftRow]:
        """Add a page; give those of its rows that are new."""
        numbers = {row.row for row in self.rows}
        new = [row for row in page.data if row.row not in numbers]
        # A guest whose turn has come is one of the queue.
        self._guests.difference_update(row.row for row in page.data)
        n_left = sum(self._has_left(row, page.revision) for row in self.rows)
        self.rows += new
        self._total = page.total + n_left
        self.is_complete = not page.has_more
        return new

    def _has_left(self, row: DraftRow, revision: int) -> bool:
        """Whether the server no longer counts a row to the queue, at a revision of its log."""
        if row.row in self._guests:
            return True
        is_in = _IS_IN.get(self.queue)
        is_known = row.row not in self._unsent and row.now.edit <= revision
        return is_known and is_in is not None and not is_in(row)

    def move(self, step: int) -> bool:
        """Go to the next row or the one before; return whether there was one."""
        place = min(max(self.place + step, 0), len(self.rows))
        moved, self.place = place != self.place, place
        return moved

    def go_to(self, number: int) -> bool:
        """Show a row that is here; return whether it is."""
        for place, row in enumerate(self.rows):
            if row.row == number:
                self.place = place
                return True
        return False

    def arrange(self, order: Callable[[DraftRow], Any]) -> None:
        """Put the rows that are here and not decided in an order, from the shown one on."""
        past, ahead = self.rows[: self.place], self.rows[self.place :]
        open_rows = [row for row in ahead if is_undecided(row)]
        done = [row for row in ahead if not is_undecided(row)]
        self.rows = [*past, *done, *sorted(open_rows, key=order)]
        self.place = len(past) + len(done)

    def get(self, number: int) -> DraftRow | None:
        """Return a row that is here."""
        return next((row for row in self.rows if row.row == number), None)

    def show(self, row: DraftRow) -> None:
        """Show a row of anywhere, before the one that is shown."""
        if not self.go_to(row.row):
            self.rows.insert(self.place, row)
            self._guests.add(row.row)
            self._total += 1

    def put(self, row: DraftRow) -> None:
        """Replace a row, before the server knows of it."""
        self._unsent.add(row.row)
        self._replace(row)

    def tell(self, now: RowNow) -> None:
        """Note how a row stands."""
        row = self.get(now.row)
        if row is not None:
            self._unsent.discard(now.row)
            self._replace(structs.replace(row, now=now))

    def answered(self, number: int, status: BlindStatus) -> None:
        """Note the result of an answer to a row that two label apart."""
        row = self.get(number)
        if row is not None:
            self._unsent.discard(number)
            self._replace(with_status(row, status))

    def _replace(self, row: DraftRow) -> None:
        for place, other in enumerate(self.rows):
            if other.row == row.row:
                self.rows[place] = row
