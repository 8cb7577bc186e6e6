"""``steelyard key``: API keys of the accounts on this machine's state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from steelyard.cli.local_state import ThisMachine, show_rows, state_options
from steelyard.cli.nouns import Noun, Shown
from steelyard.cli.options import read_usd
from steelyard.wire.storing import STORE_SETTINGS

if TYPE_CHECKING:
    from steelyard.accounts.service import AccountService
    from steelyard.accounts.wire import ApiKey

_EPILOG = """\b
Examples:
  steelyard key create --name laptop
  steelyard key create --account acme --scope inference --monthly-cap-usd 25
  steelyard key create --name clinic --store features
  steelyard key list
  steelyard key revoke key_01k6v0p3w4e9h2n5t7x8z1a3c6
"""

_COLUMNS = (
    "ID:id, NAME:name, ACCOUNT:account, SCOPE:scope, BEGINS:prefix, MADE:created_at, "
    "USED:last_used_at, REVOKED:revoked_at, STORE:store, MONTH (USD):month"
)


@click.group("key", cls=Noun, epilog=_EPILOG, options=state_options, connect=ThisMachine.accounts)
def command() -> None:
    """Make, list and revoke API keys.

    Works on the state directly, whether or not a server runs; a server sees it at once.
    """


@command.asks("create")
@click.option("--name", default="key", help="Name of the key, for people.")
@click.option(
    "--scope",
    type=click.Choice(["full", "inference", "read"]),
    default="full",
    help="What it may call: everything, decisions alone, or everything that changes nothing.",
)
@click.option("--account", default="local", help="Id or name of the account that it belongs to.")
@click.option(
    "--monthly-cap-usd",
    metavar="USD",
    help="The most that it may spend in a month (UTC); for an inference key.",
)
@click.option(
    "--store",
    type=click.Choice(STORE_SETTINGS),
    default="on",
    help="The most that is stored of its answers: features stores no text.",
)
def create(accounts: AccountService, *, monthly_cap_usd: str | None, **fields: Any) -> Shown:
    """Make an API key and show it, this one time."""
    import msgspec

    cap = None if monthly_cap_usd is None else read_usd(monthly_cap_usd, "--monthly-cap-usd")
    made = accounts.create_key(monthly_cap_nano=cap, **fields)

    def show(_: object) -> None:
        click.echo(made.secret)
        click.echo(f"{made.key.id}: keep the key above; it is not shown again.", err=True)

    return {**msgspec.to_builtins(made.key), "key": made.secret}, show


@command.asks("list")
@click.option("--account", help="Id or name of an account; every account when left out.")
def list_keys(accounts: AccountService, *, account: str | None) -> Shown:
    """List API keys, the newest first."""
    import msgspec

    keys = accounts.list_keys(account)
    account_of = {key.id: name for name, key in keys}
    return (
        [{**msgspec.to_builtins(key), "account": name} for name, key in keys],
        lambda _: show_rows(
            [key for _, key in keys],
            _COLUMNS,
            account=lambda key: account_of[key.id],
            month=_month,
        ),
    )


@command.asks("revoke", "key_id")
def revoke(accounts: AccountService, key_id: str) -> Shown:
    """Revoke an API key for good, by its id."""
    key = accounts.revoke_key(key_id)
    return key, f"{key.id} is revoked; calls with it are refused from now on."


def _month(key: ApiKey) -> str | None:
    cap = key.monthly_cap_usd
    return None if cap is None else f"{key.month_spent_usd} of {cap}"
