"""Several labels at once, as yes/no decisions that any request takes."""

from __future__ import annotations

import pytest

from steelyard.decisions.several import label_sets, multi_label
from steelyard.decisions.validation import read_request


def test_each_label_is_a_decision_with_an_id_of_its_own():
    labels = {"late parcel": "it has not come", "late/parcel": None, "Ü": None}
    decisions = multi_label("topics", labels, "Is it about")
    assert [one["id"] for one in decisions] == [
        "topics_late_parcel",
        "topics_late_parcel_2",
        "topics_label",
    ]
    first, second, _ = read_request({"context": "", "decisions": decisions}).decisions
    assert (first.question, first.kind) == ("Is it about late parcel", "binary")
    assert first.outcomes.descriptions == ("it has not come", None)
    assert second.outcomes.descriptions == (None, None)


@pytest.mark.parametrize("labels", [[], ["a", "a"]])
def test_labels_are_there_and_differ(labels):
    with pytest.raises(ValueError, match="each once"):
        multi_label("topics", labels)


@pytest.mark.parametrize(
    ("name", "labels", "question"),
    [
        ("topics", ["late parcel", "late refund", "lost parcel"], None),
        ("my_topics", ["C++", "late parcel"], None),
        ("my_topics", ["C++", "Go"], "Is it about {}?"),
        ("t", ["a b", "a-b", "a/b"], None),
        ("topics", ["y" * 70, "z" * 70], "Of"),
    ],
)
def test_a_set_of_labels_is_known_by_its_decisions(name, labels, question):
    made = multi_label(name, labels, question)
    team = {"id": "team", "kind": "single", "question": "Which?", "outcomes": ["a", "b"]}
    other = {"id": f"{name}_other", "kind": "binary", "question": "Money back?"}
    (known,) = label_sets([team, *made, other])
    assert known.name == name
    assert dict(known.labels) == dict(zip([each["id"] for each in made], labels, strict=True))


def test_other_decisions_are_no_set():
    assert label_sets(multi_label("topics", ["refund"])) == []
    asked = [{"id": f"a_{n}", "kind": "binary", "question": f"Is {n} so?"} for n in ("x", "y")]
    assert label_sets([{**asked[0], "question": {"text": "x"}}, asked[1]]) == []
    assert label_sets([asked[0], {**asked[1], "id": "b"}]) == []
