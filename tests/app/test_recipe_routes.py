"""GET /v1/recipes: ready-made decisions that can be sent as they are."""

from __future__ import annotations

import pytest

from steelyard.serving.recipes import recipes

pytestmark = pytest.mark.usefixtures("every_response_is_checked")


def test_every_recipe_is_listed_and_each_is_answered(client):
    body = client.get("/v1/recipes").json()
    assert (body["has_more"], body["next_cursor"]) == (False, None)
    assert [recipe["id"] for recipe in body["data"]] == [recipe.id for recipe in recipes()]
    for recipe in body["data"]:
        assert recipe.keys() == {"id", "title", "description", "decisions", "example_context"}
        request = {"context": recipe["example_context"], "decisions": recipe["decisions"]}
        assert client.post("/v1/playground/decide", json=request).status_code == 200


def test_a_bad_bearer_is_ignored(client):
    response = client.get("/v1/recipes", headers={"Authorization": "Bearer nonsense"})
    assert response.status_code == 200
