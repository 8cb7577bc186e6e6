"""The outbox and who sends it: in order, at least once, none held up by another's failures."""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace

import pytest
from sqlalchemy import select

from steelyard.accounts.store import insert_account
from steelyard.outbox.publishing import publish
from steelyard.outbox.tables import webhook_deliveries, webhooks
from steelyard.storage import open_state
from steelyard.webhooks import store as rows
from steelyard.webhooks.sender import WebhookSender
from steelyard.webhooks.signing import new_secret
from steelyard.webhooks.tries import FAILING_S, TRIES, WAITS_S
from support.servers.webhook_endpoint import webhook_endpoint
from support.waiting import wait_until


@pytest.fixture
def home(tmp_path):
    with ExitStack() as closing:
        state = open_state(f"sqlite:///{tmp_path / 'state.sqlite'}")
        closing.callback(state.close)
        clock = SimpleNamespace(ahead_s=0.0)
        yield SimpleNamespace(
            state=state,
            url=f"sqlite:///{tmp_path / 'state.sqlite'}",
            clock=clock,
            now=lambda: time.time() + clock.ahead_s,
            enter=closing.enter_context,
        )


@contextmanager
def sending(home, state=None):
    sender = WebhookSender(state or home.state, allowed={"127.0.0.1"}, look_s=0.02, now=home.now)
    try:
        yield sender
    finally:
        sender.close()


def add(home, endpoint, name="wh_1", events="job.succeeded", account="local"):
    endpoint.secret = new_secret()
    values = {
        "id": name,
        "account_id": account,
        "url": endpoint.url,
        "description": "",
        "events": events,
        "secret": endpoint.secret,
        "created_at": 0.0,
        "updated_at": 0.0,
    }
    home.state.write_now(lambda connection: rows.WEBHOOKS.insert(connection, values))
    return endpoint


def tell(home, *subjects, event="job.succeeded", account="local"):
    for n, subject in enumerate(subjects):

        def write(connection, subject=subject, n=n):
            publish(connection, account, event, subject, {"n": n})

        home.state.write_now(write)


def stored(home, table=webhook_deliveries):
    return home.state.read_now(lambda connection: connection.execute(select(table)).all())


def statuses(home):
    return [row.status for row in stored(home)]


def test_an_event_is_written_with_its_cause_for_those_who_want_it(home):
    endpoint = home.enter(webhook_endpoint())
    add(home, endpoint)
    add(home, endpoint, "wh_2", "job.failed job.succeeded")
    add(home, endpoint, "wh_off", "job.succeeded")
    add(home, endpoint, "wh_other", "gate.failed")
    home.state.write_now(lambda c: rows.switch_off(c, "wh_off", "It is off.", 1.0))

    def fail(connection):
        publish(connection, "local", "job.succeeded", "ft_1", {})
        raise LookupError

    with pytest.raises(LookupError):
        home.state.write_now(fail)
    tell(home, "ft_1", event="alarm.raised")
    assert stored(home) == []
    tell(home, "ft_1")
    found = stored(home)
    assert [row.webhook_id for row in found] == ["wh_1", "wh_2"]
    assert len({row.event_id for row in found}) == 1
    assert len({row.id for row in found}) == 2


def test_events_of_a_subject_wait_for_the_earlier_and_others_do_not(home):
    endpoint = add(home, home.enter(webhook_endpoint()))
    endpoint.status = 503
    tell(home, "a", "a", "b", "a")
    with sending(home) as sender:
        wait_until(lambda: [row.attempts for row in stored(home)] == [1, 0, 1, 0])
        endpoint.status = 204
        home.clock.ahead_s = 60
        sender.wake()
        wait_until(lambda: statuses(home) == ["delivered"] * 4)
    assert [(one["subject"], one["data"]["n"]) for one in endpoint.told][2:] in (
        [("a", 0), ("b", 2), ("a", 1), ("a", 3)],
        [("b", 2), ("a", 0), ("a", 1), ("a", 3)],
        [("a", 0), ("a", 1), ("b", 2), ("a", 3)],
        [("a", 0), ("a", 1), ("a", 3), ("b", 2)],
    )
    assert endpoint.received[0].told["type"] == "job.succeeded"
    assert len({one.id for one in endpoint.received}) == 4, "a try again has the id of the first"
    assert stored(home, webhooks)[0].failing_since is None


def test_endpoints_that_hang_hold_up_no_other(home):
    bad = [home.enter(webhook_endpoint()) for _ in range(3)]
    for n, one in enumerate(bad):
        add(home, one, f"wh_bad_{n}").hangs = True
    good = add(home, home.enter(webhook_endpoint()), "wh_good")
    tell(home, *[f"ft_{n}" for n in range(12)])
    with sending(home):
        wait_until(lambda: len(good.received) == 12)
        assert [len(one.received) for one in bad] == [rows.AT_ONCE] * 3
        for one in bad:
            one.may_answer.set()


