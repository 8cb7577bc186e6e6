"""A named decision over every other wire: two dialects, agents, frames and a classifier."""

from __future__ import annotations

import asyncio
from functools import partial

import httpx
import pandas as pd
import polars as pl
import pytest
from sqlalchemy import update

import steelyard
from steelyard.client import ClientOptions
from steelyard.named.tables import named_decisions
from support.servers.live_server import live_server

pytestmark = pytest.mark.usefixtures("every_response_is_checked")

TEXT = "Invoice 118 was paid twice; please send the money back."
DECISIONS = [
    {
        "id": "team",
        "question": "Who is it for?",
        "outcomes": ["billing", "shipping"],
        "abstain": {"min_probability": 1},
    },
    {"id": "refund", "kind": "binary", "question": "Does the writer ask for money back?"},
    {"id": "urgency", "kind": "ordinal", "question": "How urgent?", "rubric": ["low", "high"]},
]


@pytest.fixture(scope="module")
def server():
    with live_server(jobs="off") as running:
        yield running


@pytest.fixture(scope="module")
def client(server):
    with steelyard.connect(server.url) as connected:
        connected.named_decisions.create("triage", DECISIONS, description="For the desk.")
        yield connected


@pytest.fixture(scope="module")
def native(client):
    return client.decision("triage").decide(TEXT)


def post(client, path, **body):
    return httpx.post(f"{client.url}{path}", json={"model": "decision:triage@1", **body})


def test_dialects_reach_it_by_the_name_of_a_model(client, native):
    p = {name: result.probabilities for name, result in native.decisions.items()}
    response = post(client, "/v1/decisions", input=TEXT, questions=[])
    assert response.status_code == 200, response.text
    openai = response.json()
    team, refund, urgency = openai["answers"]
    assert {each["value"]: each["probability"] for each in team["probabilities"]} == p["team"]
    assert (team["name"], refund["probability"]) == ("team", p["refund"]["yes"])
    assert [level["label"] for level in urgency["probabilities"]] == ["0", "1"]
    systemone = post(client, "/v1/systemone", state=TEXT).json()
    assert systemone["answers"]["team"]["probabilities"] == p["team"]
    assert systemone["answers"]["urgency"]["legend"] == {"0": "0", "1": "1"}
    for answer in (openai, systemone):
        assert answer["actions"]["team"] == "abstain"
        assert answer["decision"] == {"name": "triage", "version": 1, "alias": None}
        assert client.stored_decision(answer["id"]).named.reference == "triage@1"
        client.feedback(answer["id"], {"refund": "yes"})
    assert client.decision_summary(named="triage").feedback_share.value > 0
    assert post(client, "/v1/systemone/estimate", state=TEXT).status_code == 200
    translated = post(client, "/v1/systemone/translate", state=TEXT).json()["request"]
    assert translated == {"decision": "triage@1", "context": TEXT}


def test_dialects_refuse_questions_beside_it_and_names_in_another_form(client):
    question = {"type": "predicate", "instructions": "Is it?"}
    refused = post(client, "/v1/decisions", input=TEXT, questions=[question])
    assert refused.status_code == 422
    assert "version of a named decision has them" in refused.json()["error"]["message"]
    wrong = post(client, "/v1/systemone", state=TEXT, model="decision:Triage@")
    assert "give a name such as support_triage" in wrong.json()["error"]["message"]
    assert post(client, "/v1/systemone", state=TEXT, model="decision:none").status_code == 404
    image = [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]
    assert post(client, "/v1/decisions", input=image).status_code == 422


