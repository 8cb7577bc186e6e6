"""Texts of people, data and the address, cut short, and escaped so that they are not read as Markdown."""

from __future__ import annotations

import re

_MARKS = {mark: f"\\{mark}" for mark in "\\`*_[]#|~"} | {"<": "&lt;", "&": "&amp;"}
_ESCAPES = str.maketrans(_MARKS)
#: What makes a list, a quotation or a heading of the line that it begins.
_BEGINS = re.compile(r"^(\d*)([-+=>:.)])")


def cut(text: str, most: int) -> str:
    """Return a text of at most some characters; one that is longer ends with an ellipsis.

    >>> cut("abcdef", 6), cut("abcdefg", 6)
    ('abcdef', 'abcde…')
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"


def escape_markdown(text: str) -> str:
    r"""Return a text as Markdown that shows it as it is, on one line.

    >>> escape_markdown("1. **now** <b>")
    '1\\. \\*\\*now\\*\\* &lt;b>'
    """
    return _BEGINS.sub(r"\1\\\2", " ".join(text.split()).translate(_ESCAPES))
