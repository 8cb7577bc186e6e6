"""Names of hosts: what a ``Host`` header calls a server, which are this machine's own, which public."""

from __future__ import annotations

import functools
import ipaddress

_LOCALHOST = "localhost"


def host_names(text: str) -> frozenset[str]:
    """Return the names of a setting that lists them with commas, in lower case."""
    return frozenset(name.strip().lower() for name in text.split(",") if name.strip())


def host_of(header: str) -> str:
    """Return the name in a ``Host`` header, without its port.

    >>> host_of("LocalHost:8420"), host_of("[::1]:8420"), host_of("evil.example.")
    ('localhost', '::1', 'evil.example')
    """
    name = header.strip().lower()
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name.partition(":")[0].removesuffix(".")


@functools.lru_cache(256)
def is_loopback(host: str) -> bool:
    """Return whether a host is this machine's own: ``localhost`` or a loopback address.

    >>> [
    ...     is_loopback(host)
    ...     for host in ("localhost", "127.0.0.1", "::1", "10.0.0.1", "evil.example")
    ... ]
    [True, True, True, False, False]
    """
    try:
        return host == _LOCALHOST or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_address(host: str) -> bool:
    """Return whether a host is an IP address, and no name.

    >>> [is_address(host) for host in ("127.0.0.1", "::1", "localhost")]
    [True, True, False]
    """
    try:
        return bool(ipaddress.ip_address(host))
    except ValueError:
        return False


def is_public_address(text: str) -> bool | None:
    """Return whether an IP address is one of the public internet; ``None`` for what is no address.

    An IPv6 address that stands for an IPv4 one is public only where that one is.

    >>> [is_public_address(one) for one in ("1.1.1.1", "10.0.0.1", "::ffff:127.0.0.1", "a.example")]
    [True, False, False, None]
    """
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return all(
        one.is_global and not (one.is_multicast or one.is_reserved or one.is_unspecified)
        for one in (address, *_embedded(address))
    )


#: Networks whose addresses end in that of an IPv4 host: translated (NAT64), and compatible.
_TRANSLATED = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("::/96"))


def _embedded(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> list[ipaddress.IPv4Address]:
    """Return the IPv4 addresses that an IPv6 address stands for."""
    if isinstance(address, ipaddress.IPv4Address):
        return []
    found = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if any(address in network for network in _TRANSLATED):
        found.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return [one for one in found if one is not None]
