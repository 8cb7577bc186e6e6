"""The tools for agents, asked by the protocol's own client: in process, on stdio and over HTTP."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from steelyard.client import Client, ClientOptions
from steelyard.errors import NotFoundError
from steelyard.mcp.server import make_server, scope_of
from steelyard.mcp.tools import OF_SCOPE, READING, WRITING
from steelyard.settings import child_environment
from support.datasets.dataset_rows import make_rows
from support.servers.live_server import live_server
from support.waiting import started

mcp = pytest.importorskip("mcp.client.client")
TEAM = {"id": "team", "question": "Which team?", "outcomes": ["billing", "shipping"]}
ASKED = {"context": "I was charged twice.", "decisions": [TEAM]}


@pytest.fixture(scope="module")
def server():
    with live_server(jobs="off") as server:
        yield server


@pytest.fixture(scope="module")
def paid():
    """A server with accounts, and a key of each scope of an account without credit."""
    with live_server(accounts="on", prices="hashing=1000", jobs="off") as server:
        accounts = server.services.accounts
        account = accounts.create_account("agents").id
        keys = {
            scope: accounts.create_key(account=account, scope=scope).secret for scope in OF_SCOPE
        }
        yield server, keys


def talk(transport, say):
    """The results of a block of calls by a client of the protocol."""

    async def run():
        async with mcp.Client(transport) as client:
            return await say(client)

    return asyncio.run(run())


async def answer_of(client, name, **given):
    result = await client.call_tool(name, given)
    assert not result.is_error, result.content[0].text
    return result.structured_content


@pytest.mark.slow
def test_every_tool_answers_as_the_api_does(server):
    with Client(ClientOptions(server.url)) as direct:
        dataset = direct.datasets.create("tickets", make_rows(30), evaluation_fraction=0.5)

        async def say(client):
            tools = {one.name: one for one in (await client.list_tools()).tools}
            assert set(tools) == {*READING, *WRITING}
            assert all(tools[name].annotations.read_only_hint for name in READING)
            assert all(one.output_schema and one.input_schema for one in tools.values())
            assert tools["decide"].input_schema["required"] == ["context", "decisions"]
            assert tools["decide"].output_schema["properties"]["decisions"]
            answer = await answer_of(client, "decide", **ASKED)
            for context in ({"subject": "Charged twice"}, ["Charged twice", {"by": "Mia"}]):
                assert await answer_of(client, "decide", **{**ASKED, "context": context})
            assert (await answer_of(client, "estimate", **ASKED))["models"]
            assert (await answer_of(client, "lint", **ASKED))["warnings"] is not None
            models = await answer_of(client, "list_models")
            assert [one["id"] for one in models["data"]] == ["hashing"]
            explained = await answer_of(client, "explain_answer", model="hashing")
            assert explained["model"]["id"] == "hashing"
            recipes = await answer_of(client, "list_recipes")
            first = recipes["data"][0]
            shown = await client.read_resource(f"steelyard://recipes/{first['id']}")
            assert json.loads(shown.contents[0].text) == first
            found = await answer_of(client, "search_rows", dataset=dataset.id, limit=3)
            assert len(found["data"]) == 3
            card = await client.read_resource(f"steelyard://datasets/{dataset.id}")
            assert json.loads(card.contents[0].text)["rows"] == 30
            page = await client.read_resource("steelyard://llms.txt")
            assert "/v1/decide" in page.contents[0].text
            asked = {"answer": answer["id"], "outcomes": {"team": "billing"}}
            assert await answer_of(client, "record_feedback", **asked)
            started = await answer_of(
                client, "start_evaluation", dataset=dataset.id, models=["hashing"]
            )
            one = started["data"][0]["id"]
            assert (await answer_of(client, "get_evaluation", evaluation=one))["id"] == one
            return answer

        answer = talk(make_server(ClientOptions(server.url)), say)
        same = direct.decide(ASKED["context"], [TEAM]).decisions["team"].probabilities
        assert answer["decisions"]["team"]["probabilities"] == same


def test_a_resource_that_is_not_there_is_said_without_a_traceback(server, caplog):
    """The protocol's package logs errors that it takes for faults of the server."""

    async def say(client):
        messages = []
        for address in ("recipes/none", "datasets/none", "nothing/none"):
            with pytest.raises(MCPError) as refused:
                await client.read_resource(f"steelyard://{address}")
            messages.append((refused.value.code, str(refused.value)))
        return messages

    refused = talk(make_server(ClientOptions(server.url)), say)
    assert {code for code, _ in refused} == {INVALID_PARAMS}
    assert "list_recipes" in refused[0][1]
    assert refused[1][1].startswith("not_found: ")
    assert not [record for record in caplog.records if record.exc_info]


def test_refusals_name_the_field_and_a_remedy(server):
    async def say(client):
        calls = (
            ("decide", {**ASKED, "decisions": [{"id": "team", "question": "Which?"}]}),
            ("decide", {**ASKED, "decisions": "team", "modle": "hashing"}),
            ("search_rows", {"dataset": "ds_none", "limit": 99}),
            ("get_evaluation", {"evaluation": "eval_none"}),
            ("guess", {}),
        )
        return [await client.call_tool(name, given) for name, given in calls]

    refused = talk(make_server(ClientOptions(server.url)), say)
    texts = [answer.content[0].text for answer in refused]
    assert all(answer.is_error for answer in refused)
    assert "decisions.0.outcomes" in texts[0]
    assert texts[1].startswith("invalid_request: ")
    assert "\ndecisions: " in texts[1]
    assert "\nmodle: " in texts[1]
    assert "\nlimit: " in texts[2]
    assert "50" in texts[2]
    assert texts[3].startswith("not_found: ")
    assert texts[4].startswith("not_found: ")
    assert not [text for text in texts if "http" in text]


