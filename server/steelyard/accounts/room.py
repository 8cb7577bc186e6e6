"""The room of accounts."""

from __future__ import annotations

from steelyard.accounts import tables
from steelyard.accounts.counting import open_counting
from steelyard.accounts.rate_limits import RequestLimits, TokenAllowance
from steelyard.accounts.routes import ROUTES
from steelyard.accounts.service import AccountService, effective_limits
from steelyard.errors import accounts as errors
from steelyard.errors import errors_of
from steelyard.house import House
from steelyard.room import Room


def _open(house: House) -> tuple[object, ...]:
    settings = house.settings
    windows = open_counting(settings, house.closing)
    return (
        AccountService(
            house.state, accounts_enabled=house.has_accounts, limits=effective_limits(settings)
        ),
        TokenAllowance(windows, settings.tokens_per_minute),
        RequestLimits(
            windows,
            per_minute=settings.requests_per_minute,
            public_per_minute=settings.public_requests_per_minute,
        ),
    )


ROOM = Room(
    name="accounts",
    after=("http",),
    nouns=("account",),
    tables=(tables.rate_windows, tables.views),
    errors=errors_of(errors),
    routes=ROUTES,
    open=_open,
)
