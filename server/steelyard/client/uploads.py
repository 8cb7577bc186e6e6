"""Rows sent in as many calls as their size needs, and the combined answer.

It does no input or output, for the client that blocks and the one that does not.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import sys
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Generic, TypeVar

from steelyard.client import dataset_calls, labeling_calls
from steelyard.client.calls import Call
from steelyard.client.row_sources import (
    PIECE_BYTES,
    FrameColumns,
    OnRefused,
    Progress,
    RowPiece,
    Rows,
    pieces_of,
    shift_refusal,
)
from steelyard.datasets.wire import Dataset
from steelyard.errors import NoNewRowsError, SteelyardError
from steelyard.labeling.wire import LabelingSource

_Made = TypeVar("_Made", bound=Dataset | LabelingSource)

#: Times that a piece is sent again without rows that were refused: a refusal lists a hundred problems.
_MOST_ROUNDS = 50


class UploadCalls(Generic[_Made]):
    """Calls that send rows, and again without those that the server refuses.

    ``progress`` is called with the bytes sent so far. Under ``idempotency_key``, every call has a
    key of its own that is made of it, so that the same rows sent again are added once. With
    ``on_refused``, rows that the server refuses are left out, and it is called with each. As a context
    manager, it notes on whatever ends the sending where the rows are that were sent before.
    """

    def __init__(
        self,
        parts: Mapping[str, Rows],
        columns: FrameColumns | None = None,
        *,
        piece_bytes: int = PIECE_BYTES,
        progress: Progress | None = None,
        idempotency_key: str | None = None,
        on_refused: OnRefused | None = None,
    ) -> None:
        self._parts = parts
        self._columns = columns or FrameColumns()
        self._piece_bytes = piece_bytes
        self._progress = progress
        self._idempotency_key = idempotency_key
        self._on_refused = on_refused
        self._is_again = False
        #: What the last call made.
        self.made: _Made | None = None
        self._nothing_new: NoNewRowsError | None = None
        self._load: dict[str, RowPiece] = {}

    def __enter__(self) -> None:
        """Begin to send."""

    def __exit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> None:
        # Also where rows cannot be read, and at Ctrl-C.
        if error is not None and isinstance(self.made, Dataset):
            error.add_note(
                f"The dataset {self.made.id} has the rows sent before: version {self.made.version}."
            )

    def calls(self) -> Iterator[Call[_Made]]:
        """Yield each call, once the one before was answered."""
        n_sent = 0
        for number, load in enumerate(self._loads()):
            self._load = load
            for attempt in itertools.count():
                self._is_again = False
                data = {part: piece.data for part, piece in self._load.items()}
                yield self._call(data, self._key(number, attempt))
                if not self._is_again or not self._load:
                    break
                if attempt == _MOST_ROUNDS:
                    self._on_refused = None
            n_sent += sum(len(piece.data) for piece in load.values())
            if self._progress is not None:
                self._progress(n_sent)

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Send a call inside: the lines of its refusal become those of the whole."""
        try:
            yield
        except NoNewRowsError as error:
            # The dataset has these already; the other pieces may still have new ones.
            self._nothing_new = error
        except SteelyardError as error:
            if self._leave_out(error):
                self._is_again = True
                return
            shift_refusal(error, {part: piece.start for part, piece in self._load.items()})
            raise

    def result(self) -> _Made:
        """Return the dataset; raise when there was no row, or no new one."""
        if self.made is None:
            raise self._nothing_new or ValueError(
                "There are no rows; give examples, training or evaluation."
            )
        return self.made

    @abstractmethod
    def _call(self, data: Mapping[str, bytes], key: str | None) -> Call[_Made]:
        """Return the call that sends pieces."""

    def _leave_out(self, error: SteelyardError) -> bool:
        """Blank the lines that a refusal names, if it may be; tell whether rows are left to send."""
        problems = [
            (detail, path)
            for detail in error.details or ()
            if len(path := detail.get("path", ())) > 2
            and path[1] in self._load
            and isinstance(path[2], int)
        ]
        if self._on_refused is None or not problems:
            return False
        lines = {part: io.BytesIO(piece.data).readlines() for part, piece in self._load.items()}
        for _, path in problems:
            lines[path[1]][path[2]] = b"\n"
        left = {
            part: RowPiece(b"".join(lines[part]), piece.start)
            for part, piece in self._load.items()
            if any(line.strip() for line in lines[part])
        }
        if not left and self.made is None:
            return False
        for detail, path in problems:
            self._on_refused(path[1], path[2] + self._load[path[1]].start, detail)
        self._load = left
        return True

    def _key(self, number: int, attempt: int = 0) -> str | None:
        if self._idempotency_key is None or not (number or attempt):
            return self._idempotency_key
        # As long as any key may be, whatever the caller's is.
        place = f"{number}.{attempt}" if attempt else str(number)
        return hashlib.sha256(f"{place}:{self._idempotency_key}".encode()).hexdigest()

    def _loads(self) -> Iterator[dict[str, RowPiece]]:
        """Yield the parts of each call: a piece, or one of each side where both fit."""
        load: dict[str, RowPiece] = {}
        for part, rows in self._parts.items():
            for piece in pieces_of(rows, self._columns, self._piece_bytes):
                n_bytes = sum(len(waiting.data) for waiting in (*load.values(), piece))
                if load and (part in load or n_bytes > self._piece_bytes):
                    yield load
                    load = {}
                load[part] = piece
        if load:
            yield load


