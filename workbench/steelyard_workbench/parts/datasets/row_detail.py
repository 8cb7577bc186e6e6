"""One row in full: its context, and the question and label of each decision."""

from __future__ import annotations

from html import escape

import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.client.answers import labels_of
from steelyard.datasets.wire import Example
from steelyard_workbench.kit.basics import html_pane, small_text, stack
from steelyard_workbench.kit.theme import token
from steelyard_workbench.kit.views import heading, table
from steelyard_workbench.kit.words import counted, escape_markdown
from steelyard_workbench.parts.datasets.questions import as_text, questions_of

_TEXT = (
    "white-space:pre-wrap;overflow-wrap:anywhere;max-height:22em;overflow:auto;unicode-bidi:plaintext;"
    f"padding:12px;border:1px solid {token('line')};border-radius:8px;background:{token('surface')}"
)


def show_row(index: int, side: str, row: Example) -> Viewable:
    """Show a row; ``index`` is its place in the dataset, from 0."""
    labels = labels_of(row)
    word = "target" if isinstance(row.targets, dict) else "reward"
    views: list[Viewable] = [
        heading(f"Row {index:,}", 2),
        small_text(f"For {side}, {counted(len(row.decisions), 'decision')}"),
        html_pane(
            f'<div tabindex="0" role="region" aria-label="Text" style="{_TEXT}">'
            f"{escape(as_text(row.context))}</div>"
        ),
    ]
    for question in questions_of(row.decisions):
        expected = labels.get(question.id, {})
        rows = [
            (outcome, _value(expected, outcome), meaning)
            for outcome, meaning in zip(question.outcomes, question.descriptions, strict=True)
        ]
        views += [
            pmui.Typography(
                f"**{escape_markdown(question.id)}**: {escape_markdown(question.text)}",
                variant="body1",
            ),
            table(("answer", word, "means"), rows, label=f"Labels of {question.id}", numbers=(1,)),
        ]
    if isinstance(row.metadata, dict) and row.metadata:
        rows_of = [(name, as_text(value)) for name, value in row.metadata.items()]
        views.append(table(("metadata", "value"), rows_of, label="Metadata"))
    return stack(*views)


def _value(label: dict[str, float], outcome: str) -> str:
    """Return a label's value for an outcome; a target that is not there is 0."""
    if not label:
        return "no label"
    value = label.get(outcome)
    return "" if value is None or value == 0 else f"{value:g}"
