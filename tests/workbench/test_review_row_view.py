"""The row in focus: its card's data, and the effect of its buttons."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

from steelyard.review.wire import DraftRow, ExpectedOutcome
from steelyard_workbench.kit.components.row_card import RowCard
from steelyard_workbench.pages.review.row_view import RowView, images_of, marked, notes_of
from steelyard_workbench.parts.datasets.questions import with_now
from support.review.drafts_in_memory import TEAM, URGENT, make_row


def show(row: DraftRow, **how: Any) -> tuple[RowView, RowCard, list[Any]]:
    """Show a row; return its buttons' messages too."""
    told: list[Any] = []
    view = RowView(lambda *chosen: told.append(chosen), told.append)
    view.show(row, "Row 1 of 4", **how)
    card = view.__panel__()
    assert isinstance(card, RowCard)
    return view, card, told


def test_keys_have_names() -> None:
    view, _, told = show(make_row(0, decisions=(TEAM, URGENT)))
    view.pressed({"question": "urgent", "outcome": "no"})
    view.pressed({"action": "similar"})
    assert told == [("urgent", "no"), "similar"]


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"question": "team", "outcome": "nobody"},
        {"question": "urgent", "outcome": "no"},
        {"action": "seal"},
    ],
)
def test_presses_that_name_nothing_of_the_row_are_let_go(told: dict[str, str]) -> None:
    view, _, heard = show(make_row(0))
    view.pressed(told)
    assert heard == []


def test_metadata_is_said_as_text() -> None:
    row = msgspec.structs.replace(make_row(0), metadata={"tier": "<b>gold", "order": {"id": 7}})
    _, card, _ = show(row)
    assert [("tier:", "strong"), (" <b>gold", "")] in card.said
    assert card.said[-1][0] == ("order:", "strong")
    assert '"id": 7' in card.said[-1][1][0]
    assert notes_of(msgspec.structs.replace(row, metadata=None)) == []


def test_only_changes_are_sent() -> None:
    view, card, _ = show(make_row(0))
    changed: list[str] = []
    card.param.watch(
        lambda *events: changed.extend(event.name for event in events), list(RowCard.param)
    )
    view.show(make_row(0), "Row 1 of 4")
    assert changed == []
    view.show(make_row(1), "Row 2 of 4")
    assert sorted(changed) == ["context", "head"]


def test_the_active_question_has_the_keys_and_meanings_are_given_where_there_are_any() -> None:
    _, card, _ = show(make_row(0, decisions=(TEAM, URGENT)), active=1)
    team, urgent = card.questions
    assert [choice["label"] for choice in team["outcomes"]] == [
        "billing  ✓ label",
        "shipping",
        "technical",
    ]
    assert [choice["label"] for choice in urgent["outcomes"]] == ["yes", "no  ✓ label"]
    assert [choice["key"] for choice in (*team["outcomes"], *urgent["outcomes"])] == [
        *("", "", ""),
        *("1", "2"),
    ]
    assert [choice["is_filled"] for choice in urgent["outcomes"]] == [False, True]
    assert team["meanings"] == [("billing", "money"), ("shipping", "parcels")]
    assert urgent["meanings"] == []


def test_notes_are_text_as_written() -> None:
    row = msgspec.structs.replace(
        make_row(0),
        suspect=0.75,
        expected={
            "team": ExpectedOutcome(outcome="shipping", probability=0.8, label_probability=0.05)
        },
    )
    row = with_now(row, reviewer="*Bo* <i>", note="<script>")
    assert ["".join(text for text, _ in line) for line in notes_of(row)] == [
        "From the other rows: team: shipping, 80 %; its label 5 %.",
        "Last edit by *Bo* <i>.",
        "Note: <script>",
    ]


def test_words_are_marked_whole_and_in_either_case() -> None:
    assert marked("Card, cards, CARD <b>", "card b") == [
        ("Card", "mark"),
        (", cards, ", ""),
        ("CARD", "mark"),
        (" <", ""),
        ("b", "mark"),
        (">", ""),
    ]
    assert marked("(", "(") == [("(", "")]


def test_images_have_a_text() -> None:
    image = {"id": "receipt", "media_type": "image/png", "data": "aGk="}
    row = msgspec.structs.replace(make_row(0), images=[image])
    assert images_of(row) == [{"address": "data:image/png;base64,aGk=", "text": "Image receipt"}]
