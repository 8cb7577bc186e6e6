from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.ledger.money import MAX_NANO, InvalidAmountError, from_usd, to_usd


@pytest.mark.parametrize(
    ("nano", "text"),
    [
        (0, "0"),
        (1, "0.000000001"),
        (12_000, "0.000012"),
        (10**9, "1"),
        (1_500_000_000, "1.5"),
        (-1, "-0.000000001"),
        (MAX_NANO, "9223372036.854775807"),
    ],
)
def test_amounts_have_one_plain_form(nano: int, text: str):
    assert to_usd(nano) == text
    assert from_usd(text, may_be_negative=True) == nano


@given(st.integers(-MAX_NANO, MAX_NANO))
def test_every_amount_comes_back_exactly(nano: int):
    text = to_usd(nano)
    assert from_usd(text, may_be_negative=True) == nano
    assert Decimal(text) * 10**9 == nano
    assert "e" not in text.lower()
    assert not (("." in text) and text.endswith(("0", ".")))


@pytest.mark.parametrize(("text", "nano"), [("007.50", 7_500_000_000), ("-0", 0), ("0.0", 0)])
def test_needless_zeros_are_read(text: str, nano: int):
    assert from_usd(text) == nano


@pytest.mark.parametrize(
    "text",
    [
        "",
        " 1",
        "1 ",
        "1.",
        ".5",
        "+1",
        "1,5",
        "1e3",
        "NaN",
        "Infinity",
        "0x1",
        "٣",
        "--1",
        "1.0000000001",
        "1.0000000000",
        "$1",
        "1\n",
        "9" * 13,
        "9223372036.854775808",
    ],
)
def test_inexact_amounts_are_refused(text: str):
    with pytest.raises(InvalidAmountError):
        from_usd(text, may_be_negative=True)


@pytest.mark.parametrize("value", [1.5, 1, None, b"1", Decimal(1), True])
def test_a_number_is_refused_for_it_may_be_rounded(value: object):
    with pytest.raises(InvalidAmountError):
        from_usd(value)  # type: ignore[arg-type]


def test_a_negative_amount_is_refused_unless_allowed():
    with pytest.raises(InvalidAmountError, match="negative"):
        from_usd("-0.5")


@pytest.mark.parametrize("value", [1.0, "1", None, True])
def test_only_integers_are_written(value: object):
    with pytest.raises(TypeError):
        to_usd(value)  # type: ignore[arg-type]
