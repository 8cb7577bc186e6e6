"""``GET /v1/account`` and its keys: permissions, limits and credit."""

from __future__ import annotations

from steelyard.accounts.service import AccountService
from steelyard.accounts.wire import AccountSummary, ApiKeyPage
from steelyard.http.routing import Access, Route
from steelyard.wire.queries import ApiKeysQuery

ROUTES = (
    Route(
        method="GET",
        path="/v1/account",
        use=lambda call: call.service(AccountService).summary(call.caller),
        summary="Return what the account may use and what credit it has.",
        access=Access.CONSOLE,
        takes_keys=True,
        needs_no_accounts=True,
        roles=("owner", "developer", "billing"),
        tags=("account",),
        response=AccountSummary,
    ),
    Route(
        method="GET",
        path="/v1/account/keys",
        use=lambda call: call.service(AccountService).keys(call.caller, call.query),
        summary="Page the account's API keys, the newest first.",
        access=Access.CONSOLE,
        takes_keys=True,
        needs_no_accounts=True,
        roles=("owner", "developer"),
        tags=("account",),
        query=ApiKeysQuery,
        response=ApiKeyPage,
    ),
)
