"""Streams of rows read, each row checked in full, in memory that the length does not change.

Rows of a dataset mostly ask the same decisions and often have the same labels. Each is checked once
and then known by its bytes, so that a row costs one typed decoding, two look-ups and two hashes.
Any other row is read again slowly, and there everything wrong with it is found.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Raw, Struct

from steelyard.datasets.findings import Findings
from steelyard.datasets.labels import Labels, Supervision, read_labels
from steelyard.datasets.lines import MAX_LINE_BYTES, NOT_UTF_16, is_utf_16, split_lines
from steelyard.datasets.rows import EXTRA_FIELDS, Row, make_row, read_row, read_task
from steelyard.datasets.tasks import Task
from steelyard.datasets.wire import RowInput
from steelyard.decisions.validation import check_model_names
from steelyard.errors import (
    InvalidRequestError,
    NoRowsError,
    SteelyardError,
    TooManyLinesError,
    Violation,
)
from steelyard.wire.decoding import decoder_of
from steelyard.wire.json_values import check_json, decode_json
from steelyard.wire.payloads import check_shape
from steelyard.wire.violations import BODY, Violations, show

#: How many rows are handed on at a time.
BATCH_ROWS = 8192
#: Decisions and labels are known by their bytes up to this many of them.
_CACHED_BYTES = 32 * 1024 * 1024
_ABSENT = Raw(b"")
_QUOTE = ord('"')
# Of a row with context, decisions and labels: its braces, its commas, and its keys with colons.
_FRAME_BYTES = len('{"context":,"decisions":,"targets":}')
# The shortest field that could be there twice, with its comma.
_SHORTEST_FIELD_BYTES = len(',"model":0')


class _SentRow(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A row cut into its fields; none is looked into."""

    context: Raw
    decisions: Raw
    targets: Raw = _ABSENT
    rewards: Raw = _ABSENT
    images: Raw = _ABSENT
    model: Raw = _ABSENT
    fallback: Raw = _ABSENT
    temperature: Raw = _ABSENT
    independent: Raw = _ABSENT
    store: Raw = _ABSENT
    metadata: Raw = _ABSENT


_decode_row = decoder_of(_SentRow).decode
_decode_text = decoder_of(str).decode
_DECODE_ERRORS = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)


class _KnownTask:
    """A task that was checked, and the labels that were checked with it."""

    __slots__ = ("labels", "mismatches", "task")

    def __init__(self, task: Task, mismatches: list[Violation]) -> None:
        self.task = task
        self.mismatches = mismatches
        self.labels: dict[bytes, Labels] = {}


