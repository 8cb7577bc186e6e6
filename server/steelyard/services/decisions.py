"""The paid decide use case: hold, score with fallback, settle and store, exactly once per key.

What ``decide`` and the compatibility routes share is ``run``. Its order: the token allowance, then
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
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import msgspec

from steelyard.billing.money import to_usd
from steelyard.decisions.kinds import Decision
from steelyard.decisions.validation import ValidRequest, read_request
from steelyard.errors import (
    EngineUnavailableError,
    InternalError,
    InvalidRequestError,
    Operation,
    SteelyardError,
    StorageUnavailableError,
)
from steelyard.services.allowance import TokenAllowance
from steelyard.services.bodies import read_body
from steelyard.services.caller import Caller
from steelyard.services.decide import Prepared, not_in_playground
from steelyard.services.fallback import Attempts, UnansweredError, candidates_of, quote_nano
from steelyard.services.models import HostedModel, ModelRegistry
from steelyard.services.operations import Accepted, OperationLog, payload_sha256
from steelyard.services.reply import Reply
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """One request on its way from acceptance to settlement."""

    caller: Caller
    route: str
    prepared: Prepared
    payload_sha256: str
    key: str | None
    encode: Encode
    asked: HostedModel
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
        now: Callable[[], float] = time.time,
    ) -> None:
        self._models = models
        self._operations = operations
        self._allowance = allowance
        self._deadline_s = deadline_s
        self._stores_by_default = stores_by_default
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
        prepared, digest = await read_body(self._read, payload)
        return await self.run(
            caller,
            route=DECIDE_ROUTE,
            request=prepared,
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
        del caller  # prices and allowances are the same for everyone
        return self.quote(await read_body(self.prepare, payload))

    async def playground(self, payload: bytes) -> DecideResponse:
        """Answer a request for nothing: no account, no key, nothing stored.

        Raises
        ------
        steelyard.errors.SteelyardError
            When the request is refused or has no answer.
        """
        prepared = await read_body(lambda body: self.prepare(body, playground=True), payload)
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

    def quote(self, prepared: Prepared) -> EstimateResponse:
        """Give the price of a request by every model that may answer it.

        Raises
        ------
        steelyard.errors.TooManyTokensError
            When the request has more input tokens than a caller may send in a minute.
        """
        self._allowance.check(prepared.input_tokens)
        candidates = candidates_of(prepared, self._models)
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
        request: Prepared,
        payload_sha256: str,
        key: str | None,
        encode: Encode,
    ) -> Reply:
        """Answer a prepared request: accept, score with fallback, settle.

        Parameters
        ----------
        caller : Caller
            Who pays, and whose key it is.
        route : str
            The route under which the key is kept, such as ``POST /v1/decide``.
        request : Prepared
            From ``prepare``.
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
        candidates = candidates_of(request, self._models)
        attempts = self._attempts(request, candidates)
        self._allowance.take(caller, request.input_tokens)
        if key is None:
            # With a key the answer may be there already, so the log is asked first.
            _check_room(request, candidates)
        run = _Run(
            caller=caller,
            route=route,
            prepared=request,
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
        return await self._operations.settle(
            accepted,
            amount_nano=amount_nano,
            body=body,
            decision=decision if answer.stored else None,
        )

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

    def _attempts(self, prepared: Prepared, candidates: tuple[HostedModel, ...]) -> Attempts:
        return Attempts(prepared, candidates, prepared.started + self._deadline_s)

    def _read(self, payload: bytes) -> tuple[Prepared, str]:
        value = decode_json(payload)
        return self.prepare(value), payload_sha256(value)

    def _forget(self, task: asyncio.Task[Reply]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # told by now, or nobody is there to be told


def _check_room(prepared: Prepared, candidates: tuple[HostedModel, ...]) -> None:
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
