"""The room of accounts."""

from __future__ import annotations

from contextlib import ExitStack

from steelyard.accounts.rate_limits import Counters, RateWindows, RequestLimits, TokenAllowance
from steelyard.accounts.routes import ROUTES
from steelyard.accounts.service import AccountService, effective_limits
from steelyard.accounts.shared_rates import SharedRates
from steelyard.errors import accounts as errors
from steelyard.errors import errors_of
from steelyard.house import House
from steelyard.room import Room
from steelyard.settings import Settings, home_of
from steelyard.storage import open_counters
from steelyard.storage.home import state_url_of


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
    errors=errors_of(errors),
    routes=ROUTES,
    open=_open,
)


def open_counting(settings: Settings, closing: ExitStack) -> Counters:
    """Return counters of callers' minutes: for this machine, or shared by the hosts of a state."""
    path = home_of(settings) / "rates.sqlite" if settings.workers > 1 else None
    windows = RateWindows(path)
    closing.callback(windows.close)
    writer = open_counters(state_url_of(settings))
    if writer is None:
        return windows
    closing.callback(writer.close)
    return SharedRates(writer, windows)
