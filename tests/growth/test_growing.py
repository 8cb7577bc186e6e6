"""The rows that a growth makes of sure answers, its family on novel texts, and its events."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

import steelyard
from steelyard.errors import InvalidNameError, NoveltyUnknownError
from steelyard.families.bounds import FamilyBounds
from steelyard.growth.service import Growths
from steelyard.growth.state import GrowthState
from steelyard.growth.turning import Turn
from steelyard.growth.wire import SetGrowth
from steelyard.named.service import NamedDecisions
from support.accounts.operating import LOCAL
from support.families.learnable_rows import DECISION, learnable_rows
from support.servers.live_server import live_server
from support.servers.webhook_endpoint import webhook_endpoint
from support.waiting import wait_until

_DAY_S = 86_400.0


@pytest.fixture(scope="module")
def server():
    with live_server(
        jobs="off", base_models="judge=hashing,near=hashing", webhook_hosts="127.0.0.1"
    ) as running:
        yield running


@pytest.fixture(scope="module")
def client(server):
    with steelyard.connect(server.url) as connected:
        yield connected


def test_sure_answers_become_rows_of_the_judge_and_each_step_is_an_event(
    server, client, monkeypatch
):
    named, rows = client.named_decisions, learnable_rows(n_rows=30)
    dataset = client.datasets.create("desk rows", examples=rows[:20])
    named.create("desk", [DECISION], model="judge")
    named.change("desk", dataset_id=dataset.id)
    answers = [client.decision("desk").decide(row["context"]) for row in rows[20:]]
    [held_out, *_] = client.datasets.rows(dataset.id, partition="evaluation", limit=1).data
    known = client.decision("desk").decide(held_out.context)
    tops = sorted(answer.decisions["team"].p_top for answer in answers)
    at_least = min(tops[5], known.decisions["team"].p_top)
    sure = [answer for answer in answers if answer.decisions["team"].p_top >= at_least]
    corrected = sure.pop()
    wrong = next(name for name in DECISION["outcomes"] if name != corrected.decisions["team"].top)
    client.feedback(corrected.id, {"team": wrong})
    with webhook_endpoint() as endpoint:
        webhook = client.webhooks.create(endpoint.url, ["decision.grown"])
        endpoint.secret = webhook.secret
        named.grow("desk", "rows", judge_rows=at_least)
        named.turn_growth("desk")
        growths = server.services.get(Growths)
        assert client.datasets.get(dataset.id).rows == 21, "people have a day to say more"
        monkeypatch.setattr(growths, "_now", lambda: time.time() + 1.1 * _DAY_S)
        named.turn_growth("desk")
        named.turn_growth("desk")
        told = wait_until(lambda: endpoint.told[1:] and endpoint.told)
    rows = {
        side: [
            row
            for row in client.datasets.rows(dataset.id, partition=side, limit=50).data
            if (row.metadata or {}).get("by") == "model"
        ]
        for side in ("training", "evaluation")
    }
    assert rows["evaluation"] == []
    assert {row.metadata["who"] for row in rows["training"]} == {"judge"}
    assert {row.metadata["decision_id"]: row.targets["team"] for row in rows["training"]} == {
        answer.id: {answer.decisions["team"].top: 1.0} for answer in sure
    }
    events = [event["data"] for event in told]
    assert [(event["decision"], event["stage"]) for event in events] == [("desk", "gathering")] * 2
    assert "1 rows of feedback were added, 21 in all" in events[0]["message"]
    assert (
        f"{len(sure)} rows of the model's own sure answers were added, {21 + len(sure)}"
        in events[1]["message"]
    )
    assert {"estimate", "comparison", "at"} <= set(events[1])


def test_a_family_that_cannot_be_is_refused_when_it_is_set(client):
    named = client.named_decisions
    long = "a_" * 24 + "b"
    for name in ("short", long):
        named.create(name, [DECISION], model="judge")
        named.change(name, dataset_id=client.datasets.create(name, learnable_rows(n_rows=2)).id)
    for name, family in (
        ("short", "A b"),
        ("short", "a\n"),
        ("short", "judge"),
        ("short", "a" * 49),
        (long, None),
    ):
        with pytest.raises(InvalidNameError) as refused:
            named.grow(name, "rows", family=family)
        assert refused.value.details[0]["path"] == ["body", "family"]
    assert named.grow(long, "rows", family="a-b").policy.family == "a-b"


@pytest.mark.parametrize("can_tell", [True, False])
def test_texts_unlike_the_rows_of_its_family_go_back_to_the_judge(
    server, client, monkeypatch, can_tell
):
    name, limits = f"known_{can_tell}".lower(), []

    async def abstain_on_novel(_, family, request):
        if not can_tell:
            raise NoveltyUnknownError("It has no vectors.")
        limits.append((family, request.false_alarms))

    monkeypatch.setattr(server.services.get(FamilyBounds), "abstain_on_novel", abstain_on_novel)
    client.named_decisions.create(name, [DECISION], model="judge")
    production = asyncio.run(server.services.get(NamedDecisions).version(LOCAL, name, "production"))
    # A base model stands for the family, which it is to the version that asks it.
    policy, state = SetGrowth(family="near", novel=0.1, shadow=0), GrowthState()
    house = SimpleNamespace(get=server.services.get, state=server.services.state)
    turn = Turn(house, LOCAL, name, policy, state, 0.0)
    candidate = asyncio.run(turn.begin("near@1", production))
    assert limits == ([("near", 0.1)] if can_tell else [])
    why = "texts unlike its rows go back to judge" if can_tell else "it cannot tell texts unlike"
    assert why in state.steps[0].message
    scorer = server.scorers["near"]
    score = scorer.score
    monkeypatch.setattr(
        scorer,
        "score",
        lambda requests: [
            [replace(each, novelty=(0.0, "Xylophon" in request.context)) for each in scored]
            for request, scored in zip(requests, score(requests), strict=True)
        ],
    )
    grown = client.decision(f"{name}@{candidate.version}")
    known, novel = grown.decide("The invoice is wrong."), grown.decide("Xylophon ypsilon.")
    assert (known.model, known.fallback) == ("near", None)
    assert (novel.model, novel.fallback.reason) == ("judge", "unsure")
    assert client.decision(name).decide("Xylophon ypsilon.").fallback is None
