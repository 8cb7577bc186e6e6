"""Edits on their way to the server: sent in order, kept while it is away, and their end reported.

Nothing here draws. The maker of an edit has shown it already; this reports when it failed.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from steelyard.client import Client
from steelyard.client.failures import UnexpectedAnswerError
from steelyard.errors import DraftConflictError, SteelyardError
from steelyard.review.duties_wire import AnswerReceipt
from steelyard.review.wire import DraftConflict, DraftRow, EditReceipt, RowNow
from steelyard.wire.decoding import convert
from steelyard_workbench.kit.problems import Problem, problem_of
from steelyard_workbench.kit.tasks import Write

#: What a proxy answers for a server that is away.
_GATEWAY = (502, 503, 504)


@dataclass(eq=False, slots=True)
class Unsent:
    """Something to be sent; ``label`` is its effect, as ``row 12: team is deny``."""

    kind: str
    label: str
    edits: list[dict[str, Any]] = field(default_factory=list)
    given: dict[str, Any] = field(default_factory=dict)
    before: tuple[DraftRow, ...] = ()
    after: tuple[DraftRow, ...] = ()
    of: Unsent | None = None
    key: str = field(default_factory=lambda: str(uuid.uuid4()))
    numbers: tuple[int, int] | None = field(default=None, init=False)
    is_tried: bool = field(default=False, init=False)

    @property
    def rows(self) -> set[int]:
        """Rows that it changes, as far as they are known here."""
        return {edit["row"] for edit in self.edits} | {row.row for row in self.before}


class Listener(Protocol):
    """Handles the end of edits."""

    def on_sent(self, entry: Unsent, receipt: EditReceipt | AnswerReceipt) -> None:
        """Note the server's changes."""

    def on_refused(self, entry: Unsent, problem: Problem) -> None:
        """Bring back the state before an edit that the server refused."""

    def on_dropped(self, entry: Unsent) -> None:
        """Forget an ``undo`` or ``redo`` of a step that the server did not take."""

    def on_conflict(self, entry: Unsent, now: list[RowNow]) -> None:
        """Ask which is to stand: the edit, or another's that came before it."""

    def on_waiting(self) -> None:
        """Show the waiting edits, which have changed."""


class EditQueue:
    """The edits of one draft that are not sent yet."""

    def __init__(self, client: Client, draft_id: str, listener: Listener) -> None:
        self._client = client
        self._draft_id = draft_id
        self._listener = listener
        self._seen: dict[int, int] = {}
        self.send = Write(self._send)
        self.reviewer: str | None = None
        self.unsent: list[Unsent] = []
        self.is_lost = False
        self._settled = asyncio.Event()
        self._settled.set()

    def saw(self, rows: Sequence[RowNow]) -> list[RowNow]:
        """Note the newest edit of each row seen, without one on its way; return the rows noted."""
        waiting = set().union(*(entry.rows for entry in self.unsent))
        seen = [
            now for now in rows if now.row not in waiting and now.edit >= self._seen.get(now.row, 0)
        ]
        self._seen.update((now.row, now.edit) for now in seen)
        return seen

    def looked_at(self, rows: Sequence[RowNow]) -> None:
        """Note that the reviewer chose which edit is to stand in rows that another edited."""
        self._seen.update((now.row, now.edit) for now in rows)

    def push(self, entry: Unsent) -> None:
        """Send something once all before it are sent."""
        self.unsent.append(entry)
        self._note_waiting()
        if not self.is_lost:
            self.send.start()

    def send_again(self) -> None:
        """Try again to send waiting edits, whether or not the server answered the last time."""
        self.is_lost = False
        if self.unsent:
            self._settled.clear()
            self.send.start()

    async def settled(self) -> None:
        """Wait until all is sent or the server is away: later reads have one's own edits."""
        await self._settled.wait()

    def _note_waiting(self) -> None:
        if self.unsent and not self.is_lost:
            self._settled.clear()
        else:
            self._settled.set()
        self._listener.on_waiting()

    def take_back(self) -> Unsent | None:
        """Take the last edit back, if the server cannot have it."""
        last = self.unsent[-1] if self.unsent else None
        if last is None or last.is_tried or last.kind not in ("edit", "bulk", "outcomes"):
            return None
        self.unsent.remove(last)
        self._note_waiting()
        return last

    async def _send(self) -> None:
        while self.unsent and await self._send_first():
            pass

    async def _send_first(self) -> bool:
        entry = self.unsent[0]
        if entry.of is not None and entry.of.numbers is None:
            self._ended(entry)
            self._listener.on_dropped(entry)
            self._note_waiting()
            return True
        entry.is_tried = True
        try:
            receipt = await asyncio.to_thread(self._call, entry)
        except DraftConflictError as error:
            self._ended(entry)
            conflicts = [convert(detail, DraftConflict) for detail in error.details or ()]
            if entry.kind == "edit":
                self._listener.on_conflict(entry, [conflict.now for conflict in conflicts])
            else:
                self._listener.on_refused(entry, problem_of(error, f"Not done: {entry.label}."))
        except Exception as error:  # noqa: BLE001  every failure is shown
            if _may_pass(error):
                self.is_lost = True
                self._note_waiting()
                return False
            self._ended(entry)
            self._listener.on_refused(entry, problem_of(error, f"Not done: {entry.label}."))
        else:
            self._ended(entry)
            n_entries = len(entry.edits) or 1
            entry.numbers = (receipt.revision - n_entries + 1, receipt.revision)
            self._seen.update((now.row, now.edit) for now in receipt.rows)
            self._listener.on_sent(entry, receipt)
        self._note_waiting()
        return True

    def _ended(self, entry: Unsent) -> None:
        self.is_lost = False
        self.unsent.remove(entry)

    def _call(self, entry: Unsent) -> EditReceipt | AnswerReceipt:
        drafts, draft_id = self._client.drafts, self._draft_id
        if entry.kind == "edit":
            # What was seen is looked up now: an edit of the same row that was sent just before
            # this one is the reviewer's own, and its number is known only since its receipt.
            edits = [{**edit, "seen": self._seen.get(edit["row"], 0)} for edit in entry.edits]
            return drafts.edit(draft_id, edits, self.reviewer, idempotency_key=entry.key)
        calls: dict[str, Callable[..., EditReceipt | AnswerReceipt]] = {
            "answer": drafts.answer,
            "outcomes": drafts.edit_outcomes,
            "bulk": drafts.bulk,
        }
        if call := calls.get(entry.kind):
            return call(draft_id, **entry.given, reviewer=self.reviewer, idempotency_key=entry.key)
        step = drafts.undo if entry.kind == "undo" else drafts.redo
        named = None if entry.of is None else entry.of.numbers
        first, last = named or (None, None)
        return step(draft_id, self.reviewer, first=first, last=last, idempotency_key=entry.key)


def _may_pass(error: Exception) -> bool:
    """Whether the same edit may be accepted later: nothing is wrong with it."""
    if isinstance(error, UnexpectedAnswerError):
        return error.http_status in _GATEWAY
    return isinstance(error, SteelyardError) and error.retryable
