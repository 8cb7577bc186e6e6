"""A dataset that is exported and imported again is the same dataset, in every format."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import zipfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.client.tables import (
    convert,
    guess_mapping,
    is_exported,
    label_of,
    read_exported,
    read_table,
)
from steelyard.datasets.frames import exports
from steelyard.datasets.frames.pages import RowStore
from steelyard.exports import export_pieces, writing
from steelyard.storage.frame_store import open_store
from support.datasets.dataset_rows import make_row_dict, make_rows, target_rows, write_version
from support.decisions.strategies import few

FORMATS = ["csv", "parquet", "hf"]
#: Contexts that spreadsheets, CSV and readers of tables would each take for something else.
HOSTILE = [
    '=HYPERLINK("http://evil.example","x")',
    "+1",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "'=1",
    "'",
    "''",
    "\uff1d1+1",
    "",
    " ",
    "\n",
    "two\r\nlines",
    'a "quote", a comma; a bar|',
    "\x00nul",
    "\ufeffmark",
    "007",
    "1e9",
    "NaN",
    "null",
    "true",
    "日本語 🦆",
    {"subject": "=1", "n": 2**60},
    ["=1"],
    {},
    [],
]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return open_store(tmp_path_factory.mktemp("frames"))


def exported(store, manifest, format_):
    table = exports.export_table(store, manifest, "tickets: a | test")
    return b"".join(export_pieces(table, format_))


def sides_of(store, manifest):
    """A version's rows as bytes, by side."""
    rows = RowStore(store)
    return [b"".join(rows.download(manifest, side)) for side in ("training", "evaluation")]


def imported(store, data):
    table = read_table(data)
    assert is_exported(table)
    found = read_exported(table)
    assert found.refused == []
    sides = {side: list(map(json.loads, lines)) for side, lines in found.parts.items()}
    return write_version(store, sides=sides)


def rewarded(number):
    rewards = {"route": {"billing": 0.1 + number, "support": -1.5, "other": 0.0}}
    decisions = make_row_dict()["decisions"][:1]
    return make_row_dict(f"={number}", targets=..., rewards=rewards, decisions=decisions)


@pytest.mark.parametrize("format_", FORMATS)
def test_hostile_rows_come_back_as_they_were(store, format_):
    rows = [make_row_dict(one, metadata={"ref": "=1"}) for one in HOSTILE]
    rows.append(make_row_dict("unsure", targets={"route": {"billing": 0.25, "other": 0.75}}))
    image = {"id": 1, "media_type": "image/png", "data": "aW1n"}
    rows.append(make_row_dict("See <image:1>.", images=[image]))
    for version in (
        write_version(store, rows, fraction=0.3),
        write_version(store, [rewarded(number) for number in range(5)], fraction=0.4),
    ):
        again = imported(store, exported(store, version, format_))
        assert sides_of(store, again) == sides_of(store, version)


@pytest.mark.parametrize("column", ["context", "decisions", "images", "extra", "targets"])
def test_a_cell_that_is_nested_too_deep_leaves_its_row_out(store, column):
    version = write_version(store, [make_row_dict({"n": number}) for number in range(4)])
    table = read_table(exported(store, version, "csv"))
    rows = [(line, list(cells)) for line, cells in table.rows]
    rows[1][1][table.columns.index(column)] = "[" * 100_000
    made = read_exported(dataclasses.replace(table, rows=rows))
    assert [row.line for row in made.refused] == [3]


@few
@given(rows=st.lists(target_rows(), min_size=1, max_size=6), format_=st.sampled_from(FORMATS))
def test_every_dataset_comes_back_as_it_was(store, rows, format_):
    version = write_version(store, rows)
    again = imported(store, exported(store, version, format_))
    assert sides_of(store, again) == sides_of(store, version)


def test_csv_has_no_cell_that_a_spreadsheet_runs(store):
    version = write_version(store, [make_row_dict(one) for one in HOSTILE])
    text = exported(store, version, "csv").decode("utf-8-sig")
    # As a spreadsheet cuts it: rows by line breaks and cells by commas outside quotes.
    cells = [cell for row in csv.reader(io.StringIO(text, newline="")) for cell in row]
    assert [cell for cell in cells if cell[:1] in set("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")] == []
    assert '\'=HYPERLINK("http://evil.example","x")' in cells