class RowReader:
    """Reads the rows of one request, from one part or several."""

    def __init__(
        self,
        *,
        supervision: Supervision | None = None,
        definitions: Mapping[str, Collection[bytes]] | None = None,
        max_lines: int | None = None,
        max_line_bytes: int = MAX_LINE_BYTES,
    ) -> None:
        self.findings = Findings()
        self.supervision = supervision
        self.n_lines = 0
        self.n_rows = 0
        self._definitions = definitions
        self._max_lines = max_lines
        self._max_line_bytes = max_line_bytes
        self._has_too_many = False
        self._tasks: dict[bytes, _KnownTask] = {}
        self._n_cached_bytes = 0

    def error(self) -> SteelyardError | None:
        """Return why the rows read so far are not taken; ``None`` when they are."""
        if self._has_too_many:
            return TooManyLinesError(
                f"There are over {self._max_lines} rows, which is the most; send fewer."
            )
        error = self.findings.error()
        if error is None and self.n_rows == 0:
            return NoRowsError("There are no rows; send at least one.")
        return error

    def read_ndjson(self, chunks: Iterable[bytes], part: str = "examples") -> Iterator[list[Row]]:
        """Read JSON Lines."""
        return _batched(self._ndjson_rows(chunks, part))

    def read_examples(
        self, items: Iterable[bytes | Raw | Mapping[str, Any]], part: str = "examples"
    ) -> Iterator[list[Row]]:
        """Read the rows of a JSON array, each as its JSON or as plain Python values."""
        return _batched(self._example_rows(items, part))

    def count_line(self) -> bool:
        """Count a line with something on it; tell whether it may still be read."""
        if self._max_lines is not None and self.n_lines >= self._max_lines:
            self._has_too_many = True
            return False
        self.n_lines += 1
        return True

    def accept(self, row: Row, part: str, mismatches: list[Violation] | None = None) -> Row | None:
        """Take a valid row unless it has other supervision, or asks other decisions, than it may."""
        given = row.labels.supervision
        if self.supervision is None:
            self.supervision = given
        if given != self.supervision:
            message = f"{given} is given, and other rows have {self.supervision}; use one of them."
            violation = Violation((given,), message, "supervision_mismatch")
            self.findings.add(part, row.line, [violation], "supervision_mismatch")
            return None
        if mismatches is None:
            mismatches = self.compare_task(row.task)
        if mismatches:
            self.findings.add(part, row.line, mismatches, "task_mismatch")
            return None
        self.n_rows += 1
        return row

    def compare_task(self, task: Task) -> list[Violation]:
        """Return the differences between a task's decisions and those of the dataset."""
        if self._definitions is None:
            return []
        mismatches = []
        for index, decision in enumerate(task.decisions):
            known = self._definitions.get(decision.id)
            if known is None:
                predicate = "is not a decision of the dataset; ask only its own."
            elif decision.fingerprint not in known:
                predicate = "is worded differently in the dataset; send its wording."
            else:
                continue
            message = f"decisions[{index}] {show(decision.id)} {predicate}"
            mismatches.append(Violation(("decisions", index), message, "task_mismatch"))
        return mismatches

    def _ndjson_rows(self, chunks: Iterable[bytes], part: str) -> Iterator[Row]:
        for number, line, is_ended in split_lines(chunks, self._max_line_bytes):
            if line is not None and (not line or line.isspace()):
                continue
            if not self.count_line():
                return
            if number == 1 and line is not None and is_utf_16(line):
                self.findings.add(part, number, [Violation((), NOT_UTF_16, "invalid_utf8")])
                return
            if line is None:
                message = f"The row is over {self._max_line_bytes} bytes; send shorter ones."
                self.findings.add(part, number, [Violation((), message, "too_long")])
                continue
            row = self._read(line, number, part, is_ended=is_ended)
            if row is not None:
                yield row

    def _example_rows(
        self, items: Iterable[bytes | Raw | Mapping[str, Any]], part: str
    ) -> Iterator[Row]:
        for number, item in enumerate(items, 1):
            if not self.count_line():
                return
            row: Row | None
            if isinstance(item, Mapping):
                row = self._read_slowly(item, number, part)
            else:
                row = self._read(bytes(item), number, part)
            if row is not None:
                yield row

    def _read(self, line: bytes, number: int, part: str, *, is_ended: bool = True) -> Row | None:
        read = self._read_fast(line, number)
        if read is None:
            return self._read_slowly(line, number, part, is_ended=is_ended)
        row, known = read
        return self.accept(row, part, known.mismatches)

    def _read_slowly(
        self, payload: bytes | Mapping[str, Any], number: int, part: str, *, is_ended: bool = True
    ) -> Row | None:
        row = read_row(payload, number, is_listed=not self.findings.is_full)
        if isinstance(row, Row):
            return self.accept(row, part)
        if not is_ended and row[0].type == "invalid_json":
            cut = row[0]
            row = [Violation(cut.path, f"{cut.message} The file ends there: is it whole?", "cut")]
        self.findings.add(part, number, row)
        return None

    def _read_fast(self, line: bytes, number: int) -> tuple[Row, _KnownTask] | None:
        """Read a row of known parts; ``None`` when it must be read slowly to be sure of it."""
        try:
            sent = _decode_row(line)
            context_json = bytes(sent.context)
            context: Any = _decode_text(context_json) if context_json[0] == _QUOTE else None
        except _DECODE_ERRORS:
            return None
        task_json = bytes(sent.decisions)
        targets, rewards = bytes(sent.targets), bytes(sent.rewards)
        if bool(targets) == bool(rewards):
            return None
        labels_json = targets or rewards
        # The decoder takes a field that is there twice. One, or a field that is kept and ignored,
        # would not fit in the bytes that these three leave over.
        n_spare = len(line) - len(context_json) - len(task_json) - len(labels_json) - _FRAME_BYTES
        extra: dict[str, Any] | None = None
        if n_spare >= _SHORTEST_FIELD_BYTES:
            extra, n_extra_bytes = _read_extra(sent)
            if extra is None or n_spare - n_extra_bytes >= _SHORTEST_FIELD_BYTES:
                return None
        if context is None:
            context = _read_container(context_json)
        known = self._tasks.get(task_json) or self._learn_task(task_json)
        if context is None or known is None:
            return None
        # A leading letter tells targets from rewards of the same text.
        key = b"t" + labels_json if targets else b"r" + labels_json
        labels = known.labels.get(key) or self._learn_labels(known, key)
        if labels is None:
            return None
        return make_row(number, context, known.task, labels, extra=extra), known

    def _learn_task(self, task_json: bytes) -> _KnownTask | None:
        value = _decode({"decisions": task_json})
        if value is None:
            return None
        violations = Violations()
        check_shape({"context": "", **value}, RowInput, violations, BODY)
        task, _ = read_task(value, violations)
        if violations or task is None:
            return None
        known = _KnownTask(task, self.compare_task(task))
        self._remember(2 * len(task_json))
        self._tasks[task_json] = known
        return known

    def _learn_labels(self, known: _KnownTask, key: bytes) -> Labels | None:
        supervision: Supervision = "targets" if key[:1] == b"t" else "rewards"
        value = (_decode({supervision: key[1:]}) or {}).get(supervision)
        if not isinstance(value, dict):
            return None
        labels = read_labels(supervision, value, known.task.outcomes, Violations())
        if labels is not None:
            self._remember(4 * len(key))
            known.labels[key] = labels
        return labels

    def _remember(self, n_bytes: int) -> None:
        self._n_cached_bytes += n_bytes + 512
        if self._n_cached_bytes > _CACHED_BYTES:
            self._tasks.clear()
            self._n_cached_bytes = 0


