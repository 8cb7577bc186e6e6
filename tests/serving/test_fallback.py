"""Which model answers when the requested one is unable to, and the note on it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from time import perf_counter
from typing import Any

import pytest

from steelyard.decisions.validation import read_request
from steelyard.decisions.wire import DecideResponse, Novelty
from steelyard.errors import (
    ContextTooLongError,
    DeadlineExceededError,
    EngineUnavailableError,
    InvalidRequestError,
    ModelUnavailableError,
)
from steelyard.serving.decide import Prepared
from steelyard.serving.fallback import (
    Attempts,
    UnansweredError,
    candidates_of,
    charge_nano,
    quote_nano,
    reserve_nano,
)
from steelyard.serving.registry import RECENT_S, HostedModel, ModelRegistry
from support.decisions.factories import make_request_dict
from support.servers.hosting import GARBAGE, Behaving, crash, hosted
from support.waiting import next_turn, until

PATIENCE_S = 30


class Models:
    """Three models: ``a`` (12 nano-USD a token, the default), ``b`` (12) and ``dear`` (40)."""

    def __init__(self, closing: ExitStack) -> None:
        self.now = 1000.0
        self.hosted: dict[str, HostedModel] = {}
        self.scorers: dict[str, Behaving] = {}
        for name, price in (("a", 12), ("b", 12), ("dear", 40)):
            opened = hosted(name, price_nano=price, max_queue=1, clock=lambda: self.now)
            self.hosted[name], self.scorers[name] = closing.enter_context(opened)
        self.registry = ModelRegistry(list(self.hosted.values()))

    def prepare(self, **fields: Any) -> Prepared:
        request = read_request(make_request_dict(**fields))
        return self.registry.get(request.model).decide.prepare_request(request)

    def attempts(self, prepared: Prepared, within_s: float = PATIENCE_S) -> Attempts:
        candidates = candidates_of(prepared, self.registry)
        return Attempts(prepared, candidates, perf_counter() + within_s)

    def ask(self, within_s: float = PATIENCE_S, **fields: Any) -> DecideResponse:
        return asyncio.run(self.attempts(self.prepare(**fields), within_s).run())[0]

    def calls(self) -> dict[str, int]:
        return {name: scorer.n_calls for name, scorer in self.scorers.items()}


@pytest.fixture
def models() -> Iterator[Models]:
    with ExitStack() as closing:
        yield Models(closing)


def report(answer: DecideResponse) -> tuple[str, str, str] | None:
    fallback = answer.fallback
    return None if fallback is None else (fallback.from_, fallback.to, fallback.reason)


@pytest.mark.parametrize(
    ("fields", "candidates"),
    [
        ({}, "a b"),
        ({"fallback": "auto", "model": "b"}, "b a"),
        ({"model": "dear"}, "dear a b"),
        ({"fallback": "none"}, "a"),
        ({"fallback": ["dear"]}, "a dear"),
        ({"fallback": ["b", "nobody", "dear", "a", "b"]}, "a b dear"),
        ({"fallback": ["nobody"]}, "a"),
    ],
)
def test_who_may_answer(models: Models, fields: dict[str, Any], candidates: str) -> None:
    found = candidates_of(models.prepare(**fields), models.registry)
    assert [model.name for model in found] == candidates.split()


def test_a_model_that_reads_less_does_not_stand_in() -> None:
    with hosted("a") as (first, _), hosted("b", max_input_tokens=5) as (second, _):
        registry = ModelRegistry([first, second])
        prepared = first.decide.prepare(make_request_dict())
        assert candidates_of(prepared, registry) == (first,)


def too_long(*_: Any) -> Any:
    raise ContextTooLongError("The context has 9 tokens, and it reads 5.")


def test_a_context_that_an_engine_cannot_read_says_nothing_against_it(models: Models) -> None:
    """A connected model counts by its own tokens: some requests are refused by it alone."""
    models.scorers["a"].behave = too_long
    for fallback in ("auto", "none", ["b"]):
        with pytest.raises(UnansweredError) as caught:
            models.ask(fallback=fallback)
        assert type(caught.value.error) is ContextTooLongError
        assert caught.value.error.details[0]["path"] == ["body", "context"]
        assert not caught.value.has_begun
    assert models.calls()["b"] == 0
    assert not models.registry.get("a").failed_recently
    models.scorers["a"].behave = None
    assert report(models.ask()) is None


def test_a_model_that_cannot_read_the_context_does_not_stand_in(models: Models) -> None:
    models.scorers["a"].behave = crash
    models.scorers["b"].behave = too_long
    assert report(models.ask(fallback=["b", "dear"])) == ("a", "dear", "engine_unavailable")
    with pytest.raises(UnansweredError) as caught:
        models.ask(fallback=["b"])
    assert type(caught.value.error) is EngineUnavailableError


def test_a_quote_is_never_above_the_price_of_the_model_asked_for(models: Models) -> None:
    prepared = models.prepare(fallback=["dear"])
    asked, dear = candidates_of(prepared, models.registry)
    assert quote_nano(prepared, asked, dear) == 12 * prepared.input_tokens
    assert quote_nano(prepared, dear, asked) == 12 * prepared.input_tokens
    assert quote_nano(prepared, dear, dear) == 40 * prepared.input_tokens


def test_the_model_asked_for_answers_when_it_can(models: Models) -> None:
    assert report(models.ask()) is None
    assert models.ask(model="dear").model == "dear"
    assert models.calls() == {"a": 1, "b": 0, "dear": 1}


@pytest.mark.parametrize("fault", ["crash", *GARBAGE])
def test_another_model_steps_in_for_an_engine_that_fails(
    models: Models, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    models.scorers["a"].behave = GARBAGE.get(fault, crash)
    with caplog.at_level(logging.ERROR):
        answer = models.ask()
    assert report(answer) == ("a", "b", "engine_unavailable")
    assert answer.model == "b"
    alone = models.ask(model="b")
    assert answer.decisions == alone.decisions, "the answer is the other model's own"
    assert "a failed" in caplog.text


@pytest.mark.parametrize("fault", ["crash", *GARBAGE])
def test_without_fallback_a_failing_engine_is_an_error(models: Models, fault: str) -> None:
    models.scorers["a"].behave = GARBAGE.get(fault, crash)
    with pytest.raises(UnansweredError) as caught:
        models.ask(fallback="none")
    assert type(caught.value.error) is EngineUnavailableError
    assert caught.value.has_begun
    assert (models.calls()["b"], models.calls()["dear"]) == (0, 0)


class Gone:
    """A model that is named as one to stand in, and cannot be loaded."""

    name, failed_recently, hangs = "gone", False, False

    async def answer(self, *_: Any, **__: Any) -> DecideResponse:
        await next_turn()
        raise ModelUnavailableError("Its files are damaged.")


def test_a_model_that_failed_recently_is_asked_when_those_named_cannot_be_loaded(
    models: Models,
) -> None:
    models.scorers["a"].behave = crash
    with pytest.raises(UnansweredError):
        models.ask(fallback="none")
    models.scorers["a"].behave = None
    prepared = models.prepare()

    def ask() -> DecideResponse:
        candidates = (models.hosted["a"], Gone())
        attempts = Attempts(prepared, candidates, perf_counter() + PATIENCE_S)  # type: ignore[arg-type]
        return asyncio.run(attempts.run())[0]

    answer = ask()
    assert (answer.model, report(answer)) == ("a", None)
    models.scorers["a"].behave = crash
    with pytest.raises(UnansweredError):
        models.ask(fallback="none")
    with pytest.raises(UnansweredError) as caught:
        ask()
    assert type(caught.value.error) is EngineUnavailableError


def test_an_engine_that_hangs_leaves_time_for_the_next(models: Models) -> None:
    models.scorers["a"].hang()
    answer = models.ask(within_s=1.0)
    assert report(answer) == ("a", "b", "deadline_exceeded")


def test_after_a_hang_requests_are_passed_on_or_refused_at_once(models: Models) -> None:
    models.scorers["a"].hang()
    models.ask(within_s=1.0)
    assert models.hosted["a"].hangs
    assert report(models.ask()) == ("a", "b", "recently_unavailable")
    with pytest.raises(UnansweredError, match="has not come back") as caught:
        models.ask(fallback="none")
    assert not caught.value.has_begun
    assert caught.value.error.retry_after_s == 5
    assert models.hosted["a"].queue.n_waiting == 0, "something waits behind the hung engine"
    # Long after, it still hangs.
    models.now += 10 * RECENT_S
    assert report(models.ask()) == ("a", "b", "recently_unavailable")
    assert models.calls()["a"] == 1


def test_an_engine_that_comes_back_answers_again(models: Models) -> None:
    models.scorers["a"].hang()
    models.ask(within_s=1.0)
    models.scorers["a"].may_answer.set()
    asyncio.run(until(lambda: not models.hosted["a"].hangs))
    assert report(models.ask(fallback="none")) is None
    assert not models.hosted["a"].failed_recently
    assert report(models.ask()) is None


def test_a_model_that_failed_is_passed_over_for_thirty_seconds(models: Models) -> None:
    models.scorers["a"].behave = crash
    models.ask()
    models.scorers["a"].behave = None
    models.now += RECENT_S - 0.1
    assert report(models.ask()) == ("a", "b", "recently_unavailable")
    assert models.calls()["a"] == 1, "it was tried"
    models.now += 0.2
    assert report(models.ask()) is None


def test_when_all_failed_recently_the_model_asked_for_is_tried_again(models: Models) -> None:
    for name in ("a", "b"):
        models.scorers[name].behave = crash
    with pytest.raises(UnansweredError, match="engine of a failed"):
        models.ask()
    for name in ("a", "b"):
        models.scorers[name].behave = None
    assert report(models.ask()) is None


def test_a_list_is_tried_in_its_order(models: Models) -> None:
    for name in ("a", "dear"):
        models.scorers[name].behave = crash
    answer = models.ask(fallback=["nobody", "dear", "b"])
    assert report(answer) == ("a", "b", "engine_unavailable")
    assert models.calls() == {"a": 1, "b": 1, "dear": 1}


def test_an_overloaded_model_hands_on(models: Models) -> None:
    first = models.hosted["a"]
    models.scorers["a"].hang()
    prepared = models.prepare()
    running = first.queue.submit(prepared.rendered)
    assert models.scorers["a"].entered.acquire(timeout=PATIENCE_S)
    waiting = first.queue.submit(prepared.rendered)  # the queue holds one
    assert report(models.ask()) == ("a", "b", "engine_unavailable")
    with pytest.raises(UnansweredError, match="queue is full") as caught:
        models.ask(fallback="none")
    assert not caught.value.has_begun
    assert not first.failed_recently, "a full queue is no failure"
    with pytest.raises(EngineUnavailableError, match="full"):
        first.check_room(prepared)
    models.scorers["a"].may_answer.set()
    for future in (running, waiting):
        future.result(timeout=PATIENCE_S)


def test_no_time_at_all_is_the_deadline(models: Models) -> None:
    with pytest.raises(UnansweredError) as caught:
        models.ask(within_s=0)
    assert isinstance(caught.value.error, DeadlineExceededError)
    assert models.calls() == {"a": 0, "b": 0, "dear": 0}


def test_a_request_at_fault_is_not_handed_on(
    models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise InvalidRequestError("The costs are too large.")

    monkeypatch.setattr(models.hosted["a"].decide, "finish", refuse)
    with pytest.raises(InvalidRequestError):
        models.ask()
    assert models.calls() == {"a": 1, "b": 0, "dear": 0}
    assert not models.hosted["a"].failed_recently


def test_tokens_are_those_of_the_model_asked_for(models: Models) -> None:
    models.scorers["a"].behave = crash
    answer = models.ask()
    prepared = models.prepare()
    assert answer.usage.input_tokens == prepared.input_tokens
    assert answer.usage.tokenizer == prepared.tokenizer


def test_giving_up_takes_a_request_out_of_the_queue(models: Models) -> None:
    models.scorers["a"].hang()
    prepared = models.prepare()
    models.hosted["a"].queue.submit(prepared.rendered)
    assert models.scorers["a"].entered.acquire(timeout=PATIENCE_S)

    async def give_up() -> None:
        attempts = models.attempts(prepared)
        asking = asyncio.ensure_future(attempts.run())
        await until(lambda: models.hosted["a"].queue.n_waiting == 1)
        attempts.abandon()
        with pytest.raises(UnansweredError):
            await asking

    asyncio.run(give_up())
    models.scorers["a"].may_answer.set()
    assert models.calls()["b"] == 0, "it was handed on although nobody waits"


@pytest.mark.parametrize("is_unlike", [True, False])
def test_a_text_unlike_any_seen_goes_to_the_next_model_where_the_request_says_so(
    models: Models, *, is_unlike: bool
) -> None:
    models.scorers["a"].behave = lambda scored: [
        [replace(each, novelty=(0.0, is_unlike)) for each in request] for request in scored
    ]
    assert models.ask(fallback=["dear"]).model == "a"
    prepared = models.prepare(fallback=["dear"], escalate=True)
    attempts = models.attempts(prepared)
    answer, model = asyncio.run(attempts.run())
    assert answer.novelty == Novelty(share=0.0, unlike=is_unlike)
    assert report(answer) == (("a", "dear", "unsure") if is_unlike else None)
    candidates = candidates_of(prepared, models.registry)
    assert reserve_nano(prepared, candidates) == 52 * prepared.input_tokens
    due_nano = charge_nano(prepared, candidates[0], model, answer, attempts.unsure)
    assert due_nano == (52 if is_unlike else 12) * prepared.input_tokens
    # Where the next is unable to answer, the answer that was not sure stays.
    models.scorers["dear"].behave = crash
    assert models.ask(fallback=["dear"], escalate=True).model == "a"


@pytest.mark.parametrize("fallback", [..., "auto", "none"])
def test_who_decides_instead_has_to_be_named(fallback: Any) -> None:
    with pytest.raises(InvalidRequestError, match="escalate goes with a list of models") as refusal:
        read_request(make_request_dict(fallback=fallback, escalate=True))
    assert [violation.path for violation in refusal.value.violations] == [("body", "escalate")]
