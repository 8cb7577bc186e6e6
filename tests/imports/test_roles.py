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


AIRLINES = {
    "tweet_id": lambda n: f"5703061336777600{n:03}",
    "airline_sentiment": lambda n: ["neutral", "positive", "negative"][n % 3],
    "airline_sentiment_confidence": lambda n: [0.34, 0.66, 1.0][n % 3],
    "airline": lambda n: ["Virgin America", "United"][n % 2],
    "retweet_count": lambda n: n % 2,
    "text": lambda n: f"@VirginAmerica What flight {n} said, and to whom",
    "tweet_created": lambda n: f"2015-02-24 11:{n:02}:52 -0800",
    "user_timezone": lambda n: ["Quito", "Eastern Time (US & Canada)"][n % 2],
}
BESIDE = ["userTimezone", "time zone", "created_at_hour", "reply count", "annotator_id", "score"]


@pytest.mark.parametrize(
    ("columns", "labels"),
    [
        (AIRLINES, ["airline_sentiment"]),
        # Where no column is named as a label, what is kept about rows is still none.
        ({name: AIRLINES[name] for name in AIRLINES if "sent" not in name}, ["airline"]),
        ({"text": AIRLINES["text"], **dict.fromkeys(BESIDE, lambda n: [0.5, 1.5][n % 2])}, []),
        (
            {
                "text": AIRLINES["text"],
                "label": lambda n: n % 3,
                "label_text": lambda n: "abc"[n % 3],
            },
            ["label_text"],
        ),
        ({"text": AIRLINES["text"], "intent": lambda n: f"intent {n % 151}"}, ["intent"]),
        ({"text": AIRLINES["text"], "intentId": lambda n: n % 151}, ["intentId"]),
    ],
    ids=["airlines", "no sentiment", "beside", "numbers and names", "151 intents", "151 numbers"],
)
def test_labels_are_known_by_the_names_of_columns(columns, labels):
    rows = [{name: cell(n) for name, cell in columns.items()} for n in range(302)]
    table = read_table(pl.DataFrame(rows).write_csv().encode())
    mapping = guess_mapping(table)
    assert mapping.context == ("text",)
    assert [label.column for label in mapping.labels] == labels
    made = convert(table, mapping) if labels else None
    assert made is None or (made.n_rows, made.refused) == (302, [])
