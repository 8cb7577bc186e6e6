from __future__ import annotations

import pytest

from steelyard.datasets import csv_rows
from steelyard.datasets.csv_rows import CsvReader
from steelyard.datasets.ingest import RowReader
from steelyard.datasets.rows import Row, read_row
from support.datasets.dataset_rows import REFUND, ROUTE, cut, make_row_dict

DECISIONS = {"route": ROUTE, "refund": REFUND}


def read(text: str | bytes, size: int = 5) -> tuple[list[Row], RowReader]:
    data = text.encode() if isinstance(text, str) else text
    reader = RowReader(supervision="targets")
    batches = CsvReader(reader, DECISIONS).read(cut(data, [size]))
    return [row for rows in batches for row in rows], reader


def found(text: str | bytes) -> list[tuple[int, str]]:
    _, reader = read(text)
    error = reader.error()
    assert error is None or error.code == "invalid_csv"
    return [(finding.line, finding.type) for finding in reader.findings.listed]


def test_a_row_of_csv_is_the_row_of_json() -> None:
    rows, reader = read(
        'context,route,refund\r\n"Paid ""twice"",\nplease refund", billing ,yes\r\n'
    )
    expected = read_row(
        make_row_dict(
            'Paid "twice",\nplease refund', targets={"route": "billing", "refund": "yes"}
        ),
        2,
    )
    assert rows == [expected]
    assert reader.error() is None


def test_blank_cells_leave_a_decision_out() -> None:
    rows, _ = read("context,refund,route\na,,billing\n\nb,no, \n")
    assert [(row.line, row.task.ids) for row in rows] == [(2, ("route",)), (4, ("refund",))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("text,route\na,billing\n", [(1, "missing")]),
        ("context\na\n", [(1, "missing")]),
        ("context,team\na,b\n", [(1, "unknown")]),
        ("context;route\na;billing\n", [(1, "invalid_csv")]),
        ("context\troute\na\tbilling\n", [(1, "invalid_csv")]),
        (f"context,{','.join(f'c{n}' for n in range(99))}\na\n", [(1, "unknown")]),
        ("context,route\na,billing\n".encode("utf-16"), [(1, "invalid_utf8")]),
        ("context,route\na,billing\n".encode("utf-16-be"), [(1, "invalid_utf8")]),
        ("context,route,route\na,billing,billing\n", [(1, "duplicate")]),
        ("context,route\na\n", [(2, "length_mismatch")]),
        ("context,route\na,billing,\n", [(2, "length_mismatch")]),
        ("context,route\na,\n", [(2, "missing")]),
        ("context,route\na,Billing\n", [(2, "unknown")]),
        ('context,route\n"a"b,billing\nc,billing\n', [(2, "invalid_csv")]),
        ('context,route\nc,billing\n"a,billing\n', [(3, "invalid_csv")]),
        (b"context,route\na\xff,billing\nb,billing\n", [(2, "invalid_utf8")]),
        (b'context,route\n"a\nb\xff",billing\nb,x\n', [(3, "invalid_utf8"), (4, "unknown")]),
        (b"context,route\na\x00,billing\nb,other\n", [(2, "nul")]),
        ('context,route\n"a,billing\nb,x\n', [(2, "invalid_csv"), (3, "unknown")]),
        ("context,route\n" + "a" * 200_000 + ",billing\nb,other\n", [(2, "invalid_csv")]),
        ('context,route\n"a\nb",x\nc,y\n', [(2, "unknown"), (4, "unknown")]),
    ],
)
def test_broken_csv_is_refused_with_its_line(
    text: str | bytes, expected: list[tuple[int, str]]
) -> None:
    assert found(text) == expected


def test_a_mark_at_the_start_is_passed_over() -> None:
    rows, reader = read(b"\xef\xbb\xbfcontext,route\na,billing")
    assert len(rows) == 1
    assert reader.error() is None


def test_csv_is_for_datasets_of_targets() -> None:
    reader = RowReader(supervision="rewards")
    assert list(CsvReader(reader, DECISIONS).read([b"context,route\na,billing\n"])) == []
    error = reader.error()
    assert error is not None
    assert error.code == "supervision_mismatch"


def test_a_line_over_the_bound_is_refused() -> None:
    reader = RowReader()
    chunks = [b'context,route\n"x\n', b"a" * 500, b'",billing\nb,billing\n']
    rows = [
        row
        for batch in CsvReader(reader, DECISIONS).read(chunks, max_line_bytes=100)
        for row in batch
    ]
    assert [row.line for row in rows] == [4]
    assert [(one.line, one.type) for one in reader.findings.listed] == [
        (2, "invalid_csv"),
        (3, "too_long"),
    ]


def test_tasks_that_never_come_again_are_not_kept(monkeypatch):
    monkeypatch.setattr(csv_rows, "BATCH_ROWS", 4)
    decisions = {f"d{n}": {"id": f"d{n}", "kind": "binary", "question": "Is it?"} for n in range(6)}
    # Each row fills other cells.
    lines = [
        ",".join([f"text {n}", *("yes" if n >> bit & 1 else "" for bit in range(6))])
        for n in range(1, 64)
    ]
    data = "\n".join([",".join(["context", *decisions]), *lines]).encode()
    reader = CsvReader(RowReader(supervision="targets"), decisions)
    rows = [row for batch in reader.read([data]) for row in batch]
    assert len(rows) == 63
    assert len(reader._tasks) <= 4
