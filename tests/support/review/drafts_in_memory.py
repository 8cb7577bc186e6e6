"""A draft in memory, with the answers and refusals of the server's drafts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
from msgspec import UNSET

from steelyard.client.model_choices import ModelChoice
from steelyard.errors import DraftConflictError, NothingToUndoError
from steelyard.review.duties_wire import AnswerReceipt, DraftAgreement
from steelyard.review.outcomes_wire import DecisionOutcomes, DraftOutcome, DraftOutcomes
from steelyard.review.wire import (
    BlindRow,
    Draft,
    DraftRow,
    DraftRowPage,
    EditReceipt,
    History,
    LogEntry,
    RowAnswer,
    RowNow,
    SealedDraft,
    Suspects,
)

TEAM = {
    "id": "team",
    "kind": "single",
    "question": "Which team?",
    "outcomes": {"billing": "money", "shipping": "parcels", "technical": None},
}
URGENT = {"id": "urgent", "kind": "binary", "question": "Today?"}
_QUEUES: dict[str, Any] = {
    "all": lambda now: True,
    "to_review": lambda now: now.state in ("untouched", "skipped"),
    "excluded": lambda now: now.state == "excluded",
    "changed": lambda now: now.state in ("relabelled", "excluded"),
    "noted": lambda now: bool(now.note),
    "audit": lambda now: True,
    "suspect": lambda now: False,
}
#: Queues of rows that two label apart.
_APART: dict[str, Any] = {
    "assigned": lambda row: row.blind.status == "waiting" and not row.blind.answers,
    "disagreement": lambda row: row.blind.status == "disagreed" and row.now.state == "untouched",
}
_STATES = {
    "accept": "accepted",
    "exclude": "excluded",
    "include": "untouched",
    "skip": "skipped",
    "relabel": "relabelled",
}


def make_row(
    number: int,
    *,
    decisions: tuple[Any, ...] = (TEAM,),
    label: str = "billing",
    answers: tuple[RowAnswer, ...] | None = None,
    status: Any = "waiting",
) -> DraftRow:
    targets = {"team": {label: 1.0}}
    if URGENT in decisions:
        targets["urgent"] = {"no": 1.0}
    if answers is not None:
        blind = BlindRow(status=status, is_yours=True, answers=list(answers))
    return DraftRow(
        row=number,
        blind=UNSET if answers is None else blind,
        side="training",
        context=f"Ticket {number}: my card was charged twice.",
        decisions=list(decisions),
        targets=targets,
        now=RowNow(
            row=number,
            state="untouched",
            labels=targets,
            relabelled=[],
            note=None,
            edit=0,
            reviewer=None,
        ),
        suspect=None,
        expected=None,
    )


class FakeDrafts:
    """``client.drafts`` of one draft.

    ``failing`` is raised, once for each entry of it, before anything is done; ``losing`` in the place
    of an answer, once an edit is done.
    """

    def __init__(self, rows: list[DraftRow]) -> None:
        self.held = {row.row: row for row in rows}
        #: By number: whose, the rows before it, and after it.
        self.entries: dict[int, tuple[str | None, dict[int, RowNow], dict[int, RowNow]]] = {}
        self.undone: set[int] = set()
        self.failing: list[Exception] = []
        self.losing: list[Exception] = []
        self.receipts: dict[str, EditReceipt] = {}
        self.calls: list[tuple[Any, ...]] = []
        self.sealed: SealedDraft | None = None
        self.changes: dict[str, Any] = {}
        self.guideline: str | None = None
        self.n = 0

    def get(self, draft_id: str) -> Draft:
        states = [row.now.state for row in self.held.values()]
        return Draft(
            id=draft_id,
            dataset_id="ds_1",
            dataset_version=1,
            name="spring",
            status="open" if self.sealed is None else "sealed",
            revision=self.n,
            rows=len(self.held),
            states={state: states.count(state) for state in states},
            noted=0,
            created_at=0.0,
            updated_at=0.0,
            sealed=self.sealed,
        )

    def create(self, dataset_id: str, version: int | None = None) -> Draft:
        self._fail()
        return self.get("dr_1")

    def list(self, **_: Any) -> Any:
        return SimpleNamespace(data=[], has_more=False, next_cursor=None)

    def history(self, draft_id: str, *, row: int | None = None, limit: int = 20) -> History:
        entries = [
            LogEntry(
                number=i,
                at=0.0,
                reviewer=who,
                action="accept",
                rows=len(after),
                row=next(iter(after)),
                decision=None,
                outcome=None,
                note=None,
                target=None,
                is_undone=i in self.undone,
            )
            for i, (who, _, after) in self.entries.items()
        ]
        return History(data=entries[::-1], has_more=False, next_after=None, revision=self.n)

    def rows(
        self,
        draft_id: str,
        queue: str,
        *,
        where: Any = None,
        text: str | None = None,
        order: Any = None,
        offset: int = 0,
        limit: int = 25,
        reviewer: str | None = None,
    ) -> DraftRowPage:
        self._fail()
        self.calls.append(("rows", queue, where, text, offset, limit))
        matching = [row for row in self.held.values() if self._matches(row, where, text)]
        counts = {
            name: sum(holds(row.now) for row in matching)
            for name, holds in _QUEUES.items()
            if name != "suspect"
        }
        found = [row for row in matching if self._in(queue, row, reviewer)]
        if queue == "to_review":
            found.sort(key=lambda row: row.now.state == "skipped")
        return DraftRowPage(
            data=found[offset : offset + limit],
            queue=queue,
            total=len(found),
            offset=offset,
            limit=limit,
            has_more=offset + limit < len(found),
            counts=counts,
            revision=self.n,
            suspects=Suspects(
                status="computing", done=3, rows=9, method="Cosine of vectors.", message=None
            ),
        )

    def edit(
        self,
        draft_id: str,
        edits: list[dict[str, Any]],
        reviewer: str | None = None,
        *,
        idempotency_key: str,
    ) -> EditReceipt:
        self._fail()
        if idempotency_key in self.receipts:
            return self.receipts[idempotency_key]
        self.calls.append(("edit", edits, reviewer))
        newer = [
            self.held[edit["row"]].now
            for edit in edits
            if self.held[edit["row"]].now.edit > edit["seen"]
            and self.held[edit["row"]].now.reviewer != reviewer
        ]
        if newer:
            raise DraftConflictError(
                "A row was edited meanwhile.",
                details=[{"row": now.row, "now": msgspec.to_builtins(now)} for now in newer],
            )
        for edit in edits:
            self._apply({edit["row"]: edit}, reviewer)
        receipt = self._receipt([edit["row"] for edit in edits])
        self.receipts[idempotency_key] = receipt
        if self.losing:
            raise self.losing.pop(0)
        return receipt

    def answer(
        self,
        draft_id: str,
        *,
        row: int,
        outcomes: dict[str, str] | None,
        exclude: bool,
        reviewer: str | None,
        idempotency_key: str,
    ) -> AnswerReceipt:
        """Take one of two answers; the sender here is the first."""
        self._fail()
        self.calls.append(("answer", row, outcomes, exclude, reviewer))
        own = RowAnswer(reviewer=reviewer or "", at=0.0, outcomes=outcomes or {}, exclude=exclude)
        blind = BlindRow(status="waiting", is_yours=True, answers=[own])
        self.held[row] = msgspec.structs.replace(self.held[row], blind=blind)
        return AnswerReceipt(draft_id=draft_id, row=row, status="waiting", revision=self.n, rows=[])

    def agreement(self, draft_id: str, *, by: str | None = None) -> DraftAgreement:
        self.calls.append(("agreement", by))
        apart = [row for row in self.held.values() if row.blind is not UNSET]
        n_disputed = sum(row.blind.status == "disagreed" for row in apart)
        n_waiting = sum(row.blind.status == "waiting" for row in apart)
        return DraftAgreement(
            blind=len(apart),
            answered=len(apart) - n_waiting,
            agreed=0,
            disputed=n_disputed,
            to_adjudicate=n_disputed,
            exclusions=0,
            decisions=[],
        )

    def bulk(
        self,
        draft_id: str,
        *,
        action: str,
        expected: int,
        where: Any,
        text: str | None,
        queue: str,
        decision: str | None,
        outcome: str | None,
        revision: int,
        reviewer: str | None,
        idempotency_key: str,
    ) -> EditReceipt:
        self._fail()
        self.calls.append(("bulk", action, expected))
        edit = {"action": action, "decision": decision, "outcome": outcome}
        found = [
            row.row
            for row in self.held.values()
            if self._matches(row, where, text) and self._in(queue, row, reviewer)
        ]
        assert len(found) == expected
        self._apply(dict.fromkeys(found, edit), reviewer)
        return self._receipt(found)

    def outcomes(self, draft_id: str) -> DraftOutcomes:
        """The outcomes of the decision ``team``, and a made-up one without rows."""
        tops = [
            max(row.now.labels["team"].items(), key=lambda item: item[1])[0]
            for row in self.held.values()
            if "team" in row.now.labels
        ]
        names = [*TEAM["outcomes"], "Billings"]
        listed = [
            DraftOutcome(
                outcome=name,
                name=self.changes.get(root, {}).get("name", root),
                rows=tops.count(name),
                description=change.get("description"),
                same_as=change.get("same_as"),
            )
            for name in names
            for change in [self.changes.get(name, {})]
            for root in [change.get("same_as", name)]
        ]
        decision = DecisionOutcomes(
            decision="team",
            question="Which team?",
            kind="single",
            wordings=1,
            fixed=None,
            outcomes=listed,
            guideline=self.guideline or None,
            has_new_guideline=self.guideline is not None,
        )
        return DraftOutcomes(data=[decision], revision=self.n)

    def edit_outcomes(
        self,
        draft_id: str,
        decision: str,
        outcomes: dict[str, Any] | None = None,
        reviewer: str | None = None,
        *,
        guideline: str | None = None,
        idempotency_key: str,
    ) -> EditReceipt:
        self._fail()
        self.n += 1
        self.calls.append(("outcomes", decision, guideline if outcomes is None else outcomes))
        if outcomes is not None:
            self.changes = outcomes
        if guideline is not None:
            self.guideline = guideline
        return self._receipt([])

    def undo(
        self,
        draft_id: str,
        reviewer: str | None,
        *,
        first: int | None = None,
        last: int | None = None,
        idempotency_key: str,
    ) -> EditReceipt:
        self._fail()
        own = [n for n in self._own(reviewer) if n not in self.undone]
        chosen = own[-1:] if last is None else [n for n in own if (first or last) <= n <= last]
        return self._step(chosen[::-1], 1, self.undone.add)

    def redo(
        self,
        draft_id: str,
        reviewer: str | None,
        *,
        first: int | None = None,
        last: int | None = None,
        idempotency_key: str,
    ) -> EditReceipt:
        self._fail()
        own = [n for n in self._own(reviewer) if n in self.undone]
        chosen = own[:1] if last is None else [n for n in own if (first or last) <= n <= last]
        return self._step(chosen, 2, self.undone.discard)

    def seal(
        self, draft_id: str, as_: str, name: str | None, *, revision: int, drop_outcomes: bool
    ) -> Draft:
        self._fail()
        self.calls.append(("seal", as_, name, revision, drop_outcomes))
        self.sealed = SealedDraft(dataset_id="ds_1", version=2, sealed_as=as_, sealed_at=0.0)
        return self.get(draft_id)

    def by_other(
        self, number: int, outcome: str, *, decision: str = "team", name: str | None = "Ada"
    ) -> None:
        """Relabel a row as another person."""
        edit = {"action": "relabel", "decision": decision, "outcome": outcome}
        self._apply({number: edit}, name)

    def _fail(self) -> None:
        if self.failing:
            raise self.failing.pop(0)

    def _in(self, queue: str, row: DraftRow, reviewer: str | None) -> bool:
        if queue in _APART:
            return row.blind is not UNSET and bool(_APART[queue](row))
        if queue == "mine":
            return row.now.reviewer is not None and row.now.reviewer == reviewer
        return bool(_QUEUES[queue](row.now))

    def _matches(self, row: DraftRow, where: Any, text: str | None) -> bool:
        if where is not None and where["type"] == "index":
            return bool(where["at_least"] <= row.row < where["below"])
        return text is None or text in str(row.context)

    def _own(self, reviewer: str | None) -> list[int]:
        return [number for number, (who, _, _) in self.entries.items() if who == reviewer]

    def _apply(self, edits: dict[int, dict[str, Any]], reviewer: str | None) -> None:
        """Make one entry of the log."""
        self.n += 1
        before = {number: self.held[number].now for number in edits}
        for number, edit in edits.items():
            now = before[number]
            labels = dict(now.labels)
            if edit["action"] == "relabel":
                labels[edit["decision"]] = {edit["outcome"]: 1.0}
            now = msgspec.structs.replace(
                now,
                state=_STATES.get(edit["action"], now.state),
                labels=labels,
                note=edit.get("note", now.note) or None,
                edit=self.n,
                reviewer=reviewer,
            )
            self.held[number] = msgspec.structs.replace(self.held[number], now=now)
        self.entries[self.n] = (reviewer, before, {row: self.held[row].now for row in edits})

    def _step(self, entries: list[int], side: int, note: Any) -> EditReceipt:
        if not entries:
            raise NothingToUndoError("Nothing is left to undo.")
        rows: list[int] = []
        for entry in entries:
            self.n += 1
            note(entry)
            for number, now in self.entries[entry][side].items():
                told = msgspec.structs.replace(now, edit=self.n)
                self.held[number] = msgspec.structs.replace(self.held[number], now=told)
                rows.append(number)
        return self._receipt(sorted(rows))

    def _receipt(self, numbers: list[int]) -> EditReceipt:
        return EditReceipt(
            draft_id="dr_1",
            edits=len(numbers),
            revision=self.n,
            undone=None,
            rows=[self.held[number].now for number in numbers],
        )


class FakeDatasets:
    """``client.datasets`` with nothing in it that a draft does not need."""

    def __init__(self, names: list[str]) -> None:
        self.names = names

    def get(self, dataset_id: str) -> Any:
        return SimpleNamespace(id=dataset_id, name=self.names[0])

    def iterate(self) -> Any:
        return (
            SimpleNamespace(id=f"ds_{i}", name=name, rows=4)
            for i, name in enumerate(self.names, start=1)
        )

    def search(self, dataset_id: str, **_: Any) -> Any:
        return SimpleNamespace(
            facets={
                "rows": 3,
                "sides": {"training": 3},
                "expected": {"team": {"billing": 2, "shipping": 1}},
            }
        )

    def similar(self, dataset_id: str, **_: Any) -> Any:
        return SimpleNamespace(data=[], version=1)


class FakeClient:
    """The calls of the Review page to a client."""

    def __init__(self, rows: list[DraftRow], names: list[str] | None = None) -> None:
        self.drafts = FakeDrafts(rows)
        self.datasets = FakeDatasets(["tickets"] if names is None else names)
        self.evaluations = SimpleNamespace(list=lambda dataset_id: iter([]))
        self.families = SimpleNamespace(list=lambda: SimpleNamespace(data=[]))
        self.models = SimpleNamespace(choices=lambda: [ModelChoice(name="base", kind="base")])
