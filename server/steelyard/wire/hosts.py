"""Names of hosts: a server's names in a ``Host`` header, and this machine's own."""

from __future__ import annotations

import functools
import ipaddress

from steelyard.wire.addresses import is_loopback_address

_LOCALHOST = "localhost"


def host_names(text: str) -> frozenset[str]:
    """Return the names of a setting that lists them with commas, in lower case."""
    return frozenset(name.strip().lower() for name in text.split(",") if name.strip())


@functools.lru_cache(256)
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
    return host == _LOCALHOST or bool(is_loopback_address(host))


def is_address(host: str) -> bool:
    """Return whether a host is an IP address, and no name.

    >>> [is_address(host) for host in ("127.0.0.1", "::1", "localhost")]
    [True, True, False]
    """
    try:
        return bool(ipaddress.ip_address(host))
    except ValueError:
        return False
