"""Rows that have their decisions already: JSON Lines, sent as they are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from steelyard.client.packed_lines import PackedLines
from steelyard.imports.encodings import Source, find_encoding
from steelyard.imports.objects import json_lines
from steelyard.imports.tables import Refused


def read_lines(
    source: Source, encoding: str | None = None
) -> tuple[PackedLines, list[Refused], str]:
    """Return the objects of JSON Lines as UTF-8, what is none, and what the file is.

    Values are as they are written. Lines that are left out stay as empty ones, so that a server
    counts the lines of the file.
    """
    opened = find_encoding(source, encoding)
    lines, refused = PackedLines(), list[Refused]()
    for row in json_lines(source, opened, is_raw=True):
        number = row.line if isinstance(row, Refused) else row[0]
        while len(lines) < number - 1:
            lines.append(b"\n")
        if isinstance(row, Refused):
            refused.append(row)
        else:
            lines.append(msgspec.json.encode(row[1]) + b"\n")
    return lines, refused, f"JSON Lines, {opened.name}"


class RefusedLines:
    """Collects the rows of JSON Lines that a server refuses: ``on_refused`` of ``datasets.create``."""

    def __init__(self) -> None:
        self._reasons: dict[int, list[str]] = {}

    def __call__(self, _: str, line: int, problem: Mapping[str, Any]) -> None:
        """Note a problem of a row."""
        _, _, reason = str(problem.get("message", "")).partition(": ")
        self._reasons.setdefault(line, []).append(reason)

    def rows(self, lines: Sequence[bytes]) -> list[Refused]:
        """Return the rows that were refused, of the lines that were sent."""
        return [
            Refused(line + 1, " ".join(reasons), (lines[line].decode().rstrip("\n"),))
            for line, reasons in sorted(self._reasons.items())
        ]
