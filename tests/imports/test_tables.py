"""Files of every format become the same rows; unusable ones are left out with a reason."""

from __future__ import annotations

import io
import json

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

from steelyard.cli.importing import choose_columns
from steelyard.client.tables import (
    Mapping,
    are_rows,
    convert,
    guess_mapping,
    label_of,
    read_table,
)
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


PLAIN = list(zip(TEXTS, TEAMS, strict=True))
OBJECTS = [{"message": text, "team": team} for text, team in PLAIN]
ODD = {
    "UTF-32": separated(",", "utf-32"),
    "UTF-16 without a mark": separated("\t", "utf-16-le"),
    "Excel's line of the separator": b"sep=;\r\n" + separated(";", "utf-8"),
    "a separator at each end": separated(",", "utf-8").replace(b"\n", b",\n"),
    "blanks before the marks": "".join(
        f'"{text}", "{team}"\r\n' for text, team in (("message", "team"), *PLAIN)
    ).encode(),
    "columns that are named twice": FRAME.with_columns(pl.col("team").alias("x"))
    .write_csv()
    .replace(",x\n", ",team\n")
    .encode(),
    "an array": json.dumps(OBJECTS, indent=1).encode(),
    "an object with an array": json.dumps({"version": 1, "data": OBJECTS}, indent=1).encode(),
    **{
        f"pandas, {orient}": pd.DataFrame(OBJECTS).to_json(orient=orient).encode()
        for orient in ("columns", "index", "split", "table", "records")
    },
    "pandas, an index of names": pd.DataFrame(OBJECTS, index=["x", "y", "z"]).to_json().encode(),
    "pandas, rows by name": pd.DataFrame(OBJECTS, index=["x", "y", "z"])
    .to_json(orient="index")
    .encode(),
    "an object of columns": json.dumps(
        {name: [row[name] for row in OBJECTS] for name in OBJECTS[0]}
    ).encode(),
    "rows by id in an object": json.dumps(
        {"version": 1, "rows": {f"id {n}": row for n, row in enumerate(OBJECTS)}}
    ).encode(),
    "no values in a program's words": separated(",", "utf-8") + b"d4,Lost,NaN\ne5,Gone,null\n",
    "R, with a number before each row": "\n".join(
        ["message;team", *(f"{n};{text};{team}" for n, (text, team) in enumerate(PLAIN, 1))]
    ).encode(),
    "a table of Markdown": "\n".join(
        ["message|team", "---|:---:", *("|".join(row) for row in PLAIN)]
    ).encode(),
    "Qualtrics": "\n".join(
        [
            *("id;message;team", "Response ID;What is it?;Who answers?"),
            *('{"ImportId":"a"};{"ImportId":"b"};{"ImportId":"c"}',),
            *(f"{n};{text};{team}" for n, (text, team) in enumerate(PLAIN)),
        ]
    ).encode(),
    "SurveyMonkey": "\n".join(
        ["id;message;team", ";Open-Ended Response;Response"]
        + [f"{n};{text};{team}" for n, (text, team) in enumerate(PLAIN)]
    ).encode(),
    "names in two lines": "\n".join(
        ["Ticket;;Answer;", "id;message;team;level"]
        + [f"{n};{text};{team};x" for n, (text, team) in enumerate(PLAIN * 2)]
    ).encode(),
    "records of Airtable": json.dumps(
        {"records": [{"id": f"rec{n}", "fields": row} for n, row in enumerate(OBJECTS)]}
    ).encode(),
    "edges of GraphQL": json.dumps({"edges": [{"node": row} for row in OBJECTS]}).encode(),
    "the hub's viewer": json.dumps(
        {"features": [{"name": "team"}], "rows": [{"row_idx": 1, "row": row} for row in OBJECTS]}
    ).encode(),
    "documents of Elasticsearch": "\n".join(
        json.dumps({"_index": "x", "_id": str(n), "_source": row}) for n, row in enumerate(OBJECTS)
    ).encode(),
    "a search of Elasticsearch": json.dumps(
        {"took": 1, "hits": {"total": {"value": 3}, "hits": [{"_source": row} for row in OBJECTS]}}
    ).encode(),
    "rows beside lists of names": json.dumps(
        {"teams": ["billing", "shipping"], "empty": [], "rows": OBJECTS}
    ).encode(),
    "arrays of cells below their names": json.dumps(
        [["message", "team"], *map(list, PLAIN * 2)]
    ).encode(),
    "arrays of cells, one a line": "\n".join(
        map(json.dumps, [["message", "team"], *PLAIN * 2])
    ).encode(),
    "objects over several lines": "\n".join(json.dumps(row, indent=2) for row in OBJECTS).encode(),
    "lines of objects with commas": ",\n".join(map(json.dumps, OBJECTS)).encode(),
    "the answer of an API": json.dumps({"data": {"tickets": {"nodes": OBJECTS}}}).encode(),
    "items of OpenAI's evals": "\n".join(json.dumps({"item": row}) for row in OBJECTS).encode(),
}


