"""A share of a decision's traffic: drawn by a hash, compared on feedback, and ended where it is worse."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

import steelyard
from steelyard import errors
from steelyard.cli.main import main
from steelyard.named.shares import ShareWatch
from steelyard.named.splitting import ENOUGH, evidence_of_worse, is_in_share
from support.servers.live_server import live_server

pytestmark = pytest.mark.usefixtures("every_response_is_checked")

TEAM = {"id": "team", "question": "Who is it for?", "outcomes": ["billing", "shipping"]}
LATER = {**TEAM, "question": "Who can solve this?"}


@pytest.fixture(scope="module")
def server():
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
