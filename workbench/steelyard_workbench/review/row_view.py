"""One row to decide on: its text, large, and every outcome as a button that prints its key."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape
from typing import Any

import msgspec
import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable, Viewer

from steelyard.wire.drafts import DraftRow
from steelyard_workbench.keys import key_of, shown_key
from steelyard_workbench.review.questions import Question, as_text, expected_of, questions_of

_TEXT = (
    "font-size:1.25rem;line-height:1.5;white-space:pre-wrap;overflow-wrap:anywhere;"
    "max-height:20em;overflow:auto;padding:0.2em 0"
)
_MARK = "background:#e6c84f;color:#000;border-radius:2px"
_IMAGE = "max-height:16em;max-width:100%;margin:0.3em 0.5em 0 0"
#: Outcomes that a key can choose.
KEYED = 9

_CHANGING = ("accept", "exclude", "skip", "note", "undo", "redo")

#: Called with the id of a decision and an outcome that was chosen for it.
OnChoose = Callable[[str, str], None]


class QuestionView(Viewer):
    """A decision with a button for each outcome.

    Parameters
    ----------
    question : Question
    on_choose : callable
    """

    def __init__(self, question: Question, on_choose: OnChoose) -> None:
        super().__init__()
        self.question = question
        self._head = pmui.Typography("", variant="body1", margin=(8, 10, 0, 10))
        self._buttons: list[Any] = []
        for outcome in question.outcomes:
            button = pmui.Button(label=outcome, variant="outlined", size="small", margin=4)
            button.on_click(lambda _, outcome=outcome: on_choose(question.id, outcome))
            self._buttons.append(button)
        described = [
            f"<dt><b>{escape(name)}</b></dt><dd>{escape(text)}</dd>"
            for name, text in zip(question.outcomes, question.descriptions, strict=True)
            if text
        ]
        parts: list[Viewable] = [self._head, pn.FlexBox(*self._buttons)]
        if described:
            parts.append(
                pn.pane.HTML(
                    f"<details><summary>What the outcomes of {escape(question.id)} mean</summary>"
                    f'<dl style="margin:0.3em 0">{"".join(described)}</dl></details>',
                    sizing_mode="stretch_width",
                    margin=(0, 10),
                )
            )
        self._box = pn.Column(*parts, sizing_mode="stretch_width")

    def __panel__(self) -> Viewable:
        return self._box

    def forbid(self) -> None:
        """Let nothing be chosen."""
        for button in self._buttons:
            button.disabled = True

    def show(self, row: DraftRow, *, is_active: bool) -> None:
        """Mark the label of a row, what its neighbours say, and the keys while it is active."""
        question = self.question
        here = expected_of(row, question.id)
        near = (row.neighbours_label or {}).get(question.id)
        changed = " (changed)" if question.id in row.now.relabelled else ""
        self._head.object = f"**{question.id}**{changed}: {question.text}"
        for place, (outcome, button) in enumerate(
            zip(question.outcomes, self._buttons, strict=True), start=1
        ):
            words = [f"{place}  {outcome}" if is_active and place <= KEYED else outcome]
            if outcome == here:
                words.append("✓ label")
            if outcome == near:
                words.append("≈ neighbours")
            button.param.update(
                label="  ".join(words), variant="contained" if outcome == here else "outlined"
            )


class RowView(Viewer):
    """A row in focus.

    Parameters
    ----------
    on_choose : callable
        Called with a decision and the outcome that was chosen for it.
    on_action : callable
        Called with the name of an action of ``keys.py``, such as ``accept``.

    Attributes
    ----------
    active : int
        Place of the decision that the keys 1 to 9 choose for.
    """

    def __init__(self, on_choose: OnChoose, on_action: Callable[[str], None]) -> None:
        super().__init__()
        self.active = 0
        self._is_forbidden = False
        self._on_choose = on_choose
        self._questions: tuple[Question, ...] = ()
        self._views: dict[Question, QuestionView] = {}
        self._head = pmui.Typography("", variant="body2")
        self._context = pn.pane.HTML("", sizing_mode="stretch_width", margin=(0, 10))
        self._said = pmui.Typography("", variant="body2")
        self._decisions = pn.Column(sizing_mode="stretch_width")
        self._buttons = {
            action: self._button(action, label, on_action)
            for action, label in (
                ("accept", "Accept"),
                ("exclude", "Exclude"),
                ("skip", "Skip"),
                ("note", "Note"),
                ("similar", "Similar"),
                ("undo", "Undo"),
                ("redo", "Redo"),
                ("previous", "Back"),
                ("next", "Next"),
            )
        }
        self._box = pn.Column(
            self._head,
            self._context,
            self._said,
            self._decisions,
            pn.FlexBox(*self._buttons.values()),
            sizing_mode="stretch_width",
        )

    def __panel__(self) -> Viewable:
        return self._box

    def forbid(self) -> None:
        """Let nothing be changed."""
        self._is_forbidden = True
        for view in self._views.values():
            view.forbid()
        for action in _CHANGING:
            self._buttons[action].disabled = True

    @property
    def question(self) -> Question | None:
        """The decision that the keys choose for."""
        return self._questions[self.active] if self.active < len(self._questions) else None

    @property
    def questions(self) -> tuple[Question, ...]:
        """The decisions of the row."""
        return self._questions

    def show(self, row: DraftRow, place: str, words: str = "", active: int = 0) -> None:
        """Show a row.

        Parameters
        ----------
        row : DraftRow
        place : str
            Where it is in the queue, as ``Row 12 of 403``.
        words : str
            Words that are marked in its text.
        active : int, default 0
            The decision that the keys choose for.
        """
        self.active = active
        questions = questions_of(row.decisions)
        if questions != self._questions:
            # Buttons of the same decisions are kept from row to row: the focus stays where it was.
            self._questions = questions
            self._views = {
                question: self._views.get(question) or QuestionView(question, self._on_choose)
                for question in questions
            }
            self._decisions[:] = list(self._views.values())
            if self._is_forbidden:
                self.forbid()
        for i, question in enumerate(questions):
            self._views[question].show(row, is_active=i == active)
        self._head.object = f"{place} · number {row.row} · {row.side} · **{row.now.state}**"
        self._context.object = context_html(row, words)
        self._said.object = said_of(row)
        excludes = "Include" if row.now.state == "excluded" else "Exclude"
        self._buttons["exclude"].label = f"{excludes} ({key_of('exclude').shown})"

    def _button(self, action: str, label: str, on_action: Callable[[str], None]) -> Any:
        keys = key_of(action).keys
        shown = keys[0] if action not in ("next", "previous", "redo") else shown_key(keys[0])
        button = pmui.Button(
            label=f"{label} ({shown})",
            variant="contained" if action == "accept" else "outlined",
            size="small",
            margin=4,
        )
        button.on_click(lambda _: on_action(action))
        return button


def said_of(row: DraftRow) -> str:
    """Give what neighbours and people said about a row, as Markdown."""
    lines = []
    near = ", ".join(f"**{name}: {top}**" for name, top in (row.neighbours_label or {}).items())
    if near:
        share = "" if row.suspect is None else f" {row.suspect:.0%} of them are labelled otherwise."
        lines.append(f"The nearest rows say {near}.{share}")
    if row.now.reviewer:
        lines.append(f"Last edit by {_plain(row.now.reviewer)}.")
    if row.now.note:
        lines.append(f"**Note:** {_plain(row.now.note)}")
    if row.rewards is not msgspec.UNSET:
        lines.append("Rewards: the outcome that you choose takes the highest one.")
    return "  \n".join(lines)


def context_html(row: DraftRow, words: str = "") -> str:
    """Give the context of a row as HTML, words marked and images under it."""
    shown = escape(as_text(row.context), quote=False)
    wanted = sorted(set(re.findall(r"\w+", words)), key=len, reverse=True)
    if wanted:
        pattern = r"(?<!\w)(" + "|".join(map(re.escape, wanted)) + r")(?!\w)"
        shown = re.sub(pattern, rf'<mark style="{_MARK}">\1</mark>', shown, flags=re.IGNORECASE)
    images = "" if row.images is msgspec.UNSET else "".join(map(_image, row.images))
    return f'<div tabindex="0" role="region" aria-label="Context" style="{_TEXT}">{shown}</div>{images}'


def _image(image: Any) -> str:
    kind, data = (escape(str(image.get(name, ""))) for name in ("media_type", "data"))
    return f'<img alt="Image {escape(str(image.get("id", "")))}" style="{_IMAGE}" src="data:{kind};base64,{data}">'


def _plain(text: str) -> str:
    """Take what Markdown and HTML would read in a text."""
    return escape(re.sub(r"([\\`*_\[\]#])", r"\\\1", text), quote=False)
