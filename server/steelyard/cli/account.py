"""``steelyard account``: accounts and their credit on this machine's state."""

from __future__ import annotations

import click

from steelyard.cli.local_state import local_accounts, show_json, show_table, show_time
from steelyard.cli.options import setting_option

_EPILOG = """\b
Examples:
  steelyard account create acme
  steelyard account credit acme 25.50
  steelyard account list
"""


@click.group("account", epilog=_EPILOG)
def command() -> None:
    """Make and list accounts, and add credit.

    Works on the state directly, whether or not a server runs; a server sees it at once.
    """


@command.command("create", epilog=_EPILOG)
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@setting_option("home")
@setting_option("state_url")
def create(*, name: str, as_json: bool, home: str | None, state_url: str | None) -> None:
    """Make an account."""
    with local_accounts(home, state_url) as accounts:
        made = accounts.create_account(name)
    if as_json:
        show_json(made)
        return
    click.echo(made.id)


@command.command("list", epilog=_EPILOG)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@setting_option("home")
@setting_option("state_url")
def list_accounts(*, as_json: bool, home: str | None, state_url: str | None) -> None:
    """List accounts and their money, the oldest first."""
    with local_accounts(home, state_url) as accounts:
        found = accounts.list_accounts()
    if as_json:
        show_json(found)
        return
    show_table(
        ("ID", "NAME", "MADE", "BALANCE (USD)", "AVAILABLE", "RESERVED"),
        [
            (
                entry.id,
                entry.name,
                show_time(entry.created_at),
                entry.wallet.balance_usd,
                entry.wallet.available_usd,
                entry.wallet.reserved_usd,
            )
            for entry in found
        ],
    )


@command.command("credit", epilog=_EPILOG)
@click.argument("account")
@click.argument("amount", metavar="USD")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@setting_option("home")
@setting_option("state_url")
def credit(
    *, account: str, amount: str, as_json: bool, home: str | None, state_url: str | None
) -> None:
    """Add credit in USD to an account, by its id or name."""
    from steelyard.cli.amounts import read_usd

    added = read_usd(amount, "USD")
    with local_accounts(home, state_url) as accounts:
        entry = accounts.add_credit(account, added)
    if as_json:
        show_json(entry)
        return
    click.echo(f"{entry.name} ({entry.id}) has {entry.wallet.available_usd} USD available.")
