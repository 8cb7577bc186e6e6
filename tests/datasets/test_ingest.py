from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.datasets.findings import MAX_LISTED
from steelyard.datasets.ingest import BATCH_ROWS, RowReader
from steelyard.datasets.lines import split_lines
from steelyard.datasets.rows import Row, read_row
from support.datasets.dataset_rows import (
    REFUND,
    ROUTE,
    cut,
    make_row_dict,
    make_rows,
    read_all,
    target_rows,
    to_ndjson,
)
from support.decisions.strategies import few

GOOD = json.dumps(make_row_dict()).encode()


def edited(old: bytes, new: bytes) -> bytes:
    assert old in GOOD
    return GOOD.replace(old, new, 1)


def row_of(**fields: Any) -> bytes:
    return json.dumps(make_row_dict(**fields)).encode()


DEEP = b"[" * 31 + b"]" * 31
BROKEN: dict[str, tuple[bytes, tuple[Any, ...], str]] = {
    "not JSON": (b"context: hello", (), "invalid_json"),
    "two rows": (GOOD + b" " + GOOD, (), "invalid_json"),
    "trailing comma": (edited(b"}}", b"},}"), (), "invalid_json"),
    "single quotes": (GOOD.replace(b'"', b"'"), (), "invalid_json"),
    "NUL": (edited(b"118", b"1\x008"), (), "invalid_json"),
    "NUL after the row": (GOOD + b"\x00", (), "invalid_json"),
    "control character": (edited(b"118", b"1\x018"), (), "invalid_json"),
    "invalid UTF-8": (edited(b"118", b"1\xff8"), (), "invalid_utf8"),
    "UTF-8 of a surrogate": (edited(b"118", b"1\xed\xa0\x808"), (), "invalid_utf8"),
    "mark in the middle": (b"\xef\xbb\xbf" + GOOD, (), "invalid_json"),
    "an array": (b"[" + GOOD + b"]", (), "wrong_type"),
    "null": (b"null", (), "wrong_type"),
    "field twice": (
        edited(b'"targets"', b'"context": "x", "targets"'),
        ("context",),
        "duplicate_key",
    ),
    "field twice, escaped": (
        edited(b'"targets"', b'"conte\\u0078t": "x", "targets"'),
        ("context",),
        "duplicate_key",
    ),
    "short field twice": (
        edited(b'"targets"', b'"store":true,"store":true, "targets"'),
        ("store",),
        "duplicate_key",
    ),
    "key twice inside": (
        edited(b'{"billing": 1.0}', b'{"billing": 0, "billing": 1}'),
        ("targets", "route", "billing"),
        "duplicate_key",
    ),
    "key twice in a context": (
        edited(b'"Invoice 118 was paid twice."', b'{"a": 1, "a": 2}'),
        ("context", "a"),
        "duplicate_key",
    ),
    "too deep": (
        edited(b'"Invoice 118 was paid twice."', b"[" + DEEP + b"]"),
        ("context", *[0] * 31),
        "too_deep",
    ),
    "far too deep": (
        edited(b'"Invoice 118 was paid twice."', b"[" * 100_000 + b"]" * 100_000),
        (),
        "too_deep",
    ),
    "NaN": (edited(b"1.0", b"NaN"), ("targets", "route", "billing"), "not_finite"),
    "past the largest number": (
        edited(b'"Invoice 118 was paid twice."', b"[1e999]"),
        ("context", 0),
        "not_finite",
    ),
    "lone surrogate": (edited(b"118", b"\\ud800"), ("context",), "lone_surrogate"),
    "unknown field": (row_of(contxt="a"), ("contxt",), "unknown_field"),
    "no context": (row_of(context=...), ("context",), "missing"),
    "no decisions": (row_of(decisions=[]), ("decisions",), "too_short"),
    "no labels": (row_of(targets=...), ("targets",), "missing"),
    "unknown decision": (row_of(targets={"team": "a"}), ("targets", "team"), "unknown"),
    "unknown outcome": (row_of(targets={"refund": "maybe"}), ("targets", "refund"), "unknown"),
    "wrong sum": (row_of(targets={"refund": {"yes": 0.7}}), ("targets", "refund"), "wrong_sum"),
    "a policy": (
        row_of(decisions=[ROUTE, {**REFUND, "policy": {"abstain_below": 0.5}}]),
        ("decisions", 1, "policy"),
        "refused",
    ),
    "other supervision": (
        row_of(targets=..., rewards={"refund": {"yes": 1, "no": 0}}),
        ("rewards",),
        "supervision_mismatch",
    ),
}


