"""Suggestions without a browser: their order, the surest accepted, an audit, and agreement."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

from steelyard.errors import ModelUnavailableError
from steelyard_workbench.pages.review.desk import Desk
from support.review.desks import buttons, edits_sent, make_desk, press, states, texts
from support.review.drafts_in_memory import FakeClient


def suggesting_desk(n_rows: int, *, failing_at: int = -1) -> tuple[Desk, FakeClient, list[Any]]:
    """A desk whose model says shipping of even rows, the surer the lower their number."""
    desk, client = make_desk(n_rows=n_rows)
    asked: list[Any] = []

    def decide(context: str, decisions: Any, **given: Any) -> Any:
        number = int(context.split()[1].rstrip(":"))
        if number == failing_at:
            raise ModelUnavailableError("It is away.")
        asked.append((number, given["model"], given["fallback"], given["store"]))
        top = 0.99 - number / 100
        names = ("shipping", "billing") if number % 2 == 0 else ("billing", "shipping")
        shares = dict(zip((*names, "technical"), (top, 1 - top, 0.0), strict=True))
        return SimpleNamespace(decisions={"team": SimpleNamespace(probabilities=shares)})

    client.decide = decide  # type: ignore[attr-defined]
    client.estimate = lambda *_, **__: SimpleNamespace(  # type: ignore[attr-defined]
        maximum_charge_usd="0.0002"
    )
    desk.suggesting.part.start()
    return desk, client, asked


def test_the_least_sure_rows_come_first_with_probabilities_and_one_key_takes_them() -> None:
    desk, client, asked = suggesting_desk(30)
    desk.suggesting.ask.start()
    assert sorted(asked) == [(number, "base", "none", False) for number in range(30)]
    assert [row.row for row in desk.rows.rows] == list(range(29, -1, -1))
    assert "100 rows like the shown one cost at most 0.02 USD." in texts(desk.suggesting.part)
    shown = {name: one["label"] for name, one in buttons(desk.view.__panel__()).items()}
    assert shown["billing"] == "billing  ✓ label  0.70  ◆ suggested"
    assert shown["shipping"] == "shipping  0.30"

    press(desk, "take", "take", "choose 1")
    kept = client.drafts.held
    assert (kept[29].now.state, kept[28].now.state, kept[27].now.state) == (
        "accepted",
        "relabelled",
        "accepted",
    )
    press(desk, "choose 1")  # billing, where shipping is suggested
    agreed = desk.suggesting.held.agreement()
    assert agreed is not None
    assert (agreed.value, agreed.n) == (0.75, 4)
    press(desk, "undo")
    again = desk.suggesting.held.agreement()
    assert again is not None
    assert (again.value, again.n) == (1.0, 3)
    desk.suggesting.ask.start()  # what is known is not asked again
    assert len(asked) == 30


def test_the_surest_are_accepted_at_once_but_an_audit_that_is_decided_unseen() -> None:
    desk, client, _ = suggesting_desk(30)
    desk.suggesting.ask.start()
    desk.suggesting.threshold.value = 0.9
    desk.suggesting.n_audit.value = 3
    assert len(desk.suggesting.sure_rows) == 10
    assert "Accept 7, audit 3" in texts(desk.suggesting.part)
    desk._take_suggestions(desk.suggesting.sure_rows, 3)
    desk.bulk.confirm.asked.button.clicks += 1

    audit = desk.suggesting.held.audit
    assert len(audit) == 3
    assert {row for row, state in enumerate(states(client)) if state != "untouched"} == set(
        range(10)
    ) - audit
    sent = {edit["row"]: edit for edit in edits_sent(client)}
    assert all(
        edit.get("outcome") == (None if row % 2 else "shipping") for row, edit in sent.items()
    )
    assert desk.suggesting.held.agreement() is None  # nobody looked at those
    for _ in range(3):
        current = desk.rows.current
        assert current is not None
        assert current.row in audit
        assert "◆" not in texts(desk.view)
        assert "hidden until you decide" in texts(desk.view)
        press(desk, "choose 2")
    told = desk.suggesting.held.agreement(of_audit=True)
    assert told is not None
    assert told.n == 3
    assert told.value == pytest.approx(sum(row % 2 == 0 for row in audit) / 3)
    press(desk, "undo", "undo", "undo", "undo")
    assert set(states(client)) == {"untouched"}


def test_answers_before_a_failure_are_kept_and_a_sealed_draft_takes_none() -> None:
    desk, _, _ = suggesting_desk(30, failing_at=9)
    desk.suggesting.ask.start()
    assert "It is away." in texts(desk.suggesting.part)
    assert len(desk.suggesting.held) == 8
    desk.forbid()
    desk.suggesting.threshold.value = 0.5
    desk.suggesting.n_audit.value = 0
    assert desk.suggesting._take.disabled
