"""Requests to one judge: its process is started when one comes, watched, and replaced when it ends."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import numpy as np

from steelyard.decisions.kinds import BINARY_NAMES
from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.decisions.statements import guidance_of, read_decision
from steelyard.errors import ContextTooLongError
from steelyard.recent import Recent
from steelyard.scoring.protocol import Thought
from steelyard.serving.connected.answers import (
    Probabilities,
    UnusableAnswerError,
    context_refusal,
    member,
)
from steelyard.serving.connected.breaker import RemoteFailureError
from steelyard.serving.connected.chat import check_mass
from steelyard.serving.connected.declared import ConnectedModel
from steelyard.serving.connected.systemone import SystemOneWire
from steelyard.serving.judge import prompts
from steelyard.serving.judge.asking import Asker
from steelyard.serving.judge.evidence import NEUTRAL_CONTEXTS, Evidence, Judgement, judge
from steelyard.serving.judge.gguf import read_header
from steelyard.serving.judge.pool import JudgePool
from steelyard.serving.judge.process import JudgeOptions, JudgeProcess

if TYPE_CHECKING:  # slow to import
    import httpx

_log = logging.getLogger(__name__)
_Answer = TypeVar("_Answer")

#: Likeliest tokens that are read.
_TOP = 64
#: Seconds between two looks at a process, for its answer when it works, and unused until it ends.
_LOOK_S, HUNG_S, _IDLE_S = 1.0, 30.0, 900.0
#: Seconds before a process that ended without an answer is replaced: doubled, up to the second.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 60.0
#: Seconds of a pause that a request waits; a longer one refuses it.
_PATIENCE_S = 2.0
#: Seconds that an unused connection stays open: the process closes one after five.
_KEEP_OPEN_S = 2.0
#: Stands for the user's message while the template is split around it.
_MARK = "STEELYARD-MESSAGE"


@dataclass(eq=False, slots=True)
class _Run:
    """One run of the process, and the facts of its model."""

    process: JudgeProcess
    client: httpx.AsyncClient
    head: list[int] = field(default_factory=list)
    tail: list[int] = field(default_factory=list)
    is_decision_model: bool = False
    n_answers: int = 0
    #: Slots that no request has, and the context that each read last.
    free: list[int] = field(default_factory=list)
    contexts: dict[int, str] = field(default_factory=dict)

    def take_slot(self, context: str) -> int:
        """Return a free slot: one that has read the context, or the one unused for longest."""
        place = next(
            (n for n, slot in enumerate(self.free) if self.contexts.get(slot) == context), 0
        )
        slot = self.free.pop(place)
        self.contexts[slot] = context
        return slot


@dataclass(frozen=True, slots=True)
class _Reading:
    """A slot that has read a text: further prompts cost their own tokens alone."""

    engine: JudgeEngine
    run: _Run
    slot: int
    tokens: list[int]

    def further(self, tokens: list[int]) -> _Reading:
        """Return the reading of the text and what follows it."""
        return replace(self, tokens=[*self.tokens, *tokens])

    async def next_token(self, question: str) -> Any:
        """Return the likeliest next tokens after a question."""
        answer = await self._complete(question, n_predict=1, n_probs=_TOP)
        return member(member(member(answer, "completion_probabilities"), 0), "top_logprobs")

    async def write(self, question: str, max_tokens: int) -> tuple[str, int]:
        """Return what the model writes after a question, and how many tokens that is."""
        answer = await self._complete(question, n_predict=max_tokens)
        return str(member(answer, "content")), int(member(answer, "tokens_predicted"))

    async def _complete(self, question: str, **options: Any) -> Any:
        engine, run = self.engine, self.run
        prompt = [*self.tokens, *await engine.tokens(run, question), *run.tail]
        body = {"prompt": prompt, "temperature": 0, "cache_prompt": True, "id_slot": self.slot}
        answer = await engine.send(run, "POST", "/completion", {**body, **options})
        engine.n_evaluated_tokens += int(member(member(answer, "timings"), "prompt_n"))
        return answer


class JudgeEngine:
    """Where the requests of one judge go; for one event loop."""

    def __init__(
        self, name: str, model: ConnectedModel, file: Path, pool: JudgePool, *, threads: int = 0
    ) -> None:
        self.name = name
        self._file = file
        self._pool = pool
        self._orders = model.orders
        self._keeps_warm = model.warm
        self._takes_leanings = model.contextual
        self._writes_opposites = model.own_opposites
        self._think = model.think
        self._room = model.room
        self._known: Recent[RenderedDecision, Probabilities] = Recent()
        self._opposites: Recent[str, str] = Recent()
        self._options = JudgeOptions(
            file=str(file),
            context_tokens=model.context_tokens,
            slots=model.concurrency,
            threads=model.threads or threads,
            gpu_layers=model.gpu_layers,
        )
        self._places = asyncio.Semaphore(model.concurrency)
        self._run: _Run | None = None
        self._process: JudgeProcess | None = None
        self._starting: asyncio.Task[_Run] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._pause_s = _FIRST_PAUSE_S
        self._start_after = 0.0
        self._n_running = 0
        self.n_requests = 0
        #: Prompt tokens that were computed and not found in the cache.
        self.n_evaluated_tokens = 0
        self.used_at = time.monotonic()

    @property
    def is_idle(self) -> bool:
        """Whether it runs and no request needs it."""
        return self._run is not None and not self._n_running

    @property
    def pid(self) -> int | None:
        """Id of its process while that runs."""
        return None if self._process is None else self._process.pid

    async def post(self, path: str, body: RenderedRequest) -> list[Judgement]:  # noqa: ARG002
        """Return the probabilities of every decision of a request."""
        self.n_requests += 1
        return await self._answered(lambda run: self._score(run, body))

    async def gather(self, request: RenderedRequest) -> list[Evidence]:
        """Return the model's evidence on every decision of a request, before it is weighed."""
        return await self._answered(lambda run: self._gather(run, request))

    async def ask(self, context: str, questions: Sequence[str]) -> list[Any]:
        """Return the likeliest next tokens after each prompt about a context, which is read once."""

        async def ask(run: _Run) -> list[Any]:
            async with self._reading(run, context) as reading:
                return [await reading.next_token(question) for question in questions]

        return await self._answered(ask)

    async def write(self, messages: list[dict[str, str]], max_tokens: int) -> str:
        """Return the model's text after messages."""
        return await self._answered(lambda run: self._write(run, messages, max_tokens))

    async def _write(self, run: _Run, messages: list[dict[str, str]], max_tokens: int) -> str:
        body = {
            "messages": messages,
            "max_tokens": max_tokens,
            "temperature": 0,
            "id_slot": self._options.slots,  # no request's
            "chat_template_kwargs": {"enable_thinking": False},
        }
        answer = await self.send(run, "POST", "/v1/chat/completions", body)
        return str(member(member(member(member(answer, "choices"), 0), "message"), "content"))

    async def warm_up(self) -> None:
        """Load the model before a request comes; a failure is logged."""
        try:
            await self._running()
        except RemoteFailureError as error:
            _log.warning("%s", error.message)

    async def close(self) -> None:
        """End the process."""
        if self._process is not None and self._run is None:
            self._process.kill()  # it still loads
        if self._starting is not None:
            self._starting.cancel()
        await self.unload()

    async def unload(self) -> None:
        """End the process; the next request starts another."""
        run, self._run = self._run, None
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None
        if run is not None:
            await self._end(run)

    async def _end(self, run: _Run) -> None:
        self._pool.release(self)
        await asyncio.shield(
            asyncio.gather(asyncio.to_thread(run.process.stop), run.client.aclose())
        )

    async def _answered(self, ask: Callable[[_Run], Awaitable[_Answer]]) -> _Answer:
        """Ask, and once more where the process or the connection to it ends meanwhile."""
        async with self._places:
            self._n_running += 1
            self.used_at = time.monotonic()
            try:
                run = await self._running()
                try:
                    answer = await ask(run)
                except RemoteFailureError as error:
                    if error.answered is not None:
                        raise
                    await _ends(run.process)
                    run = await self._running()
                    answer = await ask(run)
                run.n_answers += 1
                self._pause_s = _FIRST_PAUSE_S
                return answer
            finally:
                self.used_at = time.monotonic()
                self._n_running -= 1

    async def _running(self) -> _Run:
        if self._run is not None:
            if self._run.process.is_running:
                return self._run
            await self._lost(self._run)
        if self._starting is None or self._starting.done():
            self._starting = asyncio.create_task(self._start())
            self._starting.add_done_callback(_look_at)
        # A request that is given up does not stop a pass that others wait for too.
        return await asyncio.shield(self._starting)

    async def _lost(self, run: _Run) -> None:
        """Note that a process ended by itself."""
        if self._run is not run:
            return
        self._run = None
        if not run.n_answers:
            self._pause_s = min(self._pause_s * 2, _LONGEST_PAUSE_S)
        self._start_after = time.monotonic() + self._pause_s
        _log.error(
            "The process of the judge %s ended; the next starts in %g s.", self.name, self._pause_s
        )
        if self._watching is not None and self._watching is not asyncio.current_task():
            self._watching.cancel()
        await self._end(run)

    async def _start(self) -> _Run:
        pause_s = self._start_after - time.monotonic()
        if pause_s > _PATIENCE_S:
            raise RemoteFailureError(
                f"The process of the judge {self.name} ended and starts again in {pause_s:.0f} s; send "
                "the request again after Retry-After, or name another model.",
                retry_after_s=pause_s,
                is_unreached=True,
            )
        await asyncio.sleep(max(pause_s, 0.0))
        header = await asyncio.to_thread(read_header, self._file)
        options = self._options
        await self._pool.reserve(self, header, options.context_tokens, options.slots)
        process = self._process = JudgeProcess(self.name, options)
        run: _Run | None = None
        try:
            await asyncio.to_thread(process.start)
            run = _Run(process, _client(process), free=list(range(options.slots)))
            await self._learn(run)
        except BaseException:
            self._pool.release(self)
            self._pause_s = min(self._pause_s * 2, _LONGEST_PAUSE_S)
            self._start_after = time.monotonic() + self._pause_s
            process.kill()
            await asyncio.to_thread(process.stop)
            if run is not None:
                await run.client.aclose()
            raise
        self._run = run
        self._watching = asyncio.create_task(self._watch(run))
        return run

    async def _learn(self, run: _Run) -> None:
        """Ask a new process for its model's facts and its message template."""
        try:
            await self.send(run, "POST", "/v1/systemone", {"state": "", "questions": {}})
        except RemoteFailureError as error:
            run.is_decision_model = error.answered != 501
        else:
            run.is_decision_model = True
        if run.is_decision_model:
            return
        body = {
            "messages": [{"role": "user", "content": _MARK}],
            "chat_template_kwargs": {"enable_thinking": False},
        }
        try:
            prompt = str(member(await self.send(run, "POST", "/apply-template", body), "prompt"))
        except RemoteFailureError:
            prompt = f"{_MARK}\n\nAnswer:"  # a model without a chat template
        head, mark, tail = prompt.partition(_MARK)
        if not mark:
            raise UnusableAnswerError(f"The chat template of {self.name} leaves messages out.")
        run.head = await self.tokens(run, head, is_own=True, begins=True)
        run.tail = await self.tokens(run, prompts.end_thinking(tail), is_own=True)

    async def _score(self, run: _Run, request: RenderedRequest) -> list[Judgement]:
        if run.is_decision_model:
            answers = await SystemOneWire(self.name).score(
                request, lambda path, body: self.send(run, "POST", path, body)
            )
            return [Judgement(probabilities) for probabilities in answers]
        gathered = await self._gather(run, request)
        for evidence in gathered:
            check_mass(evidence.mass)
        return [judge(evidence) for evidence in gathered]

    async def _gather(self, run: _Run, request: RenderedRequest) -> list[Evidence]:
        decisions, leanings = request.decisions, dict[RenderedDecision, Probabilities]()
        if self._writes_opposites:
            own = [await self._own_opposite(run, decision) for decision in decisions]
            decisions = tuple(
                replace(decision, opposite=opposite) if opposite else decision
                for decision, opposite in zip(decisions, own, strict=True)
            )
        elif self._takes_leanings:
            plain = [decision for decision in decisions if not decision.opposite]
            leanings = await self._leanings(run, plain)
        answers = []
        async with self._reading(run, request.context) as reading:
            for decision, given in zip(decisions, request.decisions, strict=True):
                complete = partial(
                    replace,
                    neutral=leanings.get(given),
                    is_own_opposite=decision.opposite != given.opposite,
                )
                answers.append(await self._decide(reading, decision, complete))
        return answers

    async def _decide(
        self,
        reading: _Reading,
        decision: RenderedDecision,
        complete: Callable[[Evidence], Evidence],
    ) -> Evidence:
        """Return the evidence on a decision: after a thought where the first answer is not sure."""
        think, process = self._think, reading.run.process
        began_ms = None if think is None else process.cpu_ms
        first = complete(await Asker(reading.next_token, self._orders).ask(decision))
        if think is None:
            return first
        check_mass(first.mass)
        first_ms, shares = process.cpu_ms, judge(first).probabilities
        first = replace(first, cpu_ms=_between(began_ms, first_ms))
        if shares.max() >= think.below:
            return first
        written, n_tokens = await reading.write(prompts.ask_to_think(decision), think.tokens)
        text = prompts.read_thought(written)
        if not text:
            return first
        # As data: control tokens in it are text. Spelled out, they may be more than were written.
        notes = await self.tokens(reading.run, prompts.as_notes(text))
        after = reading.further(notes[: think.tokens + prompts.NOTES_TOKENS])
        second = complete(await Asker(after.next_token, self._orders).ask(decision))
        ended_ms = process.cpu_ms
        thought = Thought(text, n_tokens, np.log(shares), _between(first_ms, ended_ms))
        return replace(second, thought=thought, cpu_ms=_between(began_ms, ended_ms))

    async def _own_opposite(self, run: _Run, decision: RenderedDecision) -> str:
        """Return the opposite of a plain yes/no that has none, by grammar or as the judge writes it."""
        if decision.opposite or decision.kind != "binary" or decision.outcomes != BINARY_NAMES:
            return ""
        reading = read_decision(decision)
        if reading is not None:
            return prompts.ask_whether(reading.negation, guidance_of(decision.question))
        question = decision.question
        opposite = self._opposites.find(question)
        if opposite is None:
            text = await self._write(
                run, prompts.ask_for_opposite(question), prompts.OPPOSITE_TOKENS
            )
            opposite = prompts.read_opposite(text, question)
            self._opposites.note(question, opposite)
        return opposite

    async def _leanings(
        self, run: _Run, decisions: Sequence[RenderedDecision]
    ) -> dict[RenderedDecision, Probabilities]:
        """Return the answers to decisions on texts that say nothing; ask each decision once."""
        new = [
            decision for decision in dict.fromkeys(decisions) if self._known.find(decision) is None
        ]
        if new:
            answers = [
                await self._ask_about(run, RenderedRequest(context, tuple(new)))
                for context in NEUTRAL_CONTEXTS
            ]
            for decision, *about in zip(new, *answers, strict=True):
                leaning = np.mean([evidence.context for evidence in about], axis=0)
                self._known.note(decision, leaning)
        known = {decision: self._known.find(decision) for decision in decisions}
        return {decision: leaning for decision, leaning in known.items() if leaning is not None}

    async def _ask_about(self, run: _Run, request: RenderedRequest) -> list[Evidence]:
        async with self._reading(run, request.context) as reading:
            asker = Asker(reading.next_token, self._orders)
            return [await asker.ask(decision) for decision in request.decisions]

    @asynccontextmanager
    async def _reading(self, run: _Run, context: str) -> AsyncIterator[_Reading]:
        """Yield the reading of a context, which is read once."""
        slot = run.take_slot(context)
        try:
            tokens = await self.tokens(run, prompts.before_question(context))
            if len(tokens) > self._room:
                raise ContextTooLongError(
                    f"The context has {len(tokens)} tokens, and {self.name} reads {self._room}. Shorten "
                    "it, or raise context_tokens of the model."
                )
            yield _Reading(self, run, slot, [*run.head, *tokens])
        finally:
            run.free.append(slot)

    async def tokens(
        self, run: _Run, text: str, *, is_own: bool = False, begins: bool = False
    ) -> list[int]:
        """Return the tokens of a text; only our own may have control tokens."""
        if not text:
            return []
        body = {"content": text, "parse_special": is_own, "add_special": begins}
        tokens = member(await self.send(run, "POST", "/tokenize", body), "tokens")
        return [int(token) for token in tokens]

    async def send(self, run: _Run, method: str, path: str, body: Any = None) -> Any:
        """Return the answer of its process to a request."""
        import httpx  # noqa: PLC0415  slow to import

        content = None if body is None else msgspec.json.encode(body)
        try:
            response = await run.client.request(method, path, content=content)
        except (httpx.HTTPError, RuntimeError) as error:  # its client may be closed by now
            raise RemoteFailureError(
                f"The process of the judge {self.name} ended while it was asked; send the request "
                "again, or name another model."
            ) from error
        if response.status_code != 200:
            too_long = context_refusal(self.name, response.status_code, response.content)
            raise too_long or RemoteFailureError(
                f"The judge {self.name} refused the request with status {response.status_code}.",
                status=response.status_code,
            )
        try:
            return msgspec.json.decode(response.content)
        except msgspec.DecodeError as error:
            raise UnusableAnswerError(f"The judge {self.name} did not answer JSON.") from error

    async def _watch(self, run: _Run) -> None:
        """Replace a process that ended, kill one that hangs, and end an idle one."""
        while True:
            await asyncio.sleep(_LOOK_S)
            if not run.process.is_running:
                await self._lost(run)
                if self._keeps_warm:
                    await asyncio.sleep(self._pause_s)
                    await self.warm_up()
                return
            if self._n_running:
                await self._check_alive(run)
            elif not self._keeps_warm and time.monotonic() - self.used_at > _IDLE_S:
                self._run = self._watching = None
                await self._end(run)
                return

    async def _check_alive(self, run: _Run) -> None:
        # Answered between two passes by the thread that computes: also one that is slow answers.
        try:
            async with asyncio.timeout(HUNG_S):
                await self.send(run, "GET", "/slots")
        except TimeoutError:
            _log.error("The process of the judge %s hangs, and is ended.", self.name)
            await asyncio.to_thread(run.process.kill)
        except RemoteFailureError:
            return  # the next look sees whether it ended


def _between(before_ms: float | None, after_ms: float | None) -> float | None:
    return None if before_ms is None or after_ms is None else after_ms - before_ms


def _client(process: JudgeProcess) -> httpx.AsyncClient:
    import httpx  # noqa: PLC0415  slow to import

    from steelyard.http_clients import open_async_http  # noqa: PLC0415

    return open_async_http(
        transport=httpx.AsyncHTTPTransport(
            uds=process.socket, limits=httpx.Limits(keepalive_expiry=_KEEP_OPEN_S)
        ),
        base_url="http://judge",
        headers={"Authorization": f"Bearer {process.key}", "Content-Type": "application/json"},
        timeout=None,
    )


async def _ends(process: JudgeProcess) -> None:
    """Wait a moment for a process that closed its socket; it may have closed one connection alone."""
    for _ in range(10):
        if not process.is_running:
            return
        await asyncio.sleep(0.05)


def _look_at(task: asyncio.Task[_Run]) -> None:
    if not task.cancelled():
        task.exception()
