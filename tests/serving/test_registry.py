"""The models of a server: the description of each, and whether it answers."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from dataclasses import replace

import pytest

from steelyard.errors import EngineUnavailableError, NotFoundError
from steelyard.models.base_models import describe_base, list_bases, readiness_of_base
from steelyard.scoring.protocol import EngineStatus
from steelyard.serving.registry import HostedModel, ModelRegistry
from support.decisions.factories import make_request_dict
from support.servers.hosting import crash, hosted


@pytest.fixture
def registry():
    with ExitStack() as closing:
        opened = [
            closing.enter_context(hosted(name, price_nano=price))[0]
            for name, price in (("first", 12), ("second", 0))
        ]
        yield ModelRegistry(opened)


def test_the_first_is_the_default(registry: ModelRegistry) -> None:
    assert registry.default.name == "first"
    assert registry.get(None) is registry.default
    assert registry.get("second").name == "second"
    assert registry.names == ("first", "second")
    with pytest.raises(NotFoundError, match="'third'; the models here are: first, second"):
        registry.get("third")


def test_names_must_be_distinct_and_there_must_be_one(registry: ModelRegistry) -> None:
    with pytest.raises(ValueError, match="distinct"):
        ModelRegistry([registry.default, registry.default])
    with pytest.raises(ValueError, match="at least one"):
        ModelRegistry([])


def test_a_model_is_described(registry: ModelRegistry) -> None:
    model = describe_base(registry.get("first"))
    assert (model.id, model.status, model.family) == ("first", "ready", "first")
    assert model.decision_price_nano == "12"
    assert model.max_input_tokens == model.max_prompt_tokens == 65_536
    assert model.max_questions == 64
    assert (model.release_date, model.created_at) == ("2026-05-01", 1777593600.0)
    assert model.calibration == "not_measured"


def test_the_list_serves_both_kinds_of_client(registry: ModelRegistry) -> None:
    listed = list_bases(registry)
    assert [model.id for model in listed.data] == ["first", "second"]
    assert [model.name for model in listed.models] == ["first", "second", "jev-latest"]
    assert listed.models[2].release_date == "2026-05-01"
    assert (listed.has_more, listed.next_cursor) == (False, None)


def test_readiness_follows_the_engine() -> None:
    with hosted("lone") as (model, scorer):
        assert readiness_of_base(model).ready
        scorer.behave = crash
        with pytest.raises(EngineUnavailableError):
            ask(model)
        readiness = readiness_of_base(model)
        assert (readiness.ready, readiness.reason) == (False, "engine_unavailable")
        scorer.behave = None
        ask(model)
        assert readiness_of_base(model).ready


def test_a_model_whose_server_is_away_is_not_ready() -> None:
    at = EngineStatus("triton://gpu-1:8001", "triton", None, {}, {}, 0)
    with hosted("lone", engine_status=lambda: at) as (model, _):
        assert readiness_of_base(model).ready
        at = replace(at, place="none", reason="The server cannot be reached.", n_changes=1)
        readiness = readiness_of_base(model)
        assert (readiness.ready, readiness.reason) == (False, "engine_unavailable")
        at = replace(at, place="in-process", n_changes=2)
        assert readiness_of_base(model).ready


def test_an_error_of_the_engine_is_raised_anew_for_every_request() -> None:
    failure = EngineUnavailableError("The engine is away.", retry_after_s=7)

    def fail(_: object) -> None:
        raise failure

    with hosted("lone") as (model, scorer):
        scorer.behave = fail
        for _ in range(2):
            with pytest.raises(EngineUnavailableError, match="is away") as caught:
                ask(model)
            assert caught.value is not failure
            assert caught.value.retry_after_s == 7


def test_nothing_to_ask_needs_no_engine() -> None:
    with hosted("lone") as (model, scorer):
        prepared = model.decide.prepare(make_request_dict())
        empty = replace(
            prepared,
            request=replace(prepared.request, decisions=()),
            rendered=replace(prepared.rendered, decisions=()),
        )
        answer = asyncio.run(model.answer(empty, 1, on_queued=lambda _: None))
        assert answer.decisions == {}
        assert scorer.n_calls == 0


def ask(model: HostedModel) -> None:
    prepared = model.decide.prepare(make_request_dict())
    asyncio.run(model.answer(prepared, 30, on_queued=lambda _: None))
