"""Requests of clients that cannot run here, as their sources of 2026-11-29 build them.

Each answer passes the checks of its client.
"""

from __future__ import annotations

import math

import httpx
import pytest

from support.servers.live_server import LiveServer


def post(server: LiveServer, path: str, body: dict) -> dict:
    response = httpx.post(server.url + path, json=body, timeout=30)
    assert response.status_code == 200, response.text
    return response.json()


def test_azure_ai_evaluation(server: LiveServer):
    """``DecisionModelRunner`` of azure-ai-evaluation 1.18.10, behind the proxy of *Evaluators*."""
    questions = {
        "status": {"type": "noul", "instructions": "Did the response complete?"},
        "coherence": {
            "type": "score",
            "instructions": "How coherent is the response?",
            "criteria": ["incoherent", "poor", "partial", "good", "coherent"],
        },
    }
    state = {"query": "Where is my parcel?", "response": "It comes today."}
    body = {"model": "hashing", "state": state, "questions": questions}
    answer = post(server, "/v1/systemone", body)
    assert {name: each["type"] for name, each in answer["answers"].items()} == {
        "status": "noul",
        "coherence": "score",
    }
    score = answer["answers"]["coherence"]
    assert score["probabilities"].keys() == {"0", "1", "2", "3", "4"}
    assert math.fsum(score["probabilities"].values()) == pytest.approx(1, abs=0.001)
    assert math.isfinite(score["score"])
    assert 0 <= answer["answers"]["status"]["noul"] <= 1
    assert 0 <= score["confidence"] <= 1
    assert all(isinstance(answer["usage"][f"{side}_tokens"], int) for side in ("input", "output"))
    assert answer["model"]


def test_the_auto_router_of_litellm(server: LiveServer):
    """``build_jev_request`` and ``JevSystemOneResponse`` of LiteLLM 1.108.7's ``jev_classifier.py``."""
    tier = {
        "type": "choice",
        "instructions": "Pick the cheapest tier whose models can fully answer this request.",
        "criteria": {"SIMPLE": "one fact", "MEDIUM": "some steps", "COMPLEX": "much code"},
    }
    state = "System prompt:\nYou help.\n\nRequest:\nWhat is 2 + 2?"
    body = {"state": state, "model": "jev-latest", "questions": {"tier": tier}}
    answer = post(server, "/v1/systemone", body)
    chosen = answer["answers"]["tier"]
    assert chosen["type"] == "choice"
    assert chosen["choice"] in tier["criteria"]
    assert chosen["probabilities"].keys() == tier["criteria"].keys()
    assert all(0 <= each <= 1 for each in (*chosen["probabilities"].values(), chosen["confidence"]))
    assert all(isinstance(answer["usage"][f"{side}_tokens"], int) for side in ("input", "output"))
    assert isinstance(answer["model"], str)


def test_openai_decision_factory_of_dotnet(server: LiveServer):
    """``OpenAIDecisionFactory`` of .NET's AgentFrameworkToolkit: null for each lacking description."""
    body = {
        "model": "hashing",
        "input": "I was charged twice.",
        "questions": [
            {"type": "predicate", "name": "Refund", "instructions": "Is money asked back?"},
            {
                "type": "choice",
                "name": "Team",
                "instructions": "Which team?",
                "choices": [
                    {"value": "Billing", "description": None},
                    {"value": "Shipping", "description": "where a parcel is"},
                ],
            },
            {
                "type": "score",
                "name": "Urgency",
                "instructions": "How urgent is it?",
                "levels": [
                    {"label": "Low", "description": None},
                    {"label": "High", "description": None},
                ],
            },
        ],
        "safety_identifier": "user-1",
    }
    answer = post(server, "/v1/decisions", body)
    names = [(each["type"], each["name"]) for each in answer["answers"]]
    assert names == [("predicate", "Refund"), ("choice", "Team"), ("score", "Urgency")]
    usage = answer["usage"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    assert answer["model"] == "hashing"
