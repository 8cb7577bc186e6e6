"""Roles in an account, and addresses that may sign in."""

from __future__ import annotations

import re
from typing import Literal, get_args

from steelyard.errors import InvalidRequestError
from steelyard.wire.violations import BODY

Role = Literal["owner", "developer", "billing", "reviewer"]
ROLES: tuple[Role, ...] = get_args(Role)
#: Whoever is signed in, also without an account.
ANYBODY: tuple[Role | None, ...] = (*ROLES, None)

_MAX_ADDRESS = 254
_ADDRESS = re.compile(
    r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@"
    r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*"
)


def read_address(text: str) -> str:
    """Return an e-mail address as it is kept: in lower case."""
    address = text.strip().lower()
    if not is_address(address):
        message = "That is not an e-mail address; write it as name@example.org, in ASCII."
        raise InvalidRequestError.at((*BODY, "email"), message, "invalid")
    return address


def read_addresses(text: str) -> frozenset[str]:
    """Return the addresses or domains of a setting that lists them with commas.

    >>> sorted(read_addresses("A@b.org, c@d.org,"))
    ['a@b.org', 'c@d.org']
    """
    return frozenset(part.strip().lower() for part in text.split(",") if part.strip())


def is_address(text: str) -> bool:
    """Whether a text is an e-mail address.

    >>> is_address("a@b.org"), is_address("a@b@c.org")
    (True, False)
    """
    return len(text) <= _MAX_ADDRESS and _ADDRESS.fullmatch(text) is not None


def may_sign_up(
    address: str, *, mode: str, domains: frozenset[str], is_invited: bool, is_operator: bool
) -> bool:
    """Whether a new address may become a user.

    >>> may_sign_up(
    ...     "a@b.org",
    ...     mode="open",
    ...     domains=frozenset({"c.org"}),
    ...     is_invited=False,
    ...     is_operator=False,
    ... )
    False
    """
    if is_operator:
        return True
    if mode == "closed":
        return False
    is_of_domain = not domains or address.rpartition("@")[2] in domains
    return is_invited or (mode == "open" and is_of_domain)
