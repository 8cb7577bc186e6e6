"""Under an answer: the statement that a yes/no question was read as, and fields that replace it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import panel as pn
import panel_material_ui as pmui

from steelyard.decisions.statements import Reading, read_yes_no
from steelyard_workbench.kit.basics import ANY_LENGTH, Boxed, action_button, stack
from steelyard_workbench.kit.problems import typed
from steelyard_workbench.kit.theme import TEXT
from steelyard_workbench.kit.words import escape_markdown

_AS_TYPED = "Read as the question itself: no rule turns it into a statement."


def reading_of(decision: Mapping[str, Any]) -> Reading | None:
    """Return the statements that a yes/no decision is read as; None where its question is asked as typed.

    >>> reading_of({"kind": "binary", "question": "Is it late?"}).statement
    'It is late.'
    """
    question = decision.get("question")
    if decision.get("kind") != "binary" or not isinstance(question, str):
        return None
    statements = (decision.get(name) or "" for name in ("statement", "opposite"))
    return read_yes_no(question, *statements)


def read_as_text(decision: Mapping[str, Any]) -> str:
    """Return the statements of a yes/no decision in words; empty for another kind."""
    if decision.get("kind") != "binary" or not decision.get("question"):
        return ""
    reading = reading_of(decision)
    return _AS_TYPED if reading is None else f"Read as: {reading.statement}"


def wording_fields(
    statement: str = "", opposite: str = ""
) -> tuple[pmui.TextInput, pmui.TextInput]:
    """Return the fields for the statements of yes and no to a question."""
    labels = {"Yes states": statement, "No states; empty: the opposite of that": opposite}
    yes, no = (
        pmui.TextInput(label=label, value=text, max_length=ANY_LENGTH, sizing_mode="stretch_width")
        for label, text in labels.items()
    )
    return yes, no


class ReadAsEditor(Boxed):
    """The statement of a decision with *Edit*; ``on_edited`` gets it and its opposite, and asks again."""

    def __init__(self, decision: Mapping[str, Any], on_edited: Callable[[str, str], None]) -> None:
        super().__init__()
        reading = reading_of(decision)
        self.yes, self.no = wording_fields(
            "" if reading is None else reading.statement, decision.get("opposite") or ""
        )
        ask = action_button(
            "Ask again",
            lambda _: on_edited(*(typed(field) for field in (self.yes, self.no))),
            size="small",
        )
        fields = stack(self.yes, self.no, ask, visible=False)
        edit = action_button(
            "Edit",
            lambda _: fields.param.update(visible=not fields.visible),
            variant="text",
            size="small",
        )
        line = pmui.Typography(escape_markdown(read_as_text(decision)), sx={"fontSize": TEXT})
        self._box = stack(pn.FlexBox(line, edit, align_items="center"), fields)
