"""The price that a request would pay at most: read from its body, and held against the price."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from msgspec import Struct

from steelyard.errors import PriceChangedError
from steelyard.ledger.money import InvalidAmountError, from_usd, to_usd
from steelyard.wire.payloads import read_payload
from steelyard.wire.violations import BODY, Violations

Body = TypeVar("Body", bound=Struct)


def check_price(price_nano: int, max_price_usd: str | None, what: str) -> None:
    """Refuse a price above the request's maximum."""
    if max_price_usd is not None and price_nano > from_usd(max_price_usd):
        raise PriceChangedError(
            f"{what} costs {to_usd(price_nano)} USD now, more than the {max_price_usd} USD that "
            "the request allows; nothing was held.",
            details=[{"price_usd": to_usd(price_nano)}],
        )


def check_max_price(fields: Mapping[str, Any], violations: Violations) -> None:
    """Note a maximum price that is no amount of USD."""
    price = fields.get("max_price_usd")
    if isinstance(price, str):
        try:
            from_usd(price)
        except InvalidAmountError as error:
            violations.add((*BODY, "max_price_usd"), f"cannot be used: {error}", "invalid_amount")


def priced(shape: type[Body]) -> Callable[[object], Body]:
    """Return a reader of bodies that may have a maximum price."""
    return functools.partial(read_payload, shape=shape, check=check_max_price)
