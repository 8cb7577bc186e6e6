"""Which columns are the context and the labels, where files of tools have several that might be."""

from __future__ import annotations

import json

import polars as pl
import pytest

from steelyard.client.tables import convert, guess_mapping, read_table


@pytest.mark.parametrize(
    ("names", "context"),
    [
        (("premise", "hypothesis"), ("premise", "hypothesis")),
        (("question2", "question1"), ("question2", "question1")),
        (("text_a", "text_b"), ("text_a", "text_b")),
        (("title", "body"), ("body",)),
    ],
)
def test_the_two_texts_that_a_label_is_about_are_the_context(names, context):
    first, second = names
    rows = [
        {
            "id": n,
            first: f"A man sits {n}",
            second: f"It is a man {n} times three",
            "y": "ab"[n % 2],
        }
        for n in range(20)
    ]
    mapping = guess_mapping(read_table(json.dumps(rows).encode()))
    assert mapping.context == context
    for row in rows:
        row[first] = None
    assert guess_mapping(read_table(json.dumps(rows).encode())).context == (second,)


def test_an_object_with_a_text_is_the_context_before_an_id():
    rows = [
        {"id": f"r{n}", "inputs": {"text": f"a message {n}"}, "outputs": {"label": "ab"[n % 2]}}
        for n in range(20)
    ]
    mapping = guess_mapping(read_table(json.dumps(rows).encode()))
    assert mapping.context == ("inputs",)
    assert [label.column for label in mapping.labels] == ["outputs"]
    for row in rows:
        row["inputs"] = [{"role": "user", "content": row["inputs"]["text"]}]
        row["label"] = row.pop("outputs")["label"]
    mapping = guess_mapping(read_table(json.dumps(rows).encode()))
    assert (mapping.context, mapping.labels[0].column) == (("inputs",), "label")


@pytest.mark.parametrize(
    ("truth", "other"),
    [("expected", "output"), ("gold_label", "gpt4_label"), ("consensus label", "label of a model")],
)
def test_the_answers_of_others_are_no_label_beside_the_right_ones(truth, other):
    rows = [
        {"input": f"a message {n}", other: "ab"[n % 2], truth: "abc"[n % 3], "tone": "xy"[n % 2]}
        for n in range(24)
    ]
    mapping = guess_mapping(read_table(pl.DataFrame(rows).write_csv().encode()))
    assert [label.column for label in mapping.labels if label.column != "tone"] == [truth]
    # Nor are those that ``steelyard decide`` adds to a file.
    added = {"d.top": "a", "d.p_top": 0.5, "d.action": "a"}
    rows = [{**row, **added, "d.top": "ab"[n % 2]} for n, row in enumerate(rows)]
    table = read_table(pl.DataFrame(rows).write_csv().encode())
    assert {label.column for label in guess_mapping(table).labels} <= {truth, "tone"}


def test_rows_that_a_status_calls_rejected_are_reported():
    rows = [
        {"text": f"a message {n}", "label": "ab"[n % 2], "AssignmentStatus": "Approved"}
        for n in range(20)
    ]
    rows[3]["AssignmentStatus"] = "Rejected"
    table = read_table(pl.DataFrame(rows).write_csv().encode())
    [note] = convert(table, guess_mapping(table)).notes
    assert note.startswith("AssignmentStatus: 1 rows say rejected, and are used as others are;")