def _decode(sent: Mapping[str, bytes]) -> dict[str, Any] | None:
    """Return fields of a row by name; ``None`` when something may be wrong with their JSON."""
    violations = Violations()
    try:
        fields = {name: decode_json(text) for name, text in sent.items()}
    except InvalidRequestError:
        return None
    check_json(fields, violations)
    return None if violations else fields


def _read_container(context_json: bytes) -> Any:
    """Read a context that is no text; ``None`` when there may be something wrong with it."""
    context = (_decode({"context": context_json}) or {}).get("context")
    return context if isinstance(context, dict | list) else None


def _read_extra(sent: _SentRow) -> tuple[dict[str, Any] | None, int]:
    """Read the fields that are kept and ignored; ``None`` when something may be wrong with them."""
    if sent.images is not _ABSENT:
        return None, 0
    sent_fields = ((name, getattr(sent, name)) for name in EXTRA_FIELDS)
    raw = {name: bytes(value) for name, value in sent_fields if value is not _ABSENT}
    extra = _decode(raw)
    if not extra:
        return extra, 0
    if None in extra.values():
        return None, 0
    violations = Violations()
    check_shape({"context": "", "decisions": [_ANY_DECISION], **extra}, RowInput, violations, BODY)
    check_model_names(extra, violations)
    n_bytes = sum(len(value) + len(name) + 4 for name, value in raw.items())
    return (None if violations else extra), n_bytes


_ANY_DECISION = {"id": "a", "question": "a"}


def _batched(rows: Iterator[Row]) -> Iterator[list[Row]]:
    while batch := list(itertools.islice(rows, BATCH_ROWS)):
        yield batch
