"""The decide use case: check a request, render it, and turn its scores into an answer.

Scoring lies between ``prepare`` and ``finish``, so that a server can score several requests in one
pass of the engine; ``AnswerService`` does all three in a row, for callers in this process. Nothing is charged or stored here, and every
answer says so; ``steelyard.serving.service`` does both.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from time import perf_counter
from typing import Any, Protocol

import msgspec
import numpy as np
from msgspec import UNSET

from steelyard import errors
from steelyard.asking.rows import ask_each
from steelyard.asking.window import RowResult
from steelyard.calibration.temperature import TemperatureTable
from steelyard.caller import LOCAL_ACCOUNT
from steelyard.decisions import wire
from steelyard.decisions.answer import answer_decision, temper_log_probabilities
from steelyard.decisions.contexts import context_warnings, read_context
from steelyard.decisions.explaining import Span, effects_of, spans_of, with_readings, without
from steelyard.decisions.kinds import Decision, without_guidelines
from steelyard.decisions.rendering import (
    RenderedRequest,
    render_context,
    render_decision,
    render_value,
)
from steelyard.decisions.tokens import TokenCounter, count_input_tokens
from steelyard.decisions.validation import ValidRequest, read_request
from steelyard.decisions.wire import AnswerWarning
from steelyard.errors.kinds import UnprocessableError
from steelyard.ids import new_id
from steelyard.scoring.protocol import ScoredDecision, Thought
from steelyard.scoring.shares import Share
from steelyard.serving.refusals import too_long, unknown_model
from steelyard.waiting import wait_for_end
from steelyard.wire.violations import has_lone_surrogate

#: The calibration of calibrated probabilities: a temperature of 1.
_UNTEMPERED = TemperatureTable()

#: What is left of the logits of a context that the model does not read.
_UNREAD_SHARE = 0.1

#: The most tokens that a tokenizer may make of a character: NFKC writes out one as 18 letters, and bytes
#: of two for each may be tokens.
_TOKENS_A_CHARACTER = 36

#: Requests of one caller with many that wait in the queue at a time.
_MANY = 64

#: Decisions that the message names.
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class DecideLimits:
    """Bounds of one request that a server may set; the wire's own are in its structs."""

    max_input_tokens: int = 65_536


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request that may be scored."""

    request: ValidRequest
    rendered: RenderedRequest
    model: str
    input_tokens: int
    #: The most tokens that are paid for: those of the input, and those that a judge may write.
    most_tokens: int
    tokenizer: wire.TokenizerInfo
    render_ms: float
    started: float
    #: What about the context makes the answer less to be trusted.
    warnings: tuple[wire.AnswerWarning, ...] = ()
    #: Who it is scored for, where several share an engine.
    share: Share = field(default_factory=Share)
    #: Where an explanation is asked for: the parts of the context, and the request without each.
    spans: tuple[Span, ...] = ()
    left_out: tuple[RenderedRequest, ...] = ()


class DecideService:
    """Answers decide requests with one base model.

    Holds no state of its own: safe to call from several threads when the tokenizer is.
    """

    def __init__(
        self,
        *,
        model_name: str,
        temperatures: TemperatureTable,
        tokenizer: TokenCounter,
        limits: DecideLimits | None = None,
        warns: bool = False,
        reads_guidelines: bool = False,
        thought_tokens: int = 0,
    ) -> None:
        #: The model that answers.
        self.model_name = model_name
        #: Most tokens that it writes on a decision before it answers.
        self.thought_tokens = thought_tokens
        #: Whether it reads the guidelines of decisions.
        self.reads_guidelines = reads_guidelines
        self._warns = warns
        #: The temperatures that turn logits into calibrated probabilities.
        self.temperatures = temperatures
        #: The counter of input tokens.
        self.tokenizer = tokenizer
        #: Bounds of a request.
        self.limits = limits or DecideLimits()
        self._tokenizer = wire.TokenizerInfo(
            name=tokenizer.name, revision=tokenizer.revision, sha256=tokenizer.sha256
        )

    def renamed(self, model_name: str) -> DecideService:
        """Return the service of another model under the same rules, such as one tuned from this."""
        return DecideService(
            model_name=model_name,
            temperatures=self.temperatures,
            tokenizer=self.tokenizer,
            limits=self.limits,
            thought_tokens=self.thought_tokens,
        )

    def prepare(self, payload: bytes | bytearray | Mapping[str, Any]) -> Prepared:
        """Check a request and render it."""
        started = perf_counter()
        request = read_request(payload)
        if request.model not in {None, self.model_name}:
            raise unknown_model(str(request.model), (self.model_name,))
        return self.prepare_request(request, started=started)

    def preparer(
        self, request: Mapping[str, Any]
    ) -> Callable[[Any], tuple[ValidRequest, RenderedRequest]]:
        """Return a function that reads and renders a request about one context after another.

        ``request`` has all but the context; it is read once, and again where a context is no plain
        text. Tokens are counted of a context alone that may have too many.
        """
        first: tuple[ValidRequest, RenderedRequest] | None = None
        most_characters = 0

        def prepare(context: Any) -> tuple[ValidRequest, RenderedRequest]:
            nonlocal first, most_characters
            is_plain = type(context) is str and (
                context.isascii() or not has_lone_surrogate(context)
            )
            if first is not None and is_plain and len(context) <= most_characters:
                valid, rendered = first
                rendered = RenderedRequest(render_context(context), rendered.decisions)
                return replace(valid, context=context), rendered
            prepared = self.prepare({**request, "context": context})
            if first is None and is_plain:
                first = prepared.request, prepared.rendered
                n_tokens = count_input_tokens(self.tokenizer, "", prepared.request.decisions)
                room = self.limits.max_input_tokens - n_tokens
                most_characters = room // _TOKENS_A_CHARACTER
            return prepared.request, prepared.rendered

        return prepare

    def prepare_request(
        self,
        request: ValidRequest,
        *,
        started: float | None = None,
        max_input_tokens: int | None = None,
    ) -> Prepared:
        """Render a valid request for this model, whichever model it names.

        One of more tokens than the model's own bound, or a given one, is refused before it costs
        more than a look.
        """
        if not self.reads_guidelines and any(each.guideline for each in request.decisions):
            request = replace(request, decisions=without_guidelines(request.decisions))
        started = perf_counter() if started is None else started
        if request.has_images:
            raise errors.ImagesNotSupportedError(
                f"The model {self.model_name} reads text alone; describe the images in the context "
                "and leave images out.",
                path=("body", "images"),
            )
        most = self.limits.max_input_tokens if max_input_tokens is None else max_input_tokens
        input_tokens = self._count_tokens(request, most)
        rendered = RenderedRequest(
            context=render_context(request.context),
            decisions=tuple(render_decision(decision) for decision in request.decisions),
        )
        spans = tuple(spans_of(request.context)) if request.explain else ()
        rest = [without(request.context, span) for span in spans]
        left_out = tuple(replace(rendered, context=render_context(text)) for text in rest)
        input_tokens += sum(
            count_input_tokens(self.tokenizer, text, request.decisions) for text in rest
        )
        render_ms = (perf_counter() - started) * 1000
        warnings: tuple[wire.AnswerWarning, ...] = ()
        if self._warns:
            warnings = tuple(context_warnings(read_context(rendered.context), self.tokenizer))
        most_written = self.thought_tokens * len(request.decisions) * (1 + len(left_out))
        return Prepared(
            request,
            rendered,
            self.model_name,
            input_tokens,
            input_tokens + most_written,
            self._tokenizer,
            render_ms,
            started,
            warnings,
            spans=spans,
            left_out=left_out,
        )

    def _count_tokens(self, request: ValidRequest, most: int) -> int:
        """Return the input tokens of a request; refuse one of more than ``most``."""
        if request.is_long:
            least = self.tokenizer.least(render_value(request.context))
            if least > most:
                raise too_long(request, f"at least {least}", most)
        if not request.decisions:
            # Nothing is read when a request of another dialect has one answer everywhere.
            return 0
        n_tokens = count_input_tokens(self.tokenizer, request.context, request.decisions)
        if n_tokens > most:
            raise too_long(request, str(n_tokens), most)
        return n_tokens

    def finish(
        self,
        prepared: Prepared,
        scored: Sequence[ScoredDecision],
        *,
        queue_ms: float = 0.0,
        score_ms: float = 0.0,
    ) -> wire.DecideResponse:
        """Turn the scores of a prepared request into its answer."""
        request = prepared.request
        results = self.results(request, scored)
        temperature = request.temperature
        is_tempered = temperature is not None and temperature != 1
        timing_ms = {
            "queue": queue_ms,
            "render": prepared.render_ms,
            "score": score_ms,
            "total": (perf_counter() - prepared.started) * 1000,
        }
        novelty = scored[0].novelty if scored else None
        warnings = list(prepared.warnings)
        if any(score.is_untrained for score in scored):
            warnings.append(untrained(request.decisions, scored))
        return wire.DecideResponse(
            id=new_id("dec"),
            model=self.model_name,
            decisions=results,
            usage=wire.Usage(
                input_tokens=prepared.input_tokens,
                tokenizer=prepared.tokenizer,
                decisions=len(results),
                # The engine reads the context once for all decisions, so both counts are one.
                prompt_tokens=prepared.input_tokens,
                thought_tokens=self.written(scored) or UNSET,
            ),
            timing_ms={stage: round(value, 3) for stage, value in timing_ms.items()},
            charge=wire.Charge(operation_id=new_id("op")),
            temperature=dict.fromkeys(results, float(temperature or 1)) if is_tempered else UNSET,
            warnings=warnings or UNSET,
            novelty=UNSET if novelty is None else wire.Novelty(share=novelty[0], unlike=novelty[1]),
        )

    def results(
        self, request: ValidRequest, scored: Sequence[ScoredDecision]
    ) -> dict[str, wire.DecisionResult]:
        """Return the result of each decision of a request, by its id."""
        if len(scored) != len(request.decisions):
            raise errors.InternalError(
                f"The engine scored {len(scored)} decisions of {len(request.decisions)}; report it."
            )
        return {
            decision.id: self._answer(decision, score, request.temperature)
            for decision, score in zip(request.decisions, scored, strict=True)
        }

    def left_out_of(
        self,
        prepared: Prepared,
        scored: Sequence[ScoredDecision],
    ) -> Sequence[RenderedRequest]:
        """Return a request without each of its sentences, for the steps that answered the whole."""
        n_steps = tuple(len(decision.route) for decision in scored)
        if not any(n_steps):
            return prepared.left_out
        return [replace(part, n_steps=n_steps) for part in prepared.left_out]

    def explain(
        self,
        prepared: Prepared,
        answer: wire.DecideResponse,
        whole: Sequence[ScoredDecision],
        scored: Sequence[Sequence[ScoredDecision]],
    ) -> wire.DecideResponse:
        """Add the changes by left-out sentences, by their scores, and the reading of each question.

        ``whole`` are the scores of the request itself.
        """
        request = prepared.request
        left_out = [
            {
                decision.id: self._answer(decision, score, request.temperature)
                for decision, score in zip(request.decisions, scores, strict=True)
            }
            for scores in scored
        ]
        effects = effects_of(request.context, prepared.spans, answer.decisions, left_out)
        results = with_readings(
            answer.decisions, request.decisions, [score.reading for score in whole]
        )
        written = self.written([*whole, *chain.from_iterable(scored)])
        thoughts = {
            decision.id: self._thought(decision, score, score.thought, request.temperature)
            for decision, score in zip(request.decisions, whole, strict=True)
            if score.thought is not None
        }
        return msgspec.structs.replace(
            answer,
            decisions=results,
            explanation=effects,
            thoughts=thoughts or UNSET,
            usage=msgspec.structs.replace(answer.usage, thought_tokens=written or UNSET),
        )

    def _thought(
        self,
        decision: Decision,
        score: ScoredDecision,
        thought: Thought,
        temperature: float | None,
    ) -> wire.ThoughtReport:
        first = replace(score, logits=thought.first, is_calibrated=False)
        shares = self.probabilities(decision, first, temperature)
        return wire.ThoughtReport(
            text=thought.text,
            tokens=thought.n_tokens,
            before=dict(zip(decision.outcomes.names, shares, strict=True)),
        )

    def written(self, scored: Sequence[ScoredDecision]) -> dict[str, int]:
        """Return the tokens that models wrote before they answered, by model; none where none did."""
        n_written = _count_written(scored)
        return {self.model_name: n_written} if n_written else {}

    def paid_tokens(
        self,
        n_tokens: int,
        decisions: Sequence[Decision],  # noqa: ARG002
        scored: Sequence[ScoredDecision],
    ) -> int:
        """Return the tokens that are paid for, at the model's price, of a request's input tokens."""
        return n_tokens + _count_written(scored)

    def count_tokens(self, text: str) -> int:
        """Count the tokens of a text."""
        return self.tokenizer.count(text)

    def probabilities(
        self, decision: Decision, score: ScoredDecision, temperature: float | None = None
    ) -> list[float]:
        """Return the calibrated probabilities of a decision that was scored."""
        return self.calibrated(decision.kind, len(decision.outcomes.names), score, temperature)

    def calibrated(
        self,
        kind: str,
        n_outcomes: int,
        score: ScoredDecision,
        temperature: float | None = None,
    ) -> list[float]:
        """Return the calibrated probabilities of a decision of a kind and a number of outcomes."""
        if score.logits.shape != (n_outcomes,):
            raise errors.InternalError(
                f"The engine gave logits of shape {score.logits.shape} for {n_outcomes} outcomes; "
                "report it."
            )
        temperatures = _UNTEMPERED if score.is_calibrated else self.temperatures
        logits = score.logits * np.float32(_UNREAD_SHARE) if score.is_unread else score.logits
        try:
            if temperature is None or temperature == 1:
                probabilities = temperatures.probabilities(logits, kind)
            else:
                logs = temperatures.log_probabilities(logits, kind)
                probabilities = temper_log_probabilities(logs, temperature)
        except ValueError as error:
            raise errors.InternalError(
                "The engine gave logits that are not finite; report it."
            ) from error
        # The digits that a float keeps of any decimal: 0.9 is no 0.8999999999999999.
        return [float(f"{probability:.15g}") for probability in probabilities.tolist()]

    def _answer(
        self, decision: Decision, score: ScoredDecision, temperature: float | None
    ) -> wire.DecisionResult:
        probabilities = self.probabilities(decision, score, temperature)
        answer = answer_decision(decision, probabilities, score.unstated)
        route = [wire.RouteEntry(model=step.model, p_top=step.p_top) for step in score.route]
        return msgspec.structs.replace(
            answer,
            route=route or UNSET,
            calibration=score.calibration or UNSET,
            doubt=score.doubt or UNSET,
        )


class ScoringQueue(Protocol):
    """Where rendered requests wait for the engine."""

    def submit(
        self, request: RenderedRequest, deadline_s: float | None = None, share: Share = ...
    ) -> concurrent.futures.Future[list[ScoredDecision]]:
        """Queue a request; the future gives one scored decision per decision.

        The future may say when the engine took the request: an attribute ``started_at``, in
        seconds of ``time.perf_counter``. Without it the whole wait counts as scoring.
        """
        ...


class AnswerService:
    """Answers requests with one scorer; safe to use from several threads and event loops."""

    def __init__(self, decide: DecideService, queue: ScoringQueue, *, deadline_s: float) -> None:
        self._decide = decide
        self._queue = queue
        self._deadline_s = deadline_s

    def answer(self, payload: bytes | Mapping[str, Any]) -> wire.DecideResponse:
        """Answer a request, waiting for the engine."""
        prepared = self._decide.prepare(payload)
        submitted = perf_counter()
        rendered = replace(prepared.rendered, owner=LOCAL_ACCOUNT)
        future = self._queue.submit(rendered, self._deadline_s)
        scored = self._wait(future)
        return self._finish(prepared, scored, submitted, getattr(future, "started_at", submitted))

    def answer_many(
        self, request: Mapping[str, Any], contexts: Sequence[Any]
    ) -> list[Mapping[str, Any] | errors.SteelyardError]:
        """Return the plain results of a request about each context; an invalid one gets its error.

        The longest go first and fill only part of the queue: other callers find room, and each
        pass has texts of like lengths.
        """
        answers: dict[int, Mapping[str, Any] | errors.SteelyardError] = {}
        lengths = [len(str(context)) for context in contexts]
        prepare = self._decide.preparer(request)

        def requests() -> Iterator[tuple[int, tuple[ValidRequest, RenderedRequest]]]:
            for place in sorted(range(len(contexts)), key=lengths.__getitem__, reverse=True):
                try:
                    yield place, prepare(contexts[place])
                except UnprocessableError as refusal:
                    answers[place] = refusal

        def take(
            answer: RowResult[
                tuple[int, tuple[ValidRequest, RenderedRequest]], list[ScoredDecision]
            ],
        ) -> None:
            place, (valid, _) = answer.row
            try:
                scored = self._wait(answer.future, 0.0)
            except UnprocessableError as refusal:  # more than a connected model reads
                answers[place] = refusal
                return
            answers[place] = msgspec.to_builtins(self._decide.results(valid, scored))

        ask_each(
            requests(),
            lambda row: self._queue.submit(row[1][1]),
            take,
            _MANY,
            timeout_s=self._deadline_s,
            patience_s=self._deadline_s,
        )
        return [answers[place] for place in range(len(contexts))]

    def answer_dict(self, payload: bytes | Mapping[str, Any]) -> dict[str, Any]:
        """Answer a request as plain dictionaries and lists."""
        answer: dict[str, Any] = msgspec.to_builtins(self.answer(payload))
        return answer

    def _wait(
        self,
        future: concurrent.futures.Future[list[ScoredDecision]],
        wait_s: float | None = None,
    ) -> list[ScoredDecision]:
        try:
            return future.result(timeout=self._deadline_s if wait_s is None else wait_s)
        except errors.SteelyardError:  # one of them is a TimeoutError too
            raise
        except TimeoutError:
            raise _late(future, self._deadline_s) from None

    def _finish(
        self, prepared: Prepared, scored: list[ScoredDecision], submitted: float, started: float
    ) -> wire.DecideResponse:
        answer = self._decide.finish(
            prepared,
            scored,
            queue_ms=(started - submitted) * 1000,
            score_ms=(perf_counter() - started) * 1000,
        )
        if not prepared.request.explain:
            return answer
        left_out = [
            self._wait(self._queue.submit(request, self._deadline_s))
            for request in self._decide.left_out_of(prepared, scored)
        ]
        return self._decide.explain(prepared, answer, scored, left_out)


async def wait_for_scores(
    future: concurrent.futures.Future[list[ScoredDecision]], wait_s: float
) -> list[ScoredDecision]:
    """Wait for a queue's scores, without blocking the event loop."""
    if not await wait_for_end(future, wait_s):
        raise _late(future, wait_s)
    try:
        return future.result()
    except concurrent.futures.CancelledError:  # its request was given up
        raise asyncio.CancelledError from None
    except errors.SteelyardError:  # one of them is a TimeoutError too
        raise
    except TimeoutError:
        raise _late(future, wait_s) from None


def _count_written(scored: Sequence[ScoredDecision]) -> int:
    return sum(score.thought.n_tokens for score in scored if score.thought is not None)


def _late(
    future: concurrent.futures.Future[list[ScoredDecision]], wait_s: float
) -> errors.DeadlineExceededError:
    future.cancel()
    return errors.DeadlineExceededError(
        f"No answer within {wait_s:.3g} s; nothing was charged. Try again, or ask less in one request."
    )


def untrained(decisions: Sequence[Decision], scored: Sequence[ScoredDecision]) -> AnswerWarning:
    """Return the warning that some decisions differ from those a model was trained on."""
    ids = [
        decision.id for decision, score in zip(decisions, scored, strict=True) if score.is_untrained
    ]
    more = f" and {len(ids) - _MOST_NAMED} more" if len(ids) > _MOST_NAMED else ""
    message = (
        f"The model did not train on {', '.join(ids[:_MOST_NAMED])}{more} as worded here (question, kind "
        "and outcomes), so it answers as its base model does. Use the wording of its dataset, or "
        "train on this one."
    )
    return AnswerWarning(code="untrained_wording", message=message)
