"""Text made safe for a terminal: a caller's words must not move the cursor or hide others."""

from __future__ import annotations

import sys
import unicodedata

#: Categories that move the cursor, reorder or hide text, or have no form of their own.
_UNPRINTABLE = {"Cc", "Cf", "Co", "Cn", "Cs"}
#: The joiners that some scripts, and emoji, are written with.
_JOINERS = {"\u200c", "\u200d"}


def printable(text: str) -> str:
    r"""Return the text with a mark in place of each control character.

    >>> printable("a\x1b[31mb") == "a\N{REPLACEMENT CHARACTER}[31mb"
    True
    """
    return "".join(
        "\N{REPLACEMENT CHARACTER}"
        if unicodedata.category(letter) in _UNPRINTABLE and letter not in _JOINERS
        else letter
        for letter in text
    )


def write_any_text() -> None:
    """Make the output stream accept any text: what its encoding lacks is escaped.

    JSON is written as bytes, in UTF-8 whatever the stream's encoding.
    """
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
