"""The price of an input token, by model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from steelyard.settings import InvalidSettingError

#: The highest price of a token, a USD: the cost of the largest request then fits 64 bits.
MAX_PRICE_NANO = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of models in nano-USD per input token; a model without one is free."""

    by_model: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def parse(cls, text: str) -> Prices:
        """Read the setting ``prices``: ``NAME=NUMBER``, separated by commas."""
        prices: dict[str, int] = {}
        for entry in filter(None, (part.strip() for part in text.split(","))):
            # A model's name may itself hold the sign; a number may not.
            name, sign, number = entry.rpartition("=")
            name, number = name.strip(), number.strip()
            if not sign or not name or not (number.isascii() and number.isdigit()):
                raise _refusal(entry, "write NAME=NUMBER, the number whole and 0 or more")
            if len(number) > 10 or int(number) > MAX_PRICE_NANO:
                raise _refusal(entry, f"give a number of at most {MAX_PRICE_NANO}")
            if name in prices:
                raise _refusal(entry, f"price {name!r} once")
            prices[name] = int(number)
        return cls(MappingProxyType(prices))

    def of(self, model: str) -> int:
        """Return the price of one input token of a model, in nano-USD."""
        return self.by_model.get(model, 0)


def _refusal(entry: str, needed: str) -> InvalidSettingError:
    return InvalidSettingError(
        f"The setting prices (STEELYARD_PRICES) has the entry {entry[:80]!r}; {needed}."
    )
