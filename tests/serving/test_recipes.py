"""Ready-made decisions: each can be sent as it is, and the linter has nothing to say of it."""

from __future__ import annotations

import pytest

from steelyard.decisions.lint.service import lint_request
from steelyard.serving.recipes import recipes
from steelyard.serving.recipes_wire import Recipe
from steelyard.wire.limits import MAX_PLAYGROUND_DECISIONS
from support.decisions.factories import answer


def request_of(recipe: Recipe) -> dict[str, object]:
    return {"context": recipe.example_context, "decisions": recipe.decisions}


def test_there_are_enough_and_each_has_its_own_name() -> None:
    ids = [recipe.id for recipe in recipes()]
    assert len(ids) == len(set(ids)) >= 12
    assert len({recipe.title for recipe in recipes()}) == len(ids)


@pytest.mark.parametrize("recipe", recipes(), ids=lambda recipe: recipe.id)
def test_a_recipe_is_answered_as_it_is(recipe: Recipe) -> None:
    decided = answer(request_of(recipe)).decisions
    assert list(decided) == [decision["id"] for decision in recipe.decisions]
    assert len(decided) <= MAX_PLAYGROUND_DECISIONS


@pytest.mark.parametrize("recipe", recipes(), ids=lambda recipe: recipe.id)
def test_the_linter_has_nothing_to_say(recipe: Recipe) -> None:
    assert lint_request(request_of(recipe)).warnings == []


@pytest.mark.parametrize("recipe", recipes(), ids=lambda recipe: recipe.id)
def test_a_recipe_has_a_purpose(recipe: Recipe) -> None:
    for text in (recipe.title, recipe.description, recipe.example_context):
        assert text == text.strip()
        assert text
    assert recipe.description.endswith(".")