@pytest.mark.parametrize("form", ODD)
def test_odd_files_are_read_too(form):
    table = read_table(ODD[form])
    made = convert(table, guess_mapping(table))
    rows = [json.loads(line) for line in made.lines]
    found = [(row["context"], row["targets"]["team"]) for row in rows]
    assert found == PLAIN * (len(found) // len(PLAIN))
    assert {one.reason for one in made.refused} <= {"It has no label; fill team."}
    assert not are_rows(ODD[form])


def one_of(team):
    return {name: float(name == team) for name in ("billing", "shipping")}


@pytest.mark.parametrize(
    "data",
    [
        "".join(f"__label__{team} {text}\n" for text, team in PLAIN),
        json.dumps({text: {"label": team} for text, team in PLAIN}),
        json.dumps(dict(PLAIN)),
        json.dumps({"billing": TEXTS[::2], "shipping": [TEXTS[1]]}),
        json.dumps([[text, {"cats": one_of(team)}] for text, team in PLAIN]),
        json.dumps([{"text": text, "cats": one_of(team)} for text, team in PLAIN]),
    ],
    ids=["fastText", "objects by texts", "names by texts", "texts by names", "spaCy 2", "spaCy 3"],
)
def test_texts_without_names_of_columns_have_their_labels(data):
    table = read_table(data.encode())
    made = convert(table, guess_mapping(table))
    rows = [json.loads(line) for line in made.lines]
    targets = [next(iter(row["targets"].values())) for row in rows]
    names = [max(each, key=each.get) if isinstance(each, dict) else each for each in targets]
    assert sorted(zip((row["context"] for row in rows), names, strict=True)) == sorted(PLAIN)


@pytest.mark.parametrize("mark", ["'", '"'])
def test_commas_in_quoted_cells_do_not_separate_them(mark):
    rows = [f"{mark}{'ab'[n % 2]}{mark}\t{mark}A text, number {n}.{mark}" for n in range(9)]
    table = read_table("\n".join(rows).encode(), has_header=False)
    assert [cells for _, cells in table.rows][:2] == [
        ["a", "A text, number 0."],
        ["b", "A text, number 1."],
    ]


def test_backslashes_before_marks_are_read_as_mysql_and_spark_write_them():
    table = read_table(b'text,y\n"He said \\"no\\", twice",a\n"C:\\new \\\\",b\n"c d",a\n')
    assert [cells for _, cells in table.rows] == [
        ['He said "no", twice', "a"],
        ["C:\\new \\\\", "b"],
        ["c d", "a"],
    ]
    # Where a file is read without, a backslash is a character as any.
    table = read_table(b'text,y\n"C:\\","a"\n"say ""\\""",b\n')
    assert [cells for _, cells in table.rows] == [["C:\\", "a"], ['say "\\"', "b"]]


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"<!DOCTYPE html><table><tr><td>a</td></tr></table>", "is HTML, XML or YAML"),
        (b'"text" "label"\n"a b" "x"\n', "Cells are separated by commas, semicolons, tabs or bars"),
        (b"BZh91AY&SY", "is compressed; unpack it"),
        (b"a.csv" + bytes(252) + b"ustar" + bytes(255), "is compressed; unpack it"),
        (b"\n \n", "is empty"),
        (b"text,team\n", "has no rows below the names of its columns"),
        (b'text,team\n"abc,billing\n', "Line 2: The quotation mark in line 2, character 1 is not"),
        (b"\x1f\x8b\x08", "is compressed; unpack it"),
        (b"%PDF-1.4\n%\xe2\xe3", "is a PDF, which is not read; save its table"),
        (b"SQLite format 3\x00\x10\x00", "is a SQLite database, which is not read; write its"),
        (b"ARROW1\x00\x00", "is Arrow or Feather, which is not read; save it as Parquet"),
        (b"INSERT INTO t VALUES\n('a, b','x'),\n('c, d','y');", "is SQL, which is not read"),
        (
            b"% 1\n@relation x\n@attribute text string\n",
            "is ARFF, which is not read; write a table",
        ),
        (b"From a@b.c Mon Jan  1 00:00:00 2024\nSubject: x\n\nHi", "is mail, which is not read"),
        (b"PK\x03\x04 and no more", "cannot be unpacked"),
        (b"[]", "has no rows"),
        (b"{}", "has no rows"),
        (b"[{'text': 'a b'}]", "cannot be read.*Export it again"),
        (bytes(range(256)) * 9, "is not text that can be read"),
    ],
)
def test_files_without_a_table_are_refused_with_a_remedy(data, told):
    with pytest.raises(ValueError, match=told):
        read_table(data)


