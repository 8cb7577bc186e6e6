"""What this server can do: its models, recipes, bounds and prices, and what is busy now."""

from __future__ import annotations

from dataclasses import dataclass

from steelyard.billing.money import to_usd
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
    dataset_min_rows: int = 2
    dataset_rows: int = 100_000
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
    training_available : bool
        Whether families can be started and continued here.
    """

    def __init__(
        self, models: ModelRegistry, limits: PublishedLimits, *, training_available: bool
    ) -> None:
        self._models = models
        self._limits = limits
        self._training_available = training_available

    def discover(self) -> Discovery:
        """Give everything at once, as of now."""
        hosted = self._models.hosted
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
            warnings=[warning for model in hosted for warning in _warnings(model)],
        )

    def recipes(self) -> RecipeList:
        """Give every recipe."""
        return RecipeList(data=list(recipes()))


def _warnings(model: HostedModel) -> list[DiscoveryWarning]:
    if model.hangs or model.failed_recently:
        message = f"The engine of {model.name} failed recently; a request to it may be refused."
    elif model.queue.n_waiting >= BUSY_SHARE * model.queue.max_queue:
        message = f"{model.queue.n_waiting} requests wait for {model.name}; one sent now waits too."
    else:
        return []
    return [DiscoveryWarning(code="engine_busy", message=message, model=model.name)]
