"""Review without a browser: deciding, undoing, waiting edits, conflicts, and every state."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

import panel_material_ui as pmui

from steelyard.client.failures import ServerUnreachableError
from steelyard.decisions.several import multi_label
from steelyard.errors import (
    DraftChangedError,
    KeyScopeError,
    ModelUnavailableError,
)
from steelyard.review.wire import DraftRow
from steelyard_workbench.frame.app import App
from steelyard_workbench.kit.scheduling import schedule
from steelyard_workbench.kit.session import Session
from steelyard_workbench.pages.review.desk import Desk
from steelyard_workbench.pages.review.edits import Unsent
from steelyard_workbench.pages.review.page import ReviewPage
from steelyard_workbench.parts.datasets.questions import label_texts, with_now
from steelyard_workbench.parts.review.row_filter import RowFilter, read_query, write_query
from support.review.desks import buttons, edits_sent, make_desk, press, states, texts
from support.review.drafts_in_memory import TEAM, URGENT, FakeClient, make_row
from support.servers.held_calls import HeldCall, until_done
from support.waiting import check_that_it_stays_so


def test_keys_decide_and_go_on() -> None:
    desk, client = make_desk()
    press(desk, "choose 2", "accept", "exclude", "skip")
    assert states(client) == ["relabelled", "accepted", "excluded", "skipped"]
    assert client.drafts.held[0].now.labels["team"] == {"shipping": 1.0}
    assert {call[2] for call in client.drafts.calls if call[0] == "edit"} == {"Bo"}
    assert "You went through To review" in texts(desk)


def test_the_label_that_is_there_already_is_accepted_when_it_is_chosen() -> None:
    desk, client = make_desk()
    press(desk, "choose 1")
    assert states(client)[0] == "accepted"
    assert desk.last_message == "row 1 of 4, billing"


def test_a_number_without_an_outcome_does_nothing() -> None:
    desk, client = make_desk()
    press(desk, "choose 9")
    assert desk.rows.place == 0
    assert not edits_sent(client)


def test_every_decision_of_a_row_is_asked_before_the_next_row() -> None:
    desk, client = make_desk([make_row(0, decisions=(TEAM, URGENT)), make_row(1)])
    press(desk, "choose 3")
    assert desk.rows.place == 0
    assert "1  yes" in texts(desk)
    press(desk, "choose 1")
    assert desk.rows.place == 1
    assert client.drafts.held[0].now.labels == {"team": {"technical": 1.0}, "urgent": {"yes": 1.0}}
    # The second edit says that it saw the first: the reviewer's own edits do not collide.
    assert [edit["seen"] for edit in edits_sent(client)] == [0, 1]


def labelled(number: int, decisions: tuple[Any, ...], **labels: str) -> DraftRow:
    row = make_row(number, decisions=decisions)
    return with_now(row, labels={name: {outcome: 1.0} for name, outcome in labels.items()})


def test_outcomes_that_are_all_as_likely_are_no_label() -> None:
    even = with_now(make_row(0, decisions=(URGENT,)), labels={"urgent": {"yes": 0.5, "no": 0.5}})
    assert "✓ label" not in texts(make_desk([even])[0])


def test_labels_of_one_set_are_pressed_together_and_settled_by_one_key() -> None:
    asked = (*multi_label("topics", ["late parcel", "refund", "tax"]), URGENT)
    rows = [labelled(0, asked, topics_refund="yes", urgent="no"), labelled(1, asked), make_row(2)]
    desk, client = make_desk(rows)
    topics, urgent = desk.view.card.questions
    assert [choice["label"] for choice in topics["outcomes"]] == [
        "late parcel",
        "refund  ✓ label",
        "tax",
        "No other fits",
    ]
    assert [choice["key"] for choice in topics["outcomes"]] == ["1", "2", "3", "0"]
    assert [choice["key"] for choice in urgent["outcomes"]] == ["", ""]
    press(desk, "choose 1", "choose 2", "choose 3", "choose 3")
    assert desk.rows.place == 0
    assert [choice["is_filled"] for choice in desk.view.card.questions[0]["outcomes"]] == [
        *(True, False, False, False)
    ]
    press(desk, "choose 10")
    assert desk.view.card.questions[1]["outcomes"][0]["key"] == "1"
    press(desk, "choose 2")
    labels = client.drafts.held[0].now.labels
    assert label_texts(labels, asked) == ["urgent: no", "topics: late parcel"]
    # Of a row without labels one key says no of all, in one step.
    desk.view.pressed({"question": "topics *", "outcome": "done"})
    assert label_texts(client.drafts.held[1].now.labels, asked) == ["topics: none"]
    press(desk, "undo")
    assert client.drafts.held[1].now.labels == {}
    desk.view.pressed({"question": "topics *", "outcome": "topics_tax"})
    assert client.drafts.held[1].now.labels == {"topics_tax": {"yes": 1.0}}


def test_a_row_s_guideline_is_beside_it_until_it_is_folded() -> None:
    guided = {**TEAM, "guideline": "Invoices are *billing*."}
    desk, _ = make_desk(
        [make_row(0, decisions=(guided,)), make_row(1, decisions=(guided,)), make_row(2)]
    )
    [shown] = desk.__panel__().select(
        lambda view: (
            isinstance(view, pmui.Accordion)
            and getattr(view[0], "object", "") == guided["guideline"]
        )
    )
    assert (shown.visible, shown.active, shown[0].object) == (True, [0], "Invoices are *billing*.")
    shown.active = []
    press(desk, "accept")
    assert (shown.visible, shown.active) == (True, [])
    press(desk, "accept")
    assert not shown.visible


def test_levels_are_chosen_by_their_own_digits() -> None:
    rubric = ["calm", "annoyed", "angry"]
    levels = {"id": "anger", "kind": "ordinal", "question": "How angry?", "rubric": rubric}
    desk, client = make_desk([make_row(0, decisions=(levels,)), make_row(1)])
    assert "2  2" in texts(desk)
    press(desk, "choose 3")  # there is no level 3
    assert desk.rows.place == 0
    press(desk, "choose 2")
    assert client.drafts.held[0].now.labels["anger"] == {"2": 1.0}
    press(desk, "previous", "choose 10")  # the tenth digit is 0
    assert client.drafts.held[0].now.labels["anger"] == {"0": 1.0}


def test_buttons_print_their_key_and_the_label_is_marked_in_words() -> None:
    desk, _ = make_desk()
    shown = texts(desk)
    assert "1  billing  ✓ label" in shown
    assert "2  shipping" in shown
    for label in ("a  Accept", "x  Exclude", "s  Skip", "n  Note", "u  Undo", "Ctrl+y  Redo"):
        assert label in shown


def test_going_back_shows_the_decision() -> None:
    desk, _ = make_desk()
    press(desk, "choose 2", "previous")
    assert "2  shipping  ✓ label" in texts(desk)
    assert "**relabelled**" in texts(desk)


def test_undo_brings_the_row_back_and_redo_does_it_again() -> None:
    desk, client = make_desk()
    press(desk, "choose 2", "exclude", "undo", "undo")
    assert states(client)[:2] == ["untouched", "untouched"]
    assert desk.rows.place == 0
    assert desk.rows.rows[0].now.labels["team"] == {"billing": 1.0}
    press(desk, "redo")
    assert states(client)[0] == "relabelled"
    press(desk, "undo", "undo")
    assert desk.last_message == "Nothing is left to undo."


def test_an_excluded_row_is_included_by_the_same_key() -> None:
    desk, client = make_desk()
    press(desk, "exclude", "previous", "exclude")
    assert states(client)[0] == "untouched"


def test_a_note_is_kept_with_the_row() -> None:
    desk, client = make_desk()
    press(desk, "note")
    assert desk.notes.is_open
    assert not desk.on_key("accept", 1)  # keys are the dialog's while it is open
    desk.notes.write("ask Kim <b>")
    desk.notes.save()
    assert client.drafts.held[0].now.note == "ask Kim <b>"
    assert "**Note:** ask Kim <b>" in texts(desk)
    press(desk, "note", "close")
    assert not desk.notes.is_open


def test_a_reward_row_keeps_its_rewards_and_exchanges_the_best() -> None:
    rewards = {"team": {"billing": 1.0, "shipping": 0.2, "technical": 0.0}}
    old = make_row(0)
    now = type(old.now)(
        row=0, state="untouched", labels=rewards, relabelled=[], note=None, edit=0, reviewer=None
    )
    row = DraftRow(
        row=0,
        side="training",
        context="a",
        decisions=[TEAM],
        rewards=rewards,
        now=now,
        suspect=None,
        expected=None,
    )
    desk, client = make_desk([row])
    client.drafts.failing = [ModelUnavailableError("stop here")]
    press(desk, "choose 2")
    assert desk.rows.rows[0].now.labels == rewards  # refused, so it is as it was
    from steelyard_workbench.parts.datasets.questions import questions_of, relabel_fields

    [question] = questions_of(row.decisions)
    assert relabel_fields(row, question, "shipping") == {
        "rewards": {"billing": 0.2, "shipping": 1.0, "technical": 0.0}
    }


def test_a_refused_edit_brings_its_row_back_with_the_reason() -> None:
    desk, client = make_desk()
    client.drafts.failing = [DraftChangedError("The draft is another now.")]
    press(desk, "choose 2")
    assert desk.rows.rows[0].now.state == "untouched"
    assert desk.rows.place == 1  # the next key is for the row that is looked at
    assert "The draft is another now." in texts(desk)
    press(desk, "previous", "choose 2")
    assert states(client)[0] == "relabelled"
    assert "The draft is another now." not in texts(desk)


def test_edits_are_kept_and_listed_while_the_server_is_lost_and_sent_in_order() -> None:
    desk, client = make_desk()
    client.drafts.failing = [ServerUnreachableError("No connection.")]
    press(desk, "choose 2", "exclude", "note")
    desk.notes.write("later")
    desk.notes.save()
    assert states(client) == ["untouched"] * 4
    shown = texts(desk)
    assert "3 edits are not sent." in shown
    assert "row 0: team is shipping" in shown
    press(desk, "undo")  # what waits is taken back here
    assert len(desk.queue.unsent) == 2
    desk.reconnect()
    assert states(client) == ["relabelled", "excluded", "untouched", "untouched"]
    assert client.drafts.held[2].now.note is None
    assert "not sent" not in texts(desk)
    assert [edit["row"] for edit in edits_sent(client)] == [0, 1]


def test_edits_that_a_short_outage_lost_are_sent_once_the_server_answers() -> None:
    client: Any = FakeClient([make_row(i) for i in range(4)])
    client.health = lambda: None
    app = App(client)
    app.session.param.update(page="review", draft="dr_1", reviewer="Bo")
    assert isinstance(app.page, ReviewPage)
    assert app.page.desk is not None
    client.drafts.failing = [ServerUnreachableError("No connection.")]
    press(app.page.desk, "choose 2", "exclude")
    assert states(client) == ["untouched"] * 4
    schedule(app.look)
    assert app.session.is_connected
    assert states(client)[:2] == ["relabelled", "excluded"]
    assert "not sent" not in texts(app.page.desk)

    # Another page is looked at meanwhile.
    client.drafts.failing = [ServerUnreachableError("No connection.")]
    press(app.page.desk, "accept")
    app.page.close()
    app.page = None
    schedule(app.look)
    assert states(client)[2] == "accepted"


def test_rows_whose_edits_wait_are_counted_once() -> None:
    desk, client = make_desk(n_rows=60)
    client.drafts.failing = [ServerUnreachableError("No connection.")]
    press(desk, *["accept"] * 20)
    assert len(desk.queue.unsent) == 20
    assert len(desk.rows.rows) > 25
    assert desk.rows.place_text == "21 of 60"


def test_another_queue_clears_the_message_of_the_last() -> None:
    desk, _ = make_desk()
    press(desk, "exclude")
    assert "excluded" in desk.last_message
    desk.open_queue("all")
    assert desk.last_message == ""


def test_a_queue_is_read_once_earlier_edits_are_sent() -> None:
    async def exclude_and_look() -> str:
        desk, client = make_desk()
        await until_done()
        held = client.drafts.edit = HeldCall(client.drafts.edit)
        press(desk, "exclude")
        await held.until_called()
        desk.open_queue("excluded")
        await check_that_it_stays_so(lambda: not desk.rows.rows, 0.05)
        held.go_on()
        await until_done()
        return desk.rows.place_text

    assert asyncio.run(exclude_and_look()) == "1 of 1"


def test_edits_that_wait_can_be_sent_now() -> None:
    desk, client = make_desk()
    client.drafts.failing = [ServerUnreachableError("No connection.")]
    press(desk, "choose 2")
    assert states(client)[0] == "untouched"
    [now] = desk.__panel__().select(lambda one: getattr(one, "label", "") == "Send now")
    now.clicks += 1
    assert states(client)[0] == "relabelled"
    assert not desk.queue.unsent


def test_rows_are_fetched_ahead_and_none_is_left_out() -> None:
    desk, client = make_desk(n_rows=60)
    seen = []
    while desk.rows.current is not None:
        seen.append(desk.rows.current.row)
        press(desk, "skip" if len(seen) % 7 == 0 else "accept")
        assert desk.rows.is_complete or len(desk.rows.rows) - desk.rows.place >= 10
        assert desk.rows.total == 60
    assert seen == list(range(60))
    assert states(client).count("skipped") == 8


def test_counts_stand_in_the_tabs_and_follow_edits() -> None:
    desk, _ = make_desk()
    press(desk, "exclude")
    labels = [item["label"] for item in desk.tabs.items]
    assert labels[0] == "To review (3)"
    assert "Excluded (1)" in labels
    assert "Changed (1)" in labels
    assert "Suspect" in labels  # not counted until it is asked for


def test_the_counts_that_an_edit_changes_are_drawn_after_the_next_row() -> None:
    desk, _ = make_desk()

    async def exclude() -> tuple[str, int]:
        press(desk, "exclude")
        return desk.tabs.items[0]["label"], desk.rows.place

    assert asyncio.run(exclude()) == ("To review (4)", 1)


def test_the_queue_and_the_filter_stand_in_the_address() -> None:
    desk, client = make_desk()
    desk.open_queue("all")
    desk.filter(RowFilter(words="Ticket 3", side="training", at_least=5))
    chosen, queue = read_query(desk.session.query)
    assert (chosen.words, chosen.side, chosen.at_least, queue) == ("Ticket 3", "training", 5, "all")
    asked = [call for call in client.drafts.calls if call[0] == "rows"][-1]
    assert asked[2] == {
        "type": "all",
        "filters": [
            {"type": "side", "side": "training"},
            {"type": "characters", "op": "ge", "value": 5},
        ],
    }
    assert asked[3] == "Ticket 3"


def test_a_review_that_is_shown_again_writes_its_filter_into_the_address() -> None:
    desk, _ = make_desk()
    assert read_query(desk.session.query) == (RowFilter(), "to_review")
    desk.filter(RowFilter(words="Ticket 3"))
    desk.session.query = ""  # another page was looked at
    desk.start()
    assert read_query(desk.session.query) == (RowFilter(words="Ticket 3"), "to_review")


def test_a_filter_survives_the_address() -> None:
    chosen = RowFilter(words="a b", expected=(("team", "x"), ("team", "y")), side="evaluation")
    assert read_query(write_query(chosen, "mine")) == (chosen, "mine")
    assert chosen.where is not None
    assert chosen.where["filters"][0]["type"] == "any"
    for text in ("", "no json", "[]", '{"expected": 4, "side": "up", "at_least": -1}'):
        assert read_query(text) == (RowFilter(), "")


def test_a_filter_without_rows_is_named_and_can_be_cleared() -> None:
    desk, _ = make_desk()
    desk.filter(RowFilter(words="nowhere"))
    assert "No rows of To review match *words: nowhere*" in texts(desk)
    desk.filter(RowFilter())
    assert desk.rows.current is not None


@pytest.mark.parametrize(
    ("queue", "said"),
    [
        ("noted", "**Noted is empty:** no rows with a note."),
        ("suspect", "Comparing rows.** 3 of 9 so far."),
        ("mine", "write it into **Your name**"),
    ],
)
def test_an_empty_queue_says_why(queue: Any, said: str) -> None:
    desk, _ = make_desk(reviewer="")
    desk.open_queue(queue)
    assert said in texts(desk)


def test_rows_that_cannot_be_had_leave_the_rest_and_come_back() -> None:
    client = FakeClient([make_row(0)])
    client.drafts.failing = [ModelUnavailableError("The model is away.")]
    desk = Desk(Session(client, draft="dr_1"), client.drafts.get("dr_1"), lambda: None)
    desk.start()
    assert "The model is away." in texts(desk)
    assert desk.beside.parts[0].state == "shown"
    desk.reconnect()
    assert desk.rows.current is not None


def test_without_the_permission_controls_are_disabled_with_the_reason() -> None:
    desk, client = make_desk()
    client.drafts.failing = [KeyScopeError("This key may only read.")]
    press(desk, "choose 2")
    assert "This key may only read." in texts(desk)
    shown = buttons(desk.view.__panel__())
    assert {name for name, button in shown.items() if not button["is_off"]} == {
        "similar",
        "previous",
        "next",
    }
    press(desk, "accept", "choose 2")
    assert states(client) == ["untouched"] * 4


def test_the_selected_rows_are_changed_in_one_step() -> None:
    desk, client = make_desk(view="bulk")
    press(desk, "extend 1", "extend 1")
    assert desk.bulk.table.selected == (0, 1)
    assert desk.session.selected == [0, 1]
    press(desk, "choose 3")
    assert states(client) == ["relabelled", "relabelled", "untouched", "untouched"]
    press(desk, "undo")
    assert states(client) == ["untouched"] * 4
    press(desk, "redo")
    assert states(client) == ["relabelled", "relabelled", "untouched", "untouched"]


def test_changed_rows_are_no_longer_selected() -> None:
    desk, client = make_desk(view="bulk")
    press(desk, "extend 1", "extend 1", "choose 3")
    assert desk.bulk.table.selected == ()
    desk.bulk.table.select([2])
    press(desk, "exclude")
    assert states(client) == ["relabelled", "relabelled", "excluded", "untouched"]


def test_a_number_without_an_outcome_changes_no_selected_row() -> None:
    desk, client = make_desk(view="bulk")
    press(desk, "extend 1", "choose 9")
    assert states(client) == ["untouched"] * 4
    assert desk.last_message == "There is no answer 9."
    press(desk, "choose 2")
    assert states(client)[0] == "relabelled"


def test_everything_that_matches_is_changed_once_its_number_is_typed() -> None:
    desk, client = make_desk(n_rows=120, view="bulk")
    press(desk, "all")
    confirm = desk.bulk.confirm
    assert confirm.is_open
    assert "Accept 120 rows" in texts(confirm)
    asked = confirm.asked
    assert asked.button.disabled
    asked.entry.value_input = "12"
    assert asked.button.disabled
    asked.entry.value_input = "120"
    asked.button.clicks += 1
    assert set(states(client)) == {"accepted"}
    assert ("bulk", "accept", 120) in client.drafts.calls
    desk.open_queue("all")
    press(desk, "undo")
    assert set(states(client)) == {"untouched"}


def test_few_rows_need_no_number_and_may_be_left_alone() -> None:
    desk, client = make_desk(view="bulk")
    press(desk, "all", "close")
    assert states(client) == ["untouched"] * 4
    press(desk, "all")
    desk.bulk.confirm.asked.button.clicks += 1
    assert set(states(client)) == {"accepted"}


def test_keys_turn_the_pages_of_the_table() -> None:
    desk, _ = make_desk(n_rows=60, view="bulk")
    press(desk, "forward")
    assert desk.bulk.table.rows["row"][0] == 25
    press(desk, "back")
    assert desk.bulk.table.rows["row"][0] == 0


def test_a_row_of_the_table_or_of_anywhere_opens_in_focus() -> None:
    desk, _ = make_desk(n_rows=60)
    desk.open_number(50)
    assert desk.rows.current is not None
    assert desk.rows.current.row == 50
    press(desk, "accept")
    assert desk.rows.current.row == 0


def test_a_review_begins_at_the_row_of_the_address() -> None:
    desk, _ = make_desk(n_rows=60, row=50)
    assert desk.rows.current is not None
    assert desk.rows.current.row == 50
    assert desk.session.row == 50
    desk, _ = make_desk(n_rows=3, row=50)
    assert "The review has no row 50." in texts(desk)
    assert desk.rows.current is not None
    assert (desk.rows.current.row, desk.session.row) == (0, -1)


def test_outcomes_are_merged_by_one_press_and_those_without_rows_left_out() -> None:
    desk, client = make_desk([make_row(0), make_row(1, label="shipping")])
    desk.outcomes.turn()
    table = desk.outcomes.tables["team"]
    assert table.merge.label == "Merge 1 variant: 3 answers stay"
    assert desk.outcomes.save.disabled
    table.take_proposal()
    table.names["technical"].value = "Technical help"
    assert not desk.outcomes.save.disabled
    desk.outcomes.send()
    changes = {"Billings": {"same_as": "billing"}, "technical": {"name": "Technical help"}}
    assert ("outcomes", "team", changes) in client.drafts.calls
    assert desk.last_message == "Saved: team has 3 answers."
    # What was saved is shown, and nothing is left to save.
    assert desk.outcomes.tables["team"].same["Billings"].value == "billing"
    assert desk.outcomes.save.disabled
    desk.outcomes.guidelines["team"].value = "Ask *Ann*."
    desk.outcomes.send()
    assert ("outcomes", "team", "Ask *Ann*.") in client.drafts.calls
    assert desk.last_message == "Saved: team has a new guideline."
    assert desk.outcomes.guidelines["team"].value == "Ask *Ann*."
    desk.seal.ask()
    assert "decisions get another guideline in all rows" in texts(desk.seal)
    assert desk.seal.drop.label == "Leave out answers that no row has: Technical help"
    assert "answers get another name or are merged" in texts(desk.seal)
    desk.seal.drop.value = True
    asyncio.run(desk.seal.seal())
    assert ("seal", "version", None, 2, True) in client.drafts.calls


def test_a_draft_is_sealed_and_then_takes_no_more_edits() -> None:
    desk, client = make_desk()
    press(desk, "choose 2")
    desk.seal.ask()
    assert "rows get another label" in texts(desk.seal)
    asyncio.run(desk.seal.seal())
    assert ("seal", "version", None, 1, False) in client.drafts.calls
    assert not desk.seal.is_open
    assert "it became version 2" in texts(desk)
    press(desk, "accept")
    assert states(client)[1] == "untouched"


def test_a_refused_seal_says_why_and_offers_a_dataset() -> None:
    desk, client = make_desk()
    desk.seal.ask()
    client.drafts.failing = [DraftChangedError("Version 2 is newer.")]
    asyncio.run(desk.seal.seal())
    assert desk.seal.is_open
    assert "Version 2 is newer." in texts(desk.seal)
    desk.seal.choose("dataset", "clean tickets")
    asyncio.run(desk.seal.seal())
    assert ("seal", "dataset", "clean tickets", 0, False) in client.drafts.calls


def test_nothing_is_sealed_while_edits_wait() -> None:
    desk, client = make_desk()
    client.drafts.failing = [ServerUnreachableError("No connection.")]
    press(desk, "accept")
    desk.seal.ask()
    assert "1 edit is not part of the review yet." in texts(desk.seal)
    assert desk.seal.button.disabled
    desk.reconnect()
    assert not desk.seal.button.disabled
    assert "rows were accepted as they are" in texts(desk.seal)


def test_nothing_is_sealed_while_rows_are_in_conflict() -> None:
    desk, client = make_desk()
    client.drafts.by_other(0, "technical")
    press(desk, "choose 2")
    desk.seal.ask()
    assert "1 edit is not part of the review yet." in texts(desk.seal)
    assert desk.seal.button.disabled
    desk.steps.keep_theirs(desk.steps.conflicts[0])
    assert not desk.seal.button.disabled


def test_facets_filter_and_offer_outcomes() -> None:
    desk, _ = make_desk()
    figure = desk.beside.parts[0].data
    assert figure is not None
    desk.bar.choose(RowFilter().with_expected("team", "shipping"))
    assert "team is shipping" in [text for text, _ in desk.reader.filter.parts]
    assert "team is billing" in desk.bar.outcome.options
    # A merged outcome is counted, offered and shown under the name that it has in the draft.
    desk.steps.push(
        Unsent(
            "outcomes",
            "one outcome less",
            given={"decision": "team", "outcomes": {"shipping": {"same_as": "billing"}}},
        )
    )
    assert [one for one in desk.bar.outcome.options if "shipping" in one] == []
    desk.bar.choose(RowFilter())
    desk.bar.outcome.value = "team is billing"
    assert desk.bar.chosen.expected == (("team", "billing"), ("team", "shipping"))
    assert [chip.label for chip in desk.bar.chips.choices] == ["team is billing  ✕"]
