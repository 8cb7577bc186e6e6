"""A connected model whose server is slow, wrong or away: reported, retried, without blocking others."""

from __future__ import annotations

import asyncio
import threading

import httpx
import numpy as np
import pytest

from steelyard.app.job_runtime import open_worker
from steelyard.client import Client, ClientOptions
from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.errors import ContextTooLongError, DeadlineExceededError, EngineUnavailableError
from steelyard.jobs import runtime
from steelyard.patience import PATIENCE_S
from steelyard.scoring.cancellation import only_while
from steelyard.scoring.exported import ExportedModel
from steelyard.scoring.shares import Share
from steelyard.serving.connected import breaker, remote
from steelyard.serving.connected import queue as connected_queue
from steelyard.serving.connected.breaker import FAILURES, REST_S, Breaker, SilentServerError
from steelyard.serving.connected.declared import ConnectedModel, write_models
from steelyard.serving.connected.queue import ConnectedQueue, Loop
from steelyard.serving.connected_hosting import open_queue
from support.api.error_shape import assert_canonical_error
from support.datasets.dataset_rows import make_rows
from support.models.exported_models import write_exported
from support.models.remote_models import remote_model
from support.servers.live_server import live_server
from support.waiting import wait_until

#: Waits longer than any answer takes on a slow machine.
CLIENT = httpx.Client(timeout=60)
REQUEST = RenderedRequest("x", (RenderedDecision("single", "Which?", ("a", "b")),))
BODY = {
    "context": "Invoice 118 was paid twice.",
    "decisions": [{"id": "route", "question": "Where to?", "outcomes": ["refunds", "sales"]}],
    "model": "far",
}


def systemone(path, body):
    """Answer as a server of the wire ``systemone``, preferring the first label."""
    answers = {}
    for name, question in body["questions"].items():
        labels = list(question["criteria"])
        rest = 0.25 / (len(labels) - 1)
        probabilities = {label: 0.75 if label == labels[0] else rest for label in labels}
        answers[name] = {"type": "choice", "choice": labels[0], "probabilities": probabilities}
    return {"answers": answers}


def spoiled(change):
    def answer(path, body):
        answered = systemone(path, body)
        change(next(iter(answered["answers"].values()))["probabilities"])
        return answered

    return answer


@pytest.fixture(scope="module", autouse=True)
def closing():
    yield
    CLIENT.close()


@pytest.fixture
def open_far():
    """Return a function that opens a queue to a server."""
    loop = Loop()
    opened = []

    def open_(url, **given):
        max_queue = given.pop("max_queue", 8)
        model = ConnectedModel(wire="systemone", url=url, **given)
        opened.append(open_queue("far", model, loop, max_queue=max_queue))
        return opened[-1]

    yield open_
    for queue in opened:
        queue.close()
    loop.close()


