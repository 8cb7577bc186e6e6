from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

from steelyard.errors import (
    ContextTooLongError,
    ImagesNotSupportedError,
    InternalError,
    InvalidRequestError,
    NotFoundError,
)
from steelyard.scoring.hashing import WordCounter
from steelyard.scoring.protocol import ScoredDecision
from support.decisions.factories import (
    answer,
    make_decision_dict,
    make_request_dict,
    make_service,
    violations_of,
)

IMAGE = {"id": 1, "media_type": "image/png", "data": "AAAA"}


def sent(payload: Any, **options: Any) -> dict[str, Any]:
    decoded: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(answer(payload, **options)))
    return decoded


def scores(*rows: list[float]) -> list[ScoredDecision]:
    return [
        ScoredDecision(np.array(row, dtype=np.float32), np.zeros((len(row), 1), dtype=np.float32))
        for row in rows
    ]


def test_an_answer_has_every_field() -> None:
    body = sent(json.dumps(make_request_dict(store=True)).encode())
    assert set(body) == {
        "id",
        "model",
        "decisions",
        "usage",
        "timing_ms",
        "fallback",
        "charge",
        "stored",
    }
    assert body["id"].startswith("dec_")
    assert (body["model"], body["fallback"], body["stored"]) == ("hashing", None, False)
    assert set(body["timing_ms"]) == {"queue", "render", "score", "total"}
    assert all(value >= 0 for value in body["timing_ms"].values())
    operation_id = body["charge"].pop("operation_id")
    assert operation_id.startswith("op_")
    assert body["charge"] == {"currency": "USD", "amount_usd": "0", "reserved_usd": "0"}


def test_usage_names_the_tokenizer_and_counts() -> None:
    decision = make_decision_dict(question="one two", outcomes=["a", "b"])
    usage = sent(make_request_dict(decision, context="x y z"))["usage"]
    assert usage == {
        "input_tokens": 7,
        "prompt_tokens": 7,
        "decisions": 1,
        "tokenizer": {"name": "words", "revision": "1", "sha256": WordCounter.sha256},
    }


def test_temperatures_other_than_one_are_reported() -> None:
    assert sent(make_request_dict(temperature=2))["temperature"] == {
        "route": 2,
        "refund": 2,
        "urgency": 2,
    }
    assert "temperature" not in sent(make_request_dict(temperature=1.0))
    assert "temperature" not in sent(make_request_dict())


def test_ids_differ_between_answers_to_the_same_request() -> None:
    assert len({answer(make_request_dict()).id for _ in range(20)}) == 20


def test_the_model_may_be_named_and_is_the_default() -> None:
    assert sent(make_request_dict(model="hashing"))["model"] == "hashing"
    assert make_service().model_name == "hashing"


@pytest.mark.parametrize("name", ["router", "router@3", "Hashing"])
def test_an_unknown_model_is_not_found_and_the_known_ones_are_named(name: str) -> None:
    with pytest.raises(NotFoundError, match=f"'{name}'; the models here are: hashing"):
        answer(make_request_dict(model=name))


def test_images_are_refused_after_the_shape_and_the_model() -> None:
    sent = {"context": "See <image:1>.", "images": [IMAGE]}
    with pytest.raises(ImagesNotSupportedError, match="hashing reads text alone"):
        answer(make_request_dict(**sent))
    with pytest.raises(NotFoundError):
        answer(make_request_dict(**sent, model="router"))
    with pytest.raises(InvalidRequestError):
        answer(make_request_dict(images=[IMAGE], context=None))


def test_input_tokens_are_bounded_and_never_cut() -> None:
    decision = make_decision_dict(question="q", outcomes=["a", "b"])
    service = make_service(max_input_tokens=10)
    fits = make_request_dict(decision, context="w " * 7)
    assert service.prepare(fits).input_tokens == 10
    with pytest.raises(ContextTooLongError, match="has 11 input tokens, and 10 are allowed"):
        service.prepare(make_request_dict(decision, context="w " * 8))