def test_a_text_a_line_is_not_cut_at_its_commas():
    texts = ["Hello there", 'I paid, "twice" even, for it', '"No" is no answer, sorry']
    table = read_table("\n".join(["text", *texts]).encode())
    assert table.columns == ("text",)
    assert [cells for _, cells in table.rows] == [[text] for text in texts]
    mapping = choose_columns(table, [], None, [])
    assert convert(table, mapping).n_rows == 3
    texts.insert(0, "My parcel has not come, and nobody answers my calls.")
    assert len(read_table("\n".join(texts).encode()).rows) == len(texts)
    assert (
        read_table(b"What could we do better for you next time, please?\nb c\n").columns[0][:4]
        == "What"
    )
    texts.append("Late again; can you help?")
    assert len(read_table("\n".join(texts).encode()).rows) == len(texts)
    for spaced in (b"text, label\na b, x\nc d, y\n", b"text; label\na, b; x\nc d; y\n"):
        assert read_table(spaced).columns == ("text", "label")


def test_cells_that_are_odd():
    long = "x" * 200_000
    lines = ["text,date,stars,big", f"{long},2026-01-02,1.0,{10**30}"]
    lines += [f"a\0b {n},2026-01-0{n % 3 + 1},{n % 3 + 1}.0,{10**30}" for n in range(8)]
    table = read_table("\n".join(lines).encode())
    mapping = guess_mapping(table)
    made = convert(table, mapping)
    # Days and numbers that are all the same are no labels, and levels may have been floats.
    assert [(one.column, one.kind, one.outcomes) for one in mapping.labels] == [
        ("stars", "ordinal", ("1", "2", "3")),
    ]
    assert json.loads(made.lines[0])["context"] == long
    assert made.refused == []


def test_columns_of_other_scripts_are_decisions_of_their_own():
    table = read_table("本文,種類,部署\nlong text a,x,p\nlong text b,y,q\n".encode())
    labels = (label_of(table, "種類"), label_of(table, "部署"))
    made = convert(table, Mapping(("本文",), labels))
    assert json.loads(made.lines[0])["targets"] == {"label": "x", "label_2": "p"}


