"""A wording before and after: words that went, and words that came."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from html import escape

import panel as pn
from panel.viewable import Viewable

from steelyard.prompt_tuning.wire import PartChange

_CELL = "text-align:left;vertical-align:top;padding:0.35em 0.8em 0.35em 0"
_GONE = "background:rgba(213,94,0,0.18);text-decoration:line-through"
_NEW = "background:rgba(0,158,115,0.2);text-decoration:none;font-weight:600"


def changed_words(before: str, after: str) -> str:
    """Return HTML of a text whose changed words are marked as deleted and inserted.

    Examples
    --------
    >>> changed_words("Is it paid?", "Is it settled?").count("<del")
    1
    """
    old, new = (re.findall(r"\s+|[\w']+|[^\w\s]", text) for text in (before, after))
    shown = []
    for kind, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            shown.append(escape("".join(old[i:j])))
            continue
        if j > i:
            shown.append(f'<del style="{_GONE}">{escape("".join(old[i:j]))}</del>')
        if m > k:
            shown.append(f'<ins style="{_NEW}">{escape("".join(new[k:m]))}</ins>')
    return "".join(shown)


def show_changes(changes: Sequence[PartChange]) -> Viewable:
    """Show the parts of a wording that changed, as one text each with what went and what came."""
    rows = "".join(
        f'<tr><th scope="row" style="{_CELL};width:14em">{escape(_part_name(change.part))}</th>'
        f'<td style="{_CELL};overflow-wrap:anywhere">{changed_words(change.before, change.after)}</td></tr>'
        for change in changes
    )
    return pn.pane.HTML(
        f'<table aria-label="Wording before and after" style="width:100%"><tbody>{rows}</tbody></table>',
        sizing_mode="stretch_width",
    )


def _part_name(part: str) -> str:
    kind, _, name = part.partition(":")
    return f"{kind} {name}" if name else kind