@pytest.mark.parametrize(("line", "path", "type_"), BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_a_broken_line_is_refused_with_its_number_and_reason(
    line: bytes, path: tuple[Any, ...], type_: str, size: int
) -> None:
    if len(line) > 10_000 and size < 100:
        size = 1000
    reader = RowReader()
    rows = read_all(GOOD + b"\r\n\n" + line + b"\n" + GOOD, reader, [size])
    assert [row.line for row in rows] == [1, 4]
    (finding,) = reader.findings.listed
    assert (finding.line, finding.path, finding.type) == (3, path, type_)
    error = reader.error()
    assert error is not None
    expected = type_ if type_ == "supervision_mismatch" else "invalid_example"
    assert error.code == expected
    assert error.message.startswith("Line 3: ")
    assert error.details[0]["path"] == ["body", "examples", 2, *path]


def test_a_cut_last_line_is_refused() -> None:
    reader = RowReader()
    read_all(GOOD + b"\n" + GOOD[:50], reader)
    (finding,) = reader.findings.listed
    assert (finding.line, finding.type) == (2, "cut")
    assert finding.message.endswith("The file ends there: is it whole?")


def test_empty_lines_are_skipped() -> None:
    data = b"\xef\xbb\xbf" + GOOD + b"\r\n\r\n  \t\n" + GOOD
    for sizes in ([1], [2], [3, 1], [len(data)]):
        reader = RowReader()
        assert [row.line for row in read_all(data, reader, sizes)] == [1, 4]
        assert reader.error() is None
        assert reader.n_lines == 2


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_reported_once(encoding: str) -> None:
    reader = RowReader()
    data = (GOOD + b"\n" + GOOD + b"\n").decode().encode(encoding)
    assert list(reader.read_ndjson([data])) == []
    [finding] = reader.findings.listed
    assert (finding.line, finding.type) == (1, "invalid_utf8")
    assert "save it as UTF-8" in finding.message


def test_an_empty_file_has_no_rows() -> None:
    for data in (b"", b"\n\n", b"\xef\xbb\xbf", b"\xef"):
        reader = RowReader()
        read_all(data, reader)
        error = reader.error()
        assert error is not None
        assert error.code == ("invalid_example" if data == b"\xef" else "no_rows")


def test_the_first_findings_are_listed_and_all_are_counted() -> None:
    reader = RowReader()
    read_all(b'{"a": 1}\n' * 100 + GOOD, reader, [4096])
    # Of each line: the field that is not one, and three that are missing.
    assert len(reader.findings.listed) == MAX_LISTED
    assert reader.findings.n_found == 400
    assert reader.n_rows == 1
    error = reader.error()
    assert error is not None
    assert "400 problems were found in all (the first 100 are listed)" in error.message


def test_a_line_over_the_bound_is_refused_and_not_held() -> None:
    reader = RowReader(max_line_bytes=len(GOOD))
    endless = iter([GOOD + b"\n", *[b"x" * 1000] * 500, b"\n", GOOD + b"\n"])
    rows = [row for batch in reader.read_ndjson(endless) for row in batch]
    assert [row.line for row in rows] == [1, 3]
    (finding,) = reader.findings.listed
    assert (finding.line, finding.path, finding.type) == (2, (), "too_long")


def test_reading_stops_past_the_most_lines() -> None:
    chunks = iter([GOOD + b"\n"] * 5)
    reader = RowReader(max_lines=2)
    assert sum(len(rows) for rows in reader.read_ndjson(chunks)) == 2
    error = reader.error()
    assert error is not None
    assert error.code == "too_many_lines"
    assert len(list(chunks)) >= 1
    exact = RowReader(max_lines=5)
    assert len(read_all((GOOD + b"\n") * 5, exact)) == 5
    assert exact.error() is None


def test_rows_are_handed_on_in_batches() -> None:
    data = (GOOD + b"\n") * (BATCH_ROWS + 1)
    batches = [len(rows) for rows in RowReader().read_ndjson([data])]
    assert batches == [BATCH_ROWS, 1]


def test_a_growing_dataset_takes_its_own_decisions_alone() -> None:
    known = read_row(make_row_dict())
    assert isinstance(known, Row)
    definitions = {asked.id: {asked.fingerprint} for asked in known.task.decisions}
    reader = RowReader(definitions=definitions, supervision="targets")
    rows = [
        make_row_dict(),
        make_row_dict(decisions=[REFUND], targets={"refund": "no"}),
        make_row_dict(decisions=[ROUTE, {**REFUND, "question": "Refund?"}]),
        make_row_dict(decisions=[{**REFUND, "id": "money"}], targets={"money": "no"}),
    ]
    assert [row.line for row in read_all(to_ndjson(rows), reader)] == [1, 2]
    found = [(one.line, one.path, one.code) for one in reader.findings.listed]
    assert found == [(3, ("decisions", 1), "task_mismatch"), (4, ("decisions", 0), "task_mismatch")]
    error = reader.error()
    assert error is not None
    assert error.code == "task_mismatch"


def test_examples_of_an_array_are_read_as_lines_are() -> None:
    items = [make_row_dict(), json.dumps(make_row_dict("b")).encode(), {"context": 1}]
    reader = RowReader()
    rows = [row for batch in reader.read_examples(items, "training") for row in batch]
    assert [row.context for row in rows] == ["Invoice 118 was paid twice.", "b"]
    violation = reader.findings.listed[0].violation()
    assert violation.path == ("body", "training", 2, "context")


@few
@given(st.lists(target_rows(), max_size=6), st.lists(st.integers(1, 50), min_size=1, max_size=3))
def test_fast_and_slow_reading_agree(rows: list[dict[str, Any]], sizes: list[int]) -> None:
    for options in (
        {},
        {"separators": (",", ":")},
        {"ensure_ascii": False},
        {"separators": (" , ", " : ")},
    ):
        data = to_ndjson(rows, **options)
        slowly = [read_row(json.dumps(row).encode(), line) for line, row in enumerate(rows, 1)]
        assert read_all(data * 2, sizes=sizes)[: len(rows)] == slowly


@few
@given(st.binary(max_size=60), st.lists(st.integers(1, 9), min_size=1, max_size=3))
def test_lines_do_not_depend_on_the_cuts(data: bytes, sizes: list[int]) -> None:
    lines = [(line, is_ended) for _, line, is_ended in split_lines(cut(data, sizes))]
    whole = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    expected = [(line, True) for line in whole[:-1]] + ([(whole[-1], False)] if whole[-1] else [])
    assert lines == expected


edits = st.lists(
    st.tuples(st.integers(0, 9999), st.integers(0, 30), st.integers(0, 9999))
    | st.tuples(st.integers(0, 9999), st.binary(max_size=2)),
    min_size=1,
    max_size=3,
)


@settings(max_examples=300, deadline=None)
@given(target_rows(), edits, st.booleans())
def test_fast_reading_equals_slow_reading(
    row: dict[str, Any], changes: list[Any], is_compact: bool
) -> None:
    separators = (",", ":") if is_compact else None
    line = json.dumps(row, separators=separators).encode()
    for change in changes:
        place = change[0] % len(line)
        if len(change) == 2:
            # Other bytes in the place of some.
            line = line[:place] + change[1] + line[place + len(change[1]) :]
        else:
            # A piece of the row again somewhere else, such as a field that is there twice.
            start = change[2] % len(line)
            line = line[:place] + line[start : start + change[1]] + line[place:]
        line = line.replace(b"\n", b"") or b"x"
    slowly = read_row(line)
    reader = RowReader()
    rows = [row for batch in reader.read_examples([line]) for row in batch]
    assert rows == ([slowly] if isinstance(slowly, Row) else [])
    assert bool(reader.findings.n_found) != bool(rows)


FIELDS = ["context", "decisions", "targets", "store", "model"]


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("place", range(len(FIELDS)))
def test_a_field_that_is_there_twice_is_always_seen(
    name: str, place: int, separators: tuple[str, str]
) -> None:
    fields = {**make_row_dict(), "store": True, "model": "a"}
    comma, colon = separators
    texts = [f'"{key}"{colon}{json.dumps(fields[key], separators=separators)}' for key in FIELDS]
    texts.insert(place, texts[FIELDS.index(name)])
    reader = RowReader()
    read_all(f"{{{comma.join(texts)}}}".encode(), reader)
    assert [(one.path, one.type) for one in reader.findings.listed] == [((name,), "duplicate_key")]


def test_a_cache_that_is_full_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steelyard.datasets.ingest._CACHED_BYTES", 4096)
    rows = make_rows(50)
    assert len(read_all(to_ndjson(rows))) == 50


def test_names_are_compared_for_problems_that_are_listed_alone(monkeypatch):
    compared = []
    monkeypatch.setattr("steelyard.wire.payloads._suggest", lambda *names: compared.append(1) or "")
    rows = [make_row_dict(**{f"n{row}_{n}": 1 for n in range(60)}) for row in range(10)]
    reader = RowReader()
    assert read_all(to_ndjson(rows), reader) == []
    assert (reader.findings.n_found, len(reader.findings.listed)) == (600, 100)
    assert len(compared) == 120
