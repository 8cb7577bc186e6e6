"""Which IP addresses are of the public internet: the special-purpose registries of IANA, written out.

Python's ``ipaddress`` has such a list, of the time of its release: releases differ, and an old one
takes for public the addresses that have been reserved since. This list is as strict as a guard needs:
an address of any special purpose is not public, also where the registry calls it globally reachable.

https://www.iana.org/assignments/iana-ipv4-special-registry
https://www.iana.org/assignments/iana-ipv6-special-registry
"""

from __future__ import annotations

import functools
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

_LOOPBACK = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))

_SPECIAL_V4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",  # this network
            "10.0.0.0/8",  # private use
            "100.64.0.0/10",  # shared by the customers of a carrier
            "127.0.0.0/8",  # loopback
            "168.63.129.16/32",  # not IANA's: the host of every virtual machine on Azure
            "169.254.0.0/16",  # link-local, and the metadata of clouds
            "172.16.0.0/12",  # private use
            "192.0.0.0/24",  # protocols: DS-Lite, NAT64 discovery, PCP and TURN anycast
            "192.0.2.0/24",  # documentation
            "192.31.196.0/24",  # AS112
            "192.52.193.0/24",  # AMT
            "192.88.99.0/24",  # 6to4 relays, deprecated
            "192.168.0.0/16",  # private use
            "192.175.48.0/24",  # AS112
            "198.18.0.0/15",  # benchmarking
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, and limited broadcast
        ),
    )
)

#: The only block of IPv6 from which global unicast addresses are given out (RFC 4291).
_UNICAST = IPv6Network("2000::/3")
_SPECIAL_V6 = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # protocols: Teredo, benchmarking, AMT, AS112, ORCHID, drones
            "2001:db8::/32",  # documentation
            "2620:4f:8000::/48",  # AS112
            "3fff::/20",  # documentation
        ),
    )
)
#: Blocks whose addresses stand for an IPv4 address, and how many bits follow that one.
_EMBEDDING = (
    (IPv6Network("::ffff:0:0/96"), 0),  # mapped
    (IPv6Network("64:ff9b::/96"), 0),  # NAT64
    (IPv6Network("2002::/16"), 80),  # 6to4
)


@functools.lru_cache(256)
def is_loopback_address(text: str) -> bool | None:
    """Return whether an IP address is this machine's own; ``None`` for other texts.

    >>> [
    ...     is_loopback_address(one)
    ...     for one in ("127.1.2.3", "::1", "::ffff:127.0.0.1", "1.1.1.1", "a")
    ... ]
    [True, True, True, False, None]
    """
    address = _read(text)
    if address is None:
        return None
    if isinstance(address, IPv6Address):
        address = address.ipv4_mapped or address
    return any(address in network for network in _LOOPBACK)


def is_public_address(text: str) -> bool | None:
    """Return whether an IP address is on the public internet; ``None`` for other texts.

    An IPv6 address that stands for an IPv4 one is public only where that one is.

    >>> [is_public_address(one) for one in ("1.1.1.1", "10.0.0.1", "::ffff:127.0.0.1", "a.example")]
    [True, False, False, None]
    """
    address = _read(text)
    return None if address is None else _is_public(address)


def _read(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text.partition("%")[0])
    except ValueError:
        return None


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _SPECIAL_V4)
    for network, bits_after in _EMBEDDING:
        if address in network:
            return _is_public(IPv4Address((int(address) >> bits_after) & 0xFFFFFFFF))
    return address in _UNICAST and not any(address in network for network in _SPECIAL_V6)
