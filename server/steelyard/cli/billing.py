"""``steelyard billing``: payments that an operator confirms, sends back or looks into."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from steelyard.cli.local_state import (
    LocalAccounts,
    account_options,
    local_state,
    show_rows,
    show_table,
)

if TYPE_CHECKING:
    from steelyard.billing.service import PurchaseService

_EPILOG = """\b
Examples:
  steelyard billing confirm pur_01k6v0p3w4e9h2n5t7x8z1a3c6
  steelyard billing refund pur_01k6v0p3w4e9h2n5t7x8z1a3c6
  steelyard billing parked
  steelyard billing balance acme
"""


@click.group("billing", epilog=_EPILOG)
def command() -> None:
    """Confirm and refund purchases, and look into payments that do not agree.

    Works on the state directly, whether or not a server runs; a server sees it at once.
    """


@contextmanager
def _opened(local: LocalAccounts) -> Iterator[PurchaseService]:
    from steelyard.billing.amounts import referral_nano_of
    from steelyard.billing.providers import open_provider
    from steelyard.billing.service import PurchaseService
    from steelyard.settings import read_settings

    settings = read_settings({"home": local.home, "state_url": local.state_url})
    with local_state(local.home, local.state_url) as state:
        yield PurchaseService(
            state,
            open_provider(settings),
            accounts_enabled=True,
            referral_nano=referral_nano_of(settings),
        )


@command.command("confirm", epilog=_EPILOG)
@click.argument("purchase")
@account_options
def confirm(*, purchase: str, local: LocalAccounts) -> None:
    """Note that the bank transfer of a purchase came: its credit is there at once."""
    with _opened(local) as money:
        made = money.confirm(purchase)
    local.show(made, f"{made.id} is {made.state}: {made.amount_usd} USD.")


@command.command("refund", epilog=_EPILOG)
@click.argument("purchase")
@click.option(
    "--even-if-spent", is_flag=True, help="Refund it although the account then owes the rest."
)
@account_options
def refund(*, purchase: str, even_if_spent: bool, local: LocalAccounts) -> None:
    """Send the money of a purchase back, and take its credit.

    For a bank transfer, send the money yourself.
    """
    with _opened(local) as money:
        made = money.refund(purchase, even_if_spent=even_if_spent)
    text = f"{made.id} is {made.state}: {made.amount_usd} USD."
    if made.state != "refunded":
        text = f"The refund of {made.id} is asked for; its provider will tell when it is done."
    local.show(made, text)


@command.command("parked", epilog=_EPILOG)
@click.option("--clear", metavar="EVENT", help="Put one away that was looked into, by its id.")
@account_options
def parked(*, clear: str | None, local: LocalAccounts) -> None:
    """List provider events that contradict their purchase; they gave no credit."""
    with _opened(local) as money:
        if clear is not None:
            money.clear(clear)
        events = money.parked()
    columns = "EVENT:id, PROVIDER:provider, PURCHASE:purchase_id, RECEIVED:received_at, WHY:reason"
    local.show(events, lambda: show_rows(events, columns))


@command.command("balance", epilog=_EPILOG)
@click.argument("account")
@account_options
def balance(*, account: str, local: LocalAccounts) -> None:
    """Show an account's books, by its id or name; together they are zero."""
    with _opened(local) as money:
        books = money.balance(account)
    local.show(books, lambda: show_table(("BOOK", "USD"), list(books.items())))
