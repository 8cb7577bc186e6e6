"""Fees of fine-tunes and hours: exact integers, minimums and bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.errors import PriceChangedError
from steelyard.families.lineage.fees import (
    Fee,
    Tariff,
    charge_minutes,
    count_trained_tokens,
    default_steps,
    fee_of,
    passes_of,
)
from steelyard.ledger.max_price import check_price

TARIFF = Tariff(token_nano=40, minimum_nano=1_000)


@pytest.mark.parametrize(
    ("tokens", "fee"),
    [
        (0, Fee(price_nano=1_000, is_minimum=True)),
        (24, Fee(price_nano=1_000, is_minimum=True)),
        (25, Fee(price_nano=1_000, is_minimum=False)),
        (26, Fee(price_nano=1_040, is_minimum=False)),
    ],
)
def test_the_fee_is_by_token_with_a_minimum(tokens, fee):
    assert fee_of(tokens, TARIFF) == fee


def test_a_server_without_prices_trains_for_nothing():
    assert fee_of(10**9, Tariff()) == Fee(price_nano=0, is_minimum=False)


@pytest.mark.parametrize(
    ("rows", "batch", "steps"),
    [
        (1, 16, 20),
        (160, 16, 20),
        (161, 16, 21),
        (1_000, 32, 63),
        (16_000, 16, 2000),
        (10**7, 1, 2000),
    ],
)
def test_steps_make_two_passes_within_the_bounds(rows, batch, steps):
    assert default_steps(rows, batch) == steps


def test_passes_are_steps_times_batch_over_rows():
    assert passes_of(125, 16, 1_000) == 2.0


@given(
    tokens=st.lists(st.integers(1, 50), min_size=1, max_size=12),
    steps=st.integers(1, 30),
    batch=st.integers(1, 8),
)
def test_tokens_are_those_of_the_rows_stepped_over(tokens, steps, batch):
    stepped = [tokens[i % len(tokens)] for i in range(steps * batch)]
    assert count_trained_tokens(tokens, steps, batch) == sum(stepped)


def test_no_rows_have_no_tokens():
    with pytest.raises(ValueError, match="no rows"):
        count_trained_tokens([], 20, 16)


@pytest.mark.parametrize(
    ("seconds", "charge"),
    [
        (-5.0, 0),
        (0.0, 0),
        (0.5, 10),
        (60.0, 10),
        (60.1, 20),
        (3540.0, 590),
        (3600.0, 600),
        (1e6, 600),
    ],
)
def test_a_minute_begun_is_charged(seconds, charge):
    assert charge_minutes(600, seconds) == charge


@given(reserved=st.integers(0, 10**12), seconds=st.floats(0, 5000))
def test_never_more_than_the_hour_is_charged(reserved, seconds):
    assert 0 <= charge_minutes(reserved, seconds) <= reserved


def test_a_price_is_compared_with_the_callers_limit():
    check_price(2_000, None, "It")
    check_price(2_000, "0.000002", "It")
    with pytest.raises(
        PriceChangedError, match=r"^It costs 0\.000002 USD now, more than the 0\.000001 USD"
    ) as refused:
        check_price(2_000, "0.000001", "It")
    assert refused.value.details == [{"price_usd": "0.000002"}]
