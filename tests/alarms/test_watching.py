"""Looks at stored decisions: each counted once, alarms raised, sent and cleared, across kills."""

from __future__ import annotations

import re

import msgspec
import pytest
from sqlalchemy import select

from steelyard.alarms import distances, watched
from steelyard.alarms import store as rows
from steelyard.alarms.distances import HELD_OUT, Distances
from steelyard.alarms.references import References
from steelyard.alarms.tables import alarm_watches, alarms
from steelyard.alarms.watched import Watched
from steelyard.alarms.watching import Watcher
from steelyard.errors import EngineUnavailableError
from steelyard.operations.store import OperationRow, end_operation, insert_operation
from steelyard.outbox.tables import webhook_deliveries
from steelyard.people.member_store import insert_member
from steelyard.people.tables import letters
from steelyard.webhooks import store as webhook_rows
from support.decisions.drifting import DRIFTED, SHARES, answers, embed_words, store, tell

START = 1_000_000.0


@pytest.fixture
def clock():
    return [START]


@pytest.fixture
def watcher(state, clock):
    return open_watcher(state, clock)


def open_watcher(state, clock):
    return Watcher(state, References(state, None, None), has_accounts=True, now=lambda: clock[0])


def look(watcher, clock, at):
    clock[0] = at
    watcher.tick()


def kept(state):
    found = state.read_now(lambda c: c.execute(select(alarm_watches)).all())
    return {row.version: msgspec.json.decode(row.body, type=Watched) for row in found}


def all_alarms(state):
    return state.read_now(lambda c: c.execute(select(alarms).order_by(alarms.c.created_at)).all())


def add_webhook(state, events):
    values = {
        "id": "wh_1",
        "account_id": "local",
        "url": "https://x.org",
        "description": "",
        "events": events,
        "secret": "s",
        "created_at": 0.0,
        "updated_at": 0.0,
    }
    state.write_now(lambda connection: webhook_rows.WEBHOOKS.insert(connection, values))


def test_a_drift_raises_one_alarm_notifies_subscribers_and_clears(state, watcher, clock):
    add_webhook(state, "alarm.raised alarm.cleared")

    def set_up(connection):
        for email, role in (("o@x.org", "owner"), ("d@x.org", "developer")):
            insert_member(connection, "local", email, role, at=0.0, expires_at=1.0, joined_at=0.5)

    state.write_now(set_up)
    store(state, answers(2_500, SHARES, at=START - 2_500))
    look(watcher, clock, START + 1)
    first = kept(state)["router@1"]
    # Those of the last seconds wait until nothing of their time can come any more.
    assert first.answers == 2_496
    assert first.reference.n == 1_000
    assert first.streams["answers/team"].counted == 1_496
    look(watcher, clock, START + 10)
    assert kept(state)["router@1"].answers == 2_500
    assert all_alarms(state) == []

    store(state, answers(1_000, DRIFTED, at=START + 10, seed=1))
    look(watcher, clock, START + 1_100)
    (alarm,) = [one for one in all_alarms(state) if one.watch == "shares"]
    evidence = msgspec.json.decode(alarm.evidence)
    assert (alarm.state, alarm.decision, alarm.version) == ("raised", "team", "router@1")
    assert evidence["figure"] == "outcome:other"
    assert evidence["estimate"]["low"] > 0.2 > evidence["reference_high"]
    assert evidence["reference_high"] > evidence["reference_value"] > evidence["reference_low"] > 0
    assert evidence["decisions"]["model"] == "router@1"
    assert evidence["decisions"]["since"] >= START - 1_500
    assert evidence["total_variation"]["low"] > 0.05
    assert re.search(
        r"'other' is [\d.]+% \(.+ to .+, n = .+\), and was .+ \(.+ to .+, n = ", alarm.message
    )
    assert watcher.counts["raised"] >= 1
    written = state.read_now(lambda c: c.execute(select(letters)).all())
    assert {one.email for one in written} == {"o@x.org"}
    assert alarm.message in {one.text for one in written}

    store(state, answers(2_000, SHARES, at=START + 2_000, seed=2))
    look(watcher, clock, START + 4_100)
    again = next(one for one in all_alarms(state) if one.id == alarm.id)
    assert (again.state, again.cleared_reason) == ("cleared", "recovered")
    told = state.read_now(lambda c: c.execute(select(webhook_deliveries)).all())
    of_alarm = [one.event for one in told if one.subject == alarm.id]
    assert of_alarm == ["alarm.raised", "alarm.cleared"]


@pytest.mark.slow
def test_a_number_that_moves_is_watched_anew_and_its_alarms_are_superseded(state, watcher, clock):
    store(state, answers(1_500, SHARES, at=START))
    store(state, answers(600, DRIFTED, at=START + 2_000, seed=1))
    look(watcher, clock, START + 3_000)
    assert {one.state for one in all_alarms(state)} == {"raised"}
    store(state, answers(10, DRIFTED, at=START + 3_000, seed=2, version="router@2"))
    look(watcher, clock, START + 4_000)
    assert {one.cleared_reason for one in all_alarms(state)} == {"superseded"}
    assert set(kept(state)) == {"router@1", "router@2"}


def test_nothing_is_counted_twice_by_two_watchers_or_after_a_death(
    state, watcher, clock, monkeypatch
):
    found = answers(1_300, SHARES, at=START)
    store(state, found)
    clock[0] = START + 2_000
    other, write = open_watcher(state, clock), watcher._write

    def overtaken(on, move):
        other.look_at_answers()
        write(on, move)

    monkeypatch.setattr(watcher, "_write", overtaken)
    watcher.look_at_answers()
    assert kept(state)["router@1"].answers == 1_000

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(watcher, "_write", killed)
    with pytest.raises(KeyboardInterrupt):
        watcher.look_at_answers()
    monkeypatch.undo()
    look(open_watcher(state, clock), clock, START + 2_001)
    assert kept(state)["router@1"].answers == 1_300


