"""``GET /v1/account`` and its keys: permissions, limits and credit."""

from steelyard.accounts.service import AccountService
from steelyard.http.routing import Access, row

ROUTES = (
    row(
        "GET /v1/account",
        AccountService.summary,
        "Return what the account may use and what credit it has.",
        access=Access.CONSOLE,
        takes_keys=True,
        needs_no_accounts=True,
        roles=("owner", "developer", "billing"),
        tags=("account",),
    ),
    row(
        "GET /v1/account/keys",
        AccountService.keys,
        "Page the account's API keys, the newest first.",
        access=Access.CONSOLE,
        takes_keys=True,
        needs_no_accounts=True,
        roles=("owner", "developer"),
        tags=("account",),
    ),
)
