"""Fees of fine-tunes and of hours of keep warm, in whole nano-USD."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from msgspec import Struct

from steelyard.families.wire import MAX_STEPS, MIN_STEPS
from steelyard.settings import Settings

Body = TypeVar("Body", bound=Struct)

#: How often a fine-tune goes over its rows when nothing is said.
DEFAULT_PASSES = 2
_HOUR_MINUTES = 60


class Tariff(Struct, frozen=True, kw_only=True):
    """The fees of fine-tunes."""

    token_nano: int = 0
    minimum_nano: int = 0

    @classmethod
    def of(cls, settings: Settings) -> Tariff:
        """Return the tariff that settings make."""
        return cls(token_nano=settings.fine_tune_price, minimum_nano=settings.fine_tune_minimum)


class Fee(Struct, frozen=True, kw_only=True):
    """The price of a fine-tune in nano-USD, and whether it is the minimum for want of tokens."""

    price_nano: int
    is_minimum: bool


def fee_of(trained_tokens: int, tariff: Tariff) -> Fee:
    """Return the fee of a fine-tune."""
    by_token = trained_tokens * tariff.token_nano
    return Fee(
        price_nano=max(by_token, tariff.minimum_nano), is_minimum=by_token < tariff.minimum_nano
    )


def default_steps(n_rows: int, batch: int) -> int:
    """Return the steps that make two passes over the rows, within a request's bounds."""
    return min(max(-(-DEFAULT_PASSES * n_rows // batch), MIN_STEPS), MAX_STEPS)


def passes_of(steps: int, batch: int, n_rows: int) -> float:
    """Return how often the steps go over the rows."""
    return steps * batch / n_rows


def count_trained_tokens(row_tokens: Sequence[int], steps: int, batch: int) -> int:
    """Return the tokens of all rows stepped over, a row as often as it is."""
    if not row_tokens:
        raise ValueError("There are no rows to train on.")
    whole, rest = divmod(steps * batch, len(row_tokens))
    return whole * sum(row_tokens) + sum(row_tokens[:rest])


def charge_minutes(reserved_nano: int, used_s: float) -> int:
    """Return the charge of the part of an hour that was used; a minute begun counts."""
    minutes = min(max(-int(-used_s // 60), 0), _HOUR_MINUTES)
    return -(-reserved_nano * minutes // _HOUR_MINUTES)
