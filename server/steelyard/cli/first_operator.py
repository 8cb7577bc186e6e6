"""The first operator of a server with accounts: named at its start, before anybody can sign in."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from steelyard.cli.local_state import ThisMachine
from steelyard.errors import InvalidRequestError
from steelyard.settings import Settings
from steelyard.storage.home import state_url_of
from steelyard.wire.hosts import is_loopback

if TYPE_CHECKING:
    from steelyard.people.member_service import Members


def first_operator(settings: Settings, address: str | None) -> str | None:
    """Return who signs in and how, in words, once an operator is there; ask for one on a terminal.

    An address that is given makes an operator at each start; that of the setting ``first_owner`` only
    where there is none, so that an operator who was removed stays removed.
    """
    named_by = "first_owner" if address is None else "--operator"
    first = settings.first_owner or None
    if settings.accounts == "off":
        if address or first:
            raise click.UsageError(f"{named_by} is for a server with accounts: add --accounts on.")
        return None
    with ThisMachine(None, state_url_of(settings)).members() as members:
        if address is None:
            if members.has_operator() or (settings.operators and not first):
                return None
            if not first and not (sys.stdin.isatty() and sys.stdout.isatty()):
                return "an operator, once there is one: steelyard account operator ADDRESS"
        email = _make_operator(members, address or first, named_by)
    return f"{email}, with the code that comes {_place(settings)}"


def _make_operator(members: Members, address: str | None, named_by: str) -> str:
    """Make the operator of an address, or of an answer on the terminal."""
    while True:
        given = address or click.prompt("E-mail address of the operator, who signs in first")
        try:
            return members.make_first_operator(given)
        except InvalidRequestError as error:
            if address is not None:
                raise click.BadParameter(error.message, param_hint=named_by) from None
            click.echo(error.message)


def _place(settings: Settings) -> str:
    if settings.smtp_url is not None:
        return "by mail"
    if is_loopback(settings.host):
        return "on this terminal"
    return "by mail once smtp_url (STEELYARD_SMTP_URL) is set"
