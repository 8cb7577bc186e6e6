"""Texts of people, data and the address, escaped so that they are not read as Markdown."""

from __future__ import annotations

import re

_MARKS = {mark: f"\\{mark}" for mark in "\\`*_[]#|~"} | {"<": "&lt;", "&": "&amp;"}
_ESCAPES = str.maketrans(_MARKS)
#: What makes a list, a quotation or a heading of the line that it begins.
_BEGINS = re.compile(r"^(\d*)([-+=>:.)])")


def escape_markdown(text: str) -> str:
    r"""Return a text as Markdown that shows it as it is, on one line.

    >>> escape_markdown("1. **now** <b>")
    '1\\. \\*\\*now\\*\\* &lt;b>'
    """
    return _BEGINS.sub(r"\1\\\2", " ".join(text.split()).translate(_ESCAPES))
