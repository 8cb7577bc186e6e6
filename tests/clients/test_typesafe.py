"""typesafe-sdk 0.7.5, TypeSafe's Python client."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys

import pytest
from typesafe_sdk import (
    Choice,
    Image,
    Noul,
    RetryPolicy,
    Score,
    TypeSafeAPIError,
    TypeSafeAuthenticationError,
    TypeSafeClient,
    TypeSafeInternalServerError,
    TypeSafeNotFoundError,
    TypeSafePermissionDeniedError,
    TypeSafeUnprocessableEntityError,
)

from support.servers.live_server import LiveServer

NO_RETRY = RetryPolicy(max_retries=0)
FAST = RetryPolicy(max_retries=2, respect_retry_after=False, backoff_initial=0)
QUESTIONS = {
    "refund": Noul(instructions="Does the writer ask for money back?"),
    "described": Noul(criteria={"true": "asks for money", "false": None}),
    "team": Choice(
        instructions="Which team should own this?",
        criteria={"billing": "charges", "shipping": {"about": "parcels"}, "abstain": None},
    ),
    "urgency": Score(criteria=["can wait", "today", {"at": "once"}]),
    "only": Choice(criteria={"it": None}),
    "level": Score(criteria=["the one"]),
}


@pytest.fixture
def client(server: LiveServer):
    with TypeSafeClient(api_key="any-key", base_url=server.url) as client:
        yield client


def test_version():
    assert importlib.metadata.version("typesafe-sdk") == "0.7.5"


def test_every_type_of_question(client: TypeSafeClient):
    result = client.system_one({"message": "I was charged twice."}, QUESTIONS)
    assert list(result.answers) == list(QUESTIONS)
    assert result.model == "hashing"
    assert all(0 <= answer.noul <= 1 for answer in result.nouls.values())
    team = result.choices["team"]
    assert team.choice == max(team.probabilities, key=team.probabilities.get)
    assert list(team.probabilities) == ["billing", "shipping", "abstain"]
    assert 0 <= team.confidence <= 1
    urgency = result.scores["urgency"]
    assert urgency.legend == {0: "can wait", 1: "today", 2: {"at": "once"}}
    assert urgency.score == pytest.approx(sum(k * p for k, p in urgency.probabilities.items()))
    assert result.choices["only"].confidence == result.scores["level"].confidence == 1
    assert result.usage.input_tokens > 0
    assert result.usage.output_tokens == len(QUESTIONS)


def test_questions_as_dictionaries(client: TypeSafeClient):
    questions = {"team": {"type": "choice", "criteria": {"a": None, "b": "the other"}}}
    assert client.system_one("Hi", questions).choices["team"].choice in {"a", "b"}


def test_request_id(client: TypeSafeClient):
    result = client.system_one("Hi", QUESTIONS)
    assert result.request_id == result.raw_http_response.headers["X-Request-ID"]


def test_models(client: TypeSafeClient):
    listed = client.models.list()
    assert {"hashing", "jev-latest"} <= {model.name for model in listed.models}
    assert listed.request_id


def test_invalid_request(client: TypeSafeClient):
    with pytest.raises(TypeSafeUnprocessableEntityError, match=r"questions\.dog\.type") as caught:
        client.system_one("Hi", {"dog": {"type": "box", "instructions": "The dog"}})
    assert caught.value.request_id
    assert caught.value.body["error"]["code"] == "invalid_request"


def test_unknown_model(client: TypeSafeClient):
    with pytest.raises(TypeSafeNotFoundError, match="kettei-core"):
        client.system_one("Hi", QUESTIONS, model="kettei-core")


def test_images_are_refused_and_not_repeated(server: LiveServer, client: TypeSafeClient):
    photo = Image(b"\x89PNG\r\n\x1a\n")
    with pytest.raises(TypeSafeAPIError) as caught:
        client.system_one(["See", photo], {"a": Noul(instructions="Is it a dog?")})
    assert caught.value.status == 415
    assert server.scorer.n_requests == 0


def test_keys(accounts):
    url = accounts.server.url
    with (
        TypeSafeClient(api_key="steelyard_sk_wrong", base_url=url) as client,
        pytest.raises(TypeSafeAuthenticationError) as caught,
    ):
        client.system_one("Hi", QUESTIONS)
    assert caught.value.request_id
    with (
        TypeSafeClient(api_key=accounts.key("read"), base_url=url) as client,
        pytest.raises(TypeSafePermissionDeniedError),
    ):
        client.system_one("Hi", QUESTIONS)
    accounts.add_credit("1")
    with TypeSafeClient(api_key=accounts.key("inference"), base_url=url) as client:
        assert client.system_one("Hi", QUESTIONS).model == "hashing"
        assert client.models.list().models


def test_failures_of_the_engine_are_repeated(client: TypeSafeClient, fail_first):
    calls = fail_first(2)
    result = client.system_one("Hi", QUESTIONS, retry=FAST)
    assert len(calls) == 3
    assert list(result.answers) == list(QUESTIONS)


def test_without_retries_a_failure_is_told(client: TypeSafeClient, fail_first):
    calls = fail_first(1)
    with pytest.raises(TypeSafeInternalServerError) as caught:
        client.system_one("Hi", QUESTIONS, retry=NO_RETRY)
    assert caught.value.status == 503
    assert int(caught.value.headers["retry-after-ms"]) > 0
    assert len(calls) == 1


ZSTD_SCRIPT = """
import sys

from typesafe_sdk import Noul, TypeSafeClient

with TypeSafeClient(api_key="any-key", base_url=sys.argv[1], compression="zstd") as client:
    request = client.system_one("Hi. " * 1000, {"a": Noul(instructions="Is it?")})
    sent = request.raw_http_response.request
    print(sent.headers["Content-Encoding"], request.model)
"""


def test_zstd_bodies(server: LiveServer, client_folder, pip_install):
    folder = client_folder("backports-zstd")
    pip_install("backports.zstd", folder)
    done = subprocess.run(
        [sys.executable, "-c", ZSTD_SCRIPT, server.url],
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["zstd", "hashing"]
