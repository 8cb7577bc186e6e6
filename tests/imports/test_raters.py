"""Several people's answers in a plain table become one label, with the share of each; typing errors are noted."""

from __future__ import annotations

import json

import pytest

from steelyard.cli.importing import choose_columns
from steelyard.client.tables import (
    convert,
    guess_mapping,
    label_of,
    read_table,
    with_raters,
)

NAMES = ("spam", "ham", "other")
#: Two answers to each of twelve rows, which agree on all but two.
PAIRS = [(NAMES[n % 3], NAMES[n % 3 if n % 4 else 1]) for n in range(12)]


def read(cells, *known):
    rows = [{"text": f"Message number {n} of many", **of_row} for n, of_row in enumerate(cells)]
    return with_raters(read_table("\n".join(map(json.dumps, rows)).encode(), "a.jsonl"), known)


@pytest.mark.parametrize(
    ("label", "cells"),
    [
        ("label", lambda a, b: {"label_1": a, "label_2": b}),
        ("label", lambda a, b: {"annotator_a": a, "annotator_b": b}),
        (
            "label",
            lambda a, b: {"coder_anna": a, "coder_ben": b.replace("sp", "Sp"), "coder_c": None},
        ),
        ("sentiment", lambda a, b: {"rater1 sentiment": a, "rater2 sentiment": b}),
        ("labels", lambda a, b: {"labels": [a, b, b]}),
        ("labels", lambda a, b: {"labels": {"ann": a, "bob": b}}),
        (
            "annotations",
            lambda a, b: {"annotations": [{"user": "x", "label": a}, {"user": "y", "label": b}]},
        ),
    ],
)
def test_answers_of_several_people_are_shares(label, cells):
    table = read([cells(*pair) for pair in PAIRS])
    made = convert(table, guess_mapping(table))
    rows = [json.loads(line)["targets"] for line in made.lines]
    assert {*map(len, rows)} == {1}
    assert rows[1] == {label: "ham"}
    disputed = [n for n, row in enumerate(rows) if isinstance(row[label], dict)]
    assert disputed == [0, 8]
    assert set(rows[0][label]) == {"spam", "ham"}
    assert sum(rows[0][label].values()) == pytest.approx(1)
    assert any(f"{label}: several answers to 12 rows, which agree on 10;" in n for n in table.notes)
    # Who gave which is recorded where the file says it.
    is_named = not isinstance(cells(*PAIRS[0]).get("labels"), list)
    assert bool(made.replies) == is_named


@pytest.mark.parametrize("column", ["annotator", "WorkerId"])
def test_rows_of_a_person_each_are_joined_by_their_text(column):
    rows = [
        {"text": f"Message number {n} of many", column: by, "label": label}
        for n, pair in enumerate(PAIRS)
        for by, label in zip("xy", pair, strict=True)
    ]
    table = with_raters(read_table("\n".join(map(json.dumps, rows)).encode(), "a.jsonl"))
    made = convert(table, guess_mapping(table))
    assert (made.n_rows, made.refused) == (12, [])
    assert json.loads(made.lines[0])["targets"] == {"label": {"ham": 0.5, "spam": 0.5}}
    assert {reply["reviewer"] for reply in made.replies[0]} == {"x", "y"}
    # A person with two answers to a text is reported as any contradiction is.
    again = {**rows[1], "label": "other"}
    twice = with_raters(read_table("\n".join(map(json.dumps, [*rows, again])).encode(), "a.jsonl"))
    assert (len(twice.rows), twice.replies) == (25, ())
    # Work that was rejected is no vote, and is told as before.
    for place, row in enumerate(rows):
        row["AssignmentStatus"] = "Rejected" if place % 9 == 0 else "Approved"
    told = with_raters(read_table("\n".join(map(json.dumps, rows)).encode(), "a.jsonl"))
    assert (len(told.rows), told.replies) == (24, ())


