"""Roles in an account, and addresses that may sign in."""

from __future__ import annotations

import re
from typing import Literal, get_args

from steelyard.errors import InvalidRequestError, Violation
from steelyard.settings import InvalidSettingError, Settings
from steelyard.wire.violations import BODY, show

Role = Literal["owner", "developer", "billing", "reviewer"]
SignUp = Literal["open", "invited", "closed"]
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
    if len(address) > _MAX_ADDRESS or _ADDRESS.fullmatch(address) is None:
        message = "That is not an e-mail address; write it as name@example.org, in ASCII."
        raise InvalidRequestError(violations=[Violation((*BODY, "email"), message, "invalid")])
    return address


def read_addresses(text: str) -> frozenset[str]:
    """Return the addresses or domains of a setting that lists them with commas.

    >>> sorted(read_addresses("A@b.org, c@d.org,"))
    ['a@b.org', 'c@d.org']
    """
    return frozenset(part.strip().lower() for part in text.split(",") if part.strip())


def read_operators(settings: Settings) -> frozenset[str]:
    """Return the addresses of the setting ``operators``, or refuse one that is none."""
    found = read_addresses(settings.operators)
    for address in found:
        if _ADDRESS.fullmatch(address) is None:
            raise InvalidSettingError(
                f"The setting operators (STEELYARD_OPERATORS) has {show(address)}, which is not an "
                "e-mail address; write name@example.org, separated by commas."
            )
    return found


def read_domains(settings: Settings) -> frozenset[str]:
    """Return the domains of the setting ``sign_up_domains``, or refuse one that is none."""
    found = read_addresses(settings.sign_up_domains)
    for domain in found:
        if _ADDRESS.fullmatch(f"a@{domain}") is None:
            raise InvalidSettingError(
                f"The setting sign_up_domains (STEELYARD_SIGN_UP_DOMAINS) has {show(domain)}, which "
                "is not a domain; write example.org, separated by commas."
            )
    return found


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
