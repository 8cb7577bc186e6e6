"""Others' edits meanwhile, refused edits, and the subject of an undo."""

from __future__ import annotations

import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

from steelyard.client.failures import ServerUnreachableError, UnexpectedAnswerError
from steelyard.errors import DraftChangedError, RateLimitedError, StorageUnavailableError
from steelyard_workbench.parts.review.row_filter import RowFilter, write_query
from support.review.desks import edits_sent, make_desk, press, states, texts
from support.review.drafts_in_memory import TEAM, URGENT, make_row


def test_a_row_edited_by_another_is_shown_beside_the_own_edit() -> None:
    desk, client = make_desk()
    client.drafts.by_other(0, "technical")
    press(desk, "choose 2")
    [conflict] = desk.steps.conflicts
    shown = texts(conflict)
    assert "relabelled, team: technical, by Ada" in shown
    assert "team is shipping" in shown
    assert client.drafts.held[0].now.labels["team"] == {"technical": 1.0}
    desk.steps.keep_mine(conflict)
    assert client.drafts.held[0].now.labels["team"] == {"shipping": 1.0}
    assert not desk.steps.conflicts


def test_theirs_can_be_kept() -> None:
    desk, client = make_desk()
    client.drafts.by_other(0, "technical")
    press(desk, "choose 2")
    desk.steps.keep_theirs(desk.steps.conflicts[0])
    assert client.drafts.held[0].now.labels["team"] == {"technical": 1.0}
    assert desk.rows.rows[0].now.reviewer == "Ada"
    assert not desk.queue.unsent


def test_no_edit_of_a_row_overwrites_another_persons() -> None:
    desk, client = make_desk([make_row(0, decisions=(TEAM, URGENT)), make_row(1)])
    client.drafts.by_other(0, "technical")
    client.drafts.by_other(0, "yes", decision="urgent")
    press(desk, "choose 2", "choose 2")  # shipping, and not urgent, as the row was shown
    assert len(desk.steps.conflicts) == 1  # the label of urgent is the one that was there
    press(desk, "previous", "choose 2", "choose 1")
    theirs = {"team": {"technical": 1.0}, "urgent": {"yes": 1.0}}
    assert client.drafts.held[0].now.labels == theirs
    for conflict in list(desk.steps.conflicts):
        desk.steps.keep_theirs(conflict)
    assert client.drafts.held[0].now.labels == theirs


def test_a_row_that_is_only_counted_is_not_one_that_was_seen() -> None:
    desk, client = make_desk(query=write_query(RowFilter(), "all"))
    press(desk, "accept")
    client.drafts.by_other(0, "technical")
    press(desk, "accept", "previous", "previous")  # the first row of the queue was counted by now
    assert desk.rows.current.row == 0
    press(desk, "choose 2")
    [conflict] = desk.steps.conflicts
    assert client.drafts.held[0].now.labels["team"] == {"technical": 1.0}
    desk.steps.keep_mine(conflict)
    assert client.drafts.held[0].now.labels["team"] == {"shipping": 1.0}


def test_a_row_that_the_table_shows_is_shown_so_in_focus_too() -> None:
    desk, client = make_desk(query=write_query(RowFilter(), "all"))
    client.drafts.by_other(0, "technical")
    page = desk.reader.fetch_table(0, 25, None)
    desk.open_row(page.data[0])
    assert "3  technical  ✓ label" in texts(desk)
    press(desk, "choose 2")
    assert not desk.steps.conflicts


def test_an_undo_takes_back_the_step_that_it_shows_and_no_other() -> None:
    desk, client = make_desk(reviewer="")
    press(desk, "choose 2")
    client.drafts.by_other(1, "technical", name=None)  # neither gave a name
    press(desk, "undo")
    assert states(client)[:2] == ["untouched", "relabelled"]
    press(desk, "redo")
    assert states(client)[:2] == ["relabelled", "relabelled"]


def test_a_refused_edit_is_not_undone_there() -> None:
    desk, client = make_desk()
    press(desk, "accept")
    client.drafts.failing = [ServerUnreachableError("No connection.")]
    press(desk, "choose 2")
    client.drafts.by_other(1, "technical")
    press(desk, "undo")  # of an edit that the server may have
    assert [entry.kind for entry in desk.queue.unsent] == ["edit", "undo"]
    desk.reconnect()
    assert states(client)[:2] == ["accepted", "relabelled"]
    assert desk.rows.rows[1].now.reviewer == "Ada"
    assert desk.rows.current.row == 1
    assert "3  technical  ✓ label" in texts(desk)
    assert not desk.steps.conflicts  # what was taken back is not asked for
    press(desk, "undo")
    assert states(client)[:2] == ["untouched", "relabelled"]


def test_an_edit_whose_answer_was_lost_is_undone_on_the_server() -> None:
    desk, client = make_desk()
    client.drafts.losing = [ServerUnreachableError("It broke.")]
    press(desk, "choose 2")
    assert states(client)[0] == "relabelled"
    press(desk, "undo")
    desk.reconnect()
    assert states(client)[0] == "untouched"
    assert len(edits_sent(client)) == 1


@pytest.mark.parametrize(
    "passing",
    [
        StorageUnavailableError("The disk is full."),
        RateLimitedError("Too many.", retry_after_s=1.0),
        UnexpectedAnswerError("Bad gateway.", http_status=502),
    ],
)
def test_edits_that_cannot_be_taken_for_now_are_kept(passing: Exception) -> None:
    desk, client = make_desk()
    client.drafts.failing = [passing]
    press(desk, "choose 2", "accept")
    assert desk.rows.place == 2
    assert "2 edits are not sent." in texts(desk)
    desk.reconnect()
    assert states(client)[:2] == ["relabelled", "accepted"]


def test_a_refused_undo_leaves_the_step_to_be_undone_again() -> None:
    desk, client = make_desk()
    press(desk, "choose 2", "accept")
    client.drafts.failing = [DraftChangedError("Try again.")]
    press(desk, "undo")
    assert states(client)[:2] == ["relabelled", "accepted"]
    assert desk.rows.rows[1].now.state == "accepted"
    press(desk, "undo")
    assert states(client)[:2] == ["relabelled", "untouched"]


def test_an_edit_undone_in_another_tab_is_shown_as_it_is() -> None:
    desk, client = make_desk()
    press(desk, "choose 2", "accept")
    client.drafts.undo("dr_1", "Bo", last=1, idempotency_key="other tab")
    press(desk, "undo", "undo")
    assert states(client)[:2] == ["untouched", "untouched"]
    assert [row.now.state for row in desk.rows.rows] == states(client)
    assert desk.last_message == "Nothing is left to undo."
    press(desk, "choose 2")
    assert states(client)[0] == "relabelled"
