"""``steelyard.decide``: deciding inside another program's process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import steelyard
from steelyard.app import deployment
from steelyard.errors import InvalidRequestError, NotFoundError

DECISIONS = [
    {"id": "refund", "kind": "binary", "question": "Does the customer want the money back?"}
]


@pytest.fixture(autouse=True)
def hashing_engine(monkeypatch):
    monkeypatch.setenv("STEELYARD_ENGINE", "hashing")
    deployment._default.forget()
    yield
    deployment._default.forget()


def run_program(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "STEELYARD_ENGINE": "hashing"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout


def test_the_answer_is_plain_values():
    answer = steelyard.decide("Paid twice.", DECISIONS)
    assert json.loads(json.dumps(answer)) == answer
    assert abs(sum(answer["decisions"]["refund"]["probabilities"].values()) - 1) <= 1e-6


def test_temperature_and_model_reach_the_request():
    answer = steelyard.decide("Paid twice.", DECISIONS, temperature=2, model="hashing")
    assert answer["temperature"] == {"refund": 2}
    with pytest.raises(NotFoundError, match="nobody"):
        steelyard.decide("Paid twice.", DECISIONS, model="nobody")


def test_linting_gives_plain_values_and_checks_as_deciding_does():
    negated = {"id": "refund", "kind": "binary", "question": "Is it not a refund?"}
    answer = steelyard.lint("Paid twice.", [negated])
    assert json.loads(json.dumps(answer)) == answer
    assert [warning["rule"] for warning in answer["warnings"]] == ["negation"]
    assert steelyard.lint({"text": "Paid twice."}, DECISIONS) == {"warnings": []}
    with pytest.raises(InvalidRequestError) as raised:
        steelyard.lint("Paid twice.", [{**DECISIONS[0], "outcomes": {"maybe": None}}])
    assert raised.value.details[0]["path"][:4] == ["body", "decisions", 0, "outcomes"]


def test_a_violation_names_its_path():
    with pytest.raises(InvalidRequestError) as raised:
        steelyard.decide("Paid twice.", [{**DECISIONS[0], "outcomes": {"maybe": None}}])
    assert raised.value.details[0]["path"][:4] == ["body", "decisions", 0, "outcomes"]


def test_the_model_is_loaded_once_for_all_threads(monkeypatch):
    loads = []

    def load(engine, threads):
        loads.append(engine)
        return original(engine, threads)

    original = deployment.load_named_model
    monkeypatch.setattr(deployment, "load_named_model", load)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: steelyard.decide("x", DECISIONS), range(32)))
    assert loads == ["hashing"]
    assert len({json.dumps(answer["decisions"]) for answer in answers}) == 1


def test_a_program_that_decided_ends():
    program = f"import steelyard; print(steelyard.decide('x', {DECISIONS!r})['model'])"
    assert run_program(program) == "hashing\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_answers():
    program = f"""
import os, steelyard, sys, warnings
warnings.simplefilter("ignore")
parent = steelyard.decide("x", {DECISIONS!r})["decisions"]
child = os.fork()
if child == 0:
    os._exit(0 if steelyard.decide("x", {DECISIONS!r})["decisions"] == parent else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert run_program(program) == "0\n"
