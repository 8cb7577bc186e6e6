from __future__ import annotations

import dataclasses

import pytest
from sqlalchemy import func, select

from steelyard.decision_log.store import (
    StoredDecision,
    delete_decisions_before,
    feedback_of_answers,
    find_decision,
    insert_decision,
    put_feedback,
)
from steelyard.decision_log.tables import feedback
from steelyard.errors import NotFoundError
from steelyard.storage import State

KEPT = StoredDecision(
    id="dec_1",
    account_id="local",
    created_at=100.0,
    model="base",
    request=b'{"context":"\xc3\xa9"}',
    results=b"{}",
    outcome_names={"team": ["billing", "other"]},
)


@pytest.mark.parametrize(
    "decision", [KEPT, dataclasses.replace(KEPT, version="3", metadata=b'{"a":1}')]
)
def test_a_decision_is_given_as_it_was_kept(state: State, decision: StoredDecision):
    state.write_now(lambda c: insert_decision(c, decision))
    assert state.read_now(lambda c: find_decision(c, "local", "dec_1", 100.0)) == decision


def test_another_accounts_or_an_old_one_is_not_found(state: State):
    state.write_now(lambda c: insert_decision(c, KEPT))
    for account, name, not_before in (
        ("other", "dec_1", 0.0),
        ("local", "dec_2", 0.0),
        ("local", "dec_1", 100.5),
    ):
        with pytest.raises(NotFoundError):
            state.read_now(lambda c, a=account, n=name, t=not_before: find_decision(c, a, n, t))


def test_a_second_report_replaces_the_first(state: State):
    def work(connection) -> None:
        insert_decision(connection, KEPT)
        put_feedback(connection, "dec_1", {"team": "billing", "urgent": {"1": 0.5}}, recorded_at=1)
        put_feedback(connection, "dec_1", {"team": "other"}, recorded_at=2)
        put_feedback(connection, "dec_1", {}, recorded_at=3)

    state.write_now(work)
    found = state.read_now(lambda c: feedback_of_answers(c, ["dec_1", "dec_2"]))
    assert found == {"dec_1": {"team": "other", "urgent": {"1": 0.5}}}


def test_old_decisions_go_with_their_feedback(state: State):
    def fill(connection) -> None:
        for index in range(10):
            name = f"dec_{index}"
            insert_decision(connection, dataclasses.replace(KEPT, id=name, created_at=index))
            put_feedback(connection, name, {"team": "other"}, recorded_at=index)

    state.write_now(fill)
    counts = [state.write_now(lambda c: delete_decisions_before(c, 7.0, limit=4)) for _ in range(3)]
    assert counts == [4, 3, 0]
    n_left = state.read_now(
        lambda c: c.execute(select(func.count()).select_from(feedback)).scalar_one()
    )
    assert n_left == 3