def test_the_sheet_with_a_table_is_read(tmp_path):
    pytest.importorskip("fastexcel", reason="needs the excel extra")
    xlsxwriter = pytest.importorskip("xlsxwriter")
    path = tmp_path / "book.xlsx"
    with xlsxwriter.Workbook(path) as book:
        for name in ("About", "Empty", "Rows", "Others"):
            book.add_worksheet(name)
        book.get_worksheet_by_name("About").write_column(0, 0, ["Rows are", "further on"])
        for row, cells in enumerate([("message", "team"), *PLAIN]):
            book.get_worksheet_by_name("Rows").write_row(row, 0, cells)
    table = read_table(path)
    assert (table.read_as, len(table.rows)) == ("Excel, the sheet Rows", len(PLAIN))
    assert read_table(path, sheet="About").columns == ("Rows are",)
    with xlsxwriter.Workbook(tmp_path / "splits.xlsx") as book:
        for name, rows in (("test", PLAIN[:2]), ("Notes", []), ("train", PLAIN[2:])):
            sheet = book.add_worksheet(name)
            for row, cells in enumerate([("message", "team"), *rows] if rows else []):
                sheet.write_row(row, 0, cells)
    table = read_table(tmp_path / "splits.xlsx")
    assert (table.read_as, len(table.rows)) == ("Excel, the sheets test, train", len(PLAIN))
    assert [part.split for part in table.parts] == ["test", "train"]
    assert len(read_table(tmp_path / "splits.xlsx", sheet="test").rows) == 2
    for sheet, told in (("None", "it has About, Empty, Rows, Others"), ("Empty", "no sheet with")):
        with pytest.raises(ValueError, match=told):
            read_table(path, sheet=sheet)


def test_parquet_with_a_name_twice(tmp_path):
    names, columns = ["text", "team", "team"], [TEXTS, TEAMS, TEAMS]
    pq.write_table(pa.table(list(map(pa.array, columns)), names=names), tmp_path / "a.parquet")
    assert read_table(tmp_path / "a.parquet").columns == ("text", "team", "team 2")


def test_unusable_rows_are_reported_with_their_lines():
    data = (
        b"text,urgent,stars\n"
        b"one,yes,1\n"
        b"\xe2\x80\x8b,no,2\n"  # a context of unseen characters alone
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
        (5, "It has 4 cells, and there are 3 columns"),
        (3, "Its context is empty"),
        (6, "It has no label"),
    ]
    assert (len(made.lines), made.n_empty, made.n_duplicates) == (5, 1, 1)


@pytest.mark.parametrize(
    ("cells", "kind", "outcomes", "question"),
    [
        (["yes", "No", "TRUE"], "binary", ("yes", "no"), "Is it urgent?"),
        (["10", "2", "1"], "ordinal", ("1", "2", "10"), "Is it urgent?"),
        (["0012", "0007", "0012"], "single", ("0007", "0012"), "Is it urgent?"),
        (["012", "007", "001"], "single", ("001", "007", "012"), "Is it urgent?"),
        (["b", "a", "b"], "single", ("a", "b"), "Is it urgent?"),
        (["✓", "✗", "✓"], "binary", ("yes", "no"), "Is it urgent?"),
        (['"1,0"', '"3,0"', '"2,0"'], "ordinal", ("1", "2", "3"), "Is it urgent?"),
        (["a", "\u200ba", "\ufeffb", "b\u00ad"], "single", ("a", "b"), "Is it urgent?"),
        (["ü b", "ü b", "u\u0308 b", "ü\xa0 b", "c"], "single", ("c", "ü b"), "Is it urgent?"),
        (["a", "b", "#REF!", "#DIV/0!"], "single", ("a", "b"), "Is it urgent?"),
        (["\"{'a', 'b'}\"", "{'a'}"], "several", ("a", "b"), 'Is it "{}"?'),
        (["\"('a', 'b')\"", "\"('a',)\""], "several", ("a", "b"), 'Is it "{}"?'),
        (['"{a,b}"', "{a}"], "several", ("a", "b"), 'Is it "{}"?'),
        (['"[a, b]"', "[a]"], "several", ("a", "b"), 'Is it "{}"?'),
        (
            ['"{""a"": 1, ""b"": 1}"', '"{""a"": 0, ""b"": 0}"'],
            "several",
            ("a", "b"),
            'Is it "{}"?',
        ),
    ],
    ids=[
        *("yes or no", "levels", "codes", "short codes", "names", "ticks", "decimal commas"),
        *("unseen characters", "blanks and encodings", "errors of spreadsheets", "sets", "tuples"),
        *("PostgreSQL", "brackets", "flags"),
    ],
)
def test_a_column_is_asked_as_its_values_say(cells, kind, outcomes, question):
    table = read_table("\n".join(["x,y", *(f"text,{cell}" for cell in cells)]).encode())
    label = label_of(table, "y", question)
    assert (label.kind, label.outcomes, label.question) == (kind, outcomes, question)
    found = Violations()
    read_decisions({"decisions": label.decisions()}, found)
    assert not found
    made = convert(table, Mapping(("x",), (label,)))
    assert len(made.lines) == len([cell for cell in cells if not cell.startswith("#")])


