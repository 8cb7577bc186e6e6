"""Rows of drafts and their logs: a written value is read again, in either database."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.caller import LOCAL_ACCOUNT
from steelyard.review import store as rows
from steelyard.review.log import Entry, EntryBody
from steelyard.review.wire import DraftsQuery

DRAFT = {
    "id": "draft_1",
    "account_id": LOCAL_ACCOUNT,
    "dataset_id": "ds_1",
    "dataset_version": 1,
    "name": "n",
    "rows": 10,
    "created_at": 1.0,
    "updated_at": 1.0,
}


def entry(number, row=None, reviewer="ann", action="exclude", places=None, **fields):
    return Entry(
        number=number,
        reviewer=reviewer,
        action=action,
        row=row,
        places=None if places is None else np.array(places),
        target=fields.pop("target", None),
        body=EntryBody(**fields),
    )


@pytest.fixture
def drafted(state):
    state.write_now(lambda connection: rows.insert_draft(connection, DRAFT))
    return state


def append(state, *entries):
    state.write_now(lambda connection: rows.append_entries(connection, "draft_1", entries, at=2.0))


def test_a_log_is_read_as_it_was_written(drafted):
    labels = {"yes": 0.25, "no": 0.75}
    append(
        drafted,
        entry(1, 3, action="relabel", decision="d", labels=labels, outcome="no"),
        entry(2, places=[1, 2, 9], reviewer=None, action="accept"),
    )
    first, second = drafted.read_now(lambda c: rows.entries_after(c, "draft_1", 0))
    assert (first.row, first.body.labels, first.body.outcome) == (3, labels, "no")
    assert (second.row, second.places.tolist(), second.reviewer) == (None, [1, 2, 9], None)
    assert drafted.read_now(lambda c: rows.entries_after(c, "draft_1", 2)) == []
    found = drafted.read_now(lambda c: rows.find_draft(c, LOCAL_ACCOUNT, "draft_1"))
    assert (found.revision, found.updated_at) == (2, 2.0)
    assert drafted.read_now(lambda c: rows.find_draft(c, "another", "draft_1")) is None


def test_the_log_of_one_row_has_the_entries_about_many(drafted):
    many = [entry(number, places=[number, 90, 91]) for number in range(2, 30)]
    append(drafted, entry(1, 5), *many, entry(30, 5, action="note", note="n"))

    def page(row, after, limit):
        found, has_more = drafted.read_now(
            lambda c: rows.page_entries(c, "draft_1", row=row, after=after, limit=limit)
        )
        return [one.number for one in found], has_more

    assert page(5, None, 2) == ([30, 5], True)
    assert page(5, 5, 2) == ([1], False)
    assert page(90, None, 3) == ([29, 28, 27], True)
    assert page(77, None, 3) == ([], False)
    assert page(None, 3, 5) == ([2, 1], False)


def test_undo_and_redo_are_of_the_reviewers_own_entries(drafted):
    append(drafted, entry(1, 1), entry(2, 2, reviewer=None), entry(3, 3), entry(4, 4))

    def number(find, reviewer="ann"):
        found = drafted.read_now(lambda c: find(c, "draft_1", reviewer))
        return None if found is None else found.number

    def set_undone(which, undone):
        drafted.write_now(lambda c: rows.set_undone(c, "draft_1", [which], undone))

    assert number(rows.find_undoable) == 4
    assert number(rows.find_undoable, None) == 2
    assert number(rows.find_redoable) is None
    set_undone(4, rows.UNDONE)
    set_undone(3, rows.UNDONE)
    append(drafted, entry(5, 4, action="undo", target=4), entry(6, 3, action="undo", target=3))
    assert (number(rows.find_undoable), number(rows.find_redoable)) == (1, 3)
    drafted.write_now(lambda c: rows.drop_redoable(c, "draft_1", "ann"))
    assert number(rows.find_redoable) is None


def test_a_draft_with_edits_is_open_until_it_is_sealed_or_deleted(drafted):
    def is_open():
        return drafted.read_now(lambda c: rows.has_open(c, "ds_1"))

    assert not is_open()
    append(drafted, entry(1, 1))
    assert is_open()
    drafted.write_now(lambda c: rows.seal_draft(c, "draft_1", at=3.0, sealed=b"{}"))
    assert not is_open()
    page = drafted.read_now(
        lambda c: rows.page_drafts(c, LOCAL_ACCOUNT, DraftsQuery(status="sealed", limit=10))
    )
    assert [row.id for row in page.rows] == ["draft_1"]
    drafted.write_now(lambda c: rows.delete_draft(c, "draft_1"))
    assert drafted.read_now(lambda c: rows.entries_after(c, "draft_1", 0)) == []
