"""Features of this server: models, recipes, bounds and prices, and its present load."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from steelyard.accounts.service import effective_limits
from steelyard.caller import Caller
from steelyard.discovery.wire import Availability, Discovery, DiscoveryWarning, Pricing
from steelyard.families.fine_tuning.service import Waiting
from steelyard.families.lineage.fees import Tariff
from steelyard.labeling.wire import TeacherList
from steelyard.ledger.money import to_usd
from steelyard.models.base_models import describe_base
from steelyard.models.wire import Model
from steelyard.serving.recipes import recipes
from steelyard.serving.recipes_wire import RecipeList
from steelyard.serving.registry import HostedModel, ModelRegistry
from steelyard.settings import Settings
from steelyard.wire.limits import MAX_OUTCOMES, MAX_PLAYGROUND_DECISIONS

#: A model is reported as busy when this share of its queue is taken.
BUSY_SHARE = 0.5
_MILLION = 1_000_000


def published_limits(settings: Settings) -> dict[str, int]:
    """Return the bounds that callers can plan with, by name: those of an account, and of a request."""
    return {
        **effective_limits(settings),
        "decisions": settings.max_decisions,
        "playground_decisions": MAX_PLAYGROUND_DECISIONS,
        "outcomes": MAX_OUTCOMES,
    }


#: Returns a room's additions to the models that a caller sees, or to the warnings.
ModelSource = Callable[[Caller], Awaitable[list[Model]]]
WarningSource = Callable[[Caller], Awaitable[list[DiscoveryWarning]]]
TeacherSource = Callable[[Caller], Awaitable[TeacherList]]


class DiscoveryService:
    """Reports the server's features: base models by itself, the others from rooms."""

    def __init__(
        self,
        bases: ModelRegistry,
        limits: Mapping[str, int],
        *,
        models: Sequence[ModelSource] = (),
        warnings: Sequence[WarningSource] = (),
        teachers: TeacherSource,
        training_available: bool,
        tariff: Tariff | None = None,
        hour_nano: int = 0,
    ) -> None:
        self._bases = bases
        self._limits = limits
        self._models = models
        self._warnings = warnings
        self._teachers = teachers
        self._training_available = training_available
        self._tariff = tariff or Tariff()
        self._hour_nano = hour_nano

    async def discover(self, caller: Caller) -> Discovery:
        """Return everything at once, as of now."""
        hosted = self._bases.hosted
        warnings = [warning for model in hosted for warning in _warnings(model)]
        for warn in self._warnings:
            warnings += await warn(caller)
        models = [describe_base(model, self._limits["decisions"]) for model in hosted]
        for further in self._models:
            models += await further(caller)
        return Discovery(
            models=models,
            recipes=list(recipes()),
            training_available=self._training_available,
            labeling_available=(await self._teachers(caller)).available,
            prompt_tuning=Availability(available=True),
            limits=dict(self._limits),
            pricing=Pricing(
                input_tokens_per_million_usd={
                    model.name: to_usd(model.price_nano * _MILLION) for model in hosted
                },
                fine_tune_tokens_per_million_usd=to_usd(self._tariff.token_nano * _MILLION),
                fine_tune_minimum_usd=to_usd(self._tariff.minimum_nano),
                keep_warm_hour_usd=to_usd(self._hour_nano),
            ),
            warnings=warnings,
        )

    def recipes(self) -> RecipeList:
        """Return every recipe."""
        return RecipeList(data=list(recipes()))


def full_queues(
    limits: Mapping[str, int], waiting: Callable[[Caller], Awaitable[Waiting]]
) -> WarningSource:
    """Return a source of warnings about full queues of fine-tunes."""

    async def warn(caller: Caller) -> list[DiscoveryWarning]:
        counts = await waiting(caller)
        discovery_warnings: list[DiscoveryWarning] = []
        if counts.of_account >= limits["fine_tune_queue_per_account"]:
            message = f"{counts.of_account} fine-tunes of the account wait, and no more may."
            discovery_warnings.append(DiscoveryWarning(code="tenant_queue_full", message=message))
        if counts.total >= limits["fine_tune_queue"]:
            message = "The queue of fine-tunes is full; one started now is refused."
            discovery_warnings.append(DiscoveryWarning(code="queue_full", message=message))
        return discovery_warnings

    return warn


def _warnings(model: HostedModel) -> list[DiscoveryWarning]:
    if model.hangs or model.failed_recently:
        message = f"The engine of {model.name} failed recently; a request to it may be refused."
    elif model.queue.n_waiting >= BUSY_SHARE * model.queue.max_queue:
        message = f"{model.queue.n_waiting} requests wait for {model.name}; one sent now waits too."
    else:
        return []
    return [DiscoveryWarning(code="engine_busy", message=message, model=model.name)]