GIVEN = {
    "decide": ASKED,
    "estimate": ASKED,
    "lint": ASKED,
    "explain_answer": {"model": "hashing"},
    "search_rows": {"dataset": "ds_none"},
    "get_evaluation": {"evaluation": "eval_none"},
    "record_feedback": {"answer": "dec_none", "outcomes": {"team": "billing"}},
    "start_evaluation": {"dataset": "ds_none", "models": ["hashing"]},
}


@pytest.mark.parametrize("scope", OF_SCOPE)
def test_a_key_gets_the_tools_that_its_scope_may_call(paid, scope):
    server, keys = paid
    options = ClientOptions(server.url, keys[scope])
    assert asyncio.run(scope_of(options)) == scope
    # Every scope pages versions of named decisions; there is none of this name.
    with Client(options) as client, pytest.raises(NotFoundError):
        list(client.named_decisions.versions("none"))

    async def say(client):
        answers = {}
        for name in OF_SCOPE["full"]:
            answers[name] = await client.call_tool(name, GIVEN.get(name, {}))
        return answers

    answers = talk(make_server(options), say)
    refused = {
        name
        for name, answer in answers.items()
        if answer.is_error and "key_scope" in answer.content[0].text
    }
    assert set(OF_SCOPE["full"]) - refused == set(OF_SCOPE[scope])


def test_on_stdio_a_key_of_the_environment(paid):
    from mcp.client.stdio import StdioServerParameters

    server, keys = paid
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "steelyard", "mcp", "--url", server.url],
        env={**child_environment(), "STEELYARD_API_KEY": keys["read"]},
    )

    async def say(client):
        return {one.name for one in (await client.list_tools()).tools}, await answer_of(
            client, "list_models"
        )

    names, models = talk(command, say)
    assert names == set(OF_SCOPE["read"])
    assert models["data"]


@pytest.mark.slow
def test_over_http_each_caller_brings_a_key(paid):
    import httpx
    from mcp.client.streamable_http import streamable_http_client

    server, keys = paid
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["-m", "steelyard", "mcp", "--url", server.url, "--port", str(port)]
    process = subprocess.Popen([sys.executable, *command], env=child_environment())
    url = f"http://127.0.0.1:{port}/mcp"
    try:
        rebound = started(
            process,
            lambda: httpx.post(url, json={}, headers={"Host": "evil.example"}).status_code,
            not_yet=(httpx.ConnectError,),
        )
        assert rebound in {400, 403, 421}

        async def ask(headers):
            async with (
                httpx.AsyncClient(headers=headers) as http,
                mcp.Client(streamable_http_client(url, http_client=http)) as client,
            ):
                return await client.call_tool("decide", ASKED)

        nobody = asyncio.run(ask({}))
        reader = asyncio.run(ask({"Authorization": f"Bearer {keys['read']}"}))
        payer = asyncio.run(ask({"Authorization": f"Bearer {keys['full']}"}))
        for result, code in ((nobody, "missing_api_key"), (reader, "key_scope")):
            assert result.is_error
            assert code in result.content[0].text
        assert "insufficient_credit" in payer.content[0].text
    finally:
        process.terminate()
        process.wait(10)


def test_a_server_has_the_tools_at_its_own_address(paid):
    import httpx
    from mcp.client.streamable_http import streamable_http_client

    server, keys = paid
    url = f"{server.url}/mcp"

    async def ask(headers):
        async with (
            httpx.AsyncClient(headers=headers) as http,
            mcp.Client(streamable_http_client(url, http_client=http)) as client,
        ):
            tools = {one.name for one in (await client.list_tools()).tools}
            resources = {one.uri for one in (await client.list_resources()).resources}
            templates = (await client.list_resource_templates()).resource_templates
            assert bool(tools) == bool(resources) == bool(templates)
            return tools, resources, await client.call_tool("decide", ASKED)

    with Client(ClientOptions(server.url, keys["full"])) as direct:
        dataset = f"steelyard://datasets/{direct.datasets.create('tickets', make_rows(5)).id}"
        recipe = f"steelyard://recipes/{direct.recipes().data[0].id}"
    for key, code, allowed in (
        (None, "missing_api_key", ()),
        ("sy_unknown", "invalid_api_key", ()),
        (keys["read"], "key_scope", OF_SCOPE["read"]),
        (keys["inference"], "insufficient_credit", OF_SCOPE["inference"]),
        (keys["full"], "insufficient_credit", OF_SCOPE["full"]),
    ):
        tools, resources, answer = asyncio.run(
            ask({"Authorization": f"Bearer {key}"} if key else {})
        )
        assert tools == set(allowed)
        assert (recipe in resources) == bool(allowed)
        assert (dataset in resources) == (key in {keys["read"], keys["full"]})
        assert answer.is_error
        assert answer.content[0].text.startswith(f"{code}: ")
    elsewhere = {"Origin": "http://evil.example"}
    assert httpx.post(url, json={}, headers=elsewhere).status_code == 403
    assert httpx.post(url, json={}, headers={"Host": "evil.example"}).status_code == 421
    assert httpx.post(url, content="{}", headers={"Content-Type": "text/plain"}).status_code == 400
    assert httpx.get(url).status_code == 405


def test_without_the_package_it_names_it(paid, monkeypatch):
    import httpx

    def load():
        raise ImportError(name="mcp")

    monkeypatch.setattr("steelyard.mcp.mounted._load", load)
    with live_server(jobs="off") as server:
        answer = httpx.post(f"{server.url}/mcp", json={})
    assert answer.status_code == 404
    assert "pip install 'steelyard[mcp]'" in answer.json()["error"]["message"]
