"""A price that the first press shows, and the next agrees to."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from steelyard.errors import PriceChangedError

Job = TypeVar("Job")


class AgreedPrice:
    """The price that a start may have: nothing until it was shown."""

    def __init__(self) -> None:
        self.usd = "0"

    def start(self, start: Callable[[str], Job]) -> Job | None:
        """Start for at most this price; returns ``None`` where it costs ``usd``, which is then agreed to."""
        try:
            job = start(self.usd)
        except PriceChangedError as error:
            self.usd = str((error.details or [{}])[0].get("price_usd"))
            return None
        self.usd = "0"
        return job
