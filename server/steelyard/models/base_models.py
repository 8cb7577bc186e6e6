"""How base models are shown: in full, by name, and whether each would answer now."""

from __future__ import annotations

import datetime as dt

from msgspec import UNSET

from steelyard.models.wire import Model, ModelList, ModelName, ModelReadiness
from steelyard.serving.registry import HostedModel, ModelRegistry
from steelyard.wire.limits import MAX_DECISIONS

#: The name under which TypeSafe clients know the default base model.
DEFAULT_ALIAS = "jev-latest"


def describe_base(model: HostedModel, most: int = MAX_DECISIONS) -> Model:
    """Return a base model as the wire has it, which answers at most ``most`` decisions at once."""
    return Model(
        id=model.name,
        name=model.name,
        status="ready" if model.can_answer else "unavailable",
        availability_reason=UNSET if model.can_answer else "engine_unavailable",
        description=model.description,
        evaluation_key=model.evaluation_key,
        decision_price_nano=str(model.price_nano),
        family=model.name,
        created_at=dt.datetime.combine(model.release_date, dt.time(), dt.UTC).timestamp(),
        max_input_tokens=model.max_input_tokens,
        max_prompt_tokens=model.max_input_tokens,
        max_questions=most,
        calibration="not_measured",
        engine=model.runs_on,
        release_date=model.release_date.isoformat(),
    )


def list_bases(registry: ModelRegistry, most: int = MAX_DECISIONS) -> ModelList:
    """Return every base model as the wire has it; the default's alias is among the names."""
    default = registry.default
    return ModelList(
        data=[describe_base(model, most) for model in registry.hosted],
        models=[
            *(_named(model.name, model, model.description) for model in registry.hosted),
            _named(DEFAULT_ALIAS, default, f"Another name of {default.name}."),
        ],
    )


def readiness_of_base(model: HostedModel) -> ModelReadiness:
    """Return whether a call to a base model would be answered now."""
    if not model.can_answer:
        return ModelReadiness(model=model.name, ready=False, reason="engine_unavailable")
    return ModelReadiness(model=model.name, ready=True)


def _named(name: str, model: HostedModel, description: str) -> ModelName:
    return ModelName(
        name=name, description=description, release_date=model.release_date.isoformat()
    )
