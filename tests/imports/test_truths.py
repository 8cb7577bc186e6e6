"""One right answer for each question about a context, and copies that are reported."""

from __future__ import annotations

import json

import pytest

import steelyard
from steelyard.client.tables import (
    convert,
    guess_mapping,
    read_lines,
    read_table,
    refused_csv,
    with_single_truths,
    with_truths_of,
)
from steelyard.imports.encodings import Source

ROWS = [
    ("late parcel 1", "a"),
    ("late parcel 2", "b"),
    ("late parcel 1", "b"),
    ("late parcel 2", "b"),
]
DECISION = {"id": "label", "question": "Which?", "outcomes": ["a", "b"]}


def lines(rows):
    made = [
        {"context": {"text": text, "n": 1}, "decisions": [DECISION], "targets": {"label": label}}
        for text, label in rows
    ]
    # Equal contexts and labels may be written otherwise.
    made[1]["context"] = {"n": 1.0, "text": made[1]["context"]["text"]}
    made[1]["targets"] = {"label": {"a": 0, made[1]["targets"]["label"]: 1.0}}
    return "\n".join(map(json.dumps, made)).encode()


def table(rows, separator):
    return "\n".join(separator.join(row) for row in [("text", "label"), *rows]).encode()


@pytest.mark.parametrize("form", [",", "\t", "lines"])
def test_a_context_has_one_right_answer_for_a_question(form):
    if form == "lines":
        made = with_single_truths(read_lines(Source("rows.jsonl", lines(ROWS))))
        first = 1
    else:
        read = read_table(table(ROWS, form))
        made, first = convert(read, guess_mapping(read)), 2
    assert [bool(line.strip()) for line in made.lines] == [True, True, False, True]
    [left] = made.refused
    assert left.line == first + 2
    assert left.reason.startswith(f"Its context has another label of label in line {first};")
    assert made.table.notes == [
        "1 context has another label in rows above: one context with one question has one right answer."
    ]
    assert b"late parcel 1" in refused_csv(made.table.columns, made.refused)
    # What a server refuses has its own line still.
    made("examples", 3, {"message": "context: is wrong", "path": ["examples", 3, "context"]})
    assert made.refused_by_server[0].line == first + 3


def test_other_questions_about_a_context_are_other_rows():
    text = b"text,urgent,team\nlate parcel,yes,\nlate parcel,,b\nother,no,a\nthird,no,b\n"
    read = read_table(text)
    assert convert(read, guess_mapping(read)).refused == []


OWN = "My parcel is late again & again"
COPIES = pytest.mark.parametrize(
    "copy",
    [
        "My  PARCEL is late\t again & again",
        "<p>My parcel is <b>late</b> again &amp; again</p>",
        "My parcel is late again &amp; again",
        "My parcel is late again & again\n\nOn 1 May, Anna wrote:\n> Hello\n> We sent it.",
    ],
    ids=["case and blanks", "markup", "names of characters", "quoted mail"],
)


@COPIES
def test_a_near_copy_of_an_evaluation_row_is_reported_as_an_exact_one_is(copy):
    rows = [(OWN, "a", "test"), (copy, "a", "train"), (OWN, "a", "train"), ("Fine", "b", "train")]
    records = [dict(zip(("text", "label", "split"), row, strict=True)) for row in rows]
    read = read_table(json.dumps(records).encode())
    made = convert(read, guess_mapping(read))
    assert [row.reason.partition(" on the")[0] for row in made.refused] == [
        "Its context is, but for case, blanks, markup or quoted mail,",
        "Its context is",
    ]
    assert made.n_rows == 2


@COPIES
@pytest.mark.parametrize("form", ["table", "lines"])
def test_near_copies_are_reported_where_a_server_picks_the_sides(copy, form):
    rows = [(OWN, "a"), (copy, "a"), (OWN, "a"), ("Fine", "b")]
    read = read_table(json.dumps([{"text": text, "label": label} for text, label in rows]).encode())
    made = convert(read, guess_mapping(read))
    if form == "lines":
        made = with_single_truths(read_lines(Source("rows.jsonl", made.data)))
    assert (made.n_rows, made.refused) == (4, [])
    [note] = made.notes
    assert note.startswith(
        "1 context says the same as another of the file, but for case, blanks, markup"
    )
    assert made.table.notes == []


@COPIES
@pytest.mark.parametrize("sides", [("test", "test", "train"), ()], ids=["one side", "by chance"])
def test_near_copies_with_another_label_are_named(copy, sides):
    rows = [(OWN, "a"), (copy, "b"), ("Fine", "b")]
    records = [{"text": text, "label": label} for text, label in rows]
    for record, side in zip(records, sides, strict=False):
        record["split"] = side
    read = read_table(json.dumps(records).encode())
    made = convert(read, guess_mapping(read))
    assert (made.n_rows, made.refused) == (3, [])
    [note] = made.table.notes
    assert note.startswith(
        "1 row has another label than a row above with the same context, but for"
    )
    assert "(line 2 and line 1)" in note


@COPIES
def test_near_copies_of_a_dataset_are_reported(copy):
    with steelyard.embed(engine="hashing") as server:
        client = server.client

        def read(rows):
            table = read_table(
                json.dumps(
                    [dict(zip(("text", "label", "split"), row, strict=False)) for row in rows]
                ).encode()
            )
            return convert(table, guess_mapping(table))

        first = [(OWN, "a", "test"), ("Fine", "b", "train"), ("Thanks", "a", "train")]
        dataset = client.datasets.create("first", read(first).parts)
        # The server picks the sides: what is on the evaluation side is left out, and the rest told.
        made = with_truths_of(
            read([(copy, "a"), (OWN, "a"), ("THANKS", "a"), ("New", "b")]), client, dataset
        )
        assert [bool(line.strip()) for line in made.lines] == [False, True, True, True]
        assert made.refused[0].reason.startswith(
            "Its context is in the dataset, but for case, blanks"
        )
        assert [note.partition(",")[0] for note in made.table.notes] == [
            "1 context is in the dataset on the other side",
            "1 context is in the dataset on the training side",
        ]
        # Where the file names them, a copy on the same side is none.
        named = [(copy, "a", "test"), ("thanks", "a", "train"), ("FINE", "b", "test")]
        made = with_truths_of(read(named), client, dataset)
        assert [bool(line.strip()) for line in made.lines] == [True, True, False]
        # Its label is another one.
        made = with_truths_of(read([(copy, "b", "test"), ("Late", "a", "train")]), client, dataset)
        [note] = made.table.notes
        assert note.startswith(
            "1 row has another label than the dataset with the same context, but"
        )
        assert "quoted mail (line 1):" in note
