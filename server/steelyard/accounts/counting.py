"""Open the counters of callers' minutes."""

from __future__ import annotations

from contextlib import ExitStack

from steelyard.accounts.rate_limits import Counters, RateWindows
from steelyard.accounts.shared_rates import SharedRates
from steelyard.settings import Settings, home_of
from steelyard.storage import open_counters
from steelyard.storage.home import state_url_of


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
