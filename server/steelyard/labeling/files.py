"""Files of sources and of teachers' answers: Parquet, with rows in groups that are read alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from steelyard.labeling.judging import Judgment
from steelyard.storage.frame_store import FrameStore
from steelyard.wire.decoding import decoder_of

#: A row of a source, as JSON.
_ROWS = pa.schema([pa.field("row", pa.string(), nullable=False)])
#: What a teacher said of a row: both by their place, and a ``Judgment`` as JSON.
_ANSWERS = pa.schema(
    [
        pa.field("row", pa.int32(), nullable=False),
        pa.field("teacher", pa.int32(), nullable=False),
        pa.field("judgment", pa.string(), nullable=False),
    ]
)
#: Rows of a source that are read together.
_GROUP = 256
_SUFFIX = ".parquet"

#: The place of a row, that of a teacher, and its answer.
Answer = tuple[int, int, Judgment]

_decode_judgment = decoder_of(Judgment).decode


def write_rows(store: FrameStore, rows: Sequence[str]) -> str:
    """Store the rows of a source; return the hash of their file. It is durable on return."""
    return _write(store, pa.table([pa.array(rows, pa.string())], schema=_ROWS), _GROUP)


def write_answers(store: FrameStore, answers: Iterable[Answer], n_teachers: int = 1) -> str:
    """Store teachers' answers; return the hash of the file. It is durable on return."""
    rows, teachers, judgments = [], [], []
    for row, teacher, judgment in answers:
        rows.append(row)
        teachers.append(teacher)
        judgments.append(msgspec.json.encode(judgment).decode())
    table = pa.table(
        [pa.array(rows, pa.int32()), pa.array(teachers, pa.int32()), pa.array(judgments)],
        schema=_ANSWERS,
    )
    return _write(store, table, _GROUP * n_teachers)


def read_rows(
    store: FrameStore, sha256: str, offset: int = 0, limit: int | None = None
) -> list[str]:
    """Return rows of a source in order."""
    rows: list[str] = _read(store, sha256, offset, limit)["row"].to_pylist()
    return rows


def read_answers(
    store: FrameStore, sha256: str, offset: int = 0, limit: int | None = None
) -> Iterator[Answer]:
    """Yield teachers' answers, in the order in which they were stored."""
    table = _read(store, sha256, offset, limit)
    for row, teacher, judgment in zip(
        *(table[name].to_pylist() for name in _ANSWERS.names), strict=True
    ):
        yield row, teacher, _decode_judgment(judgment)


def answered_pairs(store: FrameStore, hashes: Iterable[str]) -> set[tuple[int, int]]:
    """Return the pairs of row and teacher whose answers are in the files."""
    pairs: set[tuple[int, int]] = set()
    for sha256 in hashes:
        table = _read(store, sha256, 0, None)
        pairs.update(zip(table["row"].to_pylist(), table["teacher"].to_pylist(), strict=True))
    return pairs


def _write(store: FrameStore, table: pa.Table, group: int) -> str:
    with store.draft() as draft:
        pq.write_table(
            table, draft, row_group_size=group, compression="zstd", write_page_checksum=True
        )
        return store.adopt(draft, _SUFFIX)[0]


def _read(store: FrameStore, sha256: str, offset: int, limit: int | None) -> pa.Table:
    """Return lines of a file; only the groups that hold them are read."""
    with (
        store.open(f"{sha256}{_SUFFIX}") as file,
        pq.ParquetFile(file, page_checksum_verification=True) as parquet,
    ):
        end = parquet.metadata.num_rows if limit is None else offset + limit
        groups, skipped, at = [], 0, 0
        for group in range(parquet.num_row_groups):
            n_lines = parquet.metadata.row_group(group).num_rows
            if at + n_lines <= offset:
                skipped = at + n_lines
            elif at < end:
                groups.append(group)
            at += n_lines
        table = parquet.read_row_groups(groups, use_threads=False)
    return table.slice(offset - skipped, end - offset)
