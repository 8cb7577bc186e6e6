"""Routes as a server has them: each a model whose answers are those of the models along it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from steelyard.calibration.temperature import TemperatureTable
from steelyard.decisions.kinds import Decision
from steelyard.decisions.tokens import count_input_tokens
from steelyard.decisions.wire import DecideResponse
from steelyard.scoring.protocol import ScoredDecision
from steelyard.serving.connected.declared_route import DeclaredRoute
from steelyard.serving.connected_hosting import ConnectedRegistry
from steelyard.serving.decide import DecideLimits, DecideService, Prepared
from steelyard.serving.registry import HostedModel, ModelFacts
from steelyard.serving.routed.queue import HostedStep, RouteQueue


class RouteDecide(DecideService):
    """Answers with the probabilities of the model that decided, and says which were asked."""

    def __init__(self, name: str, steps: tuple[HostedStep, ...]) -> None:
        super().__init__(
            model_name=name,
            temperatures=TemperatureTable(),
            tokenizer=steps[0].model.decide.tokenizer,
            limits=DecideLimits(min(step.model.max_input_tokens for step in steps)),
            reads_guidelines=any(step.model.decide.reads_guidelines for step in steps),
            # At the price of all models: one step's tokens alone cost less.
            thought_tokens=max(step.model.decide.thought_tokens for step in steps),
        )
        self._by_name = {step.model.name: step.model.decide for step in steps}
        self._prices = {step.model.name: step.model.price_nano for step in steps}

    def calibrated(
        self,
        kind: str,
        n_outcomes: int,
        score: ScoredDecision,
        temperature: float | None = None,
    ) -> list[float]:
        """Return the probabilities as the model that decided gives them."""
        return self._by_name[score.route[-1].model].calibrated(kind, n_outcomes, score, temperature)

    def finish(
        self,
        prepared: Prepared,
        scored: Sequence[ScoredDecision],
        *,
        queue_ms: float = 0.0,
        score_ms: float = 0.0,
    ) -> DecideResponse:
        """Turn the scores of a prepared request into its answer; count the tokens of every model."""
        answer = super().finish(prepared, scored, queue_ms=queue_ms, score_ms=score_ms)
        read = self.tokens_by_model(
            prepared.input_tokens,
            prepared.request.decisions,
            [[step.model for step in decision.route] for decision in scored],
            n_texts=1 + len(prepared.left_out),
        )
        usage = msgspec.structs.replace(answer.usage, prompt_tokens=sum(read.values()))
        return msgspec.structs.replace(answer, usage=usage)

    def paid_tokens(
        self, n_tokens: int, decisions: Sequence[Decision], scored: Sequence[ScoredDecision]
    ) -> int:
        """Return the tokens whose price at all models equals the price of these decisions."""
        full_nano = sum(self._prices.values())
        if not full_nano:
            return n_tokens
        models = [[step.model for step in decision.route] for decision in scored]
        price_nano = self.price_nano(n_tokens, decisions, models)
        return round((price_nano + self.written_nano(self.written(scored))) / full_nano)

    def written(self, scored: Sequence[ScoredDecision]) -> dict[str, int]:
        """Return the tokens that models wrote before they answered, by model; none where none did."""
        counts = Counter[str]()
        for score in scored:
            for step in score.route:
                counts[step.model] += step.n_written
        return dict(+counts)

    def written_nano(self, written: Mapping[str, int]) -> int:
        """Return the price of tokens that models wrote."""
        return sum(self._prices[model] * n for model, n in written.items())

    def price_nano(
        self,
        n_tokens: int,
        decisions: Sequence[Decision],
        models: Sequence[Sequence[str]],
        *,
        n_texts: int = 1,
    ) -> int:
        """Return the price of all calls; ``models`` names those that answered each decision."""
        tokens = self.tokens_by_model(n_tokens, decisions, models, n_texts=n_texts)
        return sum(self._prices[model] * n for model, n in tokens.items())

    def tokens_by_model(
        self,
        n_tokens: int,
        decisions: Sequence[Decision],
        models_by_decision: Sequence[Sequence[str]],
        *,
        n_texts: int = 1,
    ) -> dict[str, int]:
        """Return the input tokens of each model, as if it had a request of its decisions alone.

        ``n_tokens`` counts all decisions together, once about each of ``n_texts``;
        ``models_by_decision`` names each one's models.
        """
        by_model: dict[str, list[Decision]] = {}
        for decision, models in zip(decisions, models_by_decision, strict=True):
            for model in models:
                by_model.setdefault(model, []).append(decision)
        return {
            model: self._tokens_of(part, decisions, n_tokens, n_texts)
            for model, part in by_model.items()
        }

    def _tokens_of(
        self, part: Sequence[Decision], decisions: Sequence[Decision], n_tokens: int, n_texts: int
    ) -> int:
        if len(part) == len(decisions):
            return n_tokens
        # The context may be long: its tokens are those that were counted with all decisions.
        counter = self.tokenizer
        of_others = count_input_tokens(counter, "", decisions) - count_input_tokens(
            counter, "", part
        )
        return n_tokens - n_texts * of_others


class HostedRoute(HostedModel):
    """A route, called by its name like a model; the models that were asked are charged."""

    is_route = True

    def __init__(self, name: str, declared: DeclaredRoute, steps: tuple[HostedStep, ...]) -> None:
        self._walks = RouteDecide(name, steps)
        self._steps = steps
        facts = ModelFacts(
            decide=self._walks,
            engine="route",
            description=f"A route: {_description(steps)}.",
            release_date=declared.added or max(step.model.release_date for step in steps),
            evaluation_key=_identity(name, steps),
            is_connected=True,
        )
        price_nano = sum(step.model.price_nano for step in steps)
        super().__init__(facts, RouteQueue(steps), price_nano=price_nano)

    @property
    def is_away(self) -> bool:
        """Whether one of its models would not answer now."""
        return any(step.model.is_away or step.model.hangs for step in self._steps)

    def charge_nano(self, prepared: Prepared, answer: DecideResponse) -> int:
        """Return the price of an answer: that of every model on its routes."""
        decisions = prepared.request.decisions
        routes = [answer.decisions[decision.id].route or [] for decision in decisions]
        models = [[entry.model for entry in route] for route in routes]
        read_nano = self._walks.price_nano(
            prepared.input_tokens, decisions, models, n_texts=1 + len(prepared.left_out)
        )
        return read_nano + self._walks.written_nano(answer.usage.thought_tokens or {})


class RoutedModels:
    """The connected models and the routes of a home, as its file says them now; thread-safe."""

    def __init__(self, own: Sequence[HostedModel], connected: ConnectedRegistry) -> None:
        self._own = tuple(own)
        self._connected = connected
        self._made: tuple[object, tuple[HostedRoute, ...]] = (None, ())

    def current(self) -> tuple[HostedModel, ...]:
        """Return the connected models, then the routes."""
        connected, declared = self._connected.current(), self._connected.routes
        made_of, routes = self._made
        if made_of != (connected, declared):
            routes = _open(declared, (*self._own, *connected))
            self._made = ((connected, declared), routes)
        return (*connected, *routes)


def _open(
    declared: Mapping[str, DeclaredRoute], models: Sequence[HostedModel]
) -> tuple[HostedRoute, ...]:
    by_name = {model.name: model for model in models}
    return tuple(
        HostedRoute(
            name,
            route,
            tuple(
                HostedStep(
                    by_name[step.model],
                    step.threshold,
                    {str(kind): bound for kind, bound in step.by_kind.items()},
                    step.max_unstated,
                    step.carries,
                )
                for step in route.steps
            ),
        )
        for name, route in declared.items()
        # A model that is being taken away: the next look at the file has it.
        if by_name.keys() >= set(route.models)
    )


def _description(steps: Sequence[HostedStep]) -> str:
    sure = [
        f"{step.model.name} where its top probability is {step.threshold:.4g} or more"
        + "".join(f" ({bound:.4g} of {kind})" for kind, bound in step.by_kind.items())
        + (f" and `unstated` {step.max_unstated:.4g} or less" if step.max_unstated < 1 else "")
        for step in steps[:-1]
    ]
    last = steps[-1].model.name
    if steps[-1].carries:
        last += f", with {steps[-2].model.name}'s answer weighed in"
    return ", else ".join([*sure, last])


def _identity(name: str, steps: Sequence[HostedStep]) -> str:
    """Return a hash that identifies a route's answers."""
    parts: list[Any] = [
        name,
        *((step.model.name, step.model.evaluation_key, step.threshold) for step in steps),
    ]
    # Only where there are some: routes without them keep their evaluations.
    parts += [step.by_kind for step in steps if step.by_kind]
    parts += [["unstated", step.max_unstated] for step in steps if step.max_unstated < 1]
    parts += [step.carries for step in steps if step.carries]
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()
