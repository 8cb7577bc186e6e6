"""Amounts of money on the command line."""

from __future__ import annotations

import click

from steelyard.billing.money import InvalidAmountError, from_usd


def read_usd(text: str, name: str) -> int:
    """Return an amount of USD in nano-USD."""
    try:
        return from_usd(text)
    except InvalidAmountError as error:
        raise click.BadParameter(str(error), param_hint=name) from None
