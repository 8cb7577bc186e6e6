"""Deciding on rows: on the one in focus, decision by decision, or on many of the table at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from steelyard.review.wire import DraftRow, RowState
from steelyard_workbench.pages.review.apart import (
    is_apart,
    is_disputed,
    is_yours,
    note_of,
    picked_of,
    with_answer,
)
from steelyard_workbench.pages.review.bulk_view import SelectionEdit
from steelyard_workbench.pages.review.edits import Unsent
from steelyard_workbench.pages.review.queue_reader import QueueReader
from steelyard_workbench.pages.review.steps import DraftSteps
from steelyard_workbench.pages.review.suggestions import Suggestions, edits_to
from steelyard_workbench.parts.datasets.questions import (
    Question,
    expected_of,
    label_set_of,
    questions_of,
    relabel_fields,
    top_of,
    with_label,
    with_now,
)

_STATE_OF: dict[str, RowState] = {
    "accept": "accepted",
    "exclude": "excluded",
    "skip": "skipped",
    "include": "untouched",
}


class Deciding:
    """Turns a person's choices for ``question``, which may be ``None``, and ``suggestions`` into steps."""

    def __init__(
        self,
        reader: QueueReader,
        steps: DraftSteps,
        *,
        question: Callable[[], Question | None],
        suggestions: Callable[[], Suggestions],
        on_next: Callable[[], None],
        on_decision: Callable[[int], None],
        on_again: Callable[[], None],
        on_message: Callable[[str], None],
    ) -> None:
        self._reader, self._steps, self._question = reader, steps, question
        self._suggestions = suggestions
        self._on_next, self._on_decision, self._on_again = on_next, on_decision, on_again
        self._on_message = on_message
        #: Whether another label was chosen for a decision of the row since it came into focus.
        self._is_changed = False
        #: Outcomes that were chosen of a row that is decided on as a whole.
        self._picked: dict[str, str] = {}

    def leave(self) -> None:
        """Note that another row is in focus."""
        self._is_changed = False
        self._picked = {}

    @property
    def picked(self) -> dict[str, str]:
        """The selected labels of the row in focus, where it is decided on as a whole."""
        row = self._reader.rows.current
        return {} if row is None else {**picked_of(row), **self._picked}

    @property
    def first(self) -> int:
        """Place of the decision of the row in focus that is asked first."""
        row = self._reader.rows.current
        if row is None or not is_disputed(row):
            return 0
        agreed = picked_of(row)
        questions = questions_of(row.decisions)
        return next((i for i, question in enumerate(questions) if question.id not in agreed), 0)

    def choose(self, decision: str, outcome: str) -> None:
        """Choose the outcome of a decision of the row, and go on.

        The next decision of the row comes first, then the next row. A row whose present labels were
        all chosen again is accepted. After a label of several that may fit comes no other decision:
        see ``settle_labels``.
        """
        row = self._reader.rows.current
        if row is None or self._steps.forbidden:
            return
        questions = questions_of(row.decisions)
        place = next((i for i, listed in enumerate(questions) if listed.id == decision), None)
        if place is None:
            return
        question = questions[place]
        labels = label_set_of(row.decisions, decision)
        if labels is None and (is_apart(row) or is_disputed(row)):
            self._pick(row, questions, place, outcome)
            return
        entry: Unsent | None = None
        if is_apart(row) and not is_yours(row):
            self._on_message(note_of(row))
            return
        if is_apart(row) or is_disputed(row):
            self._picked[decision] = outcome
        elif expected_of(row, decision) != outcome:
            edit = {"action": "relabel", "decision": decision}
            edit |= relabel_fields(row, question, outcome)
            after = with_label(row, question, outcome)
            entry = self._steps.show_edit(row, edit, after, f"{decision} is {outcome}")
            self._is_changed = True
        if labels is None:
            self._go_on(row, questions, place, outcome, entry)
            return
        name = labels.labels[decision]
        fits = "fits" if outcome == "yes" else "does not fit"
        self._on_message(f"row {self._reader.rows.place_text}, {name} {fits}")
        self._on_again()
        if entry is not None:
            self._steps.push(entry)

    def settle_labels(self, outcomes: Mapping[str, str] | None = None) -> None:
        """Choose no for the unanswered labels of the set in focus, or ``outcomes``, and go on."""
        row, focus = self._reader.rows.current, self._question()
        labels = None if row is None or focus is None else label_set_of(row.decisions, focus.id)
        if row is None or labels is None or self._steps.forbidden:
            return
        questions = questions_of(row.decisions)
        last = max(i for i, question in enumerate(questions) if question.id in labels.labels)
        chosen_outcomes = outcomes or {}
        if is_apart(row) or is_disputed(row):
            picked = self.picked
            self._picked |= {
                id_: chosen_outcomes.get(id_, picked.get(id_, "no")) for id_ in labels.labels
            }
            self._pick(row, questions, last, self._picked[questions[last].id])
            return
        settled: dict[str, str] = {}
        for id_ in labels.labels:
            here = expected_of(row, id_)
            outcome = chosen_outcomes.get(id_, here or "no")
            if outcome != here:
                settled[id_] = outcome
        entry: Unsent | None = None
        if settled:
            edits, after = edits_to(row, settled)
            self._steps.show_row(row, after)
            label = f"{labels.name}: {len(settled):,} labels"
            entry = Unsent("edit", label, edits=edits, before=(row,), after=(after,))
            self._is_changed = True
        self._go_on(row, questions, last, labels.name, entry)

    def _go_on(
        self,
        row: DraftRow,
        questions: Sequence[Question],
        place: int,
        what: str,
        entry: Unsent | None,
    ) -> None:
        """Ask the next decision of a row, or the next row, and send the answer."""
        message = f"row {self._reader.rows.place_text}, {what}"
        if place + 1 < len(questions):
            self._on_decision(place + 1)
            self._on_message(f"{message}; next: {questions[place + 1].id}")
        else:
            if not self._is_changed and row.now.state in ("untouched", "skipped"):
                accepted = with_now(row, state="accepted")
                entry = self._steps.show_edit(row, {"action": "accept"}, accepted, "accept")
            self._on_message(message)
            self._on_next()
        if entry is not None:
            self._steps.push(entry)

    def _pick(self, row: DraftRow, questions: Sequence[Question], place: int, outcome: str) -> None:
        """Choose an outcome of a row that two label, which is sent once every decision has one."""
        if is_apart(row) and not is_yours(row):
            self._on_message(note_of(row))
            return
        self._picked[questions[place].id] = outcome
        chosen = {name: self.picked.get(name) for name in (question.id for question in questions)}
        # Of an answer that is given anew, every decision is asked again.
        answered = self._picked if is_apart(row) else self.picked
        open_places = [
            i for i, question in enumerate(questions) if i > place and question.id not in answered
        ]
        open_places += [i for i, question in enumerate(questions) if chosen[question.id] is None]
        message = f"row {self._reader.rows.place_text}, {outcome}"
        if open_places:
            self._on_decision(open_places[0])
            self._on_message(f"{message}; next: {questions[open_places[0]].id}")
            return
        outcomes = {name: str(picked) for name, picked in chosen.items()}
        if is_apart(row):
            self._answer(row, outcomes)
            return
        edits, after = edits_to(row, outcomes)
        self._steps.show_row(row, after)
        self._on_message(message)
        self._on_next()
        label = f"row {row.row}: adjudicated"
        self._steps.push(Unsent("edit", label, edits=edits, before=(row,), after=(after,)))

    def _answer(self, row: DraftRow, outcomes: dict[str, str]) -> None:
        """Send the reviewer's answer about a row; that it should go, without outcomes."""
        answer = {"row": row.row, "outcomes": outcomes or None, "exclude": not outcomes}
        name = self._steps.queue.reviewer or ""
        after = with_answer(row, name, outcomes, is_excluded=not outcomes)
        self._steps.show_row(row, after)
        self._on_message(f"row {self._reader.rows.place_text}, answered")
        self._on_next()
        label = f"row {row.row}: your answer"
        self._steps.push(Unsent("answer", label, given=answer, before=(row,), after=(after,)))

    def _decide_apart(self, row: DraftRow, action: str) -> None:
        if not is_yours(row):
            self._on_message(note_of(row))
        elif action == "exclude":
            self._answer(row, {})
        elif action == "skip":
            self._on_message(f"row {self._reader.rows.place_text}, left for later")
            self._on_next()
        else:
            self._on_message("No label is shown of this row; choose an answer.")

    def decide(self, action: str) -> None:
        """Accept, exclude, include or skip the row, and go on."""
        row = self._reader.rows.current
        if row is None or self._steps.forbidden:
            return
        if is_apart(row):
            self._decide_apart(row, action)
            return
        question = self._question()
        if action == "accept" and question is not None and self._settle_as_near(row, question):
            return
        if (
            action == "accept"
            and question is not None
            and expected_of(row, question.id) is None
            and (outcome := self._near(row, question))
        ):
            self.choose(question.id, outcome)
            return
        if action == "exclude" and row.now.state == "excluded":
            action = "include"
        message = f"row {self._reader.rows.place_text}, {_STATE_OF[action]}"
        if action == "include":
            state: RowState = "relabelled" if row.now.relabelled else "untouched"
        elif action == "accept" and row.now.relabelled:
            state = "relabelled"
        else:
            state = _STATE_OF[action]
        entry = self._steps.show_edit(row, {"action": action}, with_now(row, state=state), action)
        self._on_message(message)
        self._on_next()
        self._steps.push(entry)

    def _settle_as_near(self, row: DraftRow, question: Question) -> bool:
        """Take the suggestions for labels of a set without an answer; return whether there are any."""
        labels = label_set_of(row.decisions, question.id)
        questions = questions_of(row.decisions)
        suggested = {
            each.id: outcome
            for each in questions
            if labels is not None and each.id in labels.labels
            if expected_of(row, each.id) is None and (outcome := self._near(row, each))
        }
        if suggested:
            self.settle_labels(suggested)
        return bool(suggested)

    def _near(self, row: DraftRow, question: Question) -> str:
        """Return the suggestion of a model, or else of other rows, for a decision; empty for none."""
        suggested = top_of(self._suggestions().of(row).get(question.id, {}))
        near = (row.expected or {}).get(question.id)
        return suggested or (near.outcome if near is not None else "")

    def take_suggestion(self) -> None:
        """Choose the model's suggestion for the decision that keys choose for."""
        row, question = self._reader.rows.current, self._question()
        if row is None or question is None:
            return
        suggested = self._suggestions().of(row)
        outcome = top_of(suggested.get(question.id, {}))
        labels = label_set_of(row.decisions, question.id)
        if outcome in question.outcomes and labels is not None:
            self.settle_labels(
                {id_: top_of(suggested[id_]) for id_ in labels.labels if suggested.get(id_)}
            )
        elif outcome in question.outcomes:
            self.choose(question.id, outcome)
        else:
            self._on_message("Nothing is suggested here.")

    def take_suggestions(self, rows: Sequence[DraftRow]) -> None:
        """Write the model's suggestions into undecided rows, in one step."""
        edits, before, after = self._suggestions().take(rows)
        label = f"{len(before):,} rows: what {self._suggestions().model} suggests"
        for old, new in zip(before, after, strict=True):
            self._steps.show_row(old, new)
        self._steps.push(
            Unsent("edit", label, edits=edits, before=tuple(before), after=tuple(after))
        )
        self._on_message(label)

    def note(self, row: DraftRow, text: str) -> None:
        """Note something on a row."""
        edit = {"action": "note", "note": text}
        entry = self._steps.show_edit(row, edit, with_now(row, note=text or None), "note")
        self._on_message(f"row {row.row}, noted")
        self._on_again()
        self._steps.push(entry)

    def change_rows(self, change: SelectionEdit, rows: list[DraftRow]) -> None:
        """Change rows of the table in one step; those that do not ask the decision are left."""
        edits, before, after = [], [], []
        for row in rows:
            change_of_row = None if is_apart(row) else _edit_of(change, row)
            if change_of_row is not None:
                edits.append(change_of_row[0])
                before.append(row)
                after.append(change_of_row[1])
        if not edits:
            condition = f"asks {change.decision}" if change.decision else "takes edits"
            self._on_message(f"None of the selected rows {condition}.")
            return
        label = f"{len(edits):,} rows: {change.label}"
        self._steps.push(
            Unsent("edit", label, edits=edits, before=tuple(before), after=tuple(after))
        )
        self._on_message(label)

    def change_matching(self, change: SelectionEdit, n_rows: int) -> None:
        """Change every row of the queue under the filter in one step."""
        edit: dict[str, Any] = {
            "action": change.action,
            "expected": n_rows,
            "where": self._reader.filter.where,
            "text": self._reader.filter.text,
            "queue": self._reader.queue,
            "decision": change.decision,
            "outcome": change.outcome,
            "revision": self._reader.revision,
        }
        self._steps.push(Unsent("bulk", f"{n_rows:,} rows: {change.label}", given=edit))
        self._on_message(change.sentence(n_rows))


def _edit_of(change: SelectionEdit, row: DraftRow) -> tuple[dict[str, Any], DraftRow] | None:
    """Return a change as an edit of a row, and the row after it; ``None`` if it asks no such decision."""
    edit: dict[str, Any] = {"row": row.row, "action": change.action}
    if change.action != "relabel":
        return edit, with_now(row, state=_STATE_OF[change.action])
    questions = questions_of(row.decisions)
    question = next((question for question in questions if question.id == change.decision), None)
    if question is None or change.outcome not in question.outcomes:
        return None
    edit |= {"decision": question.id, **relabel_fields(row, question, change.outcome)}
    return edit, with_label(row, question, change.outcome)
