"""GET /v1/account and its keys: queries checked, and the document kept."""

from __future__ import annotations

import pytest

from support.api.error_shape import assert_canonical_error

pytestmark = pytest.mark.usefixtures("every_response_is_checked")


def test_a_server_without_accounts_has_one(client):
    response = client.get("/v1/account")
    assert response.status_code == 200
    assert response.json()["accounts_enabled"] is False


def test_it_has_no_keys(client):
    page = client.get("/v1/account/keys", params={"limit": 1, "revoked": "false"}).json()
    assert (page["data"], page["has_more"], page["next_cursor"]) == ([], False, None)


@pytest.mark.parametrize(
    ("query", "name"),
    [("limit=0", "limit"), ("limit=201", "limit"), ("revoked=maybe", "revoked"), ("x=1", "x")],
)
def test_a_query_that_cannot_be_used(client, query, name):
    response = client.get(f"/v1/account/keys?{query}")
    assert_canonical_error(response, 422, "invalid_request", path=["query", name])
