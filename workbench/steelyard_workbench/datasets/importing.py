"""A file of rows, looked at whole before any of it is sent to be kept."""

from __future__ import annotations

import re
from dataclasses import dataclass

from steelyard.client import Client
from steelyard.client.dataset_calls import check_rows
from steelyard.client.row_sources import pieces_of, shift_lines
from steelyard_workbench.escaping import escape_markdown

#: Problems that are listed; the rest is counted.
SHOWN_PROBLEMS = 100
_EMPTY_CONTEXT = re.compile(rb'"context"\s*:\s*"\s*"')


@dataclass(frozen=True, slots=True)
class FileCheck:
    """What is in a file.

    Parameters
    ----------
    method : {"sft", "reward"} or None
        What its rows are labelled with; ``None`` when none is good.
    """

    lines: int
    good: int
    n_problems: int
    problems: tuple[str, ...]
    method: str | None

    @property
    def is_good(self) -> bool:
        """Whether all of it can be imported."""
        return self.n_problems == 0 and self.good > 0


def check_file(client: Client, data: bytes) -> FileCheck:
    """Look at every row of a file; nothing is stored.

    Raises
    ------
    steelyard.errors.SteelyardError
        When the server cannot look.
    """
    lines = good = n_problems = 0
    messages: list[str] = []
    methods: set[str] = set()
    for piece in pieces_of(data):
        checked = client.send(check_rows({"examples": piece.data}))
        lines += checked.lines
        good += checked.rows
        n_problems += checked.problems
        if checked.method is not None:
            methods.add(checked.method)
        details = shift_lines(checked.details, piece.start)
        if checked.code is not None and not details and checked.message:
            n_problems += not checked.problems
            details = [{"message": checked.message}]
        messages += [str(detail.get("message", detail)) for detail in details]
    if len(methods) > 1:
        n_problems += 1
        messages.insert(0, "Some rows have targets and others rewards; a dataset has one of them.")
    method = methods.pop() if len(methods) == 1 else None
    return FileCheck(lines, good, n_problems, tuple(messages[:SHOWN_PROBLEMS]), method)


def name_of(filename: str) -> str:
    """Return the name that a dataset of a file would have.

    Examples
    --------
    >>> name_of("support_triage.jsonl")
    'support_triage'
    """
    return filename.rpartition(".")[0] or filename


def remarks_on(data: bytes) -> str:
    """Return in words what of a file may be meant otherwise: lines that are twice, empty contexts."""
    lines = [line for line in data.splitlines() if line.strip()]
    remarks = []
    if n_twice := len(lines) - len(set(lines)):
        remarks.append(
            "1 line is there already, and is left out."
            if n_twice == 1
            else f"{n_twice:,} lines are there already, and are left out."
        )
    if n_empty := sum(_EMPTY_CONTEXT.search(line) is not None for line in lines):
        remarks.append(
            "1 row has an empty context."
            if n_empty == 1
            else f"{n_empty:,} rows have an empty context."
        )
    return " ".join(remarks)


def problem_text(check: FileCheck) -> str:
    """Return, as Markdown, how much is wrong and what."""
    head = (
        f"**{check.n_problems:,} problem{'' if check.n_problems == 1 else 's'} in {check.lines:,} "
        f"line{'' if check.lines == 1 else 's'}. Nothing was stored.** Correct the file and choose "
        "it again."
    )
    listed = "\n".join(f"- {escape_markdown(problem)}" for problem in check.problems)
    rest = check.n_problems - len(check.problems)
    more = f"\n\n… and {rest:,} more." if rest > 0 else ""
    return f"{head}\n\n{listed}{more}"
