"""Amounts of money that requests and settings name: read exactly, or refused."""

from __future__ import annotations

from steelyard.errors import InvalidRequestError
from steelyard.ledger.money import NANO, InvalidAmountError, from_usd, to_usd
from steelyard.settings import InvalidSettingError, Settings

#: What one purchase may be, in nano-USD.
LEAST, MOST = 5 * NANO, 10_000 * NANO
_CENT = NANO // 100


def referral_nano_of(settings: Settings) -> int:
    """Return the reward of a referral for each side, in nano-USD."""
    try:
        return from_usd(settings.referral_usd)
    except InvalidAmountError as error:
        raise InvalidSettingError(
            f"The setting referral_usd (STEELYARD_REFERRAL_USD) cannot be used: {error}"
        ) from None


def read_amount(text: str, field: str, *, least: int = LEAST, most: int = MOST) -> int:
    """Return an amount of whole cents in nano-USD, or refuse it."""
    try:
        amount = from_usd(text)
    except InvalidAmountError as error:
        raise refused(field, f"cannot be used: {error}", "invalid_amount") from None
    if not least <= amount <= most:
        raise refused(field, f"is {text} USD; give {to_usd(least)} to {to_usd(most)}.")
    if amount % _CENT:
        raise refused(field, f"is {text} USD; give whole cents.", "invalid_amount")
    return amount


def refused(field: str, message: str, type_: str = "out_of_range") -> InvalidRequestError:
    """Return the refusal of a field."""
    return InvalidRequestError.at(("body", field), f"{field} {message}", type_)
