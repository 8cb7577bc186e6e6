"""``steelyard billing``: payments that an operator confirms, sends back or looks into."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from steelyard.cli.local_state import ThisMachine, show_table, state_options, table_of
from steelyard.cli.nouns import Noun, Shown

if TYPE_CHECKING:
    from steelyard.billing.service import PurchaseService

_EPILOG = """\b
Examples:
  steelyard billing confirm pur_01k6v0p3w4e9h2n5t7x8z1a3c6
  steelyard billing refund pur_01k6v0p3w4e9h2n5t7x8z1a3c6
  steelyard billing parked
  steelyard billing balance acme
"""


@contextmanager
def _opened(source: ThisMachine) -> Iterator[PurchaseService]:
    from steelyard.billing.amounts import referral_nano_of
    from steelyard.billing.providers import open_provider
    from steelyard.billing.service import PurchaseService

    settings = source.settings
    with source.state() as state:
        yield PurchaseService(
            state,
            open_provider(settings),
            accounts_enabled=True,
            referral_nano=referral_nano_of(settings),
        )


@click.group("billing", cls=Noun, epilog=_EPILOG, options=state_options, connect=_opened)
def command() -> None:
    """Confirm and refund purchases, and look into payments that do not agree.

    Works on the state directly, whether or not a server runs; a server sees it at once.
    """


@command.asks("confirm", "purchase")
def confirm(money: PurchaseService, purchase: str) -> Shown:
    """Note that the bank transfer of a purchase came: its credit is there at once."""
    made = money.confirm(purchase)
    return made, f"{made.id} is {made.state}: {made.amount_usd} USD."


@command.asks("refund", "purchase")
@click.option(
    "--even-if-spent", is_flag=True, help="Refund it although the account then owes the rest."
)
def refund(money: PurchaseService, purchase: str, *, even_if_spent: bool) -> Shown:
    """Send the money of a purchase back, and take its credit.

    For a bank transfer, send the money yourself.
    """
    made = money.refund(purchase, even_if_spent=even_if_spent)
    text = f"{made.id} is {made.state}: {made.amount_usd} USD."
    if made.state != "refunded":
        text = f"The refund of {made.id} is asked for; its provider will tell when it is done."
    return made, text


@command.asks("parked")
@click.option("--clear", metavar="EVENT", help="Put one away that was looked into, by its id.")
def parked(money: PurchaseService, *, clear: str | None) -> Shown:
    """List provider events that contradict their purchase; they gave no credit."""
    if clear is not None:
        money.clear(clear)
    columns = "EVENT:id, PROVIDER:provider, PURCHASE:purchase_id, RECEIVED:received_at, WHY:reason"
    return money.parked(), table_of(columns)


@command.asks("balance", "account")
def balance(money: PurchaseService, account: str) -> Shown:
    """Show an account's books, by its id or name; together they are zero."""
    return money.balance(account), lambda books: show_table(("BOOK", "USD"), list(books.items()))