LIES = {
    "an outcome missing": lambda probabilities: probabilities.pop("b"),
    "NaN": lambda probabilities: probabilities.update(b=float("nan")),
    "a sum off": lambda probabilities: probabilities.update(b=0.252),
    "negative": lambda probabilities: probabilities.update(a=1.25, b=-0.25),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
def test_an_answer_that_is_none_is_a_failure(open_far, lie):
    with remote_model(spoiled(lie)) as far:
        with pytest.raises(EngineUnavailableError):
            open_far(far.url).submit(REQUEST, 10).result(10)
        assert len(far.asked) == 1  # asking again would answer the same


def test_requests_after_the_end_are_refused():
    loop = Loop()
    model = ConnectedModel(wire="systemone", url="http://127.0.0.1:1")
    queue = open_queue("far", model, loop, max_queue=8)
    queue.close()
    loop.close()
    with pytest.raises(EngineUnavailableError, match="ending"):
        queue.submit(REQUEST, 10)


def test_an_exported_model_that_gives_no_number_or_is_gone_is_a_failure(tmp_path):
    write_exported(tmp_path / "lies", "relevance", value=float("nan"))
    loop = Loop()
    try:
        for folder, match in (("lies", "not a number"), ("gone", "make it again")):
            model = ConnectedModel(wire="hub", folder=folder)
            queue = open_queue("far", model, loop, home=tmp_path, max_queue=8)
            with pytest.raises(EngineUnavailableError, match=match):
                queue.submit(REQUEST, 30).result(30)
            queue.close()
    finally:
        loop.close()


def test_an_exported_model_stops_for_gone_callers(tmp_path):
    model = ExportedModel("far", write_exported(tmp_path / "far", "relevance"))
    assert model.score(REQUEST)
    with only_while(lambda: False), pytest.raises(DeadlineExceededError):
        model.score(REQUEST)


@pytest.mark.parametrize(
    ("fault", "match", "n_asked"),
    [
        ("cuts off", "broke off", 1),
        ("not JSON", "not answer JSON", 1),
        ("endless", "more than", 1),
        ("redirects", "redirects are not followed", 1),
        ("status 400", "status 400", 1),
        ("status 401", "check the key", 1),
        ("status 503", "status 503", remote.ATTEMPTS),
        ("status 429", "status 429", remote.ATTEMPTS),
    ],
)
def test_a_server_that_fails_is_asked_again_where_that_helps(open_far, fault, match, n_asked):
    with remote_model(systemone, fault) as far:
        with pytest.raises(EngineUnavailableError, match=match) as caught:
            open_far(far.url).submit(REQUEST, 10).result(10)
        assert far.url not in caught.value.message
        assert len(far.asked) == n_asked


def test_a_refusal_that_passes_is_waited_out(open_far):
    with remote_model(systemone, "once 429") as far:
        [scored] = open_far(far.url).submit(REQUEST, 10).result(10)
        assert scored.logits[0] > scored.logits[1]
        assert len(far.asked) == 2


def test_a_server_that_is_not_there_was_not_reached(open_far):
    with remote_model(systemone) as far:
        pass
    with pytest.raises(EngineUnavailableError, match="cannot be reached") as caught:
        open_far(far.url).submit(REQUEST, 10).result(10)
    assert caught.value.is_unreached


def test_a_server_that_hangs_is_given_up_and_then_left_alone(open_far):
    with remote_model(systemone, "hangs") as far:
        queue = open_far(far.url, timeout_s=0.1)
        for _ in range(FAILURES):
            with pytest.raises(EngineUnavailableError, match=r"within 0\.1 s|in time"):
                queue.submit(REQUEST, 10).result(10)
        n_asked = len(far.asked)
        with pytest.raises(EngineUnavailableError, match="left alone") as caught:
            queue.submit(REQUEST, 10).result(10)
        assert caught.value.is_unreached
        assert caught.value.retry_after_s >= 1
        assert len(far.asked) == n_asked


def test_only_so_many_are_asked_at_once_and_accounts_take_turns(open_far):
    with remote_model(systemone, "hangs") as far:
        queue = open_far(far.url, concurrency=2, max_queue=4)
        noisy = [queue.submit(REQUEST, 30, Share("noisy")) for _ in range(2)]
        wait_until(lambda: len(far.asked) == 2)
        noisy += [queue.submit(REQUEST, 30, Share("noisy")) for _ in range(4)]
        with pytest.raises(EngineUnavailableError, match="Too many requests wait"):
            queue.submit(REQUEST, 30, Share("noisy"))
        quiet = queue.submit(REQUEST, 30, Share("quiet"))
        with pytest.raises(EngineUnavailableError, match="Too many requests wait"):
            noisy[-1].result(10)
        assert len(far.asked) == 2
        far.may_answer.set()
        for future in (*noisy[:-1], quiet):
            assert future.result(10)


def test_a_deadline_that_others_keep_from_being_met_is_refused_at_once(monkeypatch):
    clock = iter(range(0, 1_000, 20))  # an answer takes 20 s
    monkeypatch.setattr(connected_queue, "perf_counter", lambda: next(clock))
    loop, may_answer = Loop(), asyncio.Event()

    class Slow:
        async def post(self, path, body):
            await may_answer.wait()
            return {}

        async def close(self):
            pass

    class Wire:
        async def score(self, request, post):
            await post("", request)
            return [np.array([0.5, 0.5])]

    queue = ConnectedQueue("slow", Wire(), Slow(), loop, concurrency=1, timeout_s=30, max_queue=8)
    loop.call(may_answer.set)
    for _ in range(2):
        queue.submit(REQUEST, 30).result(30)
        wait_until(lambda: not queue.n_unanswered)
    loop.call(may_answer.clear)
    waiting = [queue.submit(REQUEST, 30), queue.submit(REQUEST)]
    with pytest.raises(EngineUnavailableError, match=r"2 requests wait for slow.* 40 s") as refusal:
        queue.submit(REQUEST, 30)
    assert (refusal.value.retry_after_s, refusal.value.is_unreached) == (40, True)
    waiting.append(queue.submit(REQUEST, 60))
    waiting[1].cancel()
    loop.call(may_answer.set)
    for future in (waiting[0], waiting[2]):
        future.result(30)
    wait_until(lambda: not queue.n_unanswered)
    queue.close()
    loop.close()


def test_who_goes_away_frees_its_place(open_far):
    with remote_model(systemone, "hangs") as far:
        queue = open_far(far.url, concurrency=1)
        first, second = queue.submit(REQUEST, 30), queue.submit(REQUEST, 30)
        wait_until(lambda: len(far.asked) == 1)
        assert first.cancel()
        wait_until(lambda: len(far.asked) == 2)
        far.may_answer.set()
        assert second.result(10)


def test_a_breaker_lets_one_try_after_a_rest_that_grows():
    now = [0.0]
    resting = Breaker(lambda: now[0])
    for _ in range(FAILURES):
        assert not resting.check("far")
        resting.failed("status 500")
    assert resting.rest_s == REST_S
    now[0] += REST_S / 2
    resting.failed("status 500")  # sent before the rest began
    assert resting.rest_s == REST_S / 2
    resting.end_rest()
    assert resting.check("far")
    with pytest.raises(EngineUnavailableError, match="status 500"):
        resting.check("far")  # the one that tries has not come back
    resting.failed("status 503", is_try=True)
    assert resting.rest_s == 2 * REST_S
    now[0] += 2 * REST_S
    assert resting.check("far")
    resting.gave_up()
    assert resting.check("far")
    resting.succeeded()
    assert not resting.check("far")
    assert not resting.check("far")


def test_a_job_waits_half_a_minute_for_a_server_that_fails():
    now = [0.0]
    resting = Breaker(lambda: now[0])
    for _ in range(FAILURES):
        resting.failed("status 500")
    while now[0] < PATIENCE_S:
        now[0] += resting.rest_s
        asyncio.run(resting.wait_out())
        resting.failed("status 502", is_try=resting.check("far"))
    with pytest.raises(SilentServerError, match=r"^status 502$"):
        asyncio.run(resting.wait_out())
    now[0] += resting.rest_s
    asyncio.run(resting.wait_out())  # one that has rested may be tried
    resting.failed("status 502", is_try=resting.check("far"))
    resting.end_rest()
    asyncio.run(resting.wait_out())  # a job that begins waits anew
    assert resting.check("far")


def test_requests_without_a_deadline_wait_a_rest_out(open_far, monkeypatch):
    monkeypatch.setattr(breaker, "REST_S", 0.2)
    with remote_model(systemone, "status 500") as far:
        queue = open_far(far.url)
        for future in [queue.submit(REQUEST) for _ in range(FAILURES)]:
            with pytest.raises(EngineUnavailableError, match="status 500"):
                future.result(10)
        far.fault = ""
        with pytest.raises(EngineUnavailableError, match="left alone"):
            queue.submit(REQUEST, 10).result(10)
        assert all(future.result(10) for future in [queue.submit(REQUEST) for _ in range(3)])


#: How servers say that a context is too long.
TOO_LONG = {
    "llama.cpp": (
        400,
        {"error": {"code": 400, "type": "exceed_context_size_error", "message": "It exceeds."}},
    ),
    "OpenAI": (400, {"error": {"code": "context_length_exceeded", "message": "It is long."}}),
    "vLLM": (400, {"message": "This model's maximum context length is 4096 tokens."}),
    "Steelyard": (422, {"error": {"code": "context_too_long", "message": "It is long."}}),
    "a proxy": (413, "<html>Request Entity Too Large</html>"),
}


def reading(most: int, refusal: tuple[int, object]):
    """Return how a server answers that reads so many characters."""
    return lambda path, body: systemone(path, body) if len(body["state"]) <= most else refusal


@pytest.mark.parametrize("refusal", TOO_LONG.values(), ids=TOO_LONG)
def test_a_context_that_a_server_cannot_read_is_no_failure_of_it(open_far, refusal):
    with remote_model(reading(100, refusal)) as far:
        queue = open_far(far.url)
        for _ in range(FAILURES + 1):
            with pytest.raises(ContextTooLongError, match="longer than far reads"):
                queue.submit(RenderedRequest("x" * 101, REQUEST.decisions), 10).result(10)
        assert len(far.asked) == FAILURES + 1  # each once
        assert queue.rest_s == 0
        assert queue.submit(REQUEST, 10).result(10)


class TestServed:
    """A connected model among a server's own."""

    @pytest.fixture
    def serve(self, tmp_path):
        def serve(url, **given):
            declared = {"wire": "systemone", "url": url}
            declared |= {name: given.pop(name) for name in ("price_in",) if name in given}
            home = tmp_path / "home"
            write_models(home, {"far": ConnectedModel(**declared)})
            return live_server(home=str(home), **given)

        return serve

    def test_a_context_too_long_for_it_is_refused_as_such(self, serve):
        answer = reading(100, TOO_LONG["llama.cpp"])
        with remote_model(answer) as far, serve(far.url) as server:
            url = f"{server.url}/v1/decide"
            for fallback in ("auto", "none", ["hashing"]):
                long = {**BODY, "context": "x " * 60, "fallback": fallback}
                refused = CLIENT.post(url, json=long)
                assert_canonical_error(refused, 422, "context_too_long", path=["body", "context"])
            answered = CLIENT.post(url, json={**BODY, "fallback": "auto"}).json()
            assert (answered["model"], answered["fallback"]) == ("far", None)

    def test_it_answers_where_it_is_named(self, serve):
        with remote_model(systemone) as far, serve(far.url) as server:
            answer = CLIENT.post(f"{server.url}/v1/decide", json=BODY).json()
            assert answer["model"] == "far"
            assert answer["decisions"]["route"]["probabilities"]["refunds"] == pytest.approx(0.75)
            played = CLIENT.post(f"{server.url}/v1/playground/decide", json=BODY)
            assert played.json()["model"] == "far"
            models = {
                one["id"]: one for one in CLIENT.get(f"{server.url}/v1/models").json()["data"]
            }
            assert models["far"]["status"] == "ready"
            assert CLIENT.get(f"{server.url}/v1/ready").json()["parts"]["connected:far"] == "ok"
            assert far.url not in str(models)

    def test_bad_input_never_reaches_it(self, serve):
        with remote_model(systemone) as far, serve(far.url) as server:
            for change in ({"decisions": []}, {"context": "w " * 70_000}, {"temperature": 0}):
                answered = CLIENT.post(f"{server.url}/v1/decide", json={**BODY, **change})
                assert answered.status_code == 422
            assert far.asked == []

    def test_one_that_costs_is_not_played_with(self, serve):
        with remote_model(systemone) as far, serve(far.url, price_in="0.5") as server:
            response = CLIENT.post(f"{server.url}/v1/playground/decide", json=BODY)
            assert_canonical_error(response, 422, "invalid_request", message="far")
            server.scorer.failure = EngineUnavailableError("It is broken.")
            own = {**BODY, "model": "hashing", "fallback": ["far"]}
            response = CLIENT.post(f"{server.url}/v1/playground/decide", json=own)
            assert_canonical_error(response, 503, "engine_unavailable", retryable=True)
            server.scorer.failure = None
            quote = CLIENT.post(f"{server.url}/v1/decide/estimate", json=BODY).json()
            assert float(quote["maximum_charge_usd"]) == quote["input_tokens"] * 0.5e-6
            assert far.asked == []

    def test_one_that_fails_is_stood_in_for_and_never_stands_in_unasked(self, serve):
        with remote_model(systemone, "status 500") as far, serve(far.url) as server:
            url = f"{server.url}/v1/decide"
            answer = CLIENT.post(url, json=BODY).json()
            assert (answer["model"], answer["fallback"]["from"]) == ("hashing", "far")
            refused = CLIENT.post(url, json={**BODY, "fallback": "none"})
            assert_canonical_error(refused, 503, "engine_unavailable", retryable=True)
            far.fault, n_asked = "", len(far.asked)
            server.scorer.failure = EngineUnavailableError("broken")
            own = {**BODY, "model": "hashing"}
            assert CLIENT.post(url, json=own).status_code == 503
            assert len(far.asked) == n_asked
            listed = CLIENT.post(url, json={**own, "fallback": ["far"]}).json()
            assert listed["model"] == "far"

    def test_a_hanging_request_holds_no_others(self, serve):
        with remote_model(systemone, "hangs") as far, serve(far.url) as server:
            url = f"{server.url}/v1/decide"
            alone = {**BODY, "fallback": "none"}
            threads = [
                threading.Thread(target=CLIENT.post, args=(url,), kwargs={"json": alone})
                for _ in range(12)
            ]
            for thread in threads:
                thread.start()
            wait_until(lambda: len(far.asked) > 4)
            assert CLIENT.post(url, json={**BODY, "model": "hashing"}).status_code == 200
            assert not far.may_answer.is_set()
            far.may_answer.set()
            for thread in threads:
                thread.join()

    def test_a_key_is_sent_and_shown_nowhere(self, tmp_path, monkeypatch, caplog):
        monkeypatch.setenv("FAR_KEY", "sk-secret-key")
        with remote_model(systemone, "status 401") as far:
            declared = ConnectedModel(wire="systemone", url=far.url, key_env="FAR_KEY")
            home = tmp_path / "home"
            write_models(home, {"far": declared})
            with live_server(home=str(home)) as server:
                response = CLIENT.post(f"{server.url}/v1/decide", json={**BODY, "fallback": "none"})
            assert far.headers[0]["Authorization"] == "Bearer sk-secret-key"
            assert "sk-secret-key" not in response.text + caplog.text
            for file in home.rglob("*"):
                if file.is_file():
                    assert b"sk-secret-key" not in file.read_bytes()

    def test_it_is_evaluated_beside_the_servers_own(self, tmp_path):
        home = str(tmp_path / "home")
        with remote_model() as far:
            write_models(tmp_path / "home", {"far": ConnectedModel(wire="chat", url=far.url)})
            with (
                live_server(home=home, jobs="off") as server,
                open_worker(server.services.settings),
                Client(ClientOptions(url=server.url)) as client,
            ):
                dataset = client.datasets.create("rows", make_rows(20))
                made = client.evaluations.create(dataset.id, ["hashing", "far"]).data
                ended = [client.evaluations.wait(one) for one in made]
                assert [one.status for one in ended] == ["succeeded", "succeeded"]
                assert [one.model_label for one in ended] == ["hashing", "far"]
                own, answered = (client.evaluations.detail(one.id) for one in ended)
                assert answered.latency_ms.n == ended[1].evaluation_rows == 4
                assert 0 < answered.latency_ms.p50 <= answered.latency_ms.p95
                assert ended[1].metrics.latency_ms == answered.latency_ms.p50
                # The server's own is asked a few rows alone, to be timed.
                assert own.latency_ms.n == 4
                assert ended[0].metrics.latency_ms == own.latency_ms.p50 > 0
                assert own.input_tokens == answered.input_tokens > 0
            assert far.asked

    def test_a_job_asks_at_once_after_earlier_failures(self, tmp_path, monkeypatch):
        monkeypatch.setattr(breaker, "REST_S", 60.0)
        monkeypatch.setattr(runtime, "_PAUSES_S", (0.0,) * (FAILURES - 1))
        home = str(tmp_path / "home")
        with remote_model(fault="status 500") as far:
            declared = ConnectedModel(wire="chat", url=far.url, concurrency=1)
            write_models(tmp_path / "home", {"far": declared})
            with (
                live_server(home=home, jobs="off") as server,
                open_worker(server.services.settings),
                Client(ClientOptions(url=server.url)) as client,
            ):
                dataset = client.datasets.create("rows", make_rows(40))
                made = client.evaluations.create(dataset.id, ["far"]).data[0]
                failed = client.evaluations.wait(made)
                assert (failed.status, "status 500" in failed.error.message) == ("failed", True)
                far.fault = ""
                client.evaluations.retry(made.id)
                assert client.evaluations.wait(made).status == "succeeded"
