"""Which answers shadows score, how the two are compared, and skipped answers."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from steelyard.decision_log.store import StoredDecision, insert_decision
from steelyard.errors import EngineUnavailableError
from steelyard.scoring.batching import ScoreFuture
from steelyard.shadows import store as rows
from steelyard.shadows.comparing import Pair, Top, compare, is_chosen
from steelyard.shadows.service import _AT_ONCE, LATEST_S, Shadows

NOW = 1_000_000.0


def test_a_share_is_of_all_answers_and_a_larger_one_has_the_smaller():
    ids = [f"dec_{n}" for n in range(4_000)]
    tenth = {one for one in ids if is_chosen(one, 0.1)}
    assert len(tenth) == pytest.approx(400, abs=80)
    assert tenth <= {one for one in ids if is_chosen(one, 0.3)}
    assert all(is_chosen(one, 1.0) for one in ids)


def test_counts_are_of_shared_answers_by_the_right_model():
    def pair(family, shadow, outcome=None):
        observed = {} if outcome is None else {"team": outcome}
        return Pair({"team": Top(family), "own": Top("x")}, {"team": Top(shadow)}, observed)

    found = compare(
        [
            pair("a", "a", "a"),
            pair("a", "b", "a"),
            pair("a", "b", {"a": 0.2, "b": 0.8}),
            pair("a", "a", "b"),
            pair("a", "b"),
        ]
    )
    assert list(found) == ["team"]
    team = found["team"]
    assert (team.n, team.agreement.value, team.observed) == (5, 0.4, 4)
    assert (team.both_right, team.family_right, team.shadow_right, team.both_wrong) == (1, 1, 1, 1)
    assert team.family_accuracy.value == team.shadow_accuracy.value == 0.5
    assert team.family_accuracy.low < 0.5 < team.family_accuracy.high


class Scoring:
    """A model that gives the answers set by a test, or fails."""

    def __init__(self):
        self.asked = []
        self.failure = None
        self.decide = SimpleNamespace(
            prepare=lambda request: SimpleNamespace(rendered=request),
            finish=lambda _, scored: SimpleNamespace(decisions={"team": {"top": scored}}),
        )
        self.queue = self

    @contextmanager
    def open(self, account_id, model_id):
        yield self

    def submit(self, request, deadline_s, share):
        assert share.is_public  # after everybody else
        self.asked.append(request)
        future = ScoreFuture()
        if self.failure is None:
            future.set_result("a")
        else:
            future.set_exception(self.failure)
        return future


@pytest.fixture
def model():
    return Scoring()


@pytest.fixture
def shadows(state, model):
    def put(connection):
        rows.put_shadow(
            connection, "local", "router", model="far", model_id="far", share=1.0, since=NOW - 200
        )

    state.write_now(put)
    return Shadows(state, None, None, model, None, now=lambda: NOW)


def answered(state, name, at, family="router"):
    stored = StoredDecision(
        id=name,
        account_id="local",
        created_at=at,
        model=family,
        request=name.encode(),
        results=b'{"team": {"top": "b"}}',
    )
    state.write_now(lambda connection: insert_decision(connection, stored))


def taken(state):
    shadow = state.read_now(rows.all_shadows)[0]
    found = state.read_now(
        lambda connection: rows.answered_pairs(connection, shadow, since=0, until=NOW, limit=100)
    )
    return [one.id for one in found]


def test_the_newest_are_scored_so_many_at_a_time_and_each_once(state, shadows, model):
    for n in range(_AT_ONCE + 2):
        answered(state, f"dec_{n:02}", NOW - 20 + n)
    answered(state, "dec_old", NOW - LATEST_S - 1)
    answered(state, "dec_other", NOW - 1, family="another")
    shadows.tick()
    assert len(model.asked) == _AT_ONCE
    assert b"dec_00" not in model.asked
    shadows.tick()
    shadows.tick()
    assert sorted(model.asked) == sorted(f"dec_{n:02}".encode() for n in range(_AT_ONCE + 2))
    assert sorted(taken(state)) == [f"dec_{n:02}" for n in range(_AT_ONCE + 2)]


def test_failed_requests_are_left_out_and_not_repeated(state, shadows, model, caplog):
    answered(state, "dec_1", NOW - 2)
    model.failure = EngineUnavailableError("It is away.")
    shadows.tick()
    model.failure = None
    answered(state, "dec_2", NOW - 1)
    shadows.tick()
    assert model.asked == [b"dec_1", b"dec_2"]
    assert taken(state) == ["dec_2"]
    assert "It is away." in caplog.text
