"""The guidelines of decisions, rendered: what reviewers and judges go by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import panel as pn
import panel_material_ui as pmui

from steelyard_workbench.kit.basics import Boxed
from steelyard_workbench.kit.components.plain_markdown import leave_out
from steelyard_workbench.kit.theme import TEXT
from steelyard_workbench.kit.words import escape_markdown

#: A heading in a guideline is one of the page's smallest.
_CSS = f"""
:host {{ font-size: {TEXT}; overflow-wrap: anywhere; }}
h1, h2, h3, h4, h5, h6 {{ font-size: {TEXT}; margin: 1em 0 0; }}
code {{ color: inherit; }}
"""


def guideline_text(decisions: Iterable[Mapping[str, Any]]) -> str:
    r"""Return the guidelines of decisions as one Markdown text, each once, under the ids that have it.

    >>> guideline_text([{"id": "team", "guideline": "Ask *Ann*."}, {"id": "late"}])
    'Ask *Ann*.'
    >>> guideline_text([{"id": "a", "guideline": "One."}, {"id": "b", "guideline": "Two."}])
    '**a**\n\nOne.\n\n**b**\n\nTwo.'
    """
    ids_by_text: dict[str, list[str]] = {}
    for decision in decisions:
        if text := decision.get("guideline"):
            ids_by_text.setdefault(text, []).append(escape_markdown(str(decision["id"])))
    if len(ids_by_text) < 2:
        return "".join(ids_by_text)
    return "\n\n".join(f"**{', '.join(ids)}**\n\n{text}" for text, ids in ids_by_text.items())


class Guidelines(Boxed):
    """The guidelines of some decisions, to be folded; nothing where they have none."""

    def __init__(self) -> None:
        super().__init__()
        self._text = pn.pane.Markdown(
            "", plugins=[leave_out], stylesheets=[_CSS], sizing_mode="stretch_width"
        )
        self._box = pmui.Accordion(
            ("Guideline", self._text),
            active=[0],
            visible=False,
            title_variant="body1",
            disable_gutters=True,
            margin=(6, 10),
            sizing_mode="stretch_width",
        )

    def show(self, decisions: Iterable[Mapping[str, Any]]) -> Guidelines:
        """Show the guidelines of other decisions; it stays folded where it was."""
        text = guideline_text(decisions)
        if text != self._text.object:
            self._text.object = text
            self._box.visible = bool(text)
        return self