def test_a_column_that_is_a_question_is_asked_as_it_is():
    label = label_of(read_table(b"x,Which team answers?\na,b\nc,d\n"), "Which team answers?")
    assert label.question == "Which team answers?"


def test_rows_for_a_dataset_ask_its_decisions():
    known = {"id": "y", "question": "Which?", "outcomes": {"a": "first", "b": None}}
    shares = '"{""A"": 0.5, ""b"": 0.5}"'
    data = f"text,y,other\nlong enough,A,1\nlong too,{shares},1\nshort,c,2\n".encode()
    table = read_table(data)
    made = convert(table, guess_mapping(table, [known]))
    rows = list(map(json.loads, made.lines))
    assert [row["decisions"] for row in rows] == [[known], [known]]
    assert [row["targets"] for row in rows] == [{"y": "a"}, {"y": {"a": 0.5, "b": 0.5}}]
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
def test_unreadable_files_are_refused_with_a_remedy(data, told):
    with pytest.raises(ValueError, match=told):
        read_table(data, "rows")


QUERIES = [("sofa", "Furniture, carpets and decoration")] * 2 + [("tv", "Electronics at home")] * 2


@pytest.mark.parametrize("names", [("query", "category"), ("q", "department"), ("department", "q")])
@pytest.mark.parametrize("role", ["labels", "metadata", "split"])
def test_a_named_column_has_one_role(names, role):
    rows = [(f"{word} {n}", aisle, "ab"[n % 2]) for n, (word, aisle) in enumerate(QUERIES)]
    frame = pl.DataFrame(rows, schema=[*names, "side"], orient="row")
    for columns in ([*names, "side"], ["side", *reversed(names)]):
        table = read_table(frame.select(columns).write_csv(separator="\t").encode())
        given = {"context": (), "labels": ["side"], "metadata": [], "split": None}
        given |= {role: names[1] if role == "split" else [names[1]]}
        mapping = choose_columns(table, **given)
        assert mapping.context == (names[0],)
        assert names[1] not in {label.column for label in mapping.labels} - set(given["labels"])
        with pytest.raises(ValueError, match=f"{names[1]!r} is named with --"):
            choose_columns(table, [names[1]], [names[1]], [])
        with pytest.raises(ValueError, match="'side' is named with --label twice"):
            choose_columns(table, [], ["side=A?", "side=B?"], [])
    # The context that is named leaves no column out of what may be its labels.
    assert choose_columns(table, [names[0]], [], []).labels


def test_a_column_named_as_a_label_is_no_context_by_its_length():
    table = read_table(
        pl.DataFrame(QUERIES, schema=["query", "category"], orient="row").write_csv().encode()
    )
    mapping = guess_mapping(table)
    assert (mapping.context, [label.column for label in mapping.labels]) == (
        ("query",),
        ["category"],
    )
    known = {"id": "aisle", "question": "Which?", "outcomes": ["a", "b"]}
    table = read_table(b"query,aisle\ntv,a much longer name\n")
    assert guess_mapping(table, [known]).context == ("query",)


