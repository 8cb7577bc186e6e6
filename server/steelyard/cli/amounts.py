"""Amounts of money on the command line."""

from __future__ import annotations

import click

from steelyard.billing.money import InvalidAmountError, from_usd


def read_usd(text: str, name: str) -> int:
    """Return an amount of USD in nano-USD.

    Raises
    ------
    click.BadParameter
        When it is none; the message names the parameter.
    """
    try:
        return from_usd(text)
    except InvalidAmountError as error:
        raise click.BadParameter(str(error), param_hint=name) from None