@pytest.mark.parametrize(
    ("cells", "target"),
    [
        (["{0},urgent,", "{0},,vip"], {"tag_spam": "yes", "tag_urgent": "yes", "tag_vip": "no"}),
        (["{0},{0},{1}"], {"tag": {"ham": 0.333333, "spam": 0.666667}}),
        (["{0},{0},"], {"tag": "spam"}),
    ],
    ids=["labels", "people", "copies"],
)
def test_columns_of_one_name_are_one_label(cells, target):
    lines = [
        f"Message number {n} of many,{cells[n % len(cells)].format(*pair)}"
        for n, pair in enumerate(PAIRS)
    ]
    table = with_raters(read_table("\n".join(["text,tag,tag,tag", *lines]).encode()))
    made = convert(table, guess_mapping(table))
    assert made.refused == []
    assert target.items() <= json.loads(made.lines[0])["targets"].items()


TOPICS = [(NAMES[n % 3], NAMES[(n + 1) % 3]) for n in range(12)]


@pytest.mark.parametrize(
    ("cells", "n_labels"),
    [
        # Two labels of one text, levels of a tree, questions of yes and no, and a label for each word.
        ([{"topic_1": a, "topic_2": b} for a, b in TOPICS], 2),
        ([{"label_1": a, "label_2": f"{a}/{b}"} for a, b in PAIRS], 2),
        ([{"label_1": a == "ham", "label_2": b == "ham"} for a, b in PAIRS], 2),
        ([{"ner_tags": [a, b, a], "tokens": ["my", "late", "parcel"]} for a, b in PAIRS], 1),
        ([{"tags": [a, b]} for a, b in TOPICS], 1),
    ],
)
def test_other_labels_stay_apart(cells, n_labels):
    table = read(cells)
    assert (table.raters, table.replies) == ((), ())
    assert len(guess_mapping(table).labels) == n_labels
    is_doubtful = "topic_1" in table.columns
    assert any("topic_1, topic_2 have the same outcomes" in n for n in table.notes) == is_doubtful


def test_answers_with_their_people_are_joined_however_they_agree():
    cells = [
        {"ratings": [{"user": 1, "rating": n % 3}, {"user": 2, "rating": (n + 1) % 3}]}
        for n in range(12)
    ]
    table = read(cells)
    made = convert(table, guess_mapping(table))
    assert json.loads(made.lines[0])["targets"] == {"ratings": {"0": 0.5, "1": 0.5}}
    # A person's several labels are labels of the text.
    own = [{"annotations": [{"user": 1, "label": a}, {"user": 1, "label": b}]} for a, b in TOPICS]
    assert read(own).replies == ()


@pytest.mark.parametrize(
    "cells",
    [
        lambda a, b: {"label": a, "label_1": a, "label_2": b},
        lambda a, b: {"label": a, "annotator_labels": [a, a, b]},
    ],
)
def test_a_label_beside_those_of_people_is_the_truth(cells):
    table = read([cells(*pair) for pair in PAIRS])
    assert [label.column for label in guess_mapping(table).labels] == ["label"]
    assert any("The label is label." in note for note in table.notes)


def test_a_dataset_may_ask_a_decision_for_each_person():
    cells = [{"label_1": a, "label_2": b} for a, b in PAIRS]
    assert read(cells, "label_1").raters == ()


def test_other_columns_with_the_same_outcomes_are_named():
    rows = [f"A text {n},{a},{b}" for n, (a, b) in enumerate(PAIRS)]
    table = read_table("\n".join(["text,gpt_label,human_label", *rows]).encode())
    assert len(choose_columns(with_raters(table), [], [], []).labels) == 2
    assert table.notes[-1].startswith("gpt_label, human_label have the same outcomes, and are a")


def test_a_probable_typing_error_in_a_label_is_noted():
    cells = [*["billing"] * 40, *["shipping"] * 20, "biling", "billings", "sales"]
    rows = [f"row {n},{cell}" for n, cell in enumerate(cells)]
    label = label_of(read_table("\n".join(["text,team", *rows]).encode()), "team")
    assert "typing error: biling for billing, billings for billing. If so" in label.note
    assert len(label.outcomes) == 5
