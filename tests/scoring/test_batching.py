from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.errors import DeadlineExceededError, EngineUnavailableError, InternalError
from steelyard.scoring import batching
from steelyard.scoring.batching import SHORT_BATCH_CHARACTERS, SHORT_CHARACTERS, Batcher
from steelyard.scoring.cancellation import check_awaited, only_while
from steelyard.scoring.hashing import HashingScorer
from steelyard.scoring.protocol import ScoredDecision
from steelyard.scoring.shares import TURN_CHARACTERS, Share
from support.decisions.strategies import few
from support.waiting import wait_until

#: Far more than anything here takes; a test that waits as long has failed.
PATIENCE_S = 30
#: How late an answer may be that shall be too late: longer than a machine stalls.
LATE_S = 2.0


def make_request(context: str = "c", n_decisions: int = 1) -> RenderedRequest:
    decisions = tuple(
        RenderedDecision("single", f"q{index}", ("a", "b")) for index in range(n_decisions)
    )
    return RenderedRequest(context, decisions)


class GatedScorer(HashingScorer):
    """Each call waits until the test lets it through, and may then fail."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[list[str]] = []
        self.fails: Callable[[Sequence[RenderedRequest]], BaseException | None] = lambda _: None
        self._entered = threading.Semaphore(0)
        self._let_through = threading.Semaphore(0)

    def score(self, requests: Sequence[RenderedRequest]) -> list[list[ScoredDecision]]:
        self.calls.append([request.context for request in requests])
        self._entered.release()
        assert self._let_through.acquire(timeout=PATIENCE_S)
        failure = self.fails(requests)
        if failure is not None:
            raise failure
        return super().score(requests)

    def wait_for_a_call(self) -> None:
        assert self._entered.acquire(timeout=PATIENCE_S)

    def let_through(self, n_calls: int = 1) -> None:
        self._let_through.release(n_calls)


@pytest.fixture
def scorer() -> GatedScorer:
    return GatedScorer()


@pytest.fixture
def batcher(scorer: GatedScorer) -> Iterator[Batcher]:
    batcher = Batcher(scorer, max_queue=4)
    yield batcher
    scorer.let_through(1_000)
    batcher.close()


def occupy(batcher: Batcher, scorer: GatedScorer) -> batching.ScoreFuture:
    """Make the engine busy with a request; give its answer."""
    answer = batcher.submit(make_request("first"))
    scorer.wait_for_a_call()
    return answer


def assert_scored(answer: batching.ScoreFuture, request: RenderedRequest) -> None:
    expected = HashingScorer().score([request])[0]
    scored = answer.result(timeout=PATIENCE_S)
    assert len(scored) == len(expected)
    for one, other in zip(scored, expected, strict=True):
        assert np.array_equal(one.logits, other.logits)


def past(moment: float) -> Callable[[], bool]:
    return lambda: time.monotonic() > moment


def submit_all(batcher: Batcher, contexts: Iterable[str]) -> dict[str, batching.ScoreFuture]:
    return {context: batcher.submit(make_request(context)) for context in contexts}


def assert_all_scored(answers: dict[str, batching.ScoreFuture]) -> None:
    for context, answer in answers.items():
        assert_scored(answer, make_request(context))


def test_a_quiet_account_is_in_the_next_call_with_one_turn_of_a_crowd(scorer):
    batcher = Batcher(scorer)
    crowd = [batcher.submit(make_request("c" * 200, 4), share=Share("crowd")) for _ in range(20)]
    scorer.wait_for_a_call()
    quiet = batcher.submit(make_request("quiet" * 100, 4), share=Share("quiet"))
    scorer.let_through()
    scorer.wait_for_a_call()
    assert scorer.calls[1][0] == "quiet" * 100
    assert sum(map(len, scorer.calls[1][1:])) <= TURN_CHARACTERS
    scorer.let_through(100)
    assert all(answer.result(timeout=PATIENCE_S) for answer in (quiet, *crowd))
    assert batcher.close()


def test_an_idle_engine_does_not_wait_for_company(batcher, scorer):
    for context in ("one", "two"):
        answer = batcher.submit(make_request(context))
        scorer.wait_for_a_call()
        scorer.let_through()
        assert_scored(answer, make_request(context))
    assert scorer.calls == [["one"], ["two"]]


def test_requests_during_a_call_share_the_next_one(batcher, scorer):
    first = occupy(batcher, scorer)
    requests = [make_request(context, n) for n, context in enumerate(("x", "y", "z"), start=1)]
    answers = [batcher.submit(request) for request in requests]
    assert batcher.n_waiting == 3
    scorer.let_through(2)
    assert_scored(first, make_request("first"))
    for answer, request in zip(answers, requests, strict=True):
        assert_scored(answer, request)
    assert scorer.calls == [["first"], ["x", "y", "z"]]
    assert batcher.n_waiting == 0


HALF, LARGE = "h" * (SHORT_BATCH_CHARACTERS // 2), "h" * (2 * batching.BATCH_CHARACTERS)


@pytest.mark.parametrize(
    ("contexts", "calls"),
    [
        (["s", HALF, HALF + "!", "t"], [["first"], ["s", HALF], [HALF + "!", "t"]]),
        (["a", LARGE, "b"], [["a", "b"], ["first"], [LARGE]]),
    ],
    ids=["bounded", "one over the bound goes alone"],
)
def test_a_call_is_bounded_and_keeps_the_order(batcher, scorer, contexts, calls):
    occupy(batcher, scorer)
    answers = submit_all(batcher, contexts)
    scorer.let_through(10)
    assert_all_scored(answers)
    assert sorted(scorer.calls) == sorted(calls)


def test_questions_and_outcomes_count_towards_the_bound(batcher, scorer):
    occupy(batcher, scorer)
    third = "t" * (batching.BATCH_CHARACTERS // 3)
    decision = RenderedDecision("single", third, (third, "b"))
    answers = [batcher.submit(RenderedRequest("x", (decision,))) for _ in range(2)]
    scorer.let_through(10)
    for answer in answers:
        answer.result(timeout=PATIENCE_S)
    assert [len(call) for call in scorer.calls] == [1, 1, 1]


def test_a_full_queue_refuses_at_once_and_says_when_to_come_back(batcher, scorer):
    occupy(batcher, scorer)
    answers = submit_all(batcher, "0123")
    with pytest.raises(EngineUnavailableError, match="queue is full") as caught:
        batcher.submit(make_request("one too many"))
    assert 1 <= caught.value.retry_after_s <= 20
    assert batcher.n_waiting == 4
    scorer.let_through(10)
    assert_all_scored(answers)
    assert "one too many" not in chain.from_iterable(scorer.calls)
    assert_scored(batcher.submit(make_request("later")), make_request("later"))


def test_a_queue_full_of_characters_refuses(batcher, scorer, monkeypatch):
    monkeypatch.setattr(batching, "MAX_QUEUE_CHARACTERS", 100)
    occupy(batcher, scorer)
    # Alone in the queue even a request over the bound is taken: it could never be otherwise.
    large = batcher.submit(make_request("h" * 200))
    with pytest.raises(EngineUnavailableError, match="queue is full"):
        batcher.submit(make_request("small"))
    scorer.let_through(10)
    assert_scored(large, make_request("h" * 200))
    assert_scored(batcher.submit(make_request("small")), make_request("small"))


def test_a_longer_queue_has_a_longer_retry_after():
    waits = []
    for n_characters in (10, 200_000, 2_000_000):
        scorer = GatedScorer()
        batcher = Batcher(scorer, max_queue=1)
        occupy(batcher, scorer)
        batcher.submit(make_request("h" * n_characters))
        with pytest.raises(EngineUnavailableError) as caught:
            batcher.submit(make_request())
        waits.append(caught.value.retry_after_s)
        scorer.let_through(10)
        batcher.close()
    assert waits == sorted(set(waits))
    assert (waits[0], waits[-1]) == (1, 20)


def test_a_request_past_its_deadline_is_not_scored(batcher, scorer):
    occupy(batcher, scorer)
    late = batcher.submit(make_request("late"), deadline_s=0.0)
    patient = batcher.submit(make_request("patient"), deadline_s=PATIENCE_S)
    wait_until(past(time.monotonic()))
    scorer.let_through(10)
    with pytest.raises(DeadlineExceededError, match="send it again"):
        late.result(timeout=PATIENCE_S)
    assert_scored(patient, make_request("patient"))
    assert scorer.calls == [["first"], ["patient"]]
    assert not hasattr(late, "started_at")


class PassingScorer(HashingScorer):
    """Makes passes until its caller is gone."""

    def __init__(self) -> None:
        super().__init__()
        self.n_passes = 0

    def score(self, requests: Sequence[RenderedRequest]) -> list[list[ScoredDecision]]:
        if any(request.context == "endless" for request in requests):
            give_up_at = time.monotonic() + PATIENCE_S
            while time.monotonic() < give_up_at:
                check_awaited()
                self.n_passes += 1
        return super().score(requests)


def test_passes_end_at_the_deadline_of_who_waits():
    scorer = PassingScorer()
    batcher = Batcher(scorer)
    late = batcher.submit(make_request("endless"), deadline_s=0.2)
    assert isinstance(late.exception(timeout=PATIENCE_S), DeadlineExceededError)
    assert scorer.n_passes > 1
    later = batcher.submit(make_request("later"), deadline_s=PATIENCE_S)
    assert_scored(later, make_request("later"))
    assert batcher.close()


class SteppingScorer(HashingScorer):
    """A long context takes passes, each of which waits for the test."""

    def __init__(self) -> None:
        super().__init__()
        self.order: list[str] = []
        self._steps = threading.Semaphore(0)
        self._arrived = threading.Semaphore(0)

    def score(self, requests: Sequence[RenderedRequest]) -> list[list[ScoredDecision]]:
        for request in requests:
            name = request.context[:5].strip("_")
            for number in range(len(request.context) // SHORT_CHARACTERS):
                self._arrived.release()
                assert self._steps.acquire(timeout=PATIENCE_S)
                check_awaited()
                self.order.append(f"{name} {number}")
            self.order.append(name)
        return super().score(requests)

    def arrive(self) -> None:
        """Wait until the next pass is about to begin."""
        assert self._arrived.acquire(timeout=PATIENCE_S)

    def step(self, n_passes: int = 1) -> None:
        self._steps.release(n_passes)


def long_request(name: str, n_passes: int) -> RenderedRequest:
    return make_request(name.ljust(n_passes * SHORT_CHARACTERS + 1, "_"))


QUIET, NOISY, PUBLIC = Share("quiet"), Share("noisy"), Share(is_public=True)


class TestShares:
    """Who goes when an engine is busy."""

    @pytest.fixture
    def stepping(self) -> Iterator[tuple[SteppingScorer, Batcher]]:
        scorer = SteppingScorer()
        batcher = Batcher(scorer)
        yield scorer, batcher
        scorer.step(1_000)
        batcher.close()

    def test_a_short_request_goes_between_the_passes_of_a_long_one(self, stepping):
        scorer, batcher = stepping
        long = batcher.submit(long_request("long", 4), PATIENCE_S, NOISY)
        scorer.arrive()
        other = batcher.submit(long_request("other", 4), PATIENCE_S, QUIET)
        answers = [batcher.submit(make_request("own"), None, NOISY)]
        answers.append(batcher.submit(make_request("quick"), PATIENCE_S, QUIET))
        scorer.step(1_000)
        for answer, request in zip(answers, ("own", "quick"), strict=True):
            assert_scored(answer, make_request(request))
        assert_scored(long, long_request("long", 4))
        assert_scored(other, long_request("other", 4))
        assert set(scorer.order[:2]) == {"own", "quick"}
        passes = [[*(f"{name} {n}" for n in range(4)), name] for name in ("long", "other")]
        assert scorer.order[2:] == [*chain.from_iterable(passes)]

    def test_shorter_requests_of_the_same_account_go_between_them_too(self, stepping):
        scorer, batcher = stepping
        batcher.submit(long_request("long", 100), PATIENCE_S, NOISY)
        scorer.arrive()
        for _ in range(2):
            batcher.submit(long_request("later", 100), None, NOISY)
        own = [batcher.submit(long_request("own", n), PATIENCE_S, NOISY) for n in (1, 4)]
        scorer.step(1_000)
        assert all(answer.result(PATIENCE_S) for answer in own)
        assert scorer.order[: scorer.order.index("long")].count("own") == 2

    def test_the_public_comes_last_and_few_of_it_wait(self, stepping):
        scorer, batcher = stepping
        batcher.submit(long_request("free", 3), None, PUBLIC)
        scorer.arrive()
        public = [batcher.submit(long_request("later", 2), None, PUBLIC) for _ in range(8)]
        with pytest.raises(EngineUnavailableError, match="queue is full"):
            batcher.submit(make_request("ninth"), None, PUBLIC)
        paid = batcher.submit(long_request("paid", 2), PATIENCE_S, QUIET)
        scorer.step(1_000)
        assert_scored(paid, long_request("paid", 2))
        for answer in public:
            answer.result(timeout=PATIENCE_S)
        assert scorer.order.index("paid") < scorer.order.index("free 0")
        assert scorer.order.index("free") < scorer.order.index("later")

    def test_a_full_queue_takes_a_place_from_the_largest_account(self, batcher, scorer):
        occupy(batcher, scorer)
        noisy = [batcher.submit(make_request(f"noisy {n}"), None, NOISY) for n in range(4)]
        quiet = [batcher.submit(make_request(f"quiet {n}"), None, QUIET) for n in range(2)]
        with pytest.raises(EngineUnavailableError, match="queue is full"):
            batcher.submit(make_request("quiet 2"), None, QUIET)
        for evicted in noisy[2:]:
            failure = evicted.exception(timeout=PATIENCE_S)
            assert isinstance(failure, EngineUnavailableError)
            assert failure.is_unreached
        scorer.let_through(10)
        for n, answer in enumerate(noisy[:2]):
            assert_scored(answer, make_request(f"noisy {n}"))
        for n, answer in enumerate(quiet):
            assert_scored(answer, make_request(f"quiet {n}"))

    def test_a_request_that_would_wait_too_long_is_refused_and_says_for_how_long(
        self, scorer, monkeypatch
    ):
        monkeypatch.setattr(batching, "_FIRST_SPEED", 1_000.0)
        batcher = Batcher(scorer)
        try:
            occupy(batcher, scorer)
            waiting = [batcher.submit(make_request("h" * 1_700), None, NOISY) for _ in range(3)]
            with pytest.raises(EngineUnavailableError, match=r"may wait 2\.0 s") as caught:
                batcher.submit(make_request("h" * 1_700), PATIENCE_S, NOISY)
            assert 2.9 <= caught.value.retry_after_s <= 3.2
            quiet = batcher.submit(make_request("quiet"), PATIENCE_S, QUIET)
            patient = batcher.submit(make_request("patient"), None, NOISY)
            scorer.let_through(10)
            assert_scored(quiet, make_request("quiet"))
            assert_scored(patient, make_request("patient"))
            for answer in waiting:
                assert_scored(answer, make_request("h" * 1_700))
        finally:
            scorer.let_through(100)
            batcher.close()


def test_passes_go_on_while_anybody_waits():
    with only_while(lambda: True):
        check_awaited()
        with only_while(lambda: False), pytest.raises(DeadlineExceededError):
            check_awaited()
        check_awaited()
    check_awaited()


def test_a_batch_that_is_late_altogether_makes_no_call(batcher, scorer):
    occupy(batcher, scorer)
    late = [batcher.submit(make_request("late"), deadline_s=0.0) for _ in range(2)]
    wait_until(past(time.monotonic()))
    scorer.let_through(10)
    for answer in late:
        assert isinstance(answer.exception(timeout=PATIENCE_S), DeadlineExceededError)
    assert_scored(batcher.submit(make_request("next")), make_request("next"))
    assert scorer.calls == [["first"], ["next"]]


def test_a_cancelled_request_is_not_scored(batcher, scorer):
    first = occupy(batcher, scorer)
    assert not first.cancel(), "a request that is being scored cannot be cancelled"
    gone, stays = (batcher.submit(make_request(context)) for context in ("gone", "stays"))
    assert gone.cancel()
    scorer.let_through(10)
    assert_scored(stays, make_request("stays"))
    with pytest.raises(CancelledError):
        gone.result(timeout=PATIENCE_S)
    assert_scored(first, make_request("first"))
    assert scorer.calls == [["first"], ["stays"]]


def test_cancelled_requests_leave_room_in_the_queue(batcher, scorer):
    occupy(batcher, scorer)
    answers = submit_all(batcher, "0123")
    for context in "012":
        assert answers.pop(context).cancel()
    answers |= submit_all(batcher, ["later"])
    assert batcher.n_waiting == 2
    scorer.let_through(10)
    assert_all_scored(answers)
    assert scorer.calls == [["first"], ["3", "later"]]


def test_one_failing_request_does_not_fail_its_neighbours(batcher, scorer):
    failure = EngineUnavailableError("The engine choked.")

    def fails(requests: Sequence[RenderedRequest]) -> Exception | None:
        return failure if any(request.context == "bad" for request in requests) else None

    scorer.fails = fails
    occupy(batcher, scorer)
    answers = submit_all(batcher, ["a", "bad", "b"])
    scorer.let_through(10)
    assert answers.pop("bad").exception(timeout=PATIENCE_S) is failure
    assert_all_scored(answers)
    assert scorer.calls == [["first"], ["a", "bad", "b"], ["a"], ["bad"], ["b"]]
    # The thread goes on.
    assert_scored(batcher.submit(make_request("next")), make_request("next"))


def test_an_engine_that_answers_too_few_is_a_fault_and_not_the_end(batcher, scorer, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(GatedScorer, "score", lambda self, requests: [])
        answer = batcher.submit(make_request())
        assert isinstance(answer.exception(timeout=PATIENCE_S), InternalError)
    scorer.let_through(10)
    assert_scored(batcher.submit(make_request("next")), make_request("next"))


@pytest.mark.parametrize(
    "raised",
    [SystemExit(3), KeyboardInterrupt(), StopIteration(), TimeoutError(), CancelledError()],
    ids=lambda raised: type(raised).__name__,
)
def test_a_failed_call_ends_neither_the_thread_nor_waiting_requests(batcher, scorer, raised):
    scorer.fails = lambda requests: raised if requests[0].context == "bad" else None
    scorer.let_through(10)
    failure = batcher.submit(make_request("bad")).exception(timeout=PATIENCE_S)
    assert isinstance(failure, InternalError)
    assert failure.__cause__ is raised
    assert type(raised).__name__ in failure.message
    assert_scored(batcher.submit(make_request("next")), make_request("next"))


def test_closing_answers_queued_requests_and_refuses_the_rest(scorer):
    batcher = Batcher(scorer)
    first = occupy(batcher, scorer)
    queued = submit_all(batcher, "012")
    closing = threading.Thread(target=batcher.close)
    closing.start()
    wait_until(lambda: batcher._closed)
    with pytest.raises(EngineUnavailableError, match="stopping") as caught:
        batcher.submit(make_request("late"))
    assert caught.value.retry_after_s == 1
    assert closing.is_alive(), "it did not wait for what is queued"
    scorer.let_through(10)
    closing.join(timeout=PATIENCE_S)
    assert not closing.is_alive()
    assert not any(thread.is_alive() for thread in batcher._threads)
    assert_scored(first, make_request("first"))
    assert all(answer.done() for answer in queued.values())
    assert_all_scored(queued)
    batcher.close()


def test_an_idle_batcher_closes():
    batcher = Batcher(HashingScorer())
    batcher.close()
    assert not any(thread.is_alive() for thread in batcher._threads)


def test_an_answer_says_when_its_call_began(batcher, scorer):
    before = time.perf_counter()
    first = occupy(batcher, scorer)
    began = time.perf_counter()
    assert before <= first.started_at <= began
    second, third = (batcher.submit(make_request(context)) for context in ("second", "third"))
    submitted = time.perf_counter()
    assert not hasattr(second, "started_at")
    scorer.let_through(2)
    second.result(timeout=PATIENCE_S)
    third.result(timeout=PATIENCE_S)
    assert submitted <= second.started_at <= time.perf_counter()
    assert second.started_at == third.started_at, "they shared a call"


def test_a_failed_call_has_begun_and_runs_no_longer(batcher, scorer):
    scorer.fails = lambda _: ValueError("broken")
    answer = occupy(batcher, scorer)
    scorer.let_through()
    assert isinstance(answer.exception(timeout=PATIENCE_S), ValueError)
    assert answer.started_at <= time.perf_counter()
    assert batcher.running_call is None


def test_room_can_be_asked_for_without_queueing(batcher, scorer):
    batcher.check_room(make_request())
    occupy(batcher, scorer)
    answers = submit_all(batcher, "0123")
    with pytest.raises(EngineUnavailableError, match="queue is full"):
        batcher.check_room(make_request())
    assert answers["0"].cancel()
    batcher.check_room(make_request())
    assert batcher.n_waiting == 3
    scorer.let_through(10)


def test_the_running_call_tells_a_hang_from_being_busy(batcher, scorer):
    assert batcher.running_call is None
    occupy(batcher, scorer)
    number, seconds = batcher.running_call
    batcher.submit(make_request("next"))
    wait_until(lambda: batcher.running_call[1] > seconds)
    assert batcher.running_call[0] == number
    scorer.let_through()
    scorer.wait_for_a_call()
    assert batcher.running_call[0] == number + 1
    scorer.let_through()
    batcher.close()
    assert batcher.running_call is None


def test_requests_of_a_failed_call_that_are_late_by_now_are_not_scored_again(batcher, scorer):
    scorer.fails = lambda requests: ValueError("broken") if len(requests) > 1 else None
    occupy(batcher, scorer)
    late = batcher.submit(make_request("late"), deadline_s=LATE_S)
    deadline = time.monotonic() + LATE_S
    patient = batcher.submit(make_request("patient"))
    scorer.let_through()
    scorer.wait_for_a_call()
    wait_until(past(deadline))
    scorer.let_through(10)
    assert_scored(patient, make_request("patient"))
    assert isinstance(late.exception(timeout=PATIENCE_S), DeadlineExceededError)
    assert scorer.calls == [["first"], ["late", "patient"], ["patient"]]


def test_closing_does_not_wait_for_ever_for_an_engine_that_hangs(scorer):
    batcher = Batcher(scorer)
    running = occupy(batcher, scorer)
    waiting = batcher.submit(make_request("waiting"))
    assert batcher.close(timeout_s=0.05) is False
    assert isinstance(waiting.exception(timeout=PATIENCE_S), EngineUnavailableError)
    assert not running.done()
    scorer.let_through()
    assert_scored(running, make_request("first"))
    assert batcher.close(timeout_s=PATIENCE_S) is True


contexts = st.text(max_size=30)


@few
@given(st.lists(st.tuples(contexts, st.integers(1, 3)), min_size=1, max_size=12))
def test_a_batched_answer_is_the_unbatched_one(drawn):
    scorer = GatedScorer()
    batcher = Batcher(scorer)
    requests = [make_request(context, n_decisions) for context, n_decisions in drawn]
    occupy(batcher, scorer)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(batcher.submit, requests))
    scorer.let_through(len(requests) + 1)
    batcher.close()
    for request, answer in zip(requests, answers, strict=True):
        assert_scored(answer, request)
    first, shared = scorer.calls
    assert first == ["first"]
    assert sorted(shared) == sorted(context for context, _ in drawn)


def test_memory_goes_back_after_a_large_call_alone(monkeypatch):
    trimmed = threading.Event()
    monkeypatch.setattr(batching, "trim_memory", trimmed.set)
    batcher = Batcher(HashingScorer())
    assert batcher.submit(make_request("c" * SHORT_CHARACTERS)).result(PATIENCE_S)
    assert not trimmed.wait(0.05)
    assert batcher.submit(make_request("c" * batching.BATCH_CHARACTERS)).result(PATIENCE_S)
    assert trimmed.wait(PATIENCE_S)
    assert batcher.close()