def test_a_column_of_each_decision_has_its_label(store):
    version = write_version(store, make_rows(30), fraction=0.2)
    for format_ in FORMATS:
        table = read_table(exported(store, version, format_))
        mapping = guess_mapping(table, make_row_dict()["decisions"])
        assert mapping.context == ("context",)
        made = convert(table, mapping)
        by_context = {one["context"]: one["targets"] for one in map(json.loads, made.lines)}
        assert by_context == {one["context"]: one["targets"] for one in make_rows(30)}
    assert label_of(table, "refund").kind == "binary"


def test_a_decision_named_as_a_column_gets_another_name(store):
    decision = {"id": "side", "question": "Which side?", "outcomes": ["left", "right"]}
    rows = [make_row_dict(f"{n}", decisions=[decision], targets={"side": "left"}) for n in range(3)]
    version = write_version(store, rows)
    table = read_table(exported(store, version, "parquet"))
    assert list(table.column("label_side")) == ["left"] * 3
    assert set(table.column("side")) <= {"training", "evaluation"}


def test_the_datasets_library_loads_the_folder(store, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    library = pytest.importorskip("datasets", reason="needs the package datasets")
    odd = {"id": "odd: #1 | `x`", "question": "?", "outcomes": ["y: {", "'\u2028\x85", "no\n- b"]}
    rows = [
        {
            **one,
            "decisions": [*one["decisions"], odd],
            "targets": {**one["targets"], odd["id"]: label},
        }
        for one, label in zip(make_rows(30), odd["outcomes"] * 10, strict=True)
    ]
    version = write_version(store, [*rows, make_row_dict("other", targets={"route": "other"})])
    with zipfile.ZipFile(io.BytesIO(exported(store, version, "hf"))) as archive:
        archive.extractall(tmp_path / "folder")
    loaded = library.load_dataset(str(tmp_path / "folder"), cache_dir=str(tmp_path / "cache"))
    counts = {name: len(split) for name, split in loaded.items()}
    assert counts == {"train": version.split.training, "test": version.split.evaluation}
    features = loaded["train"].features
    assert features["route"].names == ["billing", "support", "other"]
    assert features[odd["id"]].names == odd["outcomes"]
    by_context = {one["context"]: one for split in loaded.values() for one in split}
    for row in rows:
        found = by_context[row["context"]]
        for id_ in ("route", "refund", odd["id"]):
            assert features[id_].int2str(found[id_]) == row["targets"][id_]
    assert by_context["other"]["refund"] is None
    assert by_context["other"]["targets"] == [
        {"decision": "route", "outcome": "other", "value": 1.0}
    ]


@pytest.mark.parametrize("format_", FORMATS)
def test_ten_times_the_rows_hold_no_more_of_them(store, format_, monkeypatch):
    """Bounded memory: rows between their reading and their writing, and bytes before they are sent."""
    monkeypatch.setattr(exports, "ROWS", 16)
    monkeypatch.setattr(writing, "_GROUP_ROWS", 64)
    monkeypatch.setattr(writing, "_PIECE_BYTES", 4096)

    def most_held(n_rows):
        version = write_version(store, [make_row_dict(f"{n} {n * 7919}") for n in range(n_rows)])
        table = exports.export_table(store, version, "rows")
        seen = []
        counted = dataclasses.replace(
            table,
            rows=lambda: counting(table.rows(), seen),
            splits={
                name: lambda make=make: counting(make(), seen)
                for name, make in table.splits.items()
            },
        )
        ahead = sent = 0
        sizes = []
        for piece in export_pieces(counted, format_):
            sizes.append(len(piece))
            ahead = max(ahead, len(seen) - sent)
            sent = len(seen)
        assert sum(seen) >= n_rows
        # A Parquet file ends with a line for each of its groups, and a folder has two of them.
        return max(seen), ahead, sorted(sizes)[-3]

    def counting(batches, seen):
        for batch in batches:
            seen.append(batch.num_rows)
            yield batch

    few_rows, many_rows = most_held(600), most_held(6000)
    assert many_rows[0] <= 2 * exports.ROWS
    assert many_rows[1] <= few_rows[1] + 4
    assert many_rows[2] <= 2 * few_rows[2]


def test_parquet_has_groups_of_bounded_size(store, tmp_path, monkeypatch):
    monkeypatch.setattr(exports, "ROWS", 16)
    monkeypatch.setattr(writing, "_GROUP_ROWS", 64)
    version = write_version(store, make_rows(300))
    path = Path(tmp_path, "rows.parquet")
    path.write_bytes(exported(store, version, "parquet"))
    about = pq.read_metadata(path)
    groups = [about.row_group(n).num_rows for n in range(about.num_row_groups)]
    assert sum(groups) == 300
    assert max(groups) < 64 + 2 * 16
    assert pq.read_table(path)["index"].to_pylist() == list(range(300))
