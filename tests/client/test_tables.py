"""Files of every format become the same rows; what cannot be used is left out with a reason."""

from __future__ import annotations

import json

import polars as pl
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

from steelyard.client.tables import are_rows, convert, guess_mapping, label_of, read_table
from steelyard.decisions.validation import read_decisions
from steelyard.wire.violations import Violations

TEXTS = ["Où est ma facture ?", "The box came broken", "Charged twice, please help"]
TEAMS = ["billing", "shipping", "billing"]
FRAME = pl.DataFrame({"ref": ["a1", "b2", "c3"], "message": TEXTS, "team": TEAMS})
FEATURES = {"team": {"_type": "ClassLabel", "names": ["billing", "shipping"]}}


def arrow():
    """Return the table as ``datasets`` keeps it: labels are numbers, their names metadata."""
    numbers = [["billing", "shipping"].index(team) for team in TEAMS]
    table = pa.table({"message": TEXTS, "team": numbers})
    told = json.dumps({"info": {"features": FEATURES}})
    return table.replace_schema_metadata({"huggingface": told})


def separated(separator, encoding):
    return FRAME.write_csv(separator=separator).encode(encoding)


def excel(path):
    FRAME.write_excel(path)
    return path


def saved_by_datasets(folder):
    (folder / "train").mkdir(parents=True)
    path = str(folder / "train" / "data-00000-of-00001.arrow")
    with pa.OSFile(path, "wb") as file, pa.ipc.new_stream(file, arrow().schema) as writer:
        writer.write_table(arrow())
    return folder


def parquet(path):
    pq.write_table(arrow(), path)
    return path


FORMS = {
    "CSV": lambda tmp: separated(",", "utf-8"),
    "semicolons, Windows-1252": lambda tmp: separated(";", "cp1252"),
    "tabs, UTF-16": lambda tmp: separated("\t", "utf-16"),
    "bars, UTF-8 with a mark": lambda tmp: separated("|", "utf-8-sig"),
    "JSON Lines": lambda tmp: FRAME.write_ndjson().encode(),
    "Excel": lambda tmp: excel(tmp / "rows.xlsx"),
    "Parquet": lambda tmp: parquet(tmp / "rows.parquet"),
    "a folder of datasets": lambda tmp: saved_by_datasets(tmp / "saved"),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_format_is_read_alike(form, tmp_path):
    if form == "Excel":
        pytest.importorskip("fastexcel", reason="needs the excel extra")
    table = read_table(FORMS[form](tmp_path))
    mapping = guess_mapping(table)
    made = convert(table, mapping)
    rows = [json.loads(line) for line in made.lines]
    assert made.refused == []
    assert mapping.context == ("message",)
    assert [row["context"] for row in rows] == TEXTS
    assert [row["targets"] for row in rows] == [{"team": team} for team in TEAMS]
    [decision] = rows[0]["decisions"]
    assert decision == {
        "id": "team",
        "kind": "single",
        "question": "Which team fits?",
        "outcomes": ["billing", "shipping"],
    }
    assert not are_rows(made.data.replace(b"context", b"text"))
    assert are_rows(made.data)


def test_rows_that_cannot_be_used_are_told_with_their_lines():
    data = (
        b"text,urgent,stars\n"
        b"one,yes,1\n"
        b",no,2\n"  # no context
        b"three,No,3\n"
        b"four,no,1,extra\n"  # too many cells
        b"five,,\n"  # no label
        b"one,yes,1\n"  # twice
        b"seven,no,2\n"
        b"eight,yes,3\n"
    )
    table = read_table(data, "rows.csv")
    mapping = guess_mapping(table)
    made = convert(table, mapping)
    assert [one.column for one in mapping.labels] == ["urgent", "stars"]
    assert [(one.line, one.reason.split(";")[0]) for one in made.refused] == [
        (5, "It has 4 cells, and the first line names 3 columns"),
        (3, "Its context is empty"),
        (6, "It has no label"),
    ]
    assert (len(made.lines), made.n_empty, made.n_duplicates) == (5, 1, 1)


@pytest.mark.parametrize(
    ("cells", "kind", "outcomes", "question"),
    [
        (["yes", "No", "TRUE"], "binary", ("yes", "no"), "Is it urgent?"),
        (["10", "2", "1"], "ordinal", ("1", "2", "10"), "Is it urgent?"),
        (["b", "a", "b"], "single", ("a", "b"), "Is it urgent?"),
    ],
    ids=["yes or no", "levels", "names"],
)
def test_a_column_is_asked_as_its_values_say(cells, kind, outcomes, question):
    table = read_table("\n".join(["x,y", *(f"text,{cell}" for cell in cells)]).encode())
    label = label_of(table, "y", question)
    assert (label.kind, label.outcomes, label.question) == (kind, outcomes, question)
    found = Violations()
    read_decisions({"decisions": [label.decision()]}, found)
    assert not found


def test_rows_for_a_dataset_ask_what_it_asks():
    known = {"id": "y", "question": "Which?", "outcomes": {"a": "first", "b": None}}
    table = read_table(b"text,y,other\nlong enough,a,1\nshort,c,2\n")
    made = convert(table, guess_mapping(table, [known]))
    assert json.loads(made.lines[0])["decisions"] == [known]
    assert [one.reason for one in made.refused] == [
        "y is 'c', which is no outcome of y; use one of a, b."
    ]


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b" \n", "is empty"),
        (b"PAR1 no more", "cannot be read as Parquet"),
        (b"\x00\x01\x02\xff" * 50, "save it as CSV in UTF-8"),
    ],
    ids=["empty", "broken Parquet", "no text"],
)
def test_what_cannot_be_read_says_what_to_do(data, told):
    with pytest.raises(ValueError, match=told):
        read_table(data, "rows")


def test_a_column_of_one_value_is_no_label():
    table = read_table(b"text,y\nlong,a\nlonger,a\n")
    with pytest.raises(ValueError, match="outcomes are 2 to"):
        label_of(table, "y")
    assert guess_mapping(table).labels == ()
