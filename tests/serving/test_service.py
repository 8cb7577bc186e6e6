"""Accept, score, settle: in this order, and never left half-way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import msgspec
import pytest

from steelyard.accounts.rate_limits import RateWindows, TokenAllowance
from steelyard.caller import Caller
from steelyard.decision_log.store import StoredDecision, record_answer
from steelyard.decisions.validation import read_request
from steelyard.decisions.wire import DecideResponse, EstimateResponse, PlaygroundRequest
from steelyard.errors import (
    ContextTooLongError,
    DeadlineExceededError,
    EngineUnavailableError,
    InsufficientCreditError,
    InternalError,
    InvalidRequestError,
    NotFoundError,
    Operation,
    OutcomeUnknownError,
    RateLimitedError,
    SteelyardError,
    StorageUnavailableError,
    TooManyTokensError,
)
from steelyard.ledger.money import from_usd
from steelyard.operations.write import Replay, Write
from steelyard.operations.writes import Accepted
from steelyard.serving.registry import ModelRegistry
from steelyard.serving.service import DecisionService
from support.decisions.factories import make_decision_dict, make_request_dict
from support.servers.calling import Sent, send
from support.servers.hosting import GARBAGE, Behaving, crash, hosted
from support.waiting import next_turn, until

PATIENCE_S = 30
CALLER = Caller("acc_1", "key_1", "full", "127.0.0.1")


#: Where a public request comes from.
ADDRESS = "192.0.2.1"


class Log:
    """An operation log that remembers its calls, and refuses on command."""

    def __init__(self) -> None:
        self.accepts: list[dict[str, Any]] = []
        self.writes: list[Write] = []
        self.settled: list[tuple[int, dict[str, Any], StoredDecision | None]] = []
        self.released: list[SteelyardError | None] = []
        self.on_accept: Callable[[], Replay | None] = lambda: None
        self.known: Replay | None = None
        self.settle_failure: Exception | None = None
        self.release_failure: Exception | None = None

    async def accept(self, write: Write, **given: Any) -> Accepted:
        await next_turn()
        self.accepts.append(given)
        self.writes.append(write)
        replay = self.on_accept()
        if replay is not None:
            raise replay
        return Accepted(
            operation_id="op_1",
            write=write,
            reserved_nano=given["reserved_nano"],
            accepted_at=1000.0,
        )

    async def replay_known(self, write: Write) -> None:
        await next_turn()
        if write.key is not None and self.known is not None:
            raise self.known

    async def settle(self, accepted: Accepted, *, amount_nano: int, body: bytes, also: Any) -> None:
        await next_turn()
        if self.settle_failure is not None:
            raise self.settle_failure
        self.settled.append((amount_nano, json.loads(body), also and also.keywords["decision"]))
        accepted.write.sent.operation_id = accepted.operation_id

    async def release(self, accepted: Accepted, error: SteelyardError | None = None) -> None:
        await next_turn()
        if self.release_failure is not None:
            raise self.release_failure
        if error is not None:
            error.operation = Operation(accepted.operation_id, "terminal")
        self.released.append(error)


class World:
    """Two models at 12 nano-USD a token and one at 40, and a service before them."""

    def __init__(self, closing: ExitStack) -> None:
        self.log = Log()
        self.scorers: dict[str, Behaving] = {}
        hosted_models = []
        for name, price in (("a", 12), ("b", 5), ("dear", 40)):
            model, self.scorers[name] = closing.enter_context(
                hosted(name, price_nano=price, max_queue=1)
            )
            hosted_models.append(model)
        self.models = ModelRegistry(hosted_models)
        windows = RateWindows()
        closing.callback(windows.close)
        self._windows = windows
        self.service = self.serve()

    def serve(self, *, deadline_s: float = PATIENCE_S, tokens: int = 0) -> DecisionService:
        self.service = DecisionService(
            self.models,
            self.log,  # type: ignore[arg-type]
            TokenAllowance(self._windows, tokens),
            deadline_s=deadline_s,
            storing="on",
            record=record_answer,
            now=lambda: 1234.5,
        )
        return self.service

    async def decide(self, key: str | None = None, **fields: Any) -> Sent:
        return await self.send("POST /v1/decide", encode(**fields), key=key)

    async def send(self, route: str, payload: bytes, **how: Any) -> Sent:
        return await send(route, {DecisionService: self.service}, payload, caller=CALLER, **how)

    async def estimate(self, **fields: Any) -> EstimateResponse:
        sent = await self.send("POST /v1/decide/estimate", encode(**fields))
        return msgspec.json.decode(sent.body, type=EstimateResponse)

    def play(self, address: str = ADDRESS, **fields: Any) -> DecideResponse:
        request = read_request(make_request_dict(**fields), shape=PlaygroundRequest)
        return asyncio.run(self.service.playground(request, address))

    def ask(self, key: str | None = None, **fields: Any) -> dict[str, Any]:
        return json.loads(asyncio.run(self.decide(key, **fields)).body)


def encode(**fields: Any) -> bytes:
    return msgspec.json.encode(make_request_dict(**fields))


@pytest.fixture
def world() -> Iterator[World]:
    with ExitStack() as closing:
        yield World(closing)


@pytest.mark.parametrize(
    ("fields", "price"), [({}, 12), ({"model": "b"}, 5), ({"model": "dear"}, 40)]
)
def test_the_estimate_the_hold_and_the_answer_agree(
    world: World, fields: dict[str, Any], price: int
) -> None:
    estimate = asyncio.run(world.estimate(**fields))
    assert world.log.accepts == []
    answer = world.ask(**fields)
    held = world.log.accepts[0]["reserved_nano"]
    assert from_usd(estimate.maximum_charge_usd) == held == price * estimate.input_tokens
    assert answer["charge"]["reserved_usd"] == estimate.maximum_charge_usd
    assert answer["charge"]["amount_usd"] == estimate.maximum_charge_usd
    assert answer["usage"]["input_tokens"] == estimate.input_tokens
    assert answer["usage"]["tokenizer"] == msgspec.to_builtins(estimate.tokenizer)


def test_the_estimate_quotes_every_model_that_may_answer(world: World) -> None:
    estimate = asyncio.run(world.estimate(fallback=["dear", "b"]))
    quotes = {quote.id: from_usd(quote.quote_usd) for quote in estimate.models}
    tokens = estimate.input_tokens
    assert quotes == {"a": 12 * tokens, "dear": 12 * tokens, "b": 5 * tokens}


@pytest.mark.parametrize(("fields", "answering"), [({}, "b"), ({"fallback": ["dear"]}, "dear")])
def test_a_fallback_costs_its_own_price_and_never_more_than_the_hold(
    world: World, fields: dict[str, Any], answering: str
) -> None:
    world.scorers["a"].behave = crash
    answer = world.ask(**fields)
    assert answer["model"] == answering
    assert answer["fallback"] == {"from": "a", "to": answering, "reason": "engine_unavailable"}
    amount, held = (from_usd(answer["charge"][name]) for name in ("amount_usd", "reserved_usd"))
    tokens = answer["usage"]["input_tokens"]
    assert (amount, held) == ({"b": 5, "dear": 12}[answering] * tokens, 12 * tokens)
    assert world.log.settled[0][0] == amount


def test_the_stored_decision_equals_request_and_answer(world: World) -> None:
    answer = world.ask(metadata={"ticket": 7}, temperature=2)
    _, _, stored = world.log.settled[0]
    assert answer["stored"] is True
    assert (stored.id, stored.account_id, stored.model) == (answer["id"], "acc_1", "a")
    assert stored.created_at == 1234.5
    request = json.loads(stored.request)
    assert request.keys() == {"context", "decisions", "temperature"}
    assert [decision["id"] for decision in request["decisions"]] == ["route", "refund", "urgency"]
    assert json.loads(stored.results) == answer["decisions"]
    assert json.loads(stored.metadata) == {"ticket": 7}
    assert dict(stored.outcome_names)["urgency"] == ["1", "3", "5"]
    # It can be asked again, and means the same.
    again = world.ask(**request)
    assert again["decisions"] == answer["decisions"]


@pytest.mark.parametrize(
    ("asked", "default", "stored"),
    [
        (False, "on", False),
        (True, "off", True),
        (True, "features", True),
        ("features", "off", True),
    ],
)
def test_the_request_says_whether_it_is_stored(
    world: World, asked: bool | str, default: str, stored: bool
) -> None:
    world.service._storing = default
    assert world.ask(store=asked)["stored"] is stored
    also = world.log.settled[0][2]
    assert (also is not None) is stored
    assert world.ask()["stored"] is (default != "off")
    if also is not None:
        has_context = b'"context"' in also.request
        assert has_context is ("features" not in {asked, default})


def test_a_replay_is_given_as_it_is(world: World) -> None:
    world.log.on_accept = lambda: Replay(b'{"kept": true}', "op_0")
    reply = asyncio.run(world.decide("k"))
    assert (reply.body, reply.is_replay) == (b'{"kept": true}', True)
    assert world.scorers["a"].n_calls == 0
    assert world.log.settled == []


def test_a_replay_needs_no_allowance(world: World) -> None:
    context = "word " * 600
    world.serve(tokens=1_000)
    world.ask("k", context=context)
    with pytest.raises(RateLimitedError):
        world.ask("k", context=context)  # no answer is kept here
    world.log.known = Replay(b'{"kept": true}', "op_0")
    reply = asyncio.run(world.decide("k", context=context))
    assert (reply.body, reply.is_replay) == (b'{"kept": true}', True)
    with pytest.raises(RateLimitedError):
        world.ask(context=context)
    assert len(world.log.accepts) == 1


def test_the_hash_is_that_of_the_decoded_payload(world: World) -> None:
    request = make_request_dict()
    spaced = json.dumps(request, indent=3, ensure_ascii=True).encode()
    for payload in (msgspec.json.encode(request), spaced, encode(context="Other.")):
        asyncio.run(world.send("POST /v1/decide", payload, key="k"))
    hashes = [write.digest for write in world.log.writes]
    assert hashes[0] == hashes[1] != hashes[2]
    assert {(write.route, write.key) for write in world.log.writes} == {("POST /v1/decide", "k")}


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"decisions": []}, InvalidRequestError),
        ({"model": "nobody"}, NotFoundError),
        ({"model": "a@1"}, NotFoundError),
        ({"context": "word " * 70_000}, ContextTooLongError),
        ({"context": "word " * 2_000}, TooManyTokensError),
    ],
)
def test_a_refused_request_is_never_accepted(
    world: World, fields: dict[str, Any], error: type[SteelyardError]
) -> None:
    world.serve(tokens=1_000)
    for call in (world.decide("k", **fields), world.estimate(**fields)):
        with pytest.raises(error):
            asyncio.run(call)
    assert world.log.accepts == []


def test_a_refusal_on_acceptance_runs_nothing(world: World) -> None:
    def refuse() -> None:
        raise InsufficientCreditError("There is not enough credit; add some.")

    world.log.on_accept = refuse
    with pytest.raises(InsufficientCreditError):
        world.ask("k")
    assert world.scorers["a"].n_calls == 0
    assert world.log.released == []


@pytest.mark.parametrize("fault", ["crash", *GARBAGE])
def test_an_engine_that_fails_ends_the_operation(world: World, fault: str) -> None:
    world.scorers["a"].behave = GARBAGE.get(fault, crash)
    with pytest.raises(EngineUnavailableError) as caught:
        world.ask("k", fallback="none")
    assert (caught.value.operation.id, caught.value.operation.status) == ("op_1", "terminal")
    assert world.log.released == [caught.value]
    assert world.log.settled == []


def test_the_deadline_ends_the_operation(world: World) -> None:
    world.serve(deadline_s=0.3)
    world.scorers["a"].hang()
    with pytest.raises(DeadlineExceededError) as caught:
        world.ask("k", fallback="none")
    assert caught.value.operation.status == "terminal"
    assert world.log.released == [caught.value]
    # What comes after is refused at once: before acceptance, or with the key free again.
    with pytest.raises(EngineUnavailableError):
        world.ask(fallback="none")
    assert len(world.log.accepts) == 1
    with pytest.raises(EngineUnavailableError) as caught_again:
        world.ask("k2", fallback="none")
    assert caught_again.value.operation is None
    assert world.log.released[1:] == [None]


def test_a_full_queue_frees_the_key(world: World) -> None:
    first = world.models.get("a")
    world.scorers["a"].hang()
    prepared = world.models.get("a").decide.prepare(make_request_dict(fallback="none"))
    first.queue.submit(prepared.rendered)
    assert world.scorers["a"].entered.acquire(timeout=PATIENCE_S)
    first.queue.submit(prepared.rendered)
    with pytest.raises(EngineUnavailableError, match="full") as caught:
        world.ask("k", fallback="none")
    assert caught.value.operation is None
    assert world.log.released == [None]
    with pytest.raises(EngineUnavailableError, match="full"):
        world.ask(fallback="none")
    assert len(world.log.accepts) == 1, "without a key it is refused before acceptance"


def test_a_request_at_fault_after_all_frees_the_key(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise InvalidRequestError("The costs are too large.")

    monkeypatch.setattr(world.models.get("a").decide, "finish", refuse)
    with pytest.raises(InvalidRequestError):
        world.ask("k")
    assert world.log.released == [None]


def test_a_fault_of_the_server_has_no_text_and_ends_the_operation(
    world: World,
) -> None:
    def encode_badly(_: object) -> object:
        raise ValueError("secret")

    request = read_request(make_request_dict())
    with pytest.raises(InternalError) as caught:
        asyncio.run(world.service.decide(Write(CALLER), request, encode_badly))
    assert "secret" not in caught.value.message
    assert world.log.released == [caught.value]


def test_an_end_that_cannot_be_written_is_reported_as_in_the_log(world: World) -> None:
    world.log.settle_failure = OutcomeUnknownError("Nobody knows.")
    with pytest.raises(OutcomeUnknownError):
        world.ask()
    assert world.log.released == [], "the log itself frees what it could not settle"


def test_a_terminal_failure_that_cannot_be_written_is_pending(world: World) -> None:
    world.scorers["a"].behave = crash
    world.log.release_failure = StorageUnavailableError("Disk full.")
    with pytest.raises(EngineUnavailableError) as caught:
        world.ask("k", fallback="none")
    assert caught.value.operation.status == "pending"


async def begin(world: World, key: str | None) -> asyncio.Task[Sent]:
    """Ask while the engine hangs, and wait until the request is in it."""
    world.scorers["a"].hang()
    asking = asyncio.create_task(world.decide(key, fallback="none"))
    await until(lambda: world.scorers["a"].entered.acquire(blocking=False))
    return asking


@pytest.mark.parametrize("key", ["k", None])
def test_a_caller_that_goes_away_leaves_no_operation_open(world: World, key: str | None) -> None:
    async def leave() -> None:
        asking = await begin(world, key)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        world.scorers["a"].may_answer.set()
        assert await world.service.drain(PATIENCE_S)

    asyncio.run(leave())
    assert len(world.log.settled) + len(world.log.released) == 1
    assert world.log.settled, "an engine that had begun ends its work"


@pytest.mark.parametrize(("key", "n_settled"), [("k", 2), (None, 1)])
def test_a_caller_that_goes_away_while_it_waits(
    world: World, key: str | None, n_settled: int
) -> None:
    async def leave() -> None:
        first = await begin(world, "first")
        asking = asyncio.create_task(world.decide(key, fallback="none"))
        await until(lambda: world.models.get("a").queue.n_waiting == 1)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        world.scorers["a"].may_answer.set()
        await first
        assert await world.service.drain(PATIENCE_S)

    asyncio.run(leave())
    assert len(world.log.accepts) == 2
    assert len(world.log.settled) == n_settled
    assert len(world.log.settled) + len(world.log.released) == 2


def test_a_loop_that_ends_frees_accepted_operations(world: World) -> None:
    async def stop() -> None:
        await begin(world, "k")

    asyncio.run(stop())
    assert world.log.released == [None]


def test_the_playground_has_a_minute_s_tokens_an_address(world: World) -> None:
    tokens = world.play().usage.input_tokens
    world.serve(tokens=tokens)
    world.play()
    with pytest.raises(RateLimitedError):
        world.play()
    world.play("192.0.2.2")


def test_the_playground_accepts_stores_and_charges_nothing(world: World) -> None:
    decision = make_decision_dict()
    answer = world.play(decisions=[decision], store=True)
    assert answer.stored is False
    assert (answer.charge.amount_usd, answer.charge.reserved_usd) == ("0", "0")
    assert world.log.accepts == []
    with pytest.raises(InvalidRequestError, match="base models alone: a, b, dear"):
        world.play(model="router@3")
    world.scorers["a"].behave = crash
    assert world.play().fallback.to == "b"
    with pytest.raises(EngineUnavailableError):
        world.play(fallback="none")
