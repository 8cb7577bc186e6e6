"""Cells of CSV that spreadsheets show as they are.

A spreadsheet runs a cell that begins with ``=``, ``+``, ``-`` or ``@`` as a formula, and a context is
whatever a stranger wrote. Such a text is written with an apostrophe before it, which spreadsheets take
for "this is a text", and is read back without it.
"""

from __future__ import annotations

import re

#: What begins a formula, the wide forms of East Asian keyboards too; and what reads as no text at all.
_GUARDED = re.compile(r"'*(?:[=+\-@\t\r\n＝＋－＠]|\s*\Z)")  # noqa: RUF001


def guard(text: str) -> str:
    """Return a text that no spreadsheet runs.

    >>> guard("=1+1"), guard("'=1+1"), guard("1 = 1"), guard("")
    ("'=1+1", "''=1+1", '1 = 1', '')
    """
    return f"'{text}" if text and _GUARDED.match(text) else text


def unguard(cell: str) -> str:
    """Return the text that ``guard`` made a cell of.

    >>> unguard("'=1+1"), unguard("'tis"), unguard("' ")
    ('=1+1', "'tis", ' ')
    """
    return cell[1:] if cell.startswith("'") and _GUARDED.match(cell) else cell
