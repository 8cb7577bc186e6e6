"""Warnings about the rows of a version: several labels of a context, and copies on both sides."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.datasets.frames.truths import with_warnings
from steelyard.review.revising import write_revision
from support.datasets.dataset_rows import ROUTE, make_row_dict, make_rows, write_version

OWN = "My parcel is late again"
IMAGE = {"id": 1, "media_type": "image/png"}


def labelled(label, context="a", **fields):
    return make_row_dict(context, targets={"route": label}, **fields)


def warned(store, *rows, **options):
    """The warnings of a version of some rows, and of twenty others."""
    made = write_version(store, [*rows, *make_rows(20)], **options)
    return [(one.code, one.message) for one in with_warnings(store, made).warnings]


def test_a_context_with_several_labels_is_warned_of(store):
    [(code, message)] = warned(store, labelled("billing"), labelled("other"), labelled("other"))
    assert code == "several_labels"
    assert message.startswith("1 context has several labels of route (rows of index 0, 1); one")


@pytest.mark.parametrize(
    "other",
    [
        make_row_dict("a", targets={"refund": "no"}),
        labelled({"billing": 1.0, "other": 0}),
        labelled("billing", decisions=[ROUTE]),
        labelled("other", decisions=[{**ROUTE, "question": "Who should not own this?"}]),
    ],
    ids=["another decision", "written otherwise", "asked alone", "another question"],
)
def test_rows_without_contradiction_have_no_warning(store, other):
    assert warned(store, labelled("billing"), other) == []


def test_a_later_version_has_the_warning_until_a_draft_corrects_it(store):
    first = write_version(store, [labelled("billing"), *make_rows(20)])
    assert with_warnings(store, first).warnings == ()
    second = write_version(store, [labelled("other")], previous=first)
    third = with_warnings(store, write_version(store, make_rows(2, start=50), previous=second))
    assert "(rows of index 0, 21)" in third.warnings[0].message
    none = np.array([], dtype=np.int64)
    corrected = write_revision(store, third, excluded=np.array([0]), replaced=none, rows={})
    assert corrected.warnings == ()


@pytest.mark.parametrize(
    "copy",
    [
        "My  PARCEL is late\t again",
        "<p>My parcel is <b>late</b> again</p>",
        "My parcel is late again\n\nOn 1 May, Anna wrote:\n> Hello\n> We sent it.",
    ],
    ids=["case and blanks", "markup", "quoted mail"],
)
def test_copies_on_both_sides_are_warned_of(store, copy):
    sides = {"training": [make_row_dict(OWN)], "evaluation": make_rows(2)}
    first = write_version(store, sides=sides)
    assert with_warnings(store, first).warnings == ()
    sides = {"evaluation": [make_row_dict(copy), make_row_dict({"text": copy})]}
    [warning] = with_warnings(store, write_version(store, sides=sides, previous=first)).warnings
    assert warning.code == "near_copies"
    assert warning.message.startswith("1 context is on both sides, but for case, blanks, markup")
    assert "(rows of index 3)" in warning.message


def test_copies_on_one_side_or_with_other_images_are_not(store):
    both = [make_row_dict(OWN), make_row_dict(OWN.upper())]
    assert warned(store, *both, fraction=1.0) == []
    pictured = [
        make_row_dict("<image:1>", images=[IMAGE | {"data": data}]) for data in ("aW1n", "aW1o")
    ]
    sides = {"training": pictured[:1], "evaluation": pictured[1:]}
    assert with_warnings(store, write_version(store, sides=sides)).warnings == ()