def test_fields_and_rules_are_on_every_wire(client):
    mcp = pytest.importorskip("mcp.client.client")
    client.named_decisions.create(
        "ruled",
        DECISIONS[:1],
        fields={"amount": {"type": "decimal", "description": "In EUR"}},
        rules=[{"when": 'action == "abstain" and amount < 50', "action": "ask"}],
        otherwise="person",
    )
    rule = {"action": "ask", "number": 1, "why": "action is abstain and amount below 50"}
    asked = {"model": "decision:ruled", "fields": {"amount": 9.5}}
    for path, field in (("/v1/decisions", "input"), ("/v1/systemone", "state")):
        assert post(client, path, **asked, **{field: TEXT}).json()["rule"] == rule
        refused = post(client, path, model="decision:ruled", **{field: TEXT})
        assert refused.status_code == 422
    translated = post(client, "/v1/systemone/translate", **asked, state=TEXT).json()
    assert translated["request"]["fields"] == asked["fields"]
    with pytest.raises(ValueError, match="ruled@1 needs amount beside each text"):
        steelyard.decide_frame(pl.DataFrame({"text": [TEXT]}), "ruled", client=client)
    rows = {"text": [TEXT] * 4, "paid": [9.5, 120, None, "n/a"]}
    for kind in (
        partial(pl.DataFrame, strict=False, schema_overrides={"paid": pl.Object}),
        pd.DataFrame,
    ):
        scored = steelyard.decide_frame(
            kind(rows), "ruled", fields={"amount": "paid"}, client=client, progress=False
        )
        assert list(scored.columns)[-2:] == ["rule", "error"]
        assert list(scored["rule"])[:2] == ["ask", "person"]
        missing, wrong = list(scored["error"])[2:]
        assert "fields.amount is missing" in missing
        assert 'fields.amount is "n/a"' in wrong
    by_name = pl.DataFrame({"text": [TEXT], "amount": ["49.90"]})
    assert steelyard.decide_frame(by_name, "ruled", client=client)["rule"].to_list() == ["ask"]
    for frame, fields, problem in (
        (by_name, {"amnt": "amount"}, "has no field 'amnt'; its fields: amount"),
        (by_name, {"amount": "paid"}, "no column 'paid'"),
    ):
        with pytest.raises(ValueError, match=problem):
            steelyard.decide_frame(frame, "ruled", fields=fields, client=client)
    with pytest.raises(ValueError, match="Only a named decision has fields"):
        steelyard.decide_frame(by_name, DECISIONS, fields={"amount": "amount"})
    exported = pl.read_csv(client.export_decisions(named="ruled", format="csv"))
    assert {("ask", 1), ("person", None)} == {*exported.select("rule_action", "rule").iter_rows()}
    assert '{"amount":9.5}' in exported["fields"]
    from steelyard.mcp.server import make_server

    async def talk():
        async with mcp.Client(make_server(ClientOptions(client.url))) as agent:
            tools = {tool.name: tool for tool in (await agent.list_tools()).tools}
            arguments = {"context": TEXT, "fields": asked["fields"]}
            return tools["decision_ruled"], await agent.call_tool("decision_ruled", arguments)

    tool, answer = asyncio.run(talk())
    assert answer.structured_content["rule"] == rule
    assert tool.input_schema["required"] == ["context", "fields"]
    fields = tool.input_schema["properties"]["fields"]
    assert fields["properties"]["amount"] == {"type": ["number", "string"], "description": "In EUR"}
    client.named_decisions.archive("ruled")


def test_agents_have_a_tool_for_it_with_its_outcomes(server, client, native):
    mcp = pytest.importorskip("mcp.client.client")
    client.named_decisions.create("unreachable", DECISIONS)
    # As a version before this one took it: it has no address, and takes no other's tool away.
    renamed = update(named_decisions).where(named_decisions.c.name == "unreachable")
    server.services.state.write_now(
        lambda connection: connection.execute(renamed.values(name="unreachable\n")).close()
    )
    from steelyard.mcp.server import make_server

    async def talk(**given):
        async with mcp.Client(make_server(ClientOptions(client.url))) as agent:
            tools = {tool.name: tool for tool in (await agent.list_tools()).tools}
            assert [name for name in tools if name.startswith("decision_")] == ["decision_triage"]
            return tools["decision_triage"], await agent.call_tool("decision_triage", given)

    tool, answer = asyncio.run(talk(context=TEXT))
    assert tool.description == (
        "For the desk. Who is it for? Does the writer ask for money back? How urgent?"
    )
    assert tool.input_schema["required"] == ["context"]
    team = tool.output_schema["properties"]["decisions"]["properties"]["team"]["properties"]
    assert team["action"]["enum"] == ["billing", "shipping", "abstain"]
    assert answer.structured_content["decision"]["version"] == 1
    probabilities = answer.structured_content["decisions"]["team"]["probabilities"]
    assert probabilities == native.decisions["team"].probabilities
    assert asyncio.run(talk(text=TEXT))[1].is_error


def test_frames_and_a_classifier_take_one(client, native):
    for frame in (pl.DataFrame({"text": [TEXT]}), pd.DataFrame({"text": [TEXT]})):
        answered = steelyard.decide_frame(frame, "triage", client=client, progress=False)
        assert list(answered["team.action"]) == ["abstain"]
        assert list(answered["team.p.billing"]) == [
            native.decisions["team"].probabilities["billing"]
        ]
    with pytest.raises(ValueError, match="a named decision, which a server has; give client"):
        steelyard.decide_frame(frame, "triage", progress=False)
    classifier = steelyard.SteelyardClassifier(calibrate=False, decision="triage", url=client.url)
    classifier.fit([TEXT, TEXT], ["shipping", "billing"])
    shares = dict(zip(classifier.classes_, classifier.predict_proba([TEXT])[0], strict=True))
    assert shares == pytest.approx(native.decisions["team"].probabilities)
    with pytest.raises(ValueError, match="No question of triage has the classes a, b"):
        classifier.fit([TEXT, TEXT], ["a", "b"]).predict([TEXT])
