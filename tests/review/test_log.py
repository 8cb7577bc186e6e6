"""Reviews: a fold of the entries that hold, the same however it is computed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.review.log import (
    STATES,
    Entry,
    EntryBody,
    Review,
    merge_labels,
    pack_places,
    unpack_places,
)

N_PLACES = 12
YES, NO = {"yes": 1.0}, {"no": 1.0}


def entry(number, action, row=0, reviewer="ann", *, places=None, target=None, same=None, **body):
    """One entry of a log."""
    return Entry(
        number=number,
        reviewer=reviewer,
        action=action,
        row=None if places is not None else row,
        places=None if places is None else np.array(places, dtype=np.int64),
        target=target,
        body=EntryBody(**body),
        same=None if same is None else np.array(same, dtype=np.int64),
    )


def review_of(*entries):
    review = Review(N_PLACES)
    review.extend(entries)
    return review


def state_of(review, row=0):
    return STATES[review.state[row]]


def test_the_last_decision_on_a_row_counts_and_exclusion_goes_before_it():
    review = review_of(
        entry(1, "relabel", decision="d", labels=NO),
        entry(2, "exclude"),
        entry(3, "relabel", decision="e", labels=YES),
    )
    assert state_of(review) == "excluded"
    assert review.fold(0).labels == {"d": NO, "e": YES}
    review.extend([entry(4, "include")])
    assert state_of(review) == "relabelled"
    review.extend([entry(5, "accept")])
    assert state_of(review) == "relabelled"
    review.extend([entry(6, "skip")])
    assert (state_of(review), review.fold(0).labels) == ("skipped", {})


def test_the_versions_own_label_is_no_change_but_a_decision():
    review = review_of(
        entry(1, "relabel", decision="d", labels=NO), entry(2, "relabel", decision="d")
    )
    assert (state_of(review), review.fold(0).labels) == ("accepted", {})


def test_many_rows_at_once_leave_out_those_that_are_so_already():
    review = review_of(
        entry(1, "relabel", places=[1, 2, 3], same=[2], decision="d", labels=NO, outcome="no")
    )
    assert [state_of(review, row) for row in range(4)] == [
        "untouched",
        "relabelled",
        "accepted",
        "relabelled",
    ]
    assert list(review.relabelled()) == [1, 3]
    assert review.fold(2).labels == {}


def test_undoing_takes_one_entry_out_and_leaves_later_ones_of_others():
    review = review_of(
        entry(1, "relabel", decision="d", labels=NO),
        entry(2, "note", reviewer="bob", note="why?"),
        entry(3, "undo", target=1),
    )
    assert (state_of(review), review.notes) == ("untouched", {0: "why?"})
    assert review.last_edits([0])[0] == (3, "ann")
    review.extend([entry(4, "redo", target=1)])
    assert (state_of(review), review.notes) == ("relabelled", {0: "why?"})


def test_a_note_stays_until_it_is_emptied():
    review = review_of(entry(1, "accept", note="sure"), entry(2, "exclude"))
    assert (review.notes, review.fold(0).note) == ({0: "sure"}, "sure")
    review.extend([entry(3, "note", note="")])
    assert (review.notes, review.fold(0).note) == ({}, None)


def test_who_edited_last_and_since_when():
    review = review_of(entry(1, "accept", 1), entry(2, "accept", 2, "bob"), entry(3, "skip", 1))
    assert np.flatnonzero(review.edited_by("ann")).tolist() == [1]
    assert np.flatnonzero(review.edited_by("nobody")).tolist() == []
    assert np.flatnonzero(review.edited_since(1, None)).tolist() == [1, 2]
    assert np.flatnonzero(review.edited_since(1, "ann")).tolist() == [2]


def test_an_undone_row_has_the_edit_before():
    review = review_of(
        entry(1, "accept", 1),
        entry(2, "accept", 2, "bob"),
        entry(3, "skip", 1, "bob"),
        entry(4, "undo", 1, "bob", target=3),
        entry(5, "undo", 2, "bob", target=2),
    )
    assert np.flatnonzero(review.edited_by("bob")).tolist() == [1, 2]
    assert np.flatnonzero(review.last_edited_by("bob")).tolist() == []
    assert np.flatnonzero(review.last_edited_by("ann")).tolist() == [1]


def test_a_log_with_a_gap_is_refused():
    with pytest.raises(ValueError, match="does not follow"):
        review_of(entry(2, "accept"))


def test_labels_of_other_decisions_stay():
    assert merge_labels({"d": YES}, {"e": NO}) == {"d": YES, "e": NO}


@given(st.sets(st.integers(0, 2**31), max_size=50))
def test_places_are_unpacked_as_they_were(places):
    ascending = np.array(sorted(places), dtype=np.int64)
    assert (unpack_places(pack_places(ascending)) == ascending).all()


@st.composite
def logs(draw):
    """Any log: edits of one row or many, and undoing and redoing of any of them."""
    entries, holding, undone = [], [], []
    for number in range(1, draw(st.integers(1, 25)) + 1):
        kinds = ["edit", *(["undo"] if holding else []), *(["redo"] if undone else [])]
        kind = draw(st.sampled_from(kinds))
        if kind == "edit":
            action = draw(
                st.sampled_from(["relabel", "exclude", "include", "accept", "skip", "note"])
            )
            places = draw(st.none() | st.sets(st.integers(0, N_PLACES - 1), min_size=2))
            body, same = {}, None
            if action == "relabel":
                body = {
                    "decision": draw(st.sampled_from("de")),
                    "labels": draw(st.sampled_from([YES, NO, None])),
                }
                if places and body["labels"]:
                    same = sorted(draw(st.sets(st.sampled_from(sorted(places)))))
            if action == "note":
                body = {"note": draw(st.sampled_from(["", "a", "b"]))}
            row = draw(st.integers(0, N_PLACES - 1))
            made = entry(
                number,
                action,
                row,
                draw(st.sampled_from(["ann", "bob", None])),
                places=None if places is None else sorted(places),
                same=same or None,
                **body,
            )
            holding.append(made)
        else:
            source, other = (holding, undone) if kind == "undo" else (undone, holding)
            target = source.pop(draw(st.integers(0, len(source) - 1)))
            other.append(target)
            made = entry(
                number,
                kind,
                target.row,
                places=None if target.places is None else target.places.tolist(),
                target=target.number,
            )
        entries.append(made)
    return entries


@given(logs(), st.data())
def test_all_rows_at_once_and_one_row_alone_come_to_the_same(entries, data):
    n_before = data.draw(st.integers(0, len(entries)))
    whole, part = review_of(*entries), review_of(*entries[:n_before])
    later = entries[n_before:]
    for row in range(N_PLACES):
        fold = whole.fold(row)
        assert STATES[whole.state[row]] == fold.state
        assert whole.notes.get(row) == fold.note
        assert part.fold(row, later) == fold
        assert part.last_edits([row], later)[row] == whole.last_edits([row])[row]
    every = range(N_PLACES)
    assert part.folds(every, later) == {row: whole.fold(row) for row in every}
    assert part.last_edits(every, later) == whole.last_edits(every)
    relabelled = set(whole.relabelled())
    assert relabelled == {row for row in range(N_PLACES) if whole.fold(row).labels}
