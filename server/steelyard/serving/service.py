"""The paid decide use case: hold, score with fallback, settle and store, exactly once per key.

The compatibility routes decide here too. The order: the models that may answer, where they are no base
models, then the token allowance, then acceptance (one transaction: the key, the credit, the hold), then
scoring, then settlement (one transaction: the charge, the stored decision, the answer kept for the
key). A refusal up to and with acceptance leaves the key free; so does one by a full queue or by an
engine that could not be reached, since nothing ran. Any other failure after acceptance is terminal: the
hold is released, and the key answers with that failure from then on.

From acceptance on the work is a task of its own. A caller that goes away cannot stop it half-way:
without a key it is given up while it waits, with one it ends and its answer is kept.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import cast

import msgspec
from msgspec import UNSET, Struct

from steelyard import errors
from steelyard.accounts.rate_limits import TokenAllowance
from steelyard.caller import Caller
from steelyard.decisions.named import NamedRequest
from steelyard.decisions.validation import ValidRequest
from steelyard.decisions.wire import (
    FEATURES,
    Charge,
    DecideResponse,
    EstimateResponse,
    ModelQuote,
    Storing,
)
from steelyard.errors.kinds import UnprocessableError
from steelyard.ledger.money import to_usd
from steelyard.operations.service import OperationLog
from steelyard.operations.write import Write
from steelyard.operations.writes import Accepted, FurtherWrite
from steelyard.scoring.shares import Share
from steelyard.serving.decide import Prepared
from steelyard.serving.fallback import (
    NO_TUNED,
    OFF,
    Answerer,
    Attempts,
    OffCall,
    Resolver,
    TunedAnswerer,
    UnansweredError,
    candidates_of,
    charge_nano,
    quote_nano,
    reserve_nano,
)
from steelyard.serving.floods import Floods
from steelyard.serving.refusals import not_in_playground
from steelyard.serving.registry import HostedModel, ModelRegistry
from steelyard.wire.storing import STORE_SETTINGS, StoreSetting

_log = logging.getLogger(__name__)

#: Makes the write that stores an answer: whose it is, when it was given, its request, the answer.
RecordAnswer = Callable[[Caller, float, ValidRequest, DecideResponse], FurtherWrite]

#: Returns the request of an account's named decision about a context.
OpenNamed = Callable[[str, NamedRequest], Awaitable[ValidRequest]]

#: What a request says of storing, and the setting that is as strict.
_SETTINGS: Mapping[Storing, StoreSetting] = {True: "on", FEATURES: FEATURES, False: "off"}
_STORING = {setting: storing for storing, setting in _SETTINGS.items()}
#: Input tokens of an unpaid request.
PLAYGROUND_TOKENS = 4_096
#: Why a name in a list of fallbacks answers no calls.
_NO_ANSWERER = (
    errors.NotFoundError,
    errors.FamilyOffError,
    errors.FamilyEmptyError,
    errors.FamilyDeletedError,
    errors.ModelOffError,
    errors.ModelDeletedError,
    errors.ModelDiscardedError,
    errors.ModelUnavailableError,
)


@dataclass(frozen=True, slots=True)
class _Read:
    """A request, rendered where it names a base model; any other once its name is resolved."""

    request: ValidRequest
    hosted: HostedModel | None = None
    prepared: Prepared | None = None


@dataclass(frozen=True, slots=True)
class _Question:
    """A request that may be scored, and who may answer it: the one asked for first."""

    prepared: Prepared
    candidates: tuple[Answerer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """One request on its way from acceptance to settlement."""

    write: Write
    prepared: Prepared
    to_wire: Callable[[DecideResponse], Struct]
    candidates: tuple[Answerer, ...]
    attempts: Attempts

    @property
    def requested(self) -> Answerer:
        """The model asked for."""
        return self.candidates[0]


def _as_it_is(answer: DecideResponse) -> Struct:
    return answer


class DecisionService:
    """Answers decide requests: accounted for, stored and replayed."""

    def __init__(
        self,
        models: ModelRegistry,
        operations: OperationLog,
        allowance: TokenAllowance,
        *,
        deadline_s: float,
        storing: str,
        record: RecordAnswer | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._models = models
        self._operations = operations
        self._allowance = allowance
        self._deadline_s = deadline_s
        self._storing = cast("StoreSetting", storing)
        self._record = record
        self._tuned: Resolver | None = None
        self._now = now
        self._open_named: OpenNamed | None = None
        self._running: set[asyncio.Task[Struct]] = set()
        self._floods = Floods()

    def register_tuned(self, tuned: Resolver) -> None:
        """Register the finder of tuned models, which stand above serving."""
        self._tuned = tuned

    def register_record(self, record: RecordAnswer) -> None:
        """Register the store of answers."""
        self._record = record

    def register_named(self, open_named: OpenNamed) -> None:
        """Register the finder of named decisions, which stand above serving."""
        self._open_named = open_named

    def check_flood(self, caller: Caller) -> None:
        """Refuse a caller, before anything is read, whose last request found no room yet."""
        if caller.account_id in self._floods.by_account:
            self._floods.check(caller.account_id)

    async def decide(
        self,
        write: Write,
        request: ValidRequest | NamedRequest,
        to_wire: Callable[[DecideResponse], Struct] = _as_it_is,
    ) -> Struct:
        """Answer a request: accept, score with fallback, settle; raise ``Replay`` for a key's own answer."""
        if isinstance(request, NamedRequest):
            try:
                request = await self._find_named(write.caller, request)
            except errors.SteelyardError:
                await self._operations.replay_known(write)
                raise
        storing = self._storing_of(write.caller, request)
        if storing is not True and storing != request.store:
            request = replace(request, store=storing)
        read = await self._read(request)
        try:
            question = await self._open(write.caller, read)
            prepared, candidates = question.prepared, question.candidates
            prepared = replace(prepared, share=Share(write.caller.account_id))
            path = prepared.request.context_path
            await self._allowance.take(write.caller, prepared.input_tokens, path)
        except errors.SteelyardError:
            # What was answered under the key stays so, whatever became of the model since, and of
            # what the caller may still send in this minute.
            await self._operations.replay_known(write)
            raise
        check_room = partial(_check_room, prepared, candidates)
        try:
            return await self._run(write, prepared, candidates, to_wire)
        except errors.EngineUnavailableError as refusal:
            # One that hangs has its own wait, and others here may answer.
            if not any(model.hangs for model in candidates):
                try:
                    check_room()
                except errors.EngineUnavailableError:
                    self._floods.note(write.caller.account_id, refusal, check_room)
            raise

    async def _run(
        self,
        write: Write,
        prepared: Prepared,
        candidates: tuple[Answerer, ...],
        to_wire: Callable[[DecideResponse], Struct],
    ) -> Struct:
        """Answer a request that has been prepared."""
        attempts = self._attempts(prepared, candidates, write.route)
        if write.key is None:
            # With a key the answer may be there already, so the log is asked first.
            _check_room(prepared, candidates)
        run = _Run(
            write=write,
            prepared=prepared,
            to_wire=to_wire,
            candidates=candidates,
            attempts=attempts,
        )
        task = asyncio.create_task(self._operate(run), name="steelyard-decide")
        self._running.add(task)
        task.add_done_callback(self._forget)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if write.key is None:
                attempts.abandon()
            raise

    async def playground(self, request: ValidRequest, address: str) -> DecideResponse:
        """Answer a request free of charge: no account, no key, nothing stored."""
        hosted = self._models.find(request.model)
        if hosted is None:
            raise not_in_playground(str(request.model), self._models.names)
        # Anybody may use it, and every call of a priced connected model costs the operator.
        free = [
            model.name
            for model in self._models.hosted
            if not model.price_nano or not model.is_connected
        ]
        if hosted.name not in free:
            raise not_in_playground(hosted.name, free)
        prepared = await _prepare(hosted, request, max_input_tokens=PLAYGROUND_TOKENS)
        prepared = replace(prepared, share=Share(address, is_public=True))
        await self._allowance.take_public(address, prepared.input_tokens)
        candidates = candidates_of(prepared, self._models)
        attempts = self._attempts(
            prepared, tuple(model for model in candidates if model.name in free)
        )
        try:
            answer, _ = await attempts.run()
        except UnansweredError as unanswered:
            raise unanswered.error from unanswered
        except asyncio.CancelledError:
            attempts.abandon()
            raise
        return answer

    async def estimate(
        self, caller: Caller, request: ValidRequest | NamedRequest
    ) -> EstimateResponse:
        """Return the price of a request by every model that may answer it; nothing runs."""
        if isinstance(request, NamedRequest):
            request = await self._find_named(caller, request)
        question = await self._open(caller, await self._read(request))
        prepared, candidates = question.prepared, question.candidates
        self._allowance.check(prepared.input_tokens, prepared.request.context_path)
        requested = candidates[0]
        return EstimateResponse(
            input_tokens=prepared.input_tokens,
            tokenizer=prepared.tokenizer,
            maximum_charge_usd=to_usd(reserve_nano(prepared, candidates)),
            models=[
                ModelQuote(id=model.name, quote_usd=to_usd(quote_nano(prepared, requested, model)))
                for model in candidates
                if not isinstance(model, OffCall)
            ],
        )

    async def drain(self, timeout_s: float) -> bool:
        """Wait for requests whose callers are gone; return whether all ended in time."""
        if not self._running:
            return True
        _, pending = await asyncio.wait(tuple(self._running), timeout=timeout_s)
        return not pending

    async def _operate(self, run: _Run) -> Struct:
        named = run.prepared.request.named
        accepted = await self._operations.accept(
            run.write,
            model=run.requested.name,
            reserved_nano=reserve_nano(run.prepared, run.candidates),
            input_tokens=run.prepared.input_tokens,
            n_decisions=len(run.prepared.request.decisions),
            named=None if named is None else named.reference,
        )
        try:
            answer, model = await run.attempts.run()
            due_nano = charge_nano(run.prepared, run.requested, model, answer, run.attempts.unsure)
            amount_nano = min(due_nano, accepted.reserved_nano)
            answer = self._account_for(answer, accepted, amount_nano, run.prepared.request)
            payload = run.to_wire(answer)
            body = run.write.encode(payload)
        except UnansweredError as unanswered:
            error = unanswered.error
            await self._release(accepted, error, is_terminal=unanswered.has_begun)
            raise error from unanswered
        except UnprocessableError as error:
            # The request was at fault after all: it is refused as if it had not been accepted.
            await self._release(accepted, error, is_terminal=False)
            raise
        except asyncio.CancelledError as error:
            # The loop is ending. Nothing was answered, so the key is free again.
            await self._release(accepted, error, is_terminal=False)
            raise
        except Exception as error:
            _log.exception("Operation %s failed.", accepted.operation_id)
            fault = errors.InternalError(
                "This server failed and logged why; nothing was charged. Tell whoever runs it."
            )
            await self._release(accepted, fault, is_terminal=True)
            raise fault from error
        caller, also = run.write.caller, None
        if answer.stored and self._record is not None:
            stored = answer
            if answer.explanation is not UNSET:
                stored = msgspec.structs.replace(answer, explanation=UNSET, thoughts=UNSET)
            also = self._record(caller, self._now(), run.prepared.request, stored)
        await self._operations.settle(accepted, amount_nano=amount_nano, body=body, also=also)
        if caller.session is None:  # a call from the console is no production use
            self._note_use(caller.account_id, run.requested, model)
        return payload

    async def _find_named(self, caller: Caller, request: NamedRequest) -> ValidRequest:
        if self._open_named is None:
            raise errors.NotFoundError(
                "This server has no named decisions; send decisions instead."
            )
        return await self._open_named(caller.account_id, request)

    async def _read(self, request: ValidRequest) -> _Read:
        """Render a request where it names a base model; whether another name is known, see _open."""
        hosted = self._models.find(request.model)
        if hosted is None and self._tuned is not None:
            return _Read(request)
        hosted = hosted or self._models.get(request.model)
        return _Read(request, hosted, await _prepare(hosted, request))

    async def _open(self, caller: Caller, read: _Read) -> _Question:
        """Find the models that may answer; a request for base models alone needs no look-up."""
        request, fallback = read.request, read.request.fallback
        tuned: Mapping[str, Answerer] = NO_TUNED
        if self._tuned is not None and not isinstance(fallback, str):
            tuned = await self._find_listed(caller, self._tuned, fallback)
        if read.prepared is not None:
            candidates = candidates_of(read.prepared, self._models, tuned, read.hosted)
            return _Question(read.prepared, candidates)
        started = perf_counter()
        # Only a name that no base model has is looked up, and only where there are tuned ones.
        assert self._tuned is not None and request.model is not None  # noqa: PT018, S101
        requested = await self._find_answerer(caller, self._tuned, request.model, fallback)
        # Off the event loop: the context may be long.
        prepared = await asyncio.to_thread(requested.prepare, request, started)
        tuned = {**tuned, request.model: requested}
        candidates = candidates_of(prepared, self._models, tuned)
        if candidates == (requested,) and isinstance(requested, OffCall):
            raise requested.refusal
        return _Question(prepared, candidates)

    async def _find_answerer(
        self, caller: Caller, calls: Resolver, name: str, fallback: str | tuple[str, ...]
    ) -> TunedAnswerer:
        """Return who answers calls to a name; one that is off keeps its place before a list."""
        try:
            return await calls.find(caller, name)
        except OFF as refusal:
            base = self._models.find(await calls.base_of(caller, name))
            if isinstance(fallback, str) or base is None:
                raise
            return OffCall(name, base, refusal)

    async def _find_listed(
        self, caller: Caller, calls: Resolver, names: Iterable[str]
    ) -> dict[str, Answerer]:
        answerers: dict[str, Answerer] = {}
        for name in dict.fromkeys(names):
            if self._models.find(name) is None:
                with suppress(*_NO_ANSWERER):
                    answerers[name] = await calls.find(caller, name)
        return answerers

    def _note_use(self, account_id: str, *used: Answerer) -> None:
        if self._tuned is None:
            return
        for model in dict.fromkeys(used):
            if not isinstance(model, OffCall | HostedModel):
                self._tuned.note_use(account_id, model.name)

    def _account_for(
        self, answer: DecideResponse, accepted: Accepted, amount_nano: int, request: ValidRequest
    ) -> DecideResponse:
        charge = Charge(
            operation_id=accepted.operation_id,
            amount_usd=to_usd(amount_nano),
            reserved_usd=to_usd(accepted.reserved_nano),
        )
        explanation, thoughts = answer.explanation, answer.thoughts
        book = request.rulebook
        rule = None if book is None else book.decide(answer.decisions, request.fields)
        if request.store == FEATURES and explanation is not UNSET:
            # An answer is kept for its idempotency key.
            explanation = {
                name: [msgspec.structs.replace(part, text="") for part in parts]
                for name, parts in explanation.items()
            }
            thoughts = thoughts and {
                name: msgspec.structs.replace(thought, text="")
                for name, thought in thoughts.items()
            }
        return msgspec.structs.replace(
            answer,
            charge=charge,
            stored=request.store is not False,
            decision=request.named or UNSET,
            rule=rule or UNSET,
            explanation=explanation,
            thoughts=thoughts,
        )

    def _storing_of(self, caller: Caller, request: ValidRequest) -> Storing:
        """Return how an answer is stored: as the strictest of request, decision, key, account and server says."""
        wish = self._storing if request.store is None else _SETTINGS[request.store]
        # A server that stores nothing by default stores what a request asks it to.
        server: StoreSetting = FEATURES if self._storing == FEATURES else "on"
        limits: tuple[StoreSetting, ...] = (wish, server, request.store_limit, caller.store)
        return _STORING[max(limits, key=STORE_SETTINGS.index)]

    async def _release(
        self, accepted: Accepted, error: BaseException, *, is_terminal: bool
    ) -> None:
        """Free the hold; a terminal error stays with the idempotency key."""
        terminal_error = error if is_terminal and isinstance(error, errors.SteelyardError) else None
        try:
            await self._operations.release(accepted, terminal_error)
        except (errors.DataDamagedError, errors.StorageUnavailableError):
            # The log frees the hold as soon as it can; until then the key's request stays pending.
            _log.exception("The end of operation %s could not be written.", accepted.operation_id)
            if terminal_error is not None:
                terminal_error.operation = errors.Operation(accepted.operation_id, "pending")

    def _attempts(
        self, prepared: Prepared, candidates: tuple[Answerer, ...], route: str = ""
    ) -> Attempts:
        return Attempts(prepared, candidates, prepared.started + self._deadline_s, route)

    def _forget(self, task: asyncio.Task[Struct]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # reported by now, or its caller is gone


async def _prepare(
    hosted: HostedModel, request: ValidRequest, *, max_input_tokens: int | None = None
) -> Prepared:
    prepare = partial(hosted.decide.prepare_request, request, max_input_tokens=max_input_tokens)
    return await asyncio.to_thread(prepare) if request.is_long else prepare()


def _check_room(prepared: Prepared, candidates: tuple[Answerer, ...]) -> None:
    """Refuse a request before it is accepted when no model could begin it."""
    refusal: errors.SteelyardError | None = None
    for model in candidates:
        try:
            model.check_room(prepared)
        except (errors.EngineUnavailableError, *OFF) as error:
            refusal = refusal or error
        else:
            return
    if refusal is not None:
        raise refusal