@pytest.mark.parametrize(
    "beside",
    [
        {"url": lambda n: f"https://shop.example/search?query=sofa&session={n:032}"},
        {"session uuid": lambda n: f"{n:08x}-1111-2222-3333-444455556666"},
        {"sha256": lambda n: f"{n:064x}"},
        {"about the aisle": lambda n: f"Whatever people need in the aisle {n % 2} " * 3},
        {
            "note of an editor": lambda n: (
                "Nobody knows why this one was asked, so ask them" if n == 5 else None
            )
        },
        {"prediction": lambda n: ["Furniture, carpets and decoration", "Electronics"][n % 2]},
        {"ml_use": lambda n: "training" if n % 5 else "test"},
        {"resource labels": lambda n: {"ml_use": "training" if n % 5 else "test"}},
        {"price": lambda n: f"{n % 3},5"},
    ],
    ids=lambda beside: next(iter(beside)),
)
def test_columns_about_rows_are_neither_context_nor_label(beside):
    columns = {"q": lambda n: f"sofa {n}", "aisle": lambda n: ["home", "garden"][n % 2], **beside}
    rows = [{name: cell(n) for name, cell in columns.items()} for n in range(20)]
    mapping = guess_mapping(read_table(json.dumps(rows).encode()))
    assert (mapping.context, [label.column for label in mapping.labels]) == (("q",), ["aisle"])
    assert mapping.split == ("ml_use" if "ml_use" in beside else None)


def test_texts_that_older_writers_left_as_bytes_are_read():
    for type_ in (pa.binary(), pa.large_binary()):
        content = io.BytesIO()
        cells = pa.array([text.encode() for text in TEXTS], type_)
        pq.write_table(pa.table({"text": cells, "label": TEAMS}), content)
        table = read_table(content.getvalue())
        assert [cells[0] for _, cells in table.rows] == TEXTS
        assert choose_columns(table, [], ["label"], []).context == ("text",)


@pytest.mark.parametrize("form", ["objects", "cells", "columns", "wrapped"])
def test_an_object_of_splits_has_the_side_of_each_row(form):
    rows = [{"text": text, "label": label} for text, label in PLAIN]
    if form == "cells":
        rows = [list(row.values()) for row in rows]
    elif form == "columns":
        rows = {name: [row[name] for row in rows] for name in rows[0]}
    splits = {"train": rows, "oos_val": json.loads(json.dumps(rows).replace("twice", "once"))}
    whole = {"data": splits} if form == "wrapped" else splits
    table = read_table(json.dumps(whole).encode())
    made = convert(table, guess_mapping(table))
    assert made.sides == ["training"] + ["evaluation"] * 3
    assert [label.outcomes for label in made.mapping.labels] == [("billing", "shipping")]


def test_a_column_of_one_value_is_no_label():
    table = read_table(b"text,y\nlong,a\nlonger,a\n")
    with pytest.raises(ValueError, match="outcomes are 2 to"):
        label_of(table, "y")
    assert guess_mapping(table).labels == ()
    with pytest.raises(ValueError, match=r"like a label\. The column 'y' has 1 different"):
        choose_columns(table, [], [], [])
    rows = [{"text": f"text {n}", "labels": ["a", "b"][:: 1 - 2 * (n % 2)]} for n in range(4)]
    table = read_table(json.dumps(rows).encode())
    with pytest.raises(ValueError, match="has every name in every row"):
        label_of(table, "labels")
    assert guess_mapping(table).labels == ()
    with pytest.raises(ValueError, match="'x' or nothing"):
        label_of(read_table(b"text,y\nlong,x\nlonger,\n"), "y")


def test_lists_of_texts_are_no_context_and_their_labels_neither():
    rows = [{"tag": tag, "patterns": [f"a {tag}", "b"]} for tag in ("greeting", "goodbye")]
    with pytest.raises(ValueError, match="patterns has lists of them: write a row for each text"):
        guess_mapping(read_table(json.dumps({"intents": rows}).encode()))