def test_the_default_bound_is_65536_tokens() -> None:
    decision = make_decision_dict(question="q", outcomes=["a", "b"])
    make_service().prepare(make_request_dict(decision, context="w " * 65_533))
    with pytest.raises(ContextTooLongError, match="65537"):
        make_service().prepare(make_request_dict(decision, context="w " * 65_534))


def test_the_scorer_reads_texts_and_neither_ids_nor_policies() -> None:
    plain = make_decision_dict(question={"ask": "é"})
    with_policy = {**plain, "id": "other", "policy": {"abstain_below": 0.5}}
    prepared = make_service().prepare(make_request_dict(plain, with_policy, context=" "))
    one, other = prepared.rendered.decisions
    assert prepared.rendered.context == "no context"
    assert one == other
    assert one.question == '{"ask": "é"}'
    assert one.outcomes == ("billing: Money already taken", "support", "other")


def test_finish_gives_each_decision_its_own_scores() -> None:
    service = make_service()
    prepared = service.prepare(make_request_dict())
    finished = service.finish(
        prepared, scores([0, 5, 0], [0, 5], [5, 0, 0]), queue_ms=1.25, score_ms=2.5
    )
    tops = [result.top for result in finished.decisions.values()]
    assert tops == ["support", "no", "1"]
    assert (finished.timing_ms["queue"], finished.timing_ms["score"]) == (1.25, 2.5)


@pytest.mark.parametrize(
    "scored",
    [
        scores(),
        scores([0, 1, 2], [0, 1]),
        scores([0, 1, 2], [0, 1], [0, 1]),
        scores([0, 1, 2], [0, 1], [0, 1, float("nan")]),
        scores([0, 1, 2], [0, 1], [0, 1, float("inf")]),
    ],
)
def test_scores_that_do_not_fit_are_a_fault_of_the_server(scored: list[ScoredDecision]) -> None:
    service = make_service()
    with pytest.raises(InternalError):
        service.finish(service.prepare(make_request_dict()), scored)


def test_a_payload_is_left_as_it_was() -> None:
    request = make_request_dict(make_decision_dict(costs={"a": {"billing": 1}}))
    before = json.dumps(request)
    violations_of(request)
    assert json.dumps(request) == before


def test_an_unread_context_is_drawn_to_uniform_and_reported() -> None:
    service = make_service(warns=True)
    decision = {"id": "d", "kind": "binary", "question": "Is it late?"}
    plain = service.prepare({"context": "It is late.", "decisions": [decision]})
    [score] = scores([0, 3])
    sure = service.finish(plain, [score])
    assert sure.warnings is msgspec.UNSET
    assert sure.decisions["d"].p_top > 0.95
    unread = service.finish(plain, [replace(score, is_unread=True)])
    assert (unread.decisions["d"].top, unread.decisions["d"].p_top < 0.6) == ("no", True)
    marked = service.prepare({"context": "<p>It is <b>late</b>.</p>", "decisions": [decision]})
    answer = service.finish(marked, [score])
    assert [warning.code for warning in answer.warnings] == ["markup"]
    assert answer.usage.input_tokens == marked.input_tokens > plain.input_tokens
    quiet = make_service().prepare({"context": "<p>Late</p><br>", "decisions": [decision]})
    assert make_service().finish(quiet, [score]).warnings is msgspec.UNSET


def test_an_answer_has_unstated_and_doubt_where_the_model_knows() -> None:
    decision = {"id": "d", "kind": "binary", "question": "Is it late?"}
    policies = [{"policy": {"abstain_unstated": most}} for most in (0.3, 0.5)]
    service = make_service()
    actions = []
    for policy in policies:
        prepared = service.prepare(make_request_dict({**decision, **policy}))
        [score] = scores([2.0, 0.0])
        known = replace(score, unstated=0.4, doubt="It was read in parts.")
        result = msgspec.to_builtins(service.finish(prepared, [known]))["decisions"]["d"]
        assert (result["unstated"], result["doubt"]) == (0.4, "It was read in parts.")
        actions.append(result["action"])
        plain = msgspec.to_builtins(service.finish(prepared, [score]))["decisions"]["d"]
        assert {"unstated", "doubt"}.isdisjoint(plain)
        assert plain["action"] == "yes"
    assert actions == ["abstain", "yes"]
