"""A wording before and after: words that went, and words that came."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from panel.viewable import Viewable

from steelyard.prompt_tuning.wire import PartChange
from steelyard_workbench.kit.basics import html_pane
from steelyard_workbench.kit.components.changed_words import changed_words

_CELL = "text-align:left;vertical-align:top;padding:0.35em 0.8em 0.35em 0"


def show_changes(changes: Sequence[PartChange]) -> Viewable:
    """Show the changed parts of a wording, as one text each with removed and new words."""
    rows = "".join(
        f'<tr><th scope="row" style="{_CELL};width:14em">{escape(_part_name(change.part))}</th>'
        f'<td style="{_CELL};overflow-wrap:anywhere">{changed_words(change.before, change.after)}</td></tr>'
        for change in changes
    )
    return html_pane(
        f'<table aria-label="Wording before and after" style="width:100%"><tbody>{rows}</tbody></table>'
    )


def _part_name(part: str) -> str:
    kind, _, name = part.partition(":")
    return f"{kind} {name}" if name else kind
