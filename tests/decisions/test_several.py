"""Several labels at once, as yes/no decisions that any request takes."""

from __future__ import annotations

import pytest

from steelyard.decisions.several import multi_label
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
