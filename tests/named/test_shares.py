"""A share of a decision's traffic: drawn by a hash, compared on feedback, and ended where it is worse."""

from __future__ import annotations

import time
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

import steelyard
from steelyard import errors
from steelyard.alarms.store import alarm_on_answers, insert_alarm
from steelyard.cli.main import main
from steelyard.named import room
from steelyard.named import store as rows
from steelyard.named.shares import ShareWatch
from steelyard.named.splitting import ENOUGH, evidence_of_worse, is_in_share
from support.servers.live_server import live_server

pytestmark = pytest.mark.usefixtures("every_response_is_checked")

TEAM = {"id": "team", "question": "Who is it for?", "outcomes": ["billing", "shipping"]}
LATER = {**TEAM, "question": "Who can solve this?"}


@pytest.fixture(scope="module")
def server():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "LOOK_S", 86_400.0)  # the tests look themselves
        with live_server(jobs="off") as running:
            yield running


@pytest.fixture(scope="module")
def client(server):
    with steelyard.connect(server.url) as connected:
        yield connected


def start(client, name):
    """Make a decision whose staging is another version."""
    named = client.named_decisions
    named.create(name, [TEAM])
    named.add_version(name, [LATER])
    named.move(name, "staging", 2)
    return named


def ask(client, name, number):
    answer = client.decision(name).decide(f"Ticket {number}")
    return answer, answer.decision.alias == "staging"


def report(client, answer, *, is_right):
    top = answer.decisions["team"].top
    other = {"billing": "shipping", "shipping": "billing"}[top]
    client.feedback(answer.id, {"team": top if is_right else other})


def test_a_share_that_is_worse_is_ended_and_says_so(server, client):
    named = start(client, "desk")
    share = named.share("desk", "staging", 0.5, reason="a try").shares[0]
    assert (share.from_version, share.to_version, share.ended_at) == (1, 2, None)
    watch = ShareWatch(server.services.state)
    aliases = []
    for number in range(90):
        answer, is_shared = ask(client, "desk", number)
        assert is_shared == is_in_share(f"Ticket {number}", share.id, 0.5)
        assert answer.decision.version == 1 + is_shared
        report(client, answer, is_right=not is_shared)
        aliases.append(is_shared)
    # Those that name the other alias were not drawn, and are not counted.
    for number in range(5):
        if not aliases[number]:
            direct = client.decision("desk@staging").decide(f"Ticket {number}")
            report(client, direct, is_right=True)
    watch.tick()
    ended = named.get("desk").shares[0]
    assert (ended.id, ended.ended_reason, ended.ended_by) == (share.id, "worse", "steelyard")
    before, after = ended.figures.before, ended.figures.after
    assert (before.value, after.value) == (1, 0)
    assert (before.n, after.n) == (len(aliases) - sum(aliases), sum(aliases))
    assert ended.figures.worse >= ENOUGH
    shown = CliRunner().invoke(main, ["decision", "show", "desk", "--url", client.url]).output
    assert "50% of production (1) to staging (2)" in shown
    assert "by steelyard: worse; right on feedback: 100.0%" in shown
    client.named_decisions.change("desk", owner="ann")  # this process looks anew
    assert not any(ask(client, "desk", number)[1] for number in range(20))
    watch.tick()


def test_a_share_that_is_as_good_goes_on_until_it_is_ended_or_an_alias_moves(server, client):
    named = start(client, "same")
    with pytest.raises(errors.NotFoundError, match="no alias 'canary'"):
        named.share("same", "canary", 0.1)
    named.move("same", "twin", 1)
    with pytest.raises(errors.InvalidReferenceError, match="both point to version 1"):
        named.share("same", "twin", 0.1)
    named.share("same", "staging", 0.5)
    for number in range(60):
        report(client, ask(client, "same", number)[0], is_right=number % 4 > 0)
    # Of answers without their text it cannot be seen which were drawn, so neither side has them.
    for number in range(8):
        quiet = client.decision("same").decide(f"Ticket {number}", store="features")
        report(client, quiet, is_right=False)
    ShareWatch(server.services.state).tick()
    [share] = named.get("same").shares
    assert share.ended_at is None
    assert share.figures.before.n + share.figures.after.n == 60
    command = ["decision", "share", "same", "staging", "--url", client.url, "--share"]
    assert CliRunner().invoke(main, [*command, "0.2"]).exit_code == 0
    assert CliRunner().invoke(main, [*command, "0"]).exit_code == 0
    named.share("same", "staging", 0.2)
    named.move("same", "staging", 1)
    reasons = [share.ended_reason for share in named.get("same").shares]
    assert reasons == ["moved", "ended", "changed"]


