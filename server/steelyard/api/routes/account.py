"""``GET /v1/account`` and its keys: what the account may use, and what it holds."""

from __future__ import annotations

from sanic import HTTPResponse, Request

from steelyard.api.bodies import json_response
from steelyard.api.callers import caller_of, services_of
from steelyard.api.queries import read_query
from steelyard.api.routing import Access, Route
from steelyard.wire.account import AccountSummary, ApiKeyPage
from steelyard.wire.queries import ApiKeysQuery


async def get_account(request: Request) -> HTTPResponse:
    """Give the account's limits and money."""
    return json_response(await services_of(request).accounts.summary(caller_of(request)))


async def get_keys(request: Request) -> HTTPResponse:
    """Give a page of the account's keys, the newest first; secrets are not kept."""
    query = read_query(request, ApiKeysQuery)
    page = await services_of(request).accounts.keys(
        caller_of(request), revoked=query.revoked, limit=query.limit, cursor=query.cursor
    )
    return json_response(page)


ROUTES = (
    Route(
        method="GET",
        path="/v1/account",
        handler=get_account,
        summary="Say what the account may use and what credit it has.",
        access=Access.KEYED,
        tags=("account",),
        response=AccountSummary,
    ),
    Route(
        method="GET",
        path="/v1/account/keys",
        handler=get_keys,
        summary="Page the account's API keys, the newest first.",
        access=Access.KEYED,
        tags=("account",),
        query=ApiKeysQuery,
        response=ApiKeyPage,
    ),
)
