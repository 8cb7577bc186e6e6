from __future__ import annotations

import dataclasses

import pytest
from sqlalchemy import func, select

from steelyard.caller import LOCAL_ACCOUNT
from steelyard.decision_log import series
from steelyard.decision_log.series import Series
from steelyard.decision_log.store import (
    StoredDecision,
    delete_decisions_before,
    feedback_of_answers,
    find_decision,
    insert_decision,
    put_feedback,
)
from steelyard.decision_log.tables import feedback
from steelyard.decision_log.wire import DecisionSeriesQuery
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

RESULTS = b'{"team":{"top":"billing","action":"billing","probabilities":{"billing":1.0}}}'


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


@pytest.mark.parametrize("most", [20_000, 40])
def test_a_series_counts_by_stretches_on_every_database(state: State, monkeypatch, most: int):
    monkeypatch.setattr(series, "MOST_READ", most)

    def fill(connection) -> None:
        for index in range(180):
            # On the edges of stretches too.
            at = index * 20.0
            kept = dataclasses.replace(KEPT, id=f"dec_{index:03}", created_at=at, results=RESULTS)
            insert_decision(connection, kept)
        put_feedback(connection, "dec_000", {"team": "billing"}, recorded_at=1)

    state.write_now(fill)
    query = DecisionSeriesQuery(bucket_s=600)
    found = state.read_now(Series(LOCAL_ACCOUNT, 30.0, 3600.0, query).read)
    assert [point.answers for point in found.data] == [28, 30, 30, 30, 30, 30]
    assert found.is_sampled == (most < 180)
    read = [point.answers_read for point in found.data]
    assert read == [28, 30, 30, 30, 30, 30] if most > 180 else all(6 <= n <= 30 for n in read)
    assert {point.accuracy for point in found.data} == {None}
    assert {point.cost_usd for point in found.data} == {"0"}
