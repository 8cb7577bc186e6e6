"""``steelyard account``: accounts, their credit and their first members on this machine's state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from steelyard.cli.local_state import ThisMachine, state_options, table_of
from steelyard.cli.nouns import Noun, Shown
from steelyard.cli.options import read_usd
from steelyard.wire.storing import STORE_SENTENCES, STORE_SETTINGS

if TYPE_CHECKING:
    from steelyard.accounts.service import AccountService
    from steelyard.people.member_service import Members
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


@click.group(
    "account", cls=Noun, epilog=_EPILOG, options=state_options, connect=ThisMachine.accounts
)
def command() -> None:
    """Make and list accounts, add credit, and let people in.

    Works on the state directly, whether or not a server runs; a server sees it at once.
    """


@command.asks("create", "name")
def create(accounts: AccountService, name: str) -> Shown:
    """Make an account."""
    made = accounts.create_account(name)
    return made, made.id


@command.asks("list")
def list_accounts(accounts: AccountService) -> Shown:
    """List accounts and their money, the oldest first."""
    return accounts.list_accounts(), table_of(
        "ID:id, NAME:name, MADE:created_at, BALANCE (USD):wallet.balance_usd, "
        "AVAILABLE:wallet.available_usd, RESERVED:wallet.reserved_usd"
    )


@command.asks("credit", "account")
@click.argument("amount", metavar="USD")
def credit(accounts: AccountService, account: str, amount: str) -> Shown:
    """Add credit in USD to an account, by its id or name."""
    entry = accounts.add_credit(account, read_usd(amount, "USD"))
    return entry, f"{entry.name} ({entry.id}) has {entry.wallet.available_usd} USD available."


@command.asks("store", "account")
@click.argument("store", type=click.Choice(STORE_SETTINGS))
def store(accounts: AccountService, account: str, store: StoreSetting) -> Shown:
    """Set the most that is stored of an account's answers; features stores no text."""
    accounts.limit_storing(account, store)
    return {"account": account, "store": store}, f"{account} stores {STORE_SENTENCES[store]}."


@command.asks("invite", "account", "address", connect=ThisMachine.members)
@click.option(
    "--role",
    type=click.Choice(["owner", "developer", "billing", "reviewer"]),
    default="owner",
    help="What the address may do in the account.",
)
def invite(members: Members, account: str, address: str, role: Role) -> Shown:
    """Invite an address to an account; no letter is sent."""
    invited = members.invite_now(account, address, role)
    return invited, f"{invited.email} may sign in as {role} within 14 days."


@command.asks("operator", "address", connect=ThisMachine.members)
def operator(members: Members, address: str) -> Shown:
    """Make an address an operator, who may sign in and sees the whole server."""
    email = members.make_operator(address)
    return {"email": email, "is_operator": True}, f"{email} is an operator."