class RowUpload(UploadCalls[Dataset]):
    """The calls that make a dataset ``name`` of rows, or add them to the dataset ``dataset_id``."""

    def __init__(
        self,
        parts: Mapping[str, Rows],
        columns: FrameColumns | None = None,
        evaluation_fraction: float | None = None,
        *,
        name: str = "",
        dataset_id: str | None = None,
        **sending: Any,
    ) -> None:
        # Training rows first: a dataset whose first piece has none is for evaluation only.
        order = sorted(parts, key=lambda part: part == "evaluation")
        super().__init__({part: parts[part] for part in order}, columns, **sending)
        self._fraction, self._name, self._dataset_id = evaluation_fraction, name, dataset_id

    def _call(self, data: Mapping[str, bytes], key: str | None) -> Call[Dataset]:
        dataset_id = self._dataset_id if self.made is None else self.made.id
        if dataset_id is None:
            return dataset_calls.create_dataset(
                self._name, data, evaluation_fraction=self._fraction, idempotency_key=key
            )
        return dataset_calls.add_rows(
            dataset_id, data, evaluation_fraction=self._fraction, idempotency_key=key
        )


class SourceUpload(UploadCalls[LabelingSource]):
    """The calls that make a source of labeling of rows, which go in one piece."""

    def __init__(self, name: str, rows: Rows, **sending: Any) -> None:
        super().__init__({"rows": rows}, piece_bytes=sys.maxsize, **sending)
        self._name = name

    def _call(self, data: Mapping[str, bytes], key: str | None) -> Call[LabelingSource]:
        return labeling_calls.upload(self._name, data["rows"], idempotency_key=key)