def test_the_slow_endpoints_of_one_account_hold_up_no_other_account(home):
    home.state.write_now(lambda c: insert_account(c, "acct_2", "other", 0.0))
    slow = [home.enter(webhook_endpoint()) for _ in range(5)]
    for n, one in enumerate(slow):
        add(home, one, f"wh_slow_{n}").hangs = True
    good = add(home, home.enter(webhook_endpoint()), "wh_good", account="acct_2")
    tell(home, *[f"ft_{n}" for n in range(8)])
    tell(home, *[f"ft_{n}" for n in range(12)], account="acct_2")
    with sending(home):
        wait_until(lambda: len(good.received) == 12)
        assert sum(len(one.received) for one in slow) == rows.AT_ONCE_OF_ACCOUNT
        for one in slow:
            one.may_answer.set()


def test_failing_deliveries_take_no_place_from_others(home):
    endpoint = home.enter(webhook_endpoint())
    for n in range(rows.AT_ONCE_OF_ACCOUNT):
        add(home, endpoint, f"wh_bad_{n}")
        home.state.write_now(
            lambda c, n=n: rows.WEBHOOKS.change(c, f"wh_bad_{n}", failing_since=1.0)
        )
    add(home, endpoint, "wh_good")
    tell(home, "a")
    given = {"now": time.time(), "sending": (), "places": 32, "failing_places": 0}
    (taken,) = home.state.write_now(lambda c: rows.claim(c, home.state, **given))
    assert taken.webhook_id == "wh_good"


def test_several_servers_send_each_once_and_take_over_from_a_dead_one(home):
    endpoint = add(home, home.enter(webhook_endpoint()))
    dead = open_state(home.url)
    tell(home, "left", *[f"ft_{n}" for n in range(10)])
    given = {"now": time.time(), "sending": (), "places": 1, "failing_places": 0}
    (left,) = dead.write_now(lambda c: rows.claim(c, dead, **given))
    other = open_state(home.url)
    with sending(home), sending(home, other):
        wait_until(lambda: statuses(home).count("delivered") == 10)
        assert statuses(home)[0] == "waiting"
        dead.close()
        wait_until(lambda: statuses(home) == ["delivered"] * 11)
    other.close()
    assert left.subject == "left"
    assert len(endpoint.received) == len({one.id for one in endpoint.received}) == 11


def test_after_eight_tries_an_event_is_given_up_and_the_next_goes(home):
    endpoint = add(home, home.enter(webhook_endpoint()))
    endpoint.status, endpoint.body = 500, b"down"
    endpoint.secret = ""  # the clock of the tries goes on, and not that of the verifier
    tell(home, "a", "a")
    with sending(home) as sender:
        for attempts, wait_s in enumerate([*WAITS_S, 0.0], start=1):
            wait_until(lambda attempts=attempts: stored(home)[0].attempts == attempts)
            home.clock.ahead_s += 1.2 * wait_s
            sender.wake()
        wait_until(lambda: stored(home)[1].attempts == 1)
    first, second = stored(home)
    assert (first.status, first.attempts, second.status) == ("failed", TRIES, "waiting")
    assert (first.response_status, first.response) == (500, "down")
    assert first.error == "It answered 500."


@pytest.mark.parametrize("why", ["days", "gone"])
def test_an_endpoint_that_fails_for_days_is_switched_off_with_the_reason(home, why):
    endpoint = add(home, home.enter(webhook_endpoint()))
    endpoint.status = 410 if why == "gone" else 500
    tell(home, "a", "b", "a")
    if why == "days":
        since = time.time() - FAILING_S
        home.state.write_now(lambda c: rows.WEBHOOKS.change(c, "wh_1", failing_since=since))
    with sending(home):
        wait_until(lambda: stored(home, webhooks)[0].disabled_at is not None)
        wait_until(lambda: statuses(home) == ["failed"] * 3)
    assert ("410" if why == "gone" else "3 days") in stored(home, webhooks)[0].disabled_reason
    tell(home, "a")
    assert len(stored(home)) == 3, "nothing is written for one that is off"


def test_deliveries_that_ended_long_ago_are_swept(home):
    add(home, home.enter(webhook_endpoint()))
    tell(home, "a", "b")
    home.state.write_now(lambda c: rows.switch_off(c, "wh_1", "It is off.", 0.0))
    home.state.write_now(
        lambda c: c.execute(
            webhook_deliveries.update()
            .where(webhook_deliveries.c.subject == "b")
            .values(ended_at=rows.STORED_S)
        )
    )
    rows.sweep_deliveries(home.state, lambda: rows.STORED_S + 1)
    assert [row.subject for row in stored(home)] == ["b"]
