"""Saved views over HTTP, by the client: kept under a name, listed, and removed."""

from __future__ import annotations

import pytest

import steelyard
from steelyard import errors
from steelyard.views.service import MAX_VIEWS
from support.servers.live_server import live_server

pytestmark = pytest.mark.usefixtures("every_response_is_checked")


@pytest.fixture(scope="module")
def client():
    with live_server() as server, steelyard.connect(server.url) as found:
        yield found


def test_a_view_is_kept_under_a_name_that_no_other_has(client):
    first = client.views.save("doubtful refunds", "page=review&draft=dr_1&query=%7B%7D")
    second = client.views.save("Ämter", "page=home")
    assert [one.id for one in client.views.list(page_size=1)] == [second.id, first.id]
    with pytest.raises(errors.ViewExistsError, match="take another name"):
        client.views.save("doubtful refunds", "page=home")
    client.views.delete(first.id)
    assert list(client.views.list()) == [second]
    with pytest.raises(errors.NotFoundError):
        client.views.delete(first.id)
    again = client.views.save("doubtful refunds", "page=home", idempotency_key="k")
    assert client.views.save("doubtful refunds", "page=home", idempotency_key="k") == again


def test_long_names_and_too_many_views_are_refused(client):
    for name, address in (("", "page=home"), ("n" * 81, "page=home"), ("long", "a" * 4001)):
        with pytest.raises(errors.InvalidRequestError):
            client.views.save(name, address)
    held = len(list(client.views.list()))
    for number in range(MAX_VIEWS - held):
        client.views.save(f"view {number}", "page=home")
    with pytest.raises(errors.ViewLimitError, match="may have no more"):
        client.views.save("one too many", "page=home")
