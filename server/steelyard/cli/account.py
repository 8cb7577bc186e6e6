"""``steelyard account``: accounts, their credit and their first members on this machine's state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from steelyard.cli.local_state import LocalAccounts, account_options, show_rows
from steelyard.wire.storing import STORE_SENTENCES, STORE_SETTINGS

if TYPE_CHECKING:
    from steelyard.people.roles import Role
    from steelyard.wire.storing import StoreSetting

_EPILOG = """\b
Examples:
  steelyard account create acme
  steelyard account credit acme 25.50
  steelyard account list
  steelyard account store acme features
  steelyard account invite acme mia@example.org --role owner
  steelyard account operator sam@example.org
"""


@click.group("account", epilog=_EPILOG)
def command() -> None:
    """Make and list accounts, add credit, and let people in.

    Works on the state directly, whether or not a server runs; a server sees it at once.
    """


@command.command("create", epilog=_EPILOG)
@click.argument("name")
@account_options
def create(*, name: str, local: LocalAccounts) -> None:
    """Make an account."""
    with local.opened() as accounts:
        made = accounts.create_account(name)
    local.show(made, made.id)


@command.command("list", epilog=_EPILOG)
@account_options
def list_accounts(*, local: LocalAccounts) -> None:
    """List accounts and their money, the oldest first."""
    with local.opened() as accounts:
        entries = accounts.list_accounts()
    columns = (
        "ID:id, NAME:name, MADE:created_at, BALANCE (USD):wallet.balance_usd, "
        "AVAILABLE:wallet.available_usd, RESERVED:wallet.reserved_usd"
    )
    local.show(entries, lambda: show_rows(entries, columns))


@command.command("credit", epilog=_EPILOG)
@click.argument("account")
@click.argument("amount", metavar="USD")
@account_options
def credit(*, account: str, amount: str, local: LocalAccounts) -> None:
    """Add credit in USD to an account, by its id or name."""
    from steelyard.cli.options import read_usd

    added = read_usd(amount, "USD")
    with local.opened() as accounts:
        entry = accounts.add_credit(account, added)
    local.show(entry, f"{entry.name} ({entry.id}) has {entry.wallet.available_usd} USD available.")


@command.command("store", epilog=_EPILOG)
@click.argument("account")
@click.argument("store", type=click.Choice(STORE_SETTINGS))
@account_options
def store(*, account: str, store: StoreSetting, local: LocalAccounts) -> None:
    """Set the most that is stored of an account's answers; features stores no text."""
    with local.opened() as accounts:
        accounts.limit_storing(account, store)
    local.show({"account": account, "store": store}, f"{account} stores {STORE_SENTENCES[store]}.")


@command.command("invite", epilog=_EPILOG)
@click.argument("account")
@click.argument("address")
@click.option(
    "--role",
    type=click.Choice(["owner", "developer", "billing", "reviewer"]),
    default="owner",
    show_default=True,
    help="What the address may do in the account.",
)
@account_options
def invite(*, account: str, address: str, role: Role, local: LocalAccounts) -> None:
    """Invite an address to an account; no letter is sent."""
    with local.opened_members() as members:
        invited = members.invite_now(account, address, role)
    local.show(invited, f"{invited.email} may sign in as {role} within 14 days.")


@command.command("operator", epilog=_EPILOG)
@click.argument("address")
@account_options
def operator(*, address: str, local: LocalAccounts) -> None:
    """Make an address an operator, who may sign in and sees the whole server."""
    with local.opened_members() as members:
        email = members.make_operator(address)
    local.show({"email": email, "is_operator": True}, f"{email} is an operator.")
