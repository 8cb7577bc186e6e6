"""Queries read from JSON Lines: each checked in full, in the form in which it is stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from steelyard import errors
from steelyard.datasets.canonical import compact_json
from steelyard.datasets.findings import Findings
from steelyard.datasets.lines import MAX_LINE_BYTES, split_lines
from steelyard.datasets.rows import read_task
from steelyard.datasets.tasks import Task
from steelyard.decisions.tokens import TokenCounter, count_input_tokens
from steelyard.decisions.validation import decisions_of
from steelyard.errors import InvalidRequestError, Violation
from steelyard.labeling.wire import SourceRowInput
from steelyard.wire.json_values import check_json, decode_json
from steelyard.wire.payloads import check_shape
from steelyard.wire.violations import BODY, Violations

_PART = "rows"


@dataclass(frozen=True, slots=True)
class SourceRows:
    """The rows of a source as they are stored, and as a teacher reads them.

    ``tokens`` are those of contexts and of the rows' own decisions; ``n_open`` rows have none.
    """

    rows: list[str]
    tokens: int
    n_open: int


def read_source(chunks: Iterable[bytes], counter: TokenCounter, *, max_rows: int) -> SourceRows:
    """Read the rows of an upload, or refuse it with everything that is wrong in it."""
    reader = _Reader(counter)
    findings = Findings()
    n_lines = 0
    for number, line, _ in split_lines(chunks):
        if line is not None and (not line or line.isspace()):
            continue
        n_lines += 1
        if n_lines > max_rows:
            raise errors.TooManyLinesError(
                f"There are over {max_rows} rows, which is the most; send fewer."
            )
        if line is None:
            message = f"The row is over {MAX_LINE_BYTES} bytes; send shorter ones."
            findings.add(_PART, number, [Violation((), message, "too_long")])
            continue
        wrong = reader.take(line)
        if wrong:
            findings.add(_PART, number, wrong)
    error = findings.error()
    if error is not None:
        raise error
    if not reader.rows:
        raise errors.NoRowsError("There are no rows; send at least one.")
    return SourceRows(reader.rows, reader.tokens, reader.n_open)


def decisions_json(decisions: list[dict[str, Any]]) -> str:
    """Return the decisions of a job in the form in which they are stored, or refuse them."""
    violations = Violations()
    given = [
        {name: value for name, value in decision.items() if value is not None}
        for decision in decisions
    ]
    task = _read_task(given, violations)
    violations.raise_if_any()
    assert task is not None  # noqa: S101  refused otherwise
    return task.json


def count_tokens(counter: TokenCounter, decisions: str) -> int:
    """Count the input tokens of decisions, as they are stored."""
    return count_input_tokens(counter, "", decisions_of(decisions))


class _Reader:
    def __init__(self, counter: TokenCounter) -> None:
        self.rows: list[str] = []
        self.tokens = 0
        self.n_open = 0
        self._counter = counter
        self._task_tokens: dict[str, int] = {}

    def take(self, line: bytes) -> list[Violation]:
        """Take a row, or return its problem; paths start at the row."""
        violations = Violations()
        try:
            value = decode_json(line)
            check_json(value, violations)
            if not violations:
                check_shape(value, SourceRowInput, violations, BODY)
            if not violations:
                self._take(value, violations)
        except InvalidRequestError as error:
            # Bytes that are no JSON: the one thing that stops the reading of a row.
            return [_of_row(violation) for violation in error.violations]
        return [_of_row(violation) for violation in violations.listed]

    def _take(self, value: Mapping[str, Any], violations: Violations) -> None:
        sent = {name: item for name, item in value.items() if item is not None}
        row = {"context": sent["context"]}
        tokens = count_input_tokens(self._counter, sent["context"], ())
        if "decisions" in sent:
            task = _read_task(sent["decisions"], violations)
            if task is None:
                return
            if task.json not in self._task_tokens:
                self._task_tokens[task.json] = count_tokens(self._counter, task.json)
            tokens += self._task_tokens[task.json]
            row["decisions"] = sent["decisions"]
        if "metadata" in sent:
            row["metadata"] = sent["metadata"]
        self.rows.append(compact_json(row))
        self.tokens += tokens
        self.n_open += "decisions" not in sent


def _read_task(decisions: list[Any], violations: Violations) -> Task | None:
    task, _ = read_task({"decisions": decisions}, violations)
    return task


def _of_row(violation: Violation) -> Violation:
    message = violation.message
    if len(violation.path) == 1:
        message = "The row" + message.removeprefix("The request body")
    return Violation(violation.path[1:], message, violation.type)
