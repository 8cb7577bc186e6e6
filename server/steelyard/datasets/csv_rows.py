"""Rows of a dataset as CSV: a context and, by decision, the name of the right outcome."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from steelyard.datasets.ingest import BATCH_ROWS, RowReader
from steelyard.datasets.labels import Labels, read_labels
from steelyard.datasets.lines import MAX_LINE_BYTES, NOT_UTF_16, is_utf_16, split_lines
from steelyard.datasets.rows import Row, make_row, read_task
from steelyard.datasets.tasks import Task
from steelyard.errors import Violation
from steelyard.imports.delimited import split_records, wrong_characters
from steelyard.imports.table import Refused
from steelyard.wire.violations import Violations, show

#: The name of the first column.
CONTEXT_COLUMN = "context"
#: Characters of a cell.
_MAX_CELL = 131_072
_TOO_LONG = f"A cell has over {_MAX_CELL} characters; send such rows as JSON Lines."
#: What else separates the columns of files that are called CSV.
_SEPARATORS = {";": "semicolons", "\t": "tabs"}
#: What stands for a line over the bound; no text has it, and no byte becomes it.
_LEFT_OUT = "\ud800"
_WRONG = re.compile("[\0\ud800-\udfff]")
#: Names that a message lists.
_MOST_LISTED = 5


class CsvReader:
    """Reads CSV whose first line is ``context`` and ids of the dataset's decisions.

    A cell names the right outcome; a blank one leaves its decision out of the row. A quoted cell
    may hold line breaks, commas and doubled quotes. All findings are reasons for ``invalid_csv``.
    """

    def __init__(
        self,
        rows: RowReader,
        decisions: Mapping[str, Mapping[str, Any]],
        refused: Mapping[str, str] | None = None,
    ) -> None:
        self._rows = rows
        self._decisions = decisions
        self._refused = refused or {}
        self._tasks: dict[tuple[str, ...], Task] = {}
        self._labels: dict[tuple[tuple[str, str], ...], Labels | list[Violation]] = {}

    def read(
        self,
        chunks: Iterable[bytes],
        part: str = "examples",
        *,
        max_line_bytes: int = MAX_LINE_BYTES,
    ) -> Iterator[list[Row]]:
        """Read a file, cut anywhere."""
        rows = self._read(self._records(chunks, part, max_line_bytes), part)
        while batch := list(islice(rows, BATCH_ROWS)):
            yield batch

    def _records(
        self, chunks: Iterable[bytes], part: str, max_line_bytes: int
    ) -> Iterator[tuple[int, list[str]]]:
        """Yield every record that can be parsed; the others become findings."""
        for record in split_records(self._texts(chunks, part, max_line_bytes)):
            if isinstance(record, Refused):
                self._note(part, record.line, record.reason, "invalid_csv")
                continue
            start, cells = record
            text = "".join(cells)
            if (wrong := _WRONG.search(text)) is not None:
                line = start + text.count("\n", 0, wrong.start())
                if wrong[0] == _LEFT_OUT:
                    message = f"The line is over {max_line_bytes} bytes; send shorter ones."
                    self._note(part, line, message, "too_long")
                elif wrong[0] == "\0":
                    self._note(part, line, "The line has a NUL byte; send text.", "nul")
                else:
                    self._note(part, line, wrong_characters(cells), "invalid_utf8")
            elif len(text) > _MAX_CELL and any(len(cell) > _MAX_CELL for cell in cells):
                self._note(part, start, _TOO_LONG, "invalid_csv")
            else:
                yield start, cells

    def _texts(self, chunks: Iterable[bytes], part: str, max_line_bytes: int) -> Iterator[str]:
        for number, line, _ in split_lines(chunks, max_line_bytes):
            if number == 1 and line is not None and is_utf_16(line):
                self._note(part, number, NOT_UTF_16, "invalid_utf8")
                return
            yield f"{_LEFT_OUT if line is None else line.decode(errors='surrogateescape')}\n"

    def _note(self, part: str, line: int, message: str, type_: str) -> None:
        if self._rows.count_line():
            self._rows.findings.add(part, line, [Violation((), message, type_)], "invalid_csv")

    def _read(self, records: Iterator[tuple[int, list[str]]], part: str) -> Iterator[Row]:
        columns: list[str] | None = None
        for line, cells in records:
            if columns is None:
                violations = self._check_header(cells)
                if violations:
                    self._rows.findings.add(part, line, violations, "invalid_csv")
                    return
                columns = [cell.strip() for cell in cells]
                continue
            if not self._rows.count_line():
                return
            row = self._row(line, cells, columns)
            if not isinstance(row, Row):
                self._rows.findings.add(part, line, row, "invalid_csv")
            elif self._rows.accept(row, part) is not None:
                yield row

    def _check_header(self, cells: Sequence[str]) -> list[Violation]:
        columns = [cell.strip() for cell in cells]
        violations: list[Violation] = []
        for sign, name in _SEPARATORS.items():
            if len(columns) == 1 and sign in columns[0]:
                message = f"The columns are separated by {name}; separate them by commas."
                return [Violation((0,), message, "invalid_csv")]
        unknown: dict[int, str] = {}
        if columns[0] != CONTEXT_COLUMN:
            message = f"The first column is {show(columns[0])}; name it {CONTEXT_COLUMN}."
            violations.append(Violation((0,), message, "missing"))
        if len(columns) == 1:
            message = (
                "The first line names no decision; add a column per decision, named by its id."
            )
            violations.append(Violation((1,), message, "missing"))
        for index, column in enumerate(columns[1:], 1):
            if column in columns[:index]:
                message = f"The column {show(column)} is there twice; name each decision once."
                violations.append(Violation((index,), message, "duplicate"))
            elif column in self._refused:
                violations.append(Violation((index,), self._refused[column], "unsupported"))
            elif column not in self._decisions:
                unknown[index] = column
        if unknown:
            violations.append(
                Violation((next(iter(unknown)),), self._say_unknown(unknown), "unknown")
            )
        return violations

    def _say_unknown(self, unknown: Mapping[int, str]) -> str:
        """Return one message for all columns that are no decisions."""
        ids = _listed(self._decisions)
        if len(unknown) == 1:
            [column] = unknown.values()
            return (
                f"The column {show(column)} is not a decision of the dataset; use its ids: {ids}."
            )
        return (
            f"{len(unknown)} columns are not decisions of the dataset: "
            f"{_listed(unknown.values())}. Use its ids: {ids}; leave out the other columns."
        )

    def _row(self, line: int, cells: list[str], columns: list[str]) -> Row | list[Violation]:
        if len(cells) != len(columns):
            has = f"The row has {len(cells)} cells, and the first line has {len(columns)}"
            return [Violation((), f"{has}; give one per column.", "length_mismatch")]
        chosen = tuple(
            (id_, cell) for id_, cell in zip(columns[1:], cells[1:], strict=True) if cell.strip()
        )
        if not chosen:
            return [Violation((), "The row names no outcome; fill at least one cell.", "missing")]
        labels = self._labels.get(chosen)
        if labels is None:
            labels = self._labels[chosen] = self._read_labels(chosen)
            if len(self._labels) > BATCH_ROWS:
                self._labels.clear()
        if isinstance(labels, list):
            return labels
        return make_row(line, cells[0], self._task(tuple(id_ for id_, _ in chosen)), labels)

    def _read_labels(self, chosen: tuple[tuple[str, str], ...]) -> Labels | list[Violation]:
        outcomes = self._task(tuple(id_ for id_, _ in chosen)).outcomes
        # A name may have blanks around it that a spreadsheet added; one that is right as it is wins.
        named = {id_: cell if cell in outcomes[id_] else cell.strip() for id_, cell in chosen}
        violations = Violations()
        labels = read_labels("targets", named, dict(outcomes), violations)
        if labels is not None:
            return labels
        return [
            Violation((str(v.path[2]),), v.message.removeprefix("targets."), v.type)
            for v in violations.listed
        ]

    def _task(self, ids: tuple[str, ...]) -> Task:
        task = self._tasks.get(ids)
        if task is None:
            violations = Violations()
            task, _ = read_task(
                {"decisions": [dict(self._decisions[id_]) for id_ in ids]}, violations
            )
            if task is None:
                # They were validated when the dataset took them.
                violations.raise_if_any()
                raise ValueError(f"The dataset's decisions {ids} cannot be read.")
            if len(self._tasks) >= BATCH_ROWS:
                self._tasks.clear()  # cells filled anew in every row: nothing comes again
            self._tasks[ids] = task
        return task


def _listed(names: Collection[str]) -> str:
    shown = ", ".join(show(name) for name in islice(names, _MOST_LISTED))
    rest = len(names) - _MOST_LISTED
    return f"{shown} and {rest} more" if rest > 0 else shown
