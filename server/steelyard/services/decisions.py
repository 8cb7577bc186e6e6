"""The paid decide use case: hold, score with fallback, settle and store, exactly once per key.

What ``decide`` and the compatibility routes share is ``run``. Its order: who may answer, where that
is not a base model, then the token allowance, then
acceptance (one transaction: the key, the credit, the hold), then scoring, then settlement (one
transaction: the charge, the stored decision, the answer kept for the key). A refusal up to and with
acceptance leaves the key free; so does one by a full queue, since nothing ran. Any other failure
after acceptance is terminal: the hold is released, and the key answers with that failure from then
on.

From acceptance on the work is a task of its own. A caller that goes away cannot stop it half-way:
without a key it is given up while it waits, with one it ends and its answer is kept.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import msgspec

from steelyard.billing.money import to_usd
from steelyard.decisions.kinds import Decision
from steelyard.decisions.validation import ValidRequest, read_request
from steelyard.errors import (
    EngineUnavailableError,
    FamilyDeletedError,
    FamilyEmptyError,
    FamilyOffError,
    InternalError,
    InvalidRequestError,
    ModelDeletedError,
    ModelDiscardedError,
    ModelOffError,
    ModelUnavailableError,
    NotFoundError,
    Operation,
    SteelyardError,
    StorageUnavailableError,
)
from steelyard.services.allowance import TokenAllowance
from steelyard.services.bodies import read_body
from steelyard.services.caller import Caller
from steelyard.services.decide import Prepared, not_in_playground
from steelyard.services.fallback import (
    NO_TUNED,
    Answerer,
    Attempts,
    UnansweredError,
    candidates_of,
    quote_nano,
)
from steelyard.services.models import ModelRegistry
from steelyard.services.operations import Accepted, OperationLog, payload_sha256
from steelyard.services.reply import Reply
from steelyard.services.tuned_calls import TunedCall, TunedCalls
from steelyard.storage.state.decisions import StoredDecision
from steelyard.wire.decide import Charge, DecideRequest, DecideResponse
from steelyard.wire.estimate import EstimateResponse, ModelQuote
from steelyard.wire.json_values import decode_json
from steelyard.wire.playground import PlaygroundRequest

_log = logging.getLogger(__name__)

#: The route under which decide's idempotency keys are kept.
DECIDE_ROUTE = "POST /v1/decide"

#: Turns an answer into what the route sends; msgspec encodes it.
Encode = Callable[[DecideResponse], Any]

#: A request that was read: rendered where it names a base model, else once it is known what it names.
Read = Prepared | ValidRequest

#: Why a name in a list of fallbacks answers no calls.
_NO_ANSWERER = (
    NotFoundError,
    FamilyOffError,
    FamilyEmptyError,
    FamilyDeletedError,
    ModelOffError,
    ModelDeletedError,
    ModelDiscardedError,
    ModelUnavailableError,
)


@dataclass(frozen=True, slots=True)
class _Question:
    """A request that may be scored, and who may answer it: the one asked for first."""

    prepared: Prepared
    candidates: tuple[Answerer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """One request on its way from acceptance to settlement."""

    caller: Caller
    route: str
    prepared: Prepared
    payload_sha256: str
    key: str | None
    encode: Encode
    asked: Answerer
    attempts: Attempts


class DecisionService:
    """Answers decide requests: accounted for, stored and replayed.

    Parameters
    ----------
    models : ModelRegistry
        Who answers.
    operations : OperationLog
        Accepts, settles and releases.
    allowance : TokenAllowance
        Input tokens that a caller may send in a minute.
    deadline_s : float
        Seconds after which a request without an answer ends.
    stores_by_default : bool
        Whether a decision is stored when its request does not say.
    tuned : TunedCalls, optional
        Who answers calls to families and numbers; without it there are base models alone.
    now : callable, optional
        Unix seconds.
    """

    def __init__(
        self,
        models: ModelRegistry,
        operations: OperationLog,
        allowance: TokenAllowance,
        *,
        deadline_s: float,
        stores_by_default: bool,
        tuned: TunedCalls | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._models = models
        self._operations = operations
        self._allowance = allowance
        self._deadline_s = deadline_s
        self._stores_by_default = stores_by_default
        self._tuned = tuned
        self._now = now
        self._running: set[asyncio.Task[Reply]] = set()

    async def decide(self, caller: Caller, payload: bytes, key: str | None) -> Reply:
        """Answer a request.

        Parameters
        ----------
        caller : Caller
            Who pays, and whose key it is.
        payload : bytes
            The JSON body.
        key : str or None
            The idempotency key.

        Raises
        ------
        steelyard.errors.SteelyardError
            When the request is refused or has no answer; ``operation`` is set when it was accepted.
        """
        decode = functools.partial(self._decode, is_keyed=key is not None)
        request, digest = await read_body(decode, payload)
        return await self.run(
            caller,
            route=DECIDE_ROUTE,
            request=request,
            payload_sha256=digest,
            key=key,
            encode=lambda answer: answer,
        )

    async def estimate(self, caller: Caller, payload: bytes) -> EstimateResponse:
        """Say what a request would cost at most; nothing runs, and nothing is held or counted.

        Raises
        ------
        steelyard.errors.SteelyardError
            When ``decide`` would refuse the request as it is.
        """
        return await self.quote(caller, await read_body(self.read, payload))

    async def playground(self, payload: bytes, address: str) -> DecideResponse:
        """Answer a request for nothing: no account, no key, nothing stored.

        Parameters
        ----------
        payload : bytes
            The JSON body.
        address : str
            What its input tokens are counted by.

        Raises
        ------
        steelyard.errors.SteelyardError
            When the request is refused or has no answer.
        """
        prepared = await read_body(lambda body: self.prepare(body, playground=True), payload)
        self._allowance.take_public(address, prepared.input_tokens)
        attempts = self._attempts(prepared, candidates_of(prepared, self._models))
        try:
            answer, _ = await attempts.run()
        except UnansweredError as unanswered:
            raise unanswered.error from unanswered
        except asyncio.CancelledError:
            attempts.abandon()
            raise
        return answer

    def prepare(
        self,
        payload: bytes | bytearray | Mapping[str, Any] | ValidRequest,
        *,
        playground: bool = False,
    ) -> Prepared:
        """Check a request and render it for the model it asks for.

        Parameters
        ----------
        payload : bytes, mapping or ValidRequest
            JSON in UTF-8, plain Python values, or a request that was read from another dialect.
        playground : bool, default False
            Hold it to the playground's bounds.

        Raises
        ------
        steelyard.errors.InvalidRequestError
            When fields are invalid; ``details`` has every one of them.
        steelyard.errors.NotFoundError
            When there is no such model.
        steelyard.errors.ImagesNotSupportedError, steelyard.errors.ContextTooLongError
            When the model cannot read it.
        """
        started = perf_counter()
        request = payload
        if not isinstance(request, ValidRequest):
            shape = PlaygroundRequest if playground else DecideRequest
            request = read_request(request, shape=shape)
        if playground and request.model is not None and self._models.find(request.model) is None:
            raise not_in_playground(request.model, self._models.names)
        return self._models.get(request.model).decide.prepare_request(request, started=started)

    def read(self, payload: bytes | bytearray | Mapping[str, Any] | ValidRequest) -> Read:
        """Check a request, and render it where it names a base model.

        Parameters
        ----------
        payload : bytes, mapping or ValidRequest
            As ``prepare`` takes it.

        Returns
        -------
        Prepared or ValidRequest
            For ``run`` and ``quote``.

        Raises
        ------
        steelyard.errors.SteelyardError
            As ``prepare``; whether another name than a base model's is known, ``run`` tells.
        """
        started = perf_counter()
        request = payload if isinstance(payload, ValidRequest) else read_request(payload)
        hosted = self._models.find(request.model)
        if hosted is None and self._tuned is not None:
            return request
        hosted = hosted or self._models.get(request.model)
        return hosted.decide.prepare_request(request, started=started)

    async def quote(self, caller: Caller, request: Read) -> EstimateResponse:
        """Give the price of a request by every model that may answer it.

        Parameters
        ----------
        caller : Caller
            Whose families it may name.
        request : Prepared or ValidRequest
            From ``read``.

        Raises
        ------
        steelyard.errors.TooManyTokensError
            When the request has more input tokens than a caller may send in a minute.
        steelyard.errors.SteelyardError
            When it names what answers no calls.
        """
        question = await self._open(caller, request)
        prepared, candidates = question.prepared, question.candidates
        self._allowance.check(prepared.input_tokens)
        asked = candidates[0]
        return EstimateResponse(
            input_tokens=prepared.input_tokens,
            tokenizer=prepared.tokenizer,
            maximum_charge_usd=to_usd(quote_nano(prepared, asked, asked)),
            models=[
                ModelQuote(id=model.name, quote_usd=to_usd(quote_nano(prepared, asked, model)))
                for model in candidates
            ],
        )

    async def run(
        self,
        caller: Caller,
        *,
        route: str,
        request: Read,
        payload_sha256: str,
        key: str | None,
        encode: Encode,
    ) -> Reply:
        """Answer a request that was read: accept, score with fallback, settle.

        Parameters
        ----------
        caller : Caller
            Who pays, and whose key it is.
        route : str
            The route under which the key is kept, such as ``POST /v1/decide``.
        request : Prepared or ValidRequest
            From ``read``.
        payload_sha256 : str
            Hash of the decoded payload, which a repeated key must have again.
        key : str or None
            The idempotency key.
        encode : callable
            Turns the answer into what the route sends.

        Raises
        ------
        steelyard.errors.SteelyardError
            When the request is refused or has no answer; ``operation`` is set when it was accepted.
        """
        try:
            question = await self._open(caller, request)
            prepared, candidates = question.prepared, question.candidates
            self._allowance.take(caller, prepared.input_tokens)
        except SteelyardError:
            # What was answered under the key stays so, whatever became of the model since, and of
            # what the caller may still send in this minute.
            known = await self._operations.find(
                caller, route=route, key=key, payload_sha256=payload_sha256
            )
            if known is None:
                raise
            return known
        attempts = self._attempts(prepared, candidates)
        if key is None:
            # With a key the answer may be there already, so the log is asked first.
            _check_room(prepared, candidates)
        run = _Run(
            caller=caller,
            route=route,
            prepared=prepared,
            payload_sha256=payload_sha256,
            key=key,
            encode=encode,
            asked=candidates[0],
            attempts=attempts,
        )
        task = asyncio.create_task(self._operate(run), name="steelyard-decide")
        self._running.add(task)
        task.add_done_callback(self._forget)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if key is None:
                attempts.abandon()
            raise

    async def drain(self, timeout_s: float) -> bool:
        """Wait for requests that nobody waits for any more; gives whether all ended in time."""
        if not self._running:
            return True
        _, pending = await asyncio.wait(tuple(self._running), timeout=timeout_s)
        return not pending

    async def _operate(self, run: _Run) -> Reply:
        accepted = await self._operations.accept(
            run.caller,
            route=run.route,
            key=run.key,
            payload_sha256=run.payload_sha256,
            model=run.asked.name,
            reserved_nano=quote_nano(run.prepared, run.asked, run.asked),
        )
        if isinstance(accepted, Reply):
            return accepted
        try:
            answer, model = await run.attempts.run()
            amount_nano = min(quote_nano(run.prepared, run.asked, model), accepted.reserved_nano)
            answer = self._account_for(answer, accepted, amount_nano, run.prepared.request)
            body = msgspec.json.encode(run.encode(answer))
        except UnansweredError as unanswered:
            error = unanswered.error
            await self._release(accepted, error, is_terminal=unanswered.has_begun)
            raise error from unanswered
        except InvalidRequestError as error:
            # The request was at fault after all: it is refused as if it had not been accepted.
            await self._release(accepted, error, is_terminal=False)
            raise
        except asyncio.CancelledError as error:
            # The loop is ending. Nothing was answered, so the key is free again.
            await self._release(accepted, error, is_terminal=False)
            raise
        except Exception as error:
            _log.exception("Operation %s failed.", accepted.operation_id)
            fault = InternalError(
                "This server failed and logged why; nothing was charged. Tell whoever runs it."
            )
            await self._release(accepted, fault, is_terminal=True)
            raise fault from error
        decision = _stored_decision(accepted.account_id, self._now(), run.prepared, answer)
        reply = await self._operations.settle(
            accepted,
            amount_nano=amount_nano,
            body=body,
            decision=decision if answer.stored else None,
        )
        self._note_use(accepted.account_id, run.asked, model)
        return reply

    async def _open(self, caller: Caller, request: Read) -> _Question:
        """Find who may answer; what names base models alone waits for nothing."""
        fallback = request.request.fallback if isinstance(request, Prepared) else request.fallback
        tuned: Mapping[str, Answerer] = NO_TUNED
        if self._tuned is not None and not isinstance(fallback, str):
            tuned = await self._find_listed(caller, self._tuned, fallback)
        if isinstance(request, Prepared):
            return _Question(request, candidates_of(request, self._models, tuned))
        started = perf_counter()
        if self._tuned is None or request.model is None:
            prepared = self.prepare(request)
        else:
            asked = await self._tuned.find(caller, request.model)
            # Off the event loop: the context may be long.
            prepared = await asyncio.to_thread(asked.prepare, request, started)
            tuned = {**tuned, request.model: asked}
        return _Question(prepared, candidates_of(prepared, self._models, tuned))

    async def _find_listed(
        self, caller: Caller, calls: TunedCalls, names: Iterable[str]
    ) -> dict[str, Answerer]:
        found: dict[str, Answerer] = {}
        for name in dict.fromkeys(names):
            if self._models.find(name) is None:
                with suppress(*_NO_ANSWERER):
                    found[name] = await calls.find(caller, name)
        return found

    def _note_use(self, account_id: str, *used: Answerer) -> None:
        for name in {one.name for one in used if isinstance(one, TunedCall)}:
            assert self._tuned is not None  # noqa: S101  it gave the call
            self._tuned.note_use(account_id, name)

    def _account_for(
        self, answer: DecideResponse, accepted: Accepted, amount_nano: int, request: ValidRequest
    ) -> DecideResponse:
        charge = Charge(
            operation_id=accepted.operation_id,
            amount_usd=to_usd(amount_nano),
            reserved_usd=to_usd(accepted.reserved_nano),
        )
        stored = self._stores_by_default if request.store is None else request.store
        return msgspec.structs.replace(answer, charge=charge, stored=stored)

    async def _release(
        self, accepted: Accepted, error: BaseException, *, is_terminal: bool
    ) -> None:
        """Free the hold. Terminal: the key keeps the error, which is marked so."""
        kept = error if is_terminal and isinstance(error, SteelyardError) else None
        try:
            await self._operations.release(accepted, kept)
        except StorageUnavailableError:
            # The log frees the hold as soon as it can; until then the key's request has no end.
            _log.exception("The end of operation %s could not be written.", accepted.operation_id)
            if kept is not None:
                kept.operation = Operation(accepted.operation_id, "pending")

    def _attempts(self, prepared: Prepared, candidates: tuple[Answerer, ...]) -> Attempts:
        return Attempts(prepared, candidates, prepared.started + self._deadline_s)

    def _decode(self, payload: bytes, *, is_keyed: bool) -> tuple[Read, str]:
        value = decode_json(payload)
        # Only a key is ever compared by its payload.
        return self.read(value), payload_sha256(value) if is_keyed else ""

    def _forget(self, task: asyncio.Task[Reply]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # told by now, or nobody is there to be told


def _check_room(prepared: Prepared, candidates: tuple[Answerer, ...]) -> None:
    """Refuse a request before it is accepted when no model could begin it."""
    refusal: EngineUnavailableError | None = None
    for model in candidates:
        try:
            model.check_room(prepared.rendered)
        except EngineUnavailableError as error:
            refusal = refusal or error
        else:
            return
    if refusal is not None:
        raise refusal


def _stored_decision(
    account_id: str, now: float, prepared: Prepared, answer: DecideResponse
) -> StoredDecision:
    request = prepared.request
    asked: dict[str, Any] = {
        "context": request.context,
        "decisions": [_as_sent(decision) for decision in request.decisions],
    }
    if request.temperature is not None:
        asked["temperature"] = request.temperature
    return StoredDecision(
        id=answer.id,
        account_id=account_id,
        created_at=now,
        model=answer.model,
        version=answer.version if isinstance(answer.version, str) else None,
        request=msgspec.json.encode(asked),
        results=msgspec.json.encode(answer.decisions),
        metadata=msgspec.json.encode(request.metadata) if request.metadata else None,
        outcome_names={
            decision.id: list(decision.outcomes.names) for decision in request.decisions
        },
        total_ms=answer.timing_ms.get("total"),
    )


def _as_sent(decision: Decision) -> dict[str, Any]:
    """Give a decision in the one form that any valid spelling of it has; its policy is left out."""
    names, descriptions = decision.outcomes.names, decision.outcomes.descriptions
    sent: dict[str, Any] = {
        "id": decision.id,
        "kind": decision.kind,
        "question": decision.question,
    }
    if decision.kind == "ordinal":
        return {**sent, "outcomes": list(names), "rubric": list(descriptions)}
    return {**sent, "outcomes": dict(zip(names, descriptions, strict=True))}
