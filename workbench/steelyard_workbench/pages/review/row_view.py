"""One row to decide on: its text, large, and every outcome as a button that prints its key."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import panel as pn

from steelyard.decisions.several import LabelSet, label_sets
from steelyard.review.wire import DraftRow
from steelyard_workbench.kit.basics import Boxed
from steelyard_workbench.kit.components.row_card import (
    CardButton,
    CardQuestion,
    Image,
    RowCard,
    Run,
)
from steelyard_workbench.kit.keys import key_of, shown_key
from steelyard_workbench.kit.words import percent_text
from steelyard_workbench.pages.review.apart import answer_text, is_apart, reviewers_choosing
from steelyard_workbench.pages.review.suggestions import Suggested
from steelyard_workbench.parts.datasets.questions import (
    Question,
    as_text,
    digits_of,
    expected_of,
    label_set_of,
    questions_of,
    top_of,
)
from steelyard_workbench.parts.review.row_filter import SIDES

_ACTIONS = {
    "accept": "Accept",
    "exclude": "Exclude",
    "skip": "Skip",
    "note": "Note",
    "similar": "Similar",
    "undo": "Undo",
    "redo": "Redo",
    "previous": "Back",
    "next": "Next",
}
#: Labels of a set that a digit chooses; 0 is for the button after them.
_DIGITS = 9
_CHANGING = ("accept", "exclude", "skip", "note", "undo", "redo")
#: What the button after the labels of a set is called.
_DONE = "done"
#: Called with the id of a decision and an outcome that was chosen for it.
OnChoose = Callable[[str, str], None]


class RowView(Boxed):
    """A row in focus; ``active`` is the place of the decision that digits choose for, by ``on_choose``."""

    def __init__(self, on_choose: OnChoose, on_action: Callable[[str], object]) -> None:
        super().__init__()
        self.active = 0
        self._is_forbidden = False
        self._on_choose, self._on_action = on_choose, on_action
        #: The decisions of the row.
        self.questions: tuple[Question, ...] = ()
        self._sets: dict[str, LabelSet] = {}
        self._row: DraftRow | None = None
        self._suggested: Suggested = {}
        self._picked: Mapping[str, str] = {}
        self._box = self.card = RowCard()
        self.card.on_msg(lambda event: self.pressed(event.data))

    def forbid(self) -> None:
        """Disable every change."""
        self._is_forbidden = True
        if self._row is not None:
            self.card.param.update(**self._buttons(self._row))

    def pressed(self, press: Any) -> None:
        """Run the action of a button on the card."""
        # All that a press changes goes to the browser as one message.
        with pn.io.hold():
            if press.get("action") in _ACTIONS:
                self._on_action(press["action"])
            labels = self._sets.get(str(press.get("question")))
            if labels is not None and press.get("outcome") == _DONE:
                self.active = self._place_of(labels)
                self._on_action(_DONE)
            elif labels is not None and press.get("outcome") in labels.labels:
                self.active = self._place_of(labels)
                self._on_choose(press["outcome"], self.turned(press["outcome"]))
            for question in self.questions:
                if (
                    question.id == press.get("question")
                    and press.get("outcome") in question.outcomes
                ):
                    self._on_choose(question.id, press["outcome"])
                    return

    @property
    def question(self) -> Question | None:
        """The decision that the keys choose for."""
        return self.questions[self.active] if self.active < len(self.questions) else None

    @property
    def labels(self) -> LabelSet | None:
        """The set of labels that the keys choose from; ``None`` where they choose an outcome."""
        question = self.question
        if question is None or self._row is None:
            return None
        return label_set_of(self._row.decisions, question.id)

    def turned(self, decision: str) -> str:
        """Return the state of a decision after a press of a label."""
        return "no" if self._is_pressed(decision) else "yes"

    def _is_pressed(self, decision: str) -> bool:
        if self._row is None:
            return False
        here = expected_of(self._row, decision)
        return (self._picked.get(decision) if self._picked else here) == "yes"

    def _place_of(self, labels: LabelSet) -> int:
        return next(i for i, each in enumerate(self.questions) if each.id in labels.labels)

    def show(
        self,
        row: DraftRow,
        place: str,
        words: str = "",
        active: int = 0,
        *,
        suggested: Suggested | None = None,
        picked: Mapping[str, str] | None = None,
        note: str = "",
    ) -> None:
        """Show a row at a place in the queue, as ``Row 12 of 403``.

        ``suggested``: decision to outcome to the probability that a model gives it; ``picked``:
        decision to the outcome that was chosen and is not sent.
        """
        self.active, self._row = active, row
        self._suggested = suggested or {}
        self._picked = picked or {}
        self.questions = questions_of(row.decisions)
        # An asterisk is no part of a decision's id.
        self._sets = {f"{labels.name} *": labels for labels in label_sets(row.decisions)}
        # What is as it was is not sent, and not drawn again.
        self.card.param.update(
            head=[
                (f"{place} · number {row.row} · {SIDES[row.side]} · ", ""),
                (row.now.state, "strong"),
            ],
            context=marked(as_text(row.context), words),
            images=images_of(row),
            said=[*([[(note, "strong")]] if note else []), *notes_of(row)],
            **self._buttons(row),
        )

    def _buttons(self, row: DraftRow) -> dict[str, Any]:
        names = {id_: name for name, labels in self._sets.items() for id_ in labels.labels}
        questions: list[CardQuestion] = []
        for place, question in enumerate(self.questions):
            if question.id not in names:
                questions.append(self._question_of(place, question, row))
            elif not any(card["name"] == names[question.id] for card in questions):
                questions.append(self._set_of(names[question.id], row))
        return {"questions": questions, "actions": [self._action(name, row) for name in _ACTIONS]}

    def _question_of(self, place: int, question: Question, row: DraftRow) -> CardQuestion:
        """Mark the label of a row, predictions against it, and the keys while it is active."""
        here = expected_of(row, question.id)
        changed = " (changed)" if question.id in row.now.relabelled else ""
        outcomes: list[CardButton] = []
        for digit, outcome in zip(digits_of(question.outcomes), question.outcomes, strict=True):
            is_picked = self._picked.get(question.id) == outcome
            outcomes.append(
                CardButton(
                    name=outcome,
                    key=digit if place == self.active else "",
                    label="  ".join([outcome, *self._marks_of(question.id, outcome, row)]),
                    is_filled=is_picked if self._picked else outcome == here,
                    is_off=self._is_forbidden,
                )
            )
        described = zip(question.outcomes, question.descriptions, strict=True)
        return CardQuestion(
            is_set=False,
            name=question.id,
            text=[(question.id, "strong"), (f"{changed}: {question.text}", "")],
            outcomes=outcomes,
            meanings=[(name, text) for name, text in described if text],
        )

    def _set_of(self, name: str, row: DraftRow) -> CardQuestion:
        """Show the labels of a set together: each is pressed where it fits."""
        labels = self._sets[name]
        is_active = self.question is not None and self.question.id in labels.labels
        choices = [
            CardButton(
                name=id_,
                key=str(number) if is_active and number <= _DIGITS else "",
                label="  ".join([label, *self._marks_of(id_, "yes", row)]),
                is_filled=self._is_pressed(id_),
                is_off=self._is_forbidden,
            )
            for number, (id_, label) in enumerate(labels.labels.items(), start=1)
        ]
        done = CardButton(
            name=_DONE,
            key="0" if is_active else "",
            label="No other fits",
            is_filled=False,
            is_off=self._is_forbidden,
        )
        is_changed = any(id_ in row.now.relabelled for id_ in labels.labels)
        changed = " (changed)" if is_changed else ""
        of_set = [question for question in self.questions if question.id in labels.labels]
        return CardQuestion(
            is_set=True,
            name=name,
            text=[(labels.name, "strong"), (f"{changed}: which of these fit?", "")],
            outcomes=[*choices, done],
            meanings=[
                (labels.labels[question.id], question.descriptions[0] or question.text)
                for question in of_set
            ],
        )

    def _marks_of(self, decision: str, outcome: str, row: DraftRow) -> list[str]:
        """Return the marks of an outcome: the label, other rows, a model, reviewers."""
        near = (row.expected or {}).get(decision)
        suggested = self._suggested.get(decision, {})
        marks: list[str] = []
        if outcome == expected_of(row, decision):
            marks.append("✓ label")
        if near is not None and outcome == near.outcome:
            marks.append("≈ predicted")
        if outcome in suggested:
            marks.append(f"{suggested[outcome]:.2f}")
        if outcome == top_of(suggested):
            marks.append("◆ suggested")
        marks += [f"● {name}" for name in reviewers_choosing(row, decision, outcome)]
        if self._picked.get(decision) == outcome:
            marks.append("✓ chosen")
        return marks

    def _action(self, action: str, row: DraftRow) -> CardButton:
        keys = key_of(action).keys
        text = keys[0] if action not in ("next", "previous", "redo") else shown_key(keys[0])
        is_included_by_it = action == "exclude" and row.now.state == "excluded"
        label = "Include" if is_included_by_it else _ACTIONS[action]
        return CardButton(
            name=action,
            key=text,
            label=label,
            is_filled=action == "accept",
            is_off=(self._is_forbidden and action in _CHANGING)
            or (is_apart(row) and action in ("accept", "note")),
        )


def notes_of(row: DraftRow) -> list[list[Run]]:
    """Return the remarks of models and people on a row, and its metadata, a line each."""
    lines: list[list[Run]] = []
    for name, expected in (row.expected or {}).items():
        probabilities = f", {percent_text(expected.probability)}; its label {percent_text(expected.label_probability)}."
        line: list[Run] = [("From the other rows: ", ""), (f"{name}: {expected.outcome}", "strong")]
        lines.append([*line, (probabilities, "")])
    if row.blind is not msgspec.UNSET:
        lines += [
            [(f"{answer.reviewer}:", "strong"), (f" {answer_text(answer)}", "")]
            for answer in row.blind.answers
        ]
    if row.now.reviewer:
        lines.append([(f"Last edit by {row.now.reviewer}.", "")])
    if row.now.note:
        lines.append([("Note:", "strong"), (f" {row.now.note}", "")])
    if row.rewards is not msgspec.UNSET:
        lines.append([("Rewards: the answer that you choose takes the highest one.", "")])
    if isinstance(row.metadata, dict):
        lines += [
            [(f"{name}:", "strong"), (f" {as_text(value)}", "")]
            for name, value in row.metadata.items()
        ]
    return lines


def marked(text: str, words: str = "") -> list[Run]:
    """Return a text with words marked, whole ones in either case.

    >>> marked("No card, no money.", "card")
    [('No ', ''), ('card', 'mark'), (', no money.', '')]
    """
    searched = sorted(set(re.findall(r"\w+", words)), key=len, reverse=True)
    if not searched:
        return [(text, "")]
    pattern = r"(?<!\w)(" + "|".join(map(re.escape, searched)) + r")(?!\w)"
    pieces = re.split(pattern, text, flags=re.IGNORECASE)
    # What a pattern with one group splits is text and match in turn.
    return [(piece, "mark" if i % 2 else "") for i, piece in enumerate(pieces) if piece]


def images_of(row: DraftRow) -> list[Image]:
    """Return the images of a row."""
    if row.images is msgspec.UNSET:
        return []
    images = []
    for image in row.images:
        kind, data, name = (str(image.get(part, "")) for part in ("media_type", "data", "id"))
        images.append(Image(address=f"data:{kind};base64,{data}", text=f"Image {name}"))
    return images
