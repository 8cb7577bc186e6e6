"""The components of other tools that the documents show, where the tool is installed."""

from __future__ import annotations

import asyncio
import re
import uuid
from typing import Any, Literal

import pytest

from support.servers.live_server import LiveServer
from support.tree.repository import ROOT

TEXT = "I was charged twice."
#: What another's package leaves open is not this server's.
leaves_open = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def run_shown(package: str, page: str = "evaluators") -> dict[str, Any]:
    """Run the block of a tool's component; give the names that it makes."""
    pytest.importorskip(package, reason=f"needs {package}, which no extra has")
    text = (ROOT / f"docs/applications/{page}.md").read_text(encoding="utf-8")
    block = re.search(rf'```text title="{re.escape(package)}"\n(.*?)```', text, re.DOTALL)
    assert block is not None
    names: dict[str, Any] = {}
    exec(block[1], names)
    return names


def test_a_component_of_haystack_decides():
    answer = run_shown("haystack", "other-clients")["Decide"]().run(text=TEXT)
    assert answer["action"] in answer["probabilities"]


def test_a_selector_of_llama_index_chooses():
    selector = run_shown("llama_index.core", "other-clients")["DecisionSelector"]()
    [chosen] = selector.select(["where a parcel is", "charges and refunds"], TEXT).selections
    assert chosen.index in {0, 1}


def test_an_experiment_of_langfuse_is_evaluated():
    team = run_shown("langfuse", "clients/langfuse")["team"]
    langfuse = pytest.importorskip("langfuse")
    result = langfuse.Langfuse(
        public_key="pk", secret_key="sk", tracing_enabled=False
    ).run_experiment(
        name="tickets",
        data=[{"input": TEXT}],
        task=lambda **_: "We refund.",
        evaluators=[team],
    )
    [evaluation] = result.item_results[0].evaluations
    assert evaluation.value in {"billing", "shipping"}


# Its switch for staying on this machine is called beta, and it names a class that Python 3.12 replaced.
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
def test_an_experiment_of_langsmith_is_evaluated(monkeypatch: pytest.MonkeyPatch):
    refund = run_shown("langsmith", "clients/langsmith")["refund"]
    langsmith = pytest.importorskip("langsmith")
    schemas = pytest.importorskip("langsmith.schemas")
    monkeypatch.setenv("LANGSMITH_TRACING", "false")
    example = schemas.Example(
        id=uuid.uuid4(), dataset_id=uuid.uuid4(), inputs={"text": TEXT}, outputs={}
    )
    [row] = langsmith.evaluate(
        lambda inputs: {"reply": "We refund."},
        data=[example],
        evaluators=[refund],
        upload_results=False,
        client=langsmith.Client(api_key="any", api_url="http://127.0.0.1:9"),
    )
    [evaluation] = row["evaluation_results"]["results"]
    assert evaluation.key == "refund"
    assert 0 <= evaluation.score <= 1


def test_a_table_of_phoenix_is_evaluated():
    [score] = run_shown("phoenix.evals")["team"].evaluate({"input": TEXT})
    assert score.label in {"billing", "shipping"}


@leaves_open
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_rail_of_nemo_guardrails_lets_through_and_refuses():
    names = run_shown("nemoguardrails")
    shown, refusal = names["override_probability"], "I cannot help with that."
    rails = names["rails"]
    assert 0 <= shown({"user_message": TEXT}) <= 1
    for probability, answer in ((0.1, TEXT), (0.9, refusal)):
        rails.runtime.action_dispatcher.register_action(
            lambda context, probability=probability: probability, "override_probability"
        )
        messages = [{"role": "user", "content": TEXT}]
        result = rails.generate(messages=messages, options={"rails": ["input"]})
        assert result.response[0]["content"] == answer


@leaves_open
def test_an_agent_of_pydantic_ai_answers(server: LiveServer):
    agents = pytest.importorskip("pydantic_ai", reason="needs pydantic_ai, which no extra has")
    models = pytest.importorskip("pydantic_ai.models.system_one")
    providers = pytest.importorskip("pydantic_ai.providers.system_one")
    http = pytest.importorskip("httpx2")

    async def ask() -> object:
        async with http.AsyncClient() as client:
            provider = providers.SystemOneProvider(base_url=server.url, http_client=client)
            model = models.SystemOneModel("jev-latest", provider=provider)
            agent = agents.Agent(model, output_type=Literal["billing", "shipping"])
            return (await agent.run(TEXT)).output

    assert asyncio.run(ask()) in {"billing", "shipping"}
