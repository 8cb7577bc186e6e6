"""A desk of the review on a draft in memory, and the readings of it."""

from __future__ import annotations

from typing import Any

from steelyard.review.wire import DraftRow
from steelyard_workbench.kit.components.row_card import RowCard
from steelyard_workbench.kit.session import Session
from steelyard_workbench.pages.review.desk import Desk
from support.review.drafts_in_memory import FakeClient, make_row


def make_desk(
    rows: list[DraftRow] | None = None, *, n_rows: int = 4, reviewer: str = "Bo", **session: Any
) -> tuple[Desk, FakeClient]:
    """Open a draft of a few rows."""
    client = FakeClient([make_row(i) for i in range(n_rows)] if rows is None else rows)
    given = Session(client, draft="dr_1", reviewer=reviewer, **session)
    desk = Desk(given, client.drafts.get("dr_1"), lambda: None)
    desk.start()
    return desk, client


def press(desk: Desk, *actions: str) -> None:
    for action in actions:
        name, _, number = action.partition(" ")
        assert desk.on_key(name, int(number or 1)), action


def texts(view: Any) -> str:
    """Every text that is shown."""
    found = view.__panel__().select(
        lambda one: hasattr(one, "object") or hasattr(one, "label") or isinstance(one, RowCard)
    )
    return " ".join(
        card_text(one)
        if isinstance(one, RowCard)
        else str(getattr(one, "object", "") or getattr(one, "label", ""))
        for one in found
    )


def card_text(card: RowCard) -> str:
    """Every text of a row's card, with stars around marked parts."""
    lines = [card.head, card.context, *card.said, *(asked["text"] for asked in card.questions)]
    told = ["".join(f"**{text}**" if kind else text for text, kind in line) for line in lines]
    pressed = [f"{button['key']}  {button['label']}" for button in buttons(card).values()]
    return " ".join([*told, *pressed])


def buttons(card: RowCard) -> dict[str, Any]:
    """The buttons of a row's card by purpose."""
    chosen = [choice for asked in card.questions for choice in asked["outcomes"]]
    return {choice["name"]: choice for choice in (*chosen, *card.actions)}


def states(client: FakeClient) -> list[str]:
    return [row.now.state for row in client.drafts.held.values()]


def edits_sent(client: FakeClient) -> list[dict[str, Any]]:
    return [edit for call in client.drafts.calls if call[0] == "edit" for edit in call[1]]
