"""What fine-tunes and hours of keep warm cost, in whole nano-USD."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec
from msgspec import Struct

from steelyard.billing.money import InvalidAmountError, from_usd, to_usd
from steelyard.errors import PriceChangedError
from steelyard.families.wire import MAX_STEPS, MIN_STEPS
from steelyard.wire.payloads import open_payload
from steelyard.wire.violations import BODY, Violations

Body = TypeVar("Body", bound=Struct)

#: How often a fine-tune goes over its rows when nothing is said.
DEFAULT_PASSES = 2
_HOUR_MINUTES = 60


class Tariff(Struct, frozen=True, kw_only=True):
    """What a fine-tune costs."""

    token_nano: int = 0
    minimum_nano: int = 0


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
    """Return the steps that make two passes over the rows, within what a request may ask."""
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


def check_price(price_nano: int, max_price_usd: str | None, what: str) -> None:
    """Refuse a price above what the request would pay."""
    if max_price_usd is not None and price_nano > from_usd(max_price_usd):
        raise PriceChangedError(
            f"{what} costs {to_usd(price_nano)} USD now, more than the {max_price_usd} USD that "
            "the request allows; nothing was held.",
            details=[{"price_usd": to_usd(price_nano)}],
        )


def priced(shape: type[Body]) -> Callable[[object], Body]:
    """Return what reads a body that may name a price."""
    return functools.partial(_read_priced, shape=shape)


def _read_priced(payload: object, shape: type[Body]) -> Body:
    found = Violations()
    fields = open_payload(payload, shape, found)
    price = fields.get("max_price_usd")
    if isinstance(price, str):
        try:
            from_usd(price)
        except InvalidAmountError as error:
            found.add((*BODY, "max_price_usd"), f"cannot be used: {error}", "invalid_amount")
    found.raise_if_any()
    return msgspec.convert(fields, shape)
