"""The additions of a version over an older one, the same in a directory and in an object store."""

from __future__ import annotations

import numpy as np

from steelyard.datasets.frames.differences import compare_versions
from steelyard.datasets.frames.vectors import nearest_rows
from support.datasets.dataset_rows import make_row_dict, make_rows, write_version


def test_rows_added_and_contexts_labelled_otherwise(store):
    first = write_version(store, make_rows(6))
    added = [
        make_row_dict("Invoice 0 was paid twice.", targets={"route": "other", "refund": "yes"}),
        make_row_dict("Invoice 1 was paid twice.", targets={"route": "support"}),
        make_row_dict("new"),
    ]
    second = write_version(store, added, previous=first)
    found = compare_versions(store, first, second)
    assert (found.from_, found.to, found.rows, found.first, found.contexts) == (1, 2, 3, 6, 1)
    assert found.asked == {"refund": 3, "route": 3}
    assert found.expected == {
        "refund": {"yes": 2},
        "route": {"billing": 1, "other": 1, "support": 1},
    }
    assert [(one.decision, one.before, one.after, one.contexts) for one in found.relabelled] == [
        ("route", "billing", "other", 1)
    ]


def test_vectors_are_made_once_and_kept_by_who_made_them(store):
    version = write_version(store, make_rows(10), fraction=1)
    read = []

    def embed(texts):
        read.extend(texts)
        return np.array([[1.0, 0.0] if "3" in text else [0.0, 1.0] for text in texts], "f4")

    wanted = np.array([1.0, 0.0], "f4")
    for scorer, n_read in (("one", 10), ("one", 10), ("two", 20)):
        found = nearest_rows(store, version, wanted, embed, scorer=scorer, limit=2)
        assert found == [(3, 1.0), (0, 0.0)]
        assert len(read) == n_read
    left = nearest_rows(store, version, wanted, embed, scorer="one", limit=1, without=3)
    assert left == [(0, 0.0)]
