"""Recipes on the wire: ready-made decisions."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Struct

from steelyard.wire.schemas import doc


class Recipe(Struct, frozen=True, kw_only=True):
    """Ready-made decisions for a common need: copy, change the words, send."""

    id: str
    title: str
    description: str
    decisions: Annotated[list[dict[str, Any]], doc("As the `decisions` of `POST /v1/decide`.")]
    example_context: Annotated[str, doc("A context to try them on.")]


class RecipeList(Struct, frozen=True, kw_only=True):
    """Every recipe."""

    data: list[Recipe]
    has_more: bool = False
    next_cursor: str | None = None