@pytest.mark.slow
def test_feedback_counts_once_and_a_fall_of_accuracy_is_raised(state, watcher, clock):
    first = answers(1_200, SHARES, at=START)
    store(state, first)
    tell(state, first[:1_000], START + 1_250)
    look(watcher, clock, START + 1_300)
    stream = kept(state)["router@1"].streams["feedback/team"]
    assert (stream.counted, stream.figures["right"].n) == (0, 1_000)
    tell(state, first[1_000:], START + 1_400)
    look(watcher, clock, START + 1_500)
    tell(state, first[1_000:], START + 1_600)
    look(watcher, clock, START + 1_700)
    assert kept(state)["router@1"].streams["feedback/team"].counted == 200
    later = answers(500, SHARES, at=START + 1_700, seed=1)
    store(state, later)
    wrong = [(stored, "other" if truth != "other" else "billing") for stored, truth in later]
    tell(state, wrong, START + 2_250)
    look(watcher, clock, START + 2_300)
    watches = {one.watch for one in all_alarms(state)}
    assert {"accuracy", "log_loss", "calibration"} <= watches
    assert "shares" not in watches


def test_a_reference_of_first_answers_grows_while_nothing_is_raised(
    state, watcher, clock, monkeypatch
):
    monkeypatch.setattr(watched, "GROWN", 1_400)
    store(state, answers(1_500, SHARES, at=START))
    look(watcher, clock, START + 2_000)
    found = kept(state)["router@1"]
    assert (found.reference.n, found.streams["answers/team"].counted) == (1_400, 100)


@pytest.mark.slow
def test_failures_and_contexts_are_watched_too(state, watcher, clock):
    store(state, answers(1_500, SHARES, at=START))
    look(watcher, clock, START + 2_000)

    def fail(connection):
        for n in range(60):
            row = OperationRow(
                id=f"op_{n}",
                account_id="local",
                key_id=None,
                route="POST /v1/decide",
                idempotency_key=None,
                model="router",
                state="pending",
                instance=None,
                lease_until=None,
                accepted_at=START + 2_000 + n,
                ended_at=None,
                reserved_nano=0,
                amount_nano=0,
            )
            insert_operation(connection, row)
            end_operation(connection, row.id, state="failed", amount_nano=0, at=START + 2_100)

    state.write_now(fail)
    store(state, answers(1_000, SHARES, at=START + 2_100, seed=1, words=90))
    look(watcher, clock, START + 4_000)
    assert {one.watch for one in all_alarms(state)} == {"errors", "contexts"}


@pytest.mark.slow
def test_a_topic_that_moves_is_watched_a_few_contexts_at_a_look(state, clock, monkeypatch, caplog):
    monkeypatch.setattr(distances, "AT_A_TICK", 80)
    is_away = [True]

    def embed(texts):
        if is_away[0]:
            raise EngineUnavailableError("It is away.")
        return embed_words(texts)

    references = References(state, None, None)
    watcher = Watcher(
        state,
        references,
        has_accounts=True,
        distances=Distances(embed, "words"),
        now=lambda: clock[0],
    )

    def pass_time(n, topics, seed):
        for part in range(n):
            store(state, answers(150, SHARES, at=clock[0], seed=seed + part, topics=topics))
            look(watcher, clock, clock[0] + 200)

    store(state, answers(1_100, SHARES, at=START - 1_100, topics=[0, 1]))
    look(watcher, clock, START)
    pass_time(1, [0, 1], 10)
    assert "It is away." in caplog.text
    assert kept(state)["router@1"].contexts.bank is None
    is_away[0] = False
    pass_time(5, [0, 1], 20)
    held = kept(state)["router@1"].contexts
    assert (held.bank.scorer, len(held.bank.held_out)) == ("words", HELD_OUT)
    pass_time(6, [0, 1], 30)
    assert all_alarms(state) == []
    pass_time(6, ["both"], 40)
    (alarm,) = all_alarms(state)
    evidence = msgspec.json.decode(alarm.evidence)
    assert (alarm.watch, evidence["figure"]) == ("contexts", "distance")
    # Intervals of both medians, which differ surely.
    assert evidence["estimate"]["low"] > evidence["reference_high"] > evidence["reference_value"]
    assert evidence["reference_n"] == HELD_OUT
    assert "about something else" in alarm.message

    # Another base model: its vectors are not those of the bank.
    watcher = Watcher(
        state,
        references,
        has_accounts=True,
        distances=Distances(embed_words, "others"),
        now=lambda: clock[0],
    )
    pass_time(5, [0, 1], 50)
    assert kept(state)["router@1"].contexts.bank.scorer == "others"


@pytest.mark.slow
def test_the_sweep_forgets_models_that_answer_no_more(state, watcher, clock):
    add_webhook(state, "alarm.cleared")
    store(state, answers(1_500, SHARES, at=START))
    store(state, answers(600, DRIFTED, at=START + 2_000, seed=1))
    look(watcher, clock, START + 3_000)
    assert all_alarms(state)
    clock[0] = START + 3_000 + rows.IDLE_S
    watcher.sweep()
    assert kept(state) == {}
    assert {one.state for one in all_alarms(state)} == {"cleared"}
    told = state.read_now(lambda c: c.execute(select(webhook_deliveries)).all())
    assert {one.subject for one in told} == {one.id for one in all_alarms(state)}
