"""Problems in sent rows, line by line, and the refusal made of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from steelyard.errors import PathStep, SteelyardError, Violation, error_classes

#: The most findings that are listed; all are counted.
MAX_LISTED = 100

#: Codes of errors of rows. The first that any finding has is the error's.
FindingCode = Literal["invalid_csv", "invalid_example", "supervision_mismatch", "task_mismatch"]
_PRECEDENCE: tuple[FindingCode, ...] = (
    "invalid_csv",
    "invalid_example",
    "supervision_mismatch",
    "task_mismatch",
)


@dataclass(frozen=True, slots=True)
class RowFinding:
    """One thing wrong with one line."""

    part: str
    line: int
    path: tuple[PathStep, ...]
    message: str
    type: str
    code: FindingCode = "invalid_example"

    def violation(self) -> Violation:
        """Return its wire form: the line counts from 0 in its path, from 1 in its message."""
        path = ("body", self.part, self.line - 1, *self.path)
        return Violation(path, f"Line {self.line}: {self.message}", self.type)


class Findings:
    """Everything found: the first ``MAX_LISTED`` and the number of all."""

    def __init__(self) -> None:
        self.listed: list[RowFinding] = []
        self.n_found = 0
        self._codes: set[FindingCode] = set()

    @property
    def is_full(self) -> bool:
        """Whether further findings are only counted."""
        return len(self.listed) >= MAX_LISTED

    def add(
        self,
        part: str,
        line: int,
        violations: Iterable[Violation],
        code: FindingCode = "invalid_example",
    ) -> None:
        """Note a problem of a line; paths start at the row."""
        for violation in violations:
            self.n_found += 1
            self._codes.add(code)
            if not self.is_full:
                self.listed.append(
                    RowFinding(part, line, violation.path, violation.message, violation.type, code)
                )

    def error(self) -> SteelyardError | None:
        """Return the error that all of it makes; ``None`` when nothing was found."""
        if not self.n_found:
            return None
        code = next(code for code in _PRECEDENCE if code in self._codes)
        first = next((finding for finding in self.listed if finding.code == code), self.listed[0])
        message = first.violation().message
        if self.n_found > 1:
            listed = "" if self.n_found <= MAX_LISTED else f" (the first {MAX_LISTED} are listed)"
            message += f" {self.n_found} problems were found in all{listed}; see details."
        details = [finding.violation().body() for finding in self.listed]
        return error_classes()[code](message, details=details)
