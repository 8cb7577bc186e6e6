"""The decide use case: check a request, render it, and turn its scores into an answer.

Scoring lies between ``prepare`` and ``finish``, so that a server can score several requests in one
pass of the engine; ``decide`` does all three in a row. Nothing is charged or stored here, and every
answer says so; ``steelyard.services.decisions`` does both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from msgspec import UNSET

from steelyard.calibration.temperature import TemperatureTable
from steelyard.decisions.answer import answer_decision
from steelyard.decisions.kinds import Decision, render_decision
from steelyard.decisions.rendering import RenderedRequest, render_context
from steelyard.decisions.temperature import temper_log_probabilities
from steelyard.decisions.tokens import TokenCounter, count_input_tokens
from steelyard.decisions.validation import ValidRequest, read_request
from steelyard.errors import (
    ContextTooLongError,
    ImagesNotSupportedError,
    InternalError,
    InvalidRequestError,
    NotFoundError,
    Violation,
)
from steelyard.ids import new_id
from steelyard.scoring.protocol import ScoredDecision
from steelyard.wire.decide import (
    Charge,
    DecideRequest,
    DecideResponse,
    DecisionResult,
    TokenizerInfo,
    Usage,
)
from steelyard.wire.playground import PlaygroundRequest

#: The calibration of what is calibrated already: a temperature of 1.
_UNTEMPERED = TemperatureTable()

#: What scores one rendered request: one result per decision, in order.
ScoreRequest = Callable[[RenderedRequest], Sequence[ScoredDecision]]


@dataclass(frozen=True, slots=True)
class DecideLimits:
    """Bounds of one request that a server may set; the wire's own are in its structs.

    Parameters
    ----------
    max_input_tokens : int, default 65,536
        Over this, the request is refused; nothing is ever cut.
    """

    max_input_tokens: int = 65_536


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request that may be scored.

    Parameters
    ----------
    request : ValidRequest
        What was asked.
    rendered : RenderedRequest
        What the scorer reads.
    model : str
        The model asked for.
    input_tokens : int
        Tokens counted.
    tokenizer : TokenizerInfo
        What counted them. They are billed by this count, whichever model answers.
    render_ms : float
        Milliseconds that preparing took.
    started : float
        The clock (``time.perf_counter``, seconds) when preparing began.
    """

    request: ValidRequest
    rendered: RenderedRequest
    model: str
    input_tokens: int
    tokenizer: TokenizerInfo
    render_ms: float
    started: float


