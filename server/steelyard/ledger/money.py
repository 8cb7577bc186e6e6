"""Amounts of money: integers of nano-USD inside, exact decimal texts of USD outside."""

from __future__ import annotations

import re

#: Nano-USD in a USD.
NANO = 1_000_000_000
#: The largest amount, about nine milliard USD: sums of it fit the 64 bits of a database's integer.
MAX_NANO = 2**63 - 1

_FORM = re.compile(r"(-?)([0-9]{1,12})(?:\.([0-9]{1,9}))?")


class InvalidAmountError(ValueError):
    """A text that is not an exact amount of USD; the message names a right form."""


def to_usd(nano: int) -> str:
    """Return an amount as the wire has it: plain decimal text without needless zeros."""
    if type(nano) is not int:
        raise TypeError(f"An amount is an integer of nano-USD, not a {type(nano).__name__}.")
    whole, rest = divmod(abs(nano), NANO)
    digits = f"{rest:09d}".rstrip("0")
    return f"{'-' if nano < 0 else ''}{whole}{'.' if digits else ''}{digits}"


def from_usd(text: str, *, may_be_negative: bool = False) -> int:
    """Read an amount of USD exactly."""
    if not isinstance(text, str):
        raise InvalidAmountError(
            f"An amount is a text such as '1.50', not a {type(text).__name__}: a number may have "
            "been rounded."
        )
    match = _FORM.fullmatch(text)
    if match is None:
        raise InvalidAmountError(
            f"{text[:40]!r} is not an amount of USD; write digits such as '1.50', with at most nine "
            "after the point."
        )
    minus, whole, rest = match.groups()
    nano = int(whole) * NANO + int((rest or "").ljust(9, "0"))
    if nano > MAX_NANO:
        raise InvalidAmountError(f"{text} USD is too much; the most is {to_usd(MAX_NANO)}.")
    if minus and nano and not may_be_negative:
        raise InvalidAmountError(f"{text} USD is negative; give an amount of 0 or more.")
    return -nano if minus else nano
