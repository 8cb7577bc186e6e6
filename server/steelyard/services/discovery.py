"""What this server can do: its models, recipes, bounds and prices, and what is busy now."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from steelyard.billing.money import to_usd
from steelyard.services.caller import Caller
from steelyard.services.fine_tune_jobs import Waiting
from steelyard.services.models import HostedModel, ModelRegistry
from steelyard.services.recipes import recipes
from steelyard.settings import Settings
from steelyard.wire.decide import MAX_DECISIONS, MAX_OUTCOMES
from steelyard.wire.discovery import (
    Availability,
    Discovery,
    DiscoveryWarning,
    Pricing,
    RecipeList,
)
from steelyard.wire.playground import MAX_PLAYGROUND_DECISIONS

#: A model is told to be busy when this share of its queue is taken.
BUSY_SHARE = 0.5
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedLimits:
    """Bounds that callers can plan with; what the settings say comes from there.

    Parameters
    ----------
    body_bytes, dataset_bytes : int
        Largest body of a JSON request, and of an upload.
    requests_per_minute, tokens_per_minute : int
        What one caller may send in a minute; 0 where there is no bound.
    live_limit, warm_limit : int
        Fine-tuned models of an account that may answer, and that may be kept warm, at one time.
    fine_tune_queue, fine_tune_queue_per_account : int
        Fine-tunes that may wait, in all and of one account.
    dataset_min_rows, dataset_rows : int
        Rows of a dataset.
    fine_tune_min_rows, fine_tune_rows : int
        Training rows of a fine-tune.
    prompt_tuning_min_rows, prompt_tuning_rows : int
        Rows that prompt tuning works with.
    labeling_rows : int
        Rows of a labeling source.
    """

    body_bytes: int
    dataset_bytes: int
    requests_per_minute: int
    tokens_per_minute: int
    live_limit: int
    warm_limit: int
    fine_tune_queue: int
    fine_tune_queue_per_account: int
    dataset_min_rows: int
    dataset_rows: int
    fine_tune_min_rows: int = 20
    fine_tune_rows: int = 50_000
    prompt_tuning_min_rows: int = 40
    prompt_tuning_rows: int = 5_000
    labeling_rows: int = 10_000

    @classmethod
    def of(cls, settings: Settings) -> PublishedLimits:
        """Give the bounds that settings make."""
        return cls(
            body_bytes=settings.body_bytes,
            dataset_bytes=settings.upload_bytes,
            dataset_min_rows=settings.dataset_min_rows,
            dataset_rows=settings.dataset_rows,
            requests_per_minute=settings.requests_per_minute,
            tokens_per_minute=settings.tokens_per_minute,
            live_limit=settings.live_limit,
            warm_limit=settings.warm_models,
            fine_tune_queue=settings.fine_tune_queue,
            fine_tune_queue_per_account=settings.fine_tune_queue_per_account,
        )

    def as_dict(self) -> dict[str, int]:
        """Give the bounds by name, those of every request included."""
        own = {name: int(getattr(self, name)) for name in self.__dataclass_fields__}
        return {
            **own,
            "decisions": MAX_DECISIONS,
            "playground_decisions": MAX_PLAYGROUND_DECISIONS,
            "outcomes": MAX_OUTCOMES,
        }


class DiscoveryService:
    """Says what this server can do.

    Parameters
    ----------
    models : ModelRegistry
        The models that answer.
    limits : PublishedLimits
        The bounds to tell.
    waiting : callable
        Counts the fine-tunes that wait: ``FineTuneJobs.waiting``.
    training_available : bool
        Whether families can be started and continued here.
    """

    def __init__(
        self,
        models: ModelRegistry,
        limits: PublishedLimits,
        waiting: Callable[[Caller], Awaitable[Waiting]],
        *,
        training_available: bool,
    ) -> None:
        self._models = models
        self._limits = limits
        self._waiting = waiting
        self._training_available = training_available

    async def discover(self, caller: Caller) -> Discovery:
        """Give everything at once, as of now.

        Raises
        ------
        steelyard.errors.StorageUnavailableError
            When the state cannot be read.
        """
        hosted = self._models.hosted
        busy = [warning for model in hosted for warning in _warnings(model)]
        return Discovery(
            models=self._models.list().data,
            recipes=list(recipes()),
            training_available=self._training_available,
            labeling_available=False,
            prompt_tuning=Availability(available=False),
            limits=self._limits.as_dict(),
            pricing=Pricing(
                input_tokens_per_million_usd={
                    model.name: to_usd(model.price_nano * _MILLION) for model in hosted
                }
            ),
            warnings=[*busy, *await self._queue_warnings(caller)],
        )

    def recipes(self) -> RecipeList:
        """Give every recipe."""
        return RecipeList(data=list(recipes()))

    async def _queue_warnings(self, caller: Caller) -> list[DiscoveryWarning]:
        if not self._training_available:
            return []
        waiting, limits = await self._waiting(caller), self._limits
        found: list[DiscoveryWarning] = []
        if waiting.of_account >= limits.fine_tune_queue_per_account:
            message = f"{waiting.of_account} fine-tunes of the account wait, and no more may."
            found.append(DiscoveryWarning(code="tenant_queue_full", message=message))
        if waiting.total >= limits.fine_tune_queue:
            message = "The queue of fine-tunes is full; one started now is refused."
            found.append(DiscoveryWarning(code="queue_full", message=message))
        return found


def _warnings(model: HostedModel) -> list[DiscoveryWarning]:
    if model.hangs or model.failed_recently:
        message = f"The engine of {model.name} failed recently; a request to it may be refused."
    elif model.queue.n_waiting >= BUSY_SHARE * model.queue.max_queue:
        message = f"{model.queue.n_waiting} requests wait for {model.name}; one sent now waits too."
    else:
        return []
    return [DiscoveryWarning(code="engine_busy", message=message, model=model.name)]
