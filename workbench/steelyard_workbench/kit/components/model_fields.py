"""Fields that choose models: families first, unavailable ones grey, with the reason."""

from __future__ import annotations

from collections.abc import Sequence

import panel_material_ui as pmui

from steelyard.client.model_choices import ModelChoice
from steelyard_workbench.kit.basics import small_text


def offer_models(
    field: pmui.Select, choices: Sequence[ModelChoice], *, value: str | None = None
) -> None:
    """Fill a field with models: it keeps its value, or has ``value``, or the first that can answer."""
    names = [choice.name for choice in choices]
    able = [choice.name for choice in choices if choice.reason is None]
    preferred = [name for name in (value, field.value) if name in names]
    field.param.update(
        options={choice.label: choice.name for choice in choices},
        disabled_options=[choice.name for choice in choices if choice.reason is not None],
        value=next(iter([*preferred, *able]), None),
    )


def able_models(choices: Sequence[ModelChoice]) -> dict[str, str]:
    """Return the models that can answer now, with the labels of their check boxes."""
    return {choice.label: choice.name for choice in choices if choice.reason is None}


def unable_models(choices: Sequence[ModelChoice]) -> pmui.Typography:
    """Return in grey which models cannot answer now, and why."""
    unable = [f"{choice.name} ({choice.reason})" for choice in choices if choice.reason is not None]
    return small_text(
        f"Cannot answer now: {', '.join(unable)}.", color="text.secondary", visible=bool(unable)
    )
