"""The LiteLLM proxy 1.108.7 in front of the server, in an environment of its own."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import openai
import pytest

from support.servers.live_server import LiveServer
from support.waiting import started

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

REQUIREMENT = "litellm[proxy]==1.108.7"
STARTUP_S = 120


@pytest.fixture(scope="session")
def litellm(client_folder) -> Path:
    folder: Path = client_folder("litellm") / "environment"
    command = folder / "bin" / "litellm"
    done = folder / "installed"
    if not done.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        pip = subprocess.run(
            [str(folder / "bin" / "pip"), "install", "--quiet", REQUIREMENT],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        if pip.returncode:
            pytest.skip(f"pip cannot install {REQUIREMENT}: {pip.stderr.strip()[-300:]}")
        done.touch()
    return command


@pytest.fixture(scope="session")
def proxy(
    litellm: Path, running_server: LiveServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[httpx.Client]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    folder = tmp_path_factory.mktemp("litellm-proxy")
    master_key = f"sk-{secrets.token_hex(24)}"
    models = {"systemone-model": "typesafe/jev-latest", "decisions-model": "openai/hashing"}
    # JSON is YAML.
    config = {
        "model_list": [
            {
                "model_name": name,
                "litellm_params": {
                    "model": model,
                    "api_base": running_server.url,
                    "api_key": "any-key",
                },
            }
            for name, model in models.items()
        ]
        + [
            {
                "model_name": "chat",
                "litellm_params": {"model": "openai/chat", "mock_response": "Hi"},
            }
        ],
        "guardrails": [
            {
                "guardrail_name": action,
                "litellm_params": {
                    "guardrail": "decision_model",
                    "mode": "pre_call",
                    "decision_model": "systemone-model",
                    "checks": [
                        {"name": "any", "instructions": "Is it?", "threshold": 0, "action": action}
                    ],
                },
            }
            for action in ("log", "block")
        ],
        "general_settings": {"master_key": master_key},
    }
    (folder / "config.yaml").write_text(json.dumps(config))
    command = [str(litellm), "--config", "config.yaml", "--host", "127.0.0.1", "--port", str(port)]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    headers = {"Authorization": f"Bearer {master_key}"}
    url = f"http://127.0.0.1:{port}"
    try:
        with httpx.Client(base_url=url, headers=headers, timeout=60) as client:
            _wait_until_ready(client, process, folder / "log")
            yield client
    finally:
        process.terminate()
        process.wait(timeout=30)


def _wait_until_ready(client: httpx.Client, process: subprocess.Popen, log: Path) -> None:
    started(
        process,
        lambda: client.get("/health/liveliness").is_success,
        STARTUP_S,
        last=lambda: f"The proxy did not start: {log.read_text()[-2000:]}",
        not_yet=(httpx.TransportError,),
    )


@pytest.fixture(scope="module", autouse=True)
def answers_over_http_are_checked() -> None:
    """These are the proxy's; its answers from our server are checked there."""


@pytest.mark.parametrize("model", ["systemone-model", "decisions-model"])
def test_systemone_through_the_proxy(proxy: httpx.Client, server: LiveServer, model: str):
    body = {
        "model": model,
        "state": "My card was charged twice.",
        "questions": {
            "refund": {"type": "noul", "instructions": "Is money asked back?"},
            "team": {
                "type": "choice",
                "instructions": "Which team?",
                "criteria": {"billing": "charges", "other": None},
            },
            "urgency": {
                "type": "score",
                "instructions": "How urgent?",
                "criteria": ["can wait", "today"],
            },
        },
    }
    response = proxy.post("/v1/systemone", json=body)
    assert response.status_code == 200, response.text
    answers = response.json()["answers"]
    assert list(answers) == ["refund", "team", "urgency"]
    assert 0 <= answers["refund"]["noul"] <= 1
    assert answers["team"]["choice"] in ("billing", "other")
    assert set(answers["urgency"]["probabilities"]) == {"0", "1"}
    assert server.scorer.n_requests == 1


@pytest.mark.parametrize("model", ["systemone-model", "decisions-model"])
def test_decisions_through_the_proxy(proxy: httpx.Client, server: LiveServer, model: str):
    questions = [
        {"type": "predicate", "name": "refund", "instructions": "Money is asked back."},
        {
            "type": "choice",
            "instructions": "Which team?",
            "choices": [{"value": "billing"}, {"value": "other"}],
        },
        {
            "type": "score",
            "instructions": "How urgent?",
            "levels": [{"label": "low"}, {"label": "high"}],
        },
    ]
    key = proxy.headers["Authorization"].removeprefix("Bearer ")
    with openai.OpenAI(
        api_key=key, base_url=str(proxy.base_url.join("/v1")), max_retries=0
    ) as client:
        decision = client.decisions.create(
            model=model, input="My card was charged twice.", questions=questions
        )
    predicate, choice, score = decision.answers
    assert 0 <= predicate.probability <= 1
    assert choice.choice in ("billing", "other")
    assert [entry.label for entry in score.probabilities] == ["low", "high"]
    assert server.scorer.n_requests == 1


def test_refusals_reach_the_caller(proxy: httpx.Client):
    question = {"type": "predicate", "instructions": " "}
    body = {"model": "decisions-model", "input": "Hi", "questions": [question]}
    response = proxy.post("/v1/decisions", json=body)
    assert 400 <= response.status_code < 500
    assert "questions[0].instructions is blank" in response.text


def test_a_guardrail_observes_before_it_blocks(proxy: httpx.Client, server: LiveServer):
    body = {"model": "chat", "messages": [{"role": "user", "content": "I was charged twice."}]}
    observed = proxy.post("/v1/chat/completions", json={**body, "guardrails": ["log"]})
    assert observed.status_code == 200, observed.text
    assert server.scorer.n_requests == 1
    blocked = proxy.post("/v1/chat/completions", json={**body, "guardrails": ["block"]})
    assert blocked.status_code == 400, blocked.text
    assert server.scorer.n_requests == 2
