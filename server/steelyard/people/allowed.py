"""Addresses and domains of the settings: operators, and users who may sign up."""

from __future__ import annotations

from steelyard.people.roles import is_address, read_addresses
from steelyard.settings import InvalidSettingError, Settings
from steelyard.wire.violations import show


def read_operators(settings: Settings) -> frozenset[str]:
    """Return the addresses of the setting ``operators``, or refuse one that is none."""
    addresses = read_addresses(settings.operators)
    for address in addresses:
        if not is_address(address):
            raise InvalidSettingError(
                f"The setting operators (STEELYARD_OPERATORS) has {show(address)}, which is not an "
                "e-mail address; write name@example.org, separated by commas."
            )
    return addresses


def read_domains(settings: Settings) -> frozenset[str]:
    """Return the domains of the setting ``sign_up_domains``, or refuse one that is none."""
    domains = read_addresses(settings.sign_up_domains)
    for domain in domains:
        if not is_address(f"a@{domain}"):
            raise InvalidSettingError(
                f"The setting sign_up_domains (STEELYARD_SIGN_UP_DOMAINS) has {show(domain)}, which "
                "is not a domain; write example.org, separated by commas."
            )
    return domains
