"""Rows that two label apart, without a browser: answering, adjudicating, assigning, agreement."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

from steelyard.client.failures import ServerUnreachableError
from steelyard.decisions.several import multi_label
from steelyard.errors import DraftChangedError
from steelyard.review.duties_wire import (
    AgreedDecision,
    Assignment,
    Assignments,
    DraftAgreement,
    MovedAssignment,
    ReviewerProgress,
)
from steelyard.review.wire import DraftRow, RowAnswer
from steelyard.wire.measures import Measure
from support.review.desks import buttons, edits_sent, make_desk, press, texts
from support.review.drafts_in_memory import TEAM, URGENT, FakeClient, make_row


def said(reviewer: str, exclude: bool = False, **outcomes: str) -> RowAnswer:
    return RowAnswer(reviewer=reviewer, at=0.0, outcomes=outcomes, exclude=exclude)


def blank(number: int, **how: Any) -> DraftRow:
    """A row that waits for two, as the server shows it to one of them."""
    row = make_row(number, answers=(), **how)
    now = msgspec.structs.replace(row.now, labels={})
    return msgspec.structs.replace(row, now=now, targets=msgspec.UNSET)


def answers(client: FakeClient) -> list[Any]:
    return [call[1:] for call in client.drafts.calls if call[0] == "answer"]


def test_a_row_of_two_is_answered_whole_and_without_a_label() -> None:
    desk, client = make_desk([blank(i, decisions=(TEAM, URGENT)) for i in range(4)])
    desk.open_queue("assigned")
    assert "You label this row without seeing its label" in texts(desk)
    assert "✓ label" not in texts(desk)
    press(desk, "choose 2")
    assert (desk.rows.place, answers(client)) == (0, [])
    assert "shipping  ✓ chosen" in texts(desk)
    press(desk, "choose 1", "exclude", "skip", "accept", "note")
    assert answers(client) == [
        (0, {"team": "shipping", "urgent": "yes"}, False, "Bo"),
        (1, None, True, "Bo"),
    ]
    assert not edits_sent(client)
    assert desk.rows.place == 3
    assert not desk.notes.is_open
    # Undo shows the answer that was given last, to be given anew.
    press(desk, "undo")
    assert desk.rows.place == 1
    assert "**Bo:** exclude the row" in texts(desk)
    press(desk, "choose 3", "choose 2")
    assert answers(client)[-1] == (1, {"team": "technical", "urgent": "no"}, False, "Bo")
    # What is answered is in the queue no more: the next page begins after what is left.
    assert desk.rows.offset == 2


def test_labels_of_one_set_are_answered_together() -> None:
    asked = (*multi_label("topics", ["late parcel", "refund"]), URGENT)
    desk, client = make_desk([blank(i, decisions=asked) for i in range(2)])
    desk.open_queue("assigned")
    press(desk, "choose 2")
    assert desk.view.card.questions[0]["outcomes"][1]["label"] == "refund  ✓ chosen"
    press(desk, "choose 10", "choose 1")
    outcomes = {"topics_late_parcel": "no", "topics_refund": "yes", "urgent": "yes"}
    assert answers(client) == [(0, outcomes, False, "Bo")]
    assert desk.rows.place == 1


def test_rows_of_another_reviewer_take_no_edit_here() -> None:
    row = blank(0)
    blind = msgspec.structs.replace(row.blind, is_yours=False)
    desk, client = make_desk([msgspec.structs.replace(row, blind=blind), make_row(1)])
    press(desk, "choose 2", "accept", "exclude")
    assert "cannot be edited until all have answered" in texts(desk)
    assert (answers(client), edits_sent(client), desk.rows.place) == ([], [], 0)


def test_an_answer_waits_for_the_server_and_comes_back_when_it_is_refused() -> None:
    desk, client = make_desk([blank(0), blank(1)])
    client.drafts.failing = [ServerUnreachableError("Away.")]
    press(desk, "choose 2")
    assert "not sent" in texts(desk)
    desk.reconnect()
    assert answers(client) == [(0, {"team": "shipping"}, False, "Bo")]
    client.drafts.failing = [DraftChangedError("Both reviewers have answered row 1.")]
    press(desk, "choose 2")
    assert "Both reviewers have answered" in texts(desk)
    assert desk.rows.get(1).blind.answers == []


def test_a_dispute_shows_both_answers_and_is_decided_in_one_step() -> None:
    both = (said("ann", team="technical", urgent="yes"), said("bob", team="technical", urgent="no"))
    row = make_row(0, decisions=(TEAM, URGENT), answers=both, status="disagreed")
    gone = (said("ann", exclude=True), said("bob", team="billing"))
    desk, client = make_desk([row, make_row(1, answers=gone, status="disagreed")])
    desk.open_queue("disagreement")
    shown = buttons(desk.view.card)
    assert shown["technical"]["label"].endswith("● ann  ● bob  ✓ chosen")
    assert (shown["yes"]["label"], shown["no"]["label"]) == ("yes  ● ann", "no  ✓ label  ● bob")
    # What both said is chosen already: the other decision is all that is asked.
    press(desk, "choose 1")
    [first, second] = edits_sent(client)
    assert (first["outcome"], second["outcome"]) == ("technical", "yes")
    assert desk.rows.place == 1
    assert "exclude the row" in texts(desk)
    press(desk, "exclude", "undo", "undo")
    assert [client.drafts.held[number].now.state for number in (0, 1)] == ["untouched", "untouched"]


def test_sealing_lists_unsettled_rows_of_two() -> None:
    disputed = (said("ann", team="billing"), said("bob", team="technical"))
    desk, _ = make_desk([blank(0), blank(1), make_row(2, answers=disputed, status="disagreed")])
    desk.seal.ask()
    assert "2</td>" in texts(desk)
    assert "wait for two reviewers" in texts(desk)
    assert "rows are disputed" in texts(desk)


def share(value: float, n: int = 8) -> Measure:
    return Measure(value=value, low=value - 0.1, high=value + 0.1, n=n)


def test_reviewers_are_shown_with_their_agreement_and_rows_are_assigned() -> None:
    desk, client = make_desk()
    calls: list[Any] = []
    progress = [ReviewerProgress(reviewer="ann", rows=20, done=5, blind=8, known=share(0.8))]
    known = Assignments(data=progress, unassigned=7, candidates=None)
    agreement = DraftAgreement(
        blind=8,
        answered=6,
        agreed=4,
        disputed=2,
        to_adjudicate=1,
        exclusions=1,
        decisions=[AgreedDecision(decision_id="team", alpha=share(0.7), agreement=share(0.8))],
    )

    none = DraftAgreement(
        **dict.fromkeys(("blind", "answered", "agreed", "disputed", "to_adjudicate"), 0),
        exclusions=0,
        decisions=[],
    )

    def assign(draft_id: str, names: list[str], **given: Any) -> Assignment:
        calls.append((names, given["overlap"], given["queue"], given["limit"]))
        calls.append((given["known_share"], given["known_by"]))
        shares, known = dict.fromkeys(names, 2), int(given["known_share"] is not None)
        return Assignment(
            draft_id=draft_id, rows=3, blind=1, known=known, left_out=0, reviewers=shares
        )

    def move(draft_id: str, from_: str, to: str | None) -> MovedAssignment:
        calls.append((from_, to))
        return MovedAssignment(draft_id=draft_id, moved=15, kept=2)

    vars(client.drafts).update(
        assignments=lambda draft_id: known,
        agreement=lambda draft_id, by: agreement if by != "click" else none,
        assign=assign,
        move_assigned=move,
    )
    desk.beside.choice.value = "Reviewers"
    shown = texts(desk)
    for part in (
        "0.700 (0.600 to 0.800, n = 8)",
        "80 % (70 to 90, of 8)",
        "Without a reviewer: 7 undecided rows",
        "Decide 1 disputed",
    ):
        assert part in shown
    # Of rows whose labels came from somewhere: the choice stays, and other figures come.
    desk.reviewers.by.value = "click"
    assert "No row with such labels has two reviewers." in texts(desk)
    desk.reviewers.by.value = "expert"
    assert "0.700 (0.600 to 0.800, n = 8)" in texts(desk)
    reviewers = desk.reviewers
    reviewers.typed.value, reviewers.overlap.value = "ann, bob,ann ", 25
    asyncio.run(reviewers.assign())
    assert calls.pop() == (None, None)
    assert calls.pop() == (["ann", "bob"], 0.25, "to_review", None)
    assert "3 rows of To review assigned, 1 of them to two: ann 2, bob 2." in texts(desk)
    reviewers.known.value, reviewers.known_by.value = 10, "person"
    asyncio.run(reviewers.assign())
    assert calls.pop() == (0.1, "person")
    assert "1 of them to two, 1 known: ann 2, bob 2." in texts(desk)
    reviewers.from_.value, reviewers.to.value = "ann", " bob "
    asyncio.run(reviewers.move())
    assert calls.pop() == ("ann", "bob")
    assert "15 rows of ann are bob's. 2 stay." in texts(desk)


@pytest.mark.parametrize("candidates", [None, ["ann@example.org", "bob@example.org"]])
def test_a_role_that_may_not_assign_sees_who_may(candidates: list[str] | None) -> None:
    desk, client = make_desk(is_signed_in=True)
    progress = [ReviewerProgress(reviewer="bob@example.org", rows=2, done=0, blind=0)]
    known = Assignments(
        data=progress, unassigned=4, candidates=candidates, invited=(candidates or [])[1:]
    )
    none = SimpleNamespace(blind=0)
    vars(client.drafts).update(assignments=lambda _: known, agreement=lambda _, by: none)
    desk.beside.choice.value = "Reviewers"
    may = candidates is not None
    assert ("An owner or a developer" in texts(desk)) is not may
    names = {"ann@example.org": "ann@example.org", "bob@example.org (invited)": "bob@example.org"}
    assert desk.reviewers.members.options == (names if may else [])
    assert ("bob@example.org (invited)</td>" in texts(desk)) is may
