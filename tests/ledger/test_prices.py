from __future__ import annotations

import pytest

from steelyard.ledger.prices import MAX_PRICE_NANO, Prices
from steelyard.settings import InvalidSettingError


@pytest.mark.parametrize("text", ["", " ", ","])
def test_without_prices_everything_is_free(text: str):
    assert Prices.parse(text).of("any") == Prices().of("any") == 0


def test_prices_are_by_model():
    prices = Prices.parse(f" a = 12 , b=0,c=d={MAX_PRICE_NANO},")
    assert {name: prices.of(name) for name in ("a", "b", "c=d", "e")} == {
        "a": 12,
        "b": 0,
        "c=d": MAX_PRICE_NANO,
        "e": 0,
    }


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "a=",
        "=1",
        "a=1.5",
        "a=-1",
        "a=+1",
        "a=1e3",
        "a=٣",
        "a=1_0",
        "a=nan",
        "a=1,a=2",
        f"a={MAX_PRICE_NANO + 1}",
        "a=" + "9" * 5000,
    ],
)
def test_other_entries_are_refused(text: str):
    with pytest.raises(InvalidSettingError, match="STEELYARD_PRICES"):
        Prices.parse(text)