def test_an_error_lists_some_columns_of_many():
    table = read_table(json.dumps([{f"text {n}": "long " * n for n in range(99)}] * 3).encode())
    for context, labels in (([], []), ([], ["team"])):
        with pytest.raises(ValueError, match=r"text 7, …") as error:
            choose_columns(table, context, labels, [])
        assert len(str(error.value)) < 250


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ("class", "single"),
        ("Product Class", "single"),
        ("categoryId", "single"),
        ("stars", "ordinal"),
    ],
)
def test_numbers_of_a_class_have_no_order(column, kind):
    table = read_table(
        f"text,{column}\n".encode() + b"".join(b"a %d,%d\n" % (n, n % 12) for n in range(9))
    )
    [label] = guess_mapping(table).labels or (label_of(table, column),)
    assert (label.kind, label.outcomes) == (kind, tuple("012345678"))


def test_values_are_counted_without_their_capitals():
    names = ["billing", "Billing", "BILLING", "shipping", "Shipping", "SHIPPING"]
    table = read_table(
        "\n".join(["text,team", *(f"row {n},{name}" for n, name in enumerate(names))]).encode()
    )
    [label] = guess_mapping(table).labels
    assert label.outcomes == ("Billing", "Shipping")
    assert len(convert(table, Mapping(("text",), (label,))).lines) == len(names)
    # 300 spellings of 150 outcomes are not over the bound of a column.
    cells = [name for n in range(150) for name in (f"team {n}", f"Team {n}")]
    table = read_table(
        "\n".join(["text,y", *(f"row {n},{cell}" for n, cell in enumerate(cells))]).encode()
    )
    assert len(label_of(table, "y").outcomes) == 150


def test_a_column_that_is_named_label_is_one_in_a_file_of_few_rows():
    table = read_table(b"text,label\na b,refund\nc d,parcel\ne f,invoice\ng h,refund\n", "t.csv")
    assert [label.column for label in guess_mapping(table).labels] == ["label"]
    table = read_table(b"text,other\na b,refund\nc d,parcel\ne f,invoice\ng h,refund\n", "t.csv")
    assert guess_mapping(table).labels == ()


@pytest.mark.parametrize(
    ("cells", "joined"),
    [
        (["billing; shipping", "shipping", "billing"], ["billing; shipping"]),
        (["a|b", "b|c", "a|c"], ["a|b", "a|c", "b|c"]),
        (["returns, refunds", "shipping", "billing"], []),
    ],
)
def test_labels_joined_in_one_cell_are_reported(cells, joined):
    table = read_table(
        "\n".join(["text\tteam", *(f"row {n}\t{c}" for n, c in enumerate(cells))]).encode()
    )
    label = label_of(table, "team")
    assert (label.joined, "each label becomes" in label.note) == (joined, bool(joined))


@pytest.mark.parametrize(
    ("cells", "missing", "outcomes"),
    [
        (["billing", "shipping", "NA", "None", "n/a", "-1"], {"NA", "None", "-1"}, 3),
        # Whoever writes names alike means an outcome, as a column of levels does.
        (["billing", "shipping", "none"], set(), 3),
        (["billing", "shipping", "?"], set(), 3),
        (["follow-up", "follow up", "C", "C++"], set(), 4),
        (["Billing", "Shipping", "None"], set(), 3),
        (["EU", "US", "NA"], set(), 3),
        (["-1", "0", "1"], set(), 3),
    ],
)
def test_values_for_no_label_are_none_among_names_alone(cells, missing, outcomes):
    table = read_table(
        "\n".join(["text,team", *(f"row {n},{c}" for n, c in enumerate(cells))]).encode()
    )
    label = label_of(table, "team")
    assert (label.no_label, len(label.outcomes)) == (missing, outcomes)
    choose_columns(table, [], ["team"], [], None, ["absent"])
    assert "the value 'absent', which --no-label" in table.notes[-1]
    made = convert(table, Mapping(("text",), (label,)))
    assert [row.cells[1] for row in made.refused] == [cell for cell in cells if cell in missing]
    assert bool(label.note) == bool(
        missing or {"-1", "NA", "None", "none", "n/a", "?", "follow-up"} & set(cells)
    )
    assert label_of(table, "team", None, [""]).outcomes == tuple(sorted(cells, key=by_level(cells)))


def by_level(cells):
    return int if cells[-1] == "1" else str