def rows_to_create(
    name: str,
    examples: Rows | Mapping[str, Rows] | None = None,
    *,
    training: Rows | None = None,
    evaluation: Rows | None = None,
    evaluation_fraction: float | None = None,
    context: str | Sequence[str] = "context",
    decisions: Sequence[Mapping[str, Any]] | None = None,
    labels: Mapping[str, str] | Sequence[str] | None = None,
    targets: str | None = None,
    rewards: str | None = None,
    progress: Progress | None = None,
    on_refused: OnRefused | None = None,
    idempotency_key: str | None = None,
) -> UploadCalls[Dataset]:
    """Make a dataset of files, lists of rows, or Polars or pandas frames of any size.

    Over 15 MiB rows are sent in pieces, each a version of its own. The first fixes the decisions of
    the dataset: one that only a later piece asks is ``task_mismatch``, so put a row that asks it
    among the first.

    Parameters
    ----------
    examples : path, bytes, iterable of mapping, frame, or mapping
        Rows whose sides the server picks. A path and bytes hold JSON Lines. A mapping has parts by
        name, as ``{"training": rows, "evaluation": rows}``.
    training, evaluation
        Rows of one side; instead of ``examples``.
    evaluation_fraction
        Share of the contexts of ``examples`` put aside: 0.1 to 1; 0.2 when left out.
    context
        Of a frame: the column with the context; several make an object.
    decisions
        Of a frame: the decisions of every row; left out, a column ``decisions`` has them.
    labels
        Of a frame: decision id to the column with the right outcome's name; the ids of
        ``decisions`` when left out. A row does not ask a decision whose cell is null.
    targets, rewards
        Of a frame: a column with, by decision id, numbers by outcome (mappings, their JSON, or the
        lists of ``to_polars``); instead of ``labels``.
    progress
        Called with the bytes sent so far.
    on_refused
        Called with the part, the line from 0 and the problem of each row that the server refuses:
        such rows are left out and the others stored. Without it one of them refuses all.

    Raises
    ------
    steelyard.errors.SteelyardError
        The server's refusal; ``details`` has the first hundred problems. Where earlier pieces were
        stored, a note (``__notes__``) names the dataset that has them.
    ValueError
        When a frame lacks a column, or there is nothing to send.

    Examples
    --------
    >>> client.datasets.create("tickets", "support_triage.jsonl")  # doctest: +SKIP
    """
    return RowUpload(
        parts_of(examples, training, evaluation),
        FrameColumns(
            context=context, decisions=decisions, labels=labels, targets=targets, rewards=rewards
        ),
        evaluation_fraction,
        name=name,
        progress=progress,
        idempotency_key=idempotency_key,
        on_refused=on_refused,
    )


def rows_to_add(
    dataset_id: str,
    examples: Rows | Mapping[str, Rows] | None = None,
    *,
    training: Rows | None = None,
    evaluation: Rows | None = None,
    evaluation_fraction: float | None = None,
    context: str | Sequence[str] = "context",
    decisions: Sequence[Mapping[str, Any]] | None = None,
    labels: Mapping[str, str] | Sequence[str] | None = None,
    targets: str | None = None,
    rewards: str | None = None,
    progress: Progress | None = None,
    on_refused: OnRefused | None = None,
    idempotency_key: str | None = None,
) -> UploadCalls[Dataset]:
    """Add rows to a dataset as its next version; everything else is as for ``create``.

    ``evaluation_fraction`` is of the contexts that are new.
    """
    return RowUpload(
        parts_of(examples, training, evaluation),
        FrameColumns(
            context=context, decisions=decisions, labels=labels, targets=targets, rewards=rewards
        ),
        evaluation_fraction,
        dataset_id=dataset_id,
        progress=progress,
        idempotency_key=idempotency_key,
        on_refused=on_refused,
    )


def queries_to_label(
    name: str,
    rows: Rows,
    *,
    on_refused: OnRefused | None = None,
    idempotency_key: str | None = None,
) -> UploadCalls[LabelingSource]:
    """Upload queries to be labelled: ``POST /v1/labeling/sources``.

    Rows, or a path or bytes of JSON Lines, each with ``context`` and, unless the job gives them,
    ``decisions``. ``on_refused`` is called with ``"rows"``, its line from 0 and the problem of each
    row that the server refuses; the other rows are kept.
    """
    return SourceUpload(name, rows, on_refused=on_refused, idempotency_key=idempotency_key)


def parts_of(
    examples: Rows | Mapping[str, Rows] | None, training: Rows | None, evaluation: Rows | None
) -> dict[str, Rows]:
    """Return rows by part, whose sides the server picks or that have one."""
    sides = {"training": training, "evaluation": evaluation}
    given = {name: rows for name, rows in sides.items() if rows is not None}
    if examples is None:
        return given
    if given or (isinstance(examples, Mapping) and "examples" in examples and len(examples) > 1):
        raise ValueError("Give examples, or training and evaluation, and not both.")
    return dict(examples) if isinstance(examples, Mapping) else {"examples": examples}
