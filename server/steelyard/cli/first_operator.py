"""The first operator of a server with accounts: named by ``steelyard up``, before anybody can sign in."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from steelyard.cli.local_state import LocalAccounts
from steelyard.errors import InvalidRequestError
from steelyard.settings import Settings
from steelyard.storage.home import state_url_of
from steelyard.wire.hosts import is_loopback

if TYPE_CHECKING:
    from steelyard.people.member_service import Members


def first_operator(settings: Settings, address: str | None) -> str | None:
    """Return who signs in and how, in words, once an operator is there; ask for one on a terminal."""
    if settings.accounts == "off":
        if address is not None:
            raise click.UsageError("--operator is for a server with accounts: add --accounts on.")
        return None
    local = LocalAccounts(None, state_url_of(settings), as_json=False)
    with local.opened_members() as members:
        if address is None and (settings.operators or members.has_operator()):
            return None
        if address is None and not (sys.stdin.isatty() and sys.stdout.isatty()):
            return "an operator, which nobody is yet: steelyard account operator ADDRESS"
        email = _named(members, address)
    return f"{email}, with the code that comes {_place(settings)}"


def _named(members: Members, address: str | None) -> str:
    """Make the operator that an option names, or an answer on the terminal."""
    while True:
        given = address or click.prompt("E-mail address of the operator, who signs in first")
        try:
            return members.make_first_operator(given)
        except InvalidRequestError as error:
            if address is not None:
                raise click.BadParameter(error.message, param_hint="--operator") from None
            click.echo(error.message)


def _place(settings: Settings) -> str:
    if settings.smtp_url is not None:
        return "by mail"
    if is_loopback(settings.host):
        return "on this terminal"
    return "by mail once smtp_url (STEELYARD_SMTP_URL) is set"