class Clock:
    """A time that a test moves."""

    def __init__(self):
        self.at = time.time()

    def __call__(self):
        return self.at

    def go_on(self, hours):
        self.at += hours * 3_600


def test_a_share_goes_on_by_steps_and_each_is_taken_once(server, client):
    named = start(client, "ramp")
    command = ["decision", "share", "ramp", "staging", "--share", "0.05", "--every", "2"]
    steps = ["--then", "0.25", "--then", "0.5", "--url", client.url]
    assert CliRunner().invoke(main, [*command, *steps]).exit_code == 0
    clock = Clock()

    def tick():  # each by another process, which may have been started meanwhile
        for _ in range(2):
            ShareWatch(server.services.state, now=clock).tick()
        [share] = named.get("ramp").shares
        return share.share, share.ramp.steps, share.ended_at

    assert tick() == (0.05, [0.25, 0.5], None)
    watches = [ShareWatch(server.services.state, now=clock) for _ in range(2)]
    clock.go_on(2.1)
    [row] = server.services.state.read_now(rows.running_shares)[-1:]
    [share] = named.get("ramp").shares
    for watch in watches:  # both have read it before either takes the step
        watch.go_on(row, share.ramp, share.figures)
    assert tick() == (0.25, [0.5], None)
    clock.go_on(100)  # a server that was off takes one step, and not all that it missed
    assert tick() == (0.5, [], None)
    assert named.get("ramp").shares[0].ramp.next_at is None
    shown = CliRunner().invoke(main, ["decision", "show", "ramp", "--url", client.url]).output
    assert "50% of production (1) to staging (2)" in shown
    with pytest.raises(errors.InvalidReferenceError, match="larger than the one before"):
        named.share("ramp", "staging", 0.2, steps=[0.5, 0.4])
    named.share("ramp", "staging", 0)


@pytest.mark.parametrize("reason", ["worse", "alarm", "comparison"])
def test_a_share_with_steps_halts_by_itself_and_says_why(server, client, reason, monkeypatch):
    named = start(client, f"halts_{reason}")
    named.share(f"halts_{reason}", "staging", 0.5, steps=[0.9], step_hours=1)
    clock = Clock()
    watch = ShareWatch(server.services.state, now=clock)
    if reason == "worse":
        for number in range(90):
            answer, is_shared = ask(client, "halts_worse", number)
            report(client, answer, is_right=not is_shared)
    elif reason == "alarm":
        watch.register_alarms(lambda *_: "Answers of hashing fail more often.")
    else:
        monkeypatch.setattr(rows, "find_comparison", lambda *_: SimpleNamespace(verdict="refused"))
    clock.go_on(1.1)
    watch.tick()
    [share] = named.get(f"halts_{reason}").shares
    assert (share.share, share.ended_reason, share.ended_by) == (0.5, reason, "steelyard")
    assert share.ramp.steps == [0.9]
    assert share.figures.alarm == (
        "Answers of hashing fail more often." if reason == "alarm" else None
    )


def test_an_alarm_on_the_model_that_answers_is_found_and_older_ones_are_not(server, client):
    start(client, "watched")
    answer = client.decision("watched@2").decide("Ticket")
    alarm = {
        "id": "alarm_1",
        "account_id": "local",
        "model": answer.model,
        "version": "",
        "decision": "team",
        "watch": "errors",
        "message": "It fails.",
        "evidence": b"{}",
        "created_at": time.time(),
    }
    state = server.services.state
    state.write_now(lambda connection: insert_alarm(connection, alarm))
    for named, since, found in (
        ("watched@2", 0.0, "It fails."),
        ("watched@1", 0.0, None),
        ("watched@2", time.time() + 1, None),
    ):
        said = state.read_now(lambda c: alarm_on_answers(c, "local", named, since))  # noqa: B023
        assert said == found


def test_versions_that_are_right_alike_are_seldom_taken_for_worse():
    rng = np.random.default_rng(0)
    n_ended = 0
    for _ in range(60):
        shared, right = rng.random(600) < 0.2, rng.random(600) < 0.8
        counts = [np.cumsum(sides & each) for sides in (~shared, shared) for each in (right, True)]
        n_ended += any(
            evidence_of_worse(
                (int(counts[0][at]), int(counts[1][at])), (int(counts[2][at]), int(counts[3][at]))
            )
            >= ENOUGH
            for at in range(99, 600, 100)
        )
    assert n_ended <= 6