class DecideService:
    """Answers decide requests with one base model.

    Parameters
    ----------
    model_name : str
        Name of the base model that scores what is prepared here.
    temperatures : TemperatureTable
        The model's calibration. A temperature that the caller asks for comes on top of it.
    tokenizer : TokenCounter
        Counts input tokens for the bound and for usage.
    limits : DecideLimits, optional
        Bounds of a request.

    Notes
    -----
    Holds no state of its own: safe to call from several threads when the tokenizer is.
    """

    def __init__(
        self,
        *,
        model_name: str,
        temperatures: TemperatureTable,
        tokenizer: TokenCounter,
        limits: DecideLimits | None = None,
    ) -> None:
        self._model_name = model_name
        self._temperatures = temperatures
        self._counter = tokenizer
        self._limits = limits or DecideLimits()
        self._tokenizer = TokenizerInfo(
            name=tokenizer.name, revision=tokenizer.revision, sha256=tokenizer.sha256
        )

    @property
    def limits(self) -> DecideLimits:
        """Bounds of a request."""
        return self._limits

    @property
    def tokenizer(self) -> TokenCounter:
        """What counts input tokens."""
        return self._counter

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models that answer here; the first is the default."""
        return (self._model_name,)

    def renamed(self, model_name: str) -> DecideService:
        """Give the service of another model under the same rules, such as one tuned from this."""
        return DecideService(
            model_name=model_name,
            temperatures=self._temperatures,
            tokenizer=self._counter,
            limits=self._limits,
        )

    def prepare(
        self,
        payload: bytes | bytearray | Mapping[str, Any] | ValidRequest,
        *,
        playground: bool = False,
    ) -> Prepared:
        """Check a request and render it.

        Parameters
        ----------
        payload : bytes, mapping or ValidRequest
            JSON in UTF-8, or the same thing as plain Python values; or a request that was read
            from another dialect.
        playground : bool, default False
            Hold it to the playground's bounds: 8 decisions, base models alone.

        Raises
        ------
        steelyard.errors.InvalidRequestError
            When fields are invalid; ``details`` has every one of them.
        steelyard.errors.NotFoundError
            When there is no such model.
        steelyard.errors.ImagesNotSupportedError
            When the request has images.
        steelyard.errors.ContextTooLongError
            When it has more input tokens than a request may have.
        """
        started = perf_counter()
        shape = PlaygroundRequest if playground else DecideRequest
        request = (
            payload if isinstance(payload, ValidRequest) else read_request(payload, shape=shape)
        )
        self._check_model(request.model, playground=playground)
        return self.prepare_request(request, started=started)

    def prepare_request(self, request: ValidRequest, *, started: float | None = None) -> Prepared:
        """Render a valid request for this model, whichever model it names.

        Parameters
        ----------
        request : ValidRequest
            What was asked.
        started : float, optional
            The clock (``time.perf_counter``, seconds) when reading it began; now when left out.

        Raises
        ------
        steelyard.errors.ImagesNotSupportedError
            When the request has images.
        steelyard.errors.ContextTooLongError
            When it has more input tokens than a request may have.
        """
        started = perf_counter() if started is None else started
        model = self._model_name
        if request.has_images:
            raise ImagesNotSupportedError(
                f"The model {model} reads text alone; describe the images in the context and leave "
                "images out."
            )
        # Nothing is read when a request of another dialect has one answer everywhere.
        input_tokens = (
            count_input_tokens(self._counter, request.context, request.decisions)
            if request.decisions
            else 0
        )
        if input_tokens > self._limits.max_input_tokens:
            raise ContextTooLongError(
                f"The request has {input_tokens} input tokens, and {self._limits.max_input_tokens} "
                "are allowed; shorten the context, or ask its decisions in several requests."
            )
        rendered = RenderedRequest(
            context=render_context(request.context),
            decisions=tuple(render_decision(decision) for decision in request.decisions),
        )
        render_ms = (perf_counter() - started) * 1000
        return Prepared(request, rendered, model, input_tokens, self._tokenizer, render_ms, started)

    def finish(
        self,
        prepared: Prepared,
        scored: Sequence[ScoredDecision],
        *,
        queue_ms: float = 0.0,
        score_ms: float = 0.0,
    ) -> DecideResponse:
        """Turn the scores of a prepared request into its answer.

        Parameters
        ----------
        prepared : Prepared
            From ``prepare``, this service's or that of the model that this one stands in for.
        scored : sequence of ScoredDecision
            One per decision, in order.
        queue_ms, score_ms : float
            Milliseconds that the request waited for the engine, and was scored.

        Returns
        -------
        DecideResponse
            Probabilities are in outcome order and sum to 1.

        Raises
        ------
        steelyard.errors.InvalidRequestError
            When a policy's expected costs are too large for a number.
        steelyard.errors.InternalError
            When the scores do not fit the request.
        """
        request = prepared.request
        if len(scored) != len(request.decisions):
            raise InternalError(
                f"The engine scored {len(scored)} decisions of {len(request.decisions)}; report it."
            )
        pairs = zip(request.decisions, scored, strict=True)
        results = {
            decision.id: self._answer(decision, score, request.temperature)
            for decision, score in pairs
        }
        temperature = request.temperature
        is_tempered = temperature is not None and temperature != 1
        timing_ms = {
            "queue": queue_ms,
            "render": prepared.render_ms,
            "score": score_ms,
            "total": (perf_counter() - prepared.started) * 1000,
        }
        return DecideResponse(
            id=new_id("dec"),
            model=self._model_name,
            decisions=results,
            usage=Usage(
                input_tokens=prepared.input_tokens,
                tokenizer=prepared.tokenizer,
                decisions=len(results),
                # The engine reads the context once for all decisions, so both counts are one.
                prompt_tokens=prepared.input_tokens,
            ),
            timing_ms={stage: round(value, 3) for stage, value in timing_ms.items()},
            charge=Charge(operation_id=new_id("op")),
            temperature=dict.fromkeys(results, float(temperature or 1)) if is_tempered else UNSET,
        )

    def decide(
        self,
        payload: bytes | bytearray | Mapping[str, Any],
        score: ScoreRequest,
        *,
        playground: bool = False,
    ) -> DecideResponse:
        """Answer a request.

        Parameters
        ----------
        payload : bytes or mapping
            As for ``prepare``.
        score : callable
            Scores a rendered request: one result per decision, in order.
        playground : bool, default False
            As for ``prepare``.

        Raises
        ------
        steelyard.errors.SteelyardError
            As ``prepare`` and ``finish`` do, and whatever ``score`` raises.
        """
        prepared = self.prepare(payload, playground=playground)
        began = perf_counter()
        scored = score(prepared.rendered)
        return self.finish(prepared, scored, score_ms=(perf_counter() - began) * 1000)

    def count_tokens(self, text: str) -> int:
        """Count the tokens of a text."""
        return self._counter.count(text)

    def probabilities(
        self, decision: Decision, score: ScoredDecision, temperature: float | None = None
    ) -> list[float]:
        """Give the calibrated probabilities of a decision that was scored.

        Parameters
        ----------
        decision : Decision
            What was asked.
        score : ScoredDecision
            Its scores.
        temperature : float, optional
            What the caller asks for on top of the model's calibration; 1 when left out.

        Returns
        -------
        list of float
            In outcome order; they sum to 1.

        Raises
        ------
        steelyard.errors.InternalError
            When the scores do not fit the decision, or are not finite.
        """
        n_outcomes = len(decision.outcomes.names)
        if score.logits.shape != (n_outcomes,):
            raise InternalError(
                f"The engine gave logits of shape {score.logits.shape} for {n_outcomes} outcomes; "
                "report it."
            )
        temperatures = _UNTEMPERED if score.is_calibrated else self._temperatures
        try:
            if temperature is None or temperature == 1:
                probabilities = temperatures.probabilities(score.logits, decision.kind)
            else:
                logs = temperatures.log_probabilities(score.logits, decision.kind)
                probabilities = temper_log_probabilities(logs, temperature)
        except ValueError as error:
            raise InternalError("The engine gave logits that are not finite; report it.") from error
        return list(probabilities.tolist())

    def _check_model(self, name: str | None, *, playground: bool) -> None:
        if name is None or name in self.models:
            return
        raise (not_in_playground if playground else unknown_model)(name, self.models)

    def _answer(
        self, decision: Decision, score: ScoredDecision, temperature: float | None
    ) -> DecisionResult:
        return answer_decision(decision, self.probabilities(decision, score, temperature))


def unknown_model(name: str, known: Sequence[str]) -> NotFoundError:
    """Give the refusal of a name that no model has."""
    return NotFoundError(
        f"There is no model named {name!r}; the models here are: {', '.join(known)}."
    )


def not_in_playground(name: str, known: Sequence[str]) -> InvalidRequestError:
    """Give the playground's refusal of a name that no base model has."""
    models = ", ".join(known)
    message = f"model is {name!r}; the playground answers with base models alone: {models}."
    return InvalidRequestError(violations=[Violation(("body", "model"), message, "not_allowed")])
