"""From a payload to its answer, with a queue in between."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from time import perf_counter, sleep

import msgspec
import pytest

from steelyard.decisions.rendering import RenderedRequest
from steelyard.decisions.wire import DecideResponse
from steelyard.errors import DeadlineExceededError, EngineUnavailableError, InvalidRequestError
from steelyard.errors.kinds import UnprocessableError
from steelyard.scoring import batching
from steelyard.scoring.batching import Batcher
from steelyard.scoring.hashing import HashingScorer
from steelyard.scoring.protocol import ScoredDecision
from steelyard.serving.decide import AnswerService
from support.decisions.factories import make_request_dict, make_service

PATIENCE_S = 30
#: Figures are rounded to a microsecond each.
ROUNDING_MS = 0.003


class GatedScorer(HashingScorer):
    """Scores when the test lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.entered = threading.Event()
        self.may_answer = threading.Event()
        self.may_answer.set()

    def score(self, requests: Sequence[RenderedRequest]) -> list[list[ScoredDecision]]:
        self.calls += 1
        self.entered.set()
        assert self.may_answer.wait(timeout=PATIENCE_S)
        return super().score(requests)


@pytest.fixture
def scorer() -> GatedScorer:
    return GatedScorer()


@pytest.fixture
def batcher(scorer: GatedScorer) -> Iterator[Batcher]:
    batcher = Batcher(scorer)
    yield batcher
    scorer.may_answer.set()
    batcher.close()


def ask(service: AnswerService) -> DecideResponse:
    return service.answer(make_request_dict())


def assert_parts_fit_the_whole(timing_ms: dict[str, float]) -> None:
    assert set(timing_ms) == {"queue", "render", "score", "total"}
    assert all(value >= 0 for value in timing_ms.values())
    parts = timing_ms["queue"] + timing_ms["render"] + timing_ms["score"]
    assert parts <= timing_ms["total"] + ROUNDING_MS


def test_the_parts_of_an_answers_time_are_within_the_whole(batcher: Batcher) -> None:
    service = AnswerService(make_service(), batcher, deadline_s=PATIENCE_S)
    for _ in range(5):
        assert_parts_fit_the_whole(ask(service).timing_ms)


def test_waiting_for_a_busy_engine_is_queueing_and_not_scoring(
    batcher: Batcher, scorer: GatedScorer
) -> None:
    service = AnswerService(make_service(), batcher, deadline_s=PATIENCE_S)
    scorer.may_answer.clear()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(ask, service)
        assert scorer.entered.wait(timeout=PATIENCE_S)
        second = pool.submit(ask, service)
        while batcher.n_waiting == 0:
            assert not second.done()
        held = perf_counter()
        sleep(0.05)
        held_ms = (perf_counter() - held) * 1000
        scorer.may_answer.set()
        answers = [future.result(timeout=PATIENCE_S) for future in (first, second)]
    for answer in answers:
        assert_parts_fit_the_whole(answer.timing_ms)
    # The first was in the engine for as long as the second was in the queue.
    assert answers[0].timing_ms["score"] >= held_ms - ROUNDING_MS
    assert answers[1].timing_ms["queue"] >= held_ms - ROUNDING_MS
    assert scorer.calls == 2


def test_a_queue_that_does_not_say_when_it_began_counts_all_as_scoring() -> None:
    class Immediate:
        def submit(
            self, request: RenderedRequest, deadline_s: float | None = None
        ) -> Future[list[ScoredDecision]]:
            future: Future[list[ScoredDecision]] = Future()
            future.set_result(HashingScorer().score([request])[0])
            return future

    timing_ms = ask(AnswerService(make_service(), Immediate(), deadline_s=1)).timing_ms
    assert timing_ms["queue"] == 0
    assert_parts_fit_the_whole(timing_ms)


def test_an_answer_that_does_not_come_in_time_is_given_up(
    batcher: Batcher, scorer: GatedScorer
) -> None:
    scorer.may_answer.clear()
    service = AnswerService(make_service(), batcher, deadline_s=0.05)
    with pytest.raises(DeadlineExceededError, match=r"within 0\.05 s"):
        ask(service)
    # The next one waits in the queue, is given up there, and is never scored.
    with pytest.raises(DeadlineExceededError):
        ask(service)
    scorer.may_answer.set()
    batcher.close()
    assert scorer.calls == 1


def test_errors_pass_through(batcher: Batcher, scorer: GatedScorer) -> None:
    scorer.close()
    with pytest.raises(EngineUnavailableError, match="closed"):
        ask(AnswerService(make_service(), batcher, deadline_s=PATIENCE_S))


def test_an_invalid_request_does_not_reach_the_queue(batcher: Batcher, scorer: GatedScorer) -> None:
    service = AnswerService(make_service(), batcher, deadline_s=PATIENCE_S)
    with pytest.raises(InvalidRequestError):
        service.answer({})
    assert scorer.calls == 0


def test_plain_values_are_the_answer(batcher: Batcher) -> None:
    service = AnswerService(make_service(), batcher, deadline_s=PATIENCE_S)
    one, other = service.answer_dict(make_request_dict()), ask(service)
    assert one["decisions"] == msgspec.to_builtins(other.decisions)


def test_an_engine_without_requests_gives_its_memory_back(
    scorer: GatedScorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batching, "IDLE_S", 0.0)
    given_back = threading.Event()
    scorer.give_back = given_back.set  # type: ignore[attr-defined]
    idle = Batcher(scorer)
    try:
        assert not given_back.is_set()
        ask(AnswerService(make_service(), idle, deadline_s=PATIENCE_S))
        assert given_back.wait(PATIENCE_S)
    finally:
        idle.close()


@pytest.mark.parametrize(
    "context",
    ["Paid twice.", "", "Größe \N{SNOWMAN}", "half \ud800", {"a": [1]}, None, 3, "word " * 200],
)
def test_a_request_read_once_is_prepared_about_each_context_as_alone(context: object) -> None:
    service = make_service(max_input_tokens=100)
    request = make_request_dict()
    del request["context"]
    prepare = service.preparer(request)

    def outcome(prepare: Callable[[], object]) -> object:
        try:
            return prepare()
        except UnprocessableError as error:
            return error.body()

    for each in ("first", context, "last"):

        def alone(each: object = each) -> object:
            prepared = service.prepare({**request, "context": each})
            return prepared.request, prepared.rendered

        assert outcome(lambda each=each: prepare(each)) == outcome(alone)
