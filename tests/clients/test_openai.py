"""openai 3.52.0: ``client.decisions.create``."""

from __future__ import annotations

import importlib.metadata

import openai
import pytest

from support.servers.live_server import LiveServer

QUESTIONS = [
    {"type": "predicate", "name": "refund", "instructions": "The writer asks for money back."},
    {
        "type": "choice",
        "instructions": "Which team should own this?",
        "choices": [{"value": "billing", "description": "charges"}, {"value": True}],
    },
    {
        "type": "score",
        "name": "urgency",
        "instructions": [{"type": "input_text", "text": "How urgent is it?"}],
        "levels": [{"label": "low"}, {"label": "high", "description": "today"}],
    },
]


@pytest.fixture
def client(server: LiveServer):
    with openai.OpenAI(api_key="any-key", base_url=f"{server.url}/v1", max_retries=0) as client:
        yield client


def ask(client: openai.OpenAI, **fields):
    asked = {"model": "hashing", "input": "I was charged twice.", "questions": QUESTIONS}
    return client.decisions.create(**{**asked, **fields})


def test_version():
    assert importlib.metadata.version("openai") == "3.52.0"


def test_every_type_of_question(client: openai.OpenAI):
    decision = ask(client)
    predicate, choice, score = decision.answers
    assert (predicate.type, predicate.name) == ("predicate", "refund")
    assert 0 <= predicate.probability <= 1
    assert (choice.type, choice.name) == ("choice", None)
    assert [entry.value for entry in choice.probabilities] == ["billing", True]
    assert choice.choice in ("billing", True)
    assert (score.type, score.name) == ("score", "urgency")
    assert [(entry.value, entry.label) for entry in score.probabilities] == [
        (0, "low"),
        (1, "high"),
    ]
    assert score.score == pytest.approx(score.probabilities[1].probability)
    assert 0 <= score.confidence <= 1
    assert decision.model == "hashing"
    assert decision.usage.total_tokens == decision.usage.input_tokens + 3
    assert decision.usage.output_tokens_details.reasoning_tokens == 0


def test_messages_and_ignored_fields(client: openai.OpenAI):
    plain = ask(client)
    content = [{"type": "input_text", "text": "I was charged twice."}]
    decision = ask(
        client,
        input=[{"type": "message", "role": "user", "content": content}],
        safety_identifier="user-1",
        prompt_cache_key="key",
        prompt_cache_options={"mode": "implicit", "ttl": "30m"},
    )
    assert decision.answers == plain.answers


def test_invalid_request(client: openai.OpenAI):
    questions = [{**QUESTIONS[1], "choices": [{"value": "one"}]}]
    with pytest.raises(openai.UnprocessableEntityError) as caught:
        ask(client, questions=questions)
    error = caught.value
    assert (error.code, error.type) == ("invalid_request", "invalid_request_error")
    assert error.param == "questions[0].choices"
    assert "has 1 entry; give 2 to 255" in error.message


def test_unknown_model(client: openai.OpenAI):
    with pytest.raises(openai.NotFoundError, match="gpt-6-luna"):
        ask(client, model="gpt-6-luna")


def test_images(client: openai.OpenAI):
    image = {"type": "input_image", "image_url": "https://example.org/a.png"}
    with pytest.raises(openai.UnprocessableEntityError) as caught:
        ask(client, input=[{"role": "user", "content": [image]}])
    assert caught.value.code == "images_not_supported"


def test_keys(accounts):
    base_url = f"{accounts.server.url}/v1"
    with (
        openai.OpenAI(api_key="steelyard_sk_wrong", base_url=base_url) as client,
        pytest.raises(openai.AuthenticationError) as wrong,
    ):
        ask(client)
    assert (wrong.value.code, wrong.value.type) == ("invalid_api_key", "authentication_error")
    with (
        openai.OpenAI(api_key=accounts.key("read"), base_url=base_url) as client,
        pytest.raises(openai.PermissionDeniedError) as narrow,
    ):
        ask(client)
    assert (narrow.value.code, narrow.value.type) == ("key_scope", "permission_error")
    accounts.add_credit("1")
    with openai.OpenAI(api_key=accounts.key("inference"), base_url=base_url) as client:
        assert len(ask(client).answers) == 3


def test_failures_of_the_engine_are_repeated(client: openai.OpenAI, fail_first):
    calls = fail_first(1)
    assert len(ask(client.with_options(max_retries=2)).answers) == 3
    assert len(calls) == 2


def test_without_retries_a_failure_is_told(client: openai.OpenAI, fail_first):
    calls = fail_first(1)
    with pytest.raises(openai.InternalServerError) as caught:
        ask(client)
    assert (caught.value.status_code, caught.value.type) == (503, "server_error")
    assert len(calls) == 1
