"""Two wordings with the words marked that went and that came."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from html import escape

from steelyard_workbench.kit.theme import token

_GONE = f"color:{token('bad')};background:{token('bad-tint')};text-decoration:line-through"
_NEW = f"color:{token('good')};background:{token('good-tint')};text-decoration:none;font-weight:600"


def changed_words(before: str, after: str) -> str:
    """Return HTML of a text whose changed words are marked as deleted and inserted.

    >>> changed_words("Is it paid?", "Is it settled?").count("<del")
    1
    """
    return "".join(
        escape(new) if old == new else _marked("del", old) + _marked("ins", new)
        for old, new in _pieces(before, after)
    )


def changed_sides(before: str, after: str) -> tuple[str, str]:
    """Return HTML of both texts: removed words are marked in the first, new ones in the second.

    >>> [side.count("<ins") for side in changed_sides("Is it paid?", "Is it settled?")]
    [0, 1]
    """
    pieces = list(_pieces(before, after))
    return (
        "".join(escape(old) if old == new else _marked("del", old) for old, new in pieces),
        "".join(escape(new) if old == new else _marked("ins", new) for old, new in pieces),
    )


def _pieces(before: str, after: str) -> Iterator[tuple[str, str]]:
    """Return the stretches of both texts in order, equal ones and changed ones."""
    old, new = (re.findall(r"\s+|[\w']+|[^\w\s]", text) for text in (before, after))
    for _, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        yield "".join(old[i:j]), "".join(new[k:m])


def _marked(tag: str, text: str) -> str:
    style = _GONE if tag == "del" else _NEW
    return f'<{tag} style="{style}">{escape(text)}</{tag}>' if text else ""
