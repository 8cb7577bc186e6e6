"""Who calls, where proxies stand between: their word is taken if the setting names them.

To a server every request comes from the last proxy's address. Each proxy adds to ``X-Forwarded-For``,
at its right end, whom it got the request from; what stands further left may be of the caller's own
making. Sanic can read such a header, but believes whoever sends it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator

from sanic import Request

from steelyard.settings import InvalidSettingError

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_HEADER = "x-forwarded-for"


def client_address(request: Request) -> str:
    """Return the address of whoever sent a request: its peer's, or what a trusted proxy says."""
    address: str | None = getattr(request.ctx, "client_address", None)
    if address is None:
        proxies: TrustedProxies = request.app.ctx.proxies
        told = request.headers.getall(_HEADER, ())
        address = request.ctx.client_address = proxies.address_behind(request.ip, told)
    return address


class TrustedProxies:
    """The proxies of one server, by the setting ``trusted_proxies``; without it there are none."""

    def __init__(self, setting: str) -> None:
        self._networks = [_network(one.strip()) for one in setting.split(",") if one.strip()]

    def address_behind(self, peer: str, told: Iterable[str]) -> str:
        """Return the right-most address that is no trusted proxy's.

        ``told`` has the lines of ``X-Forwarded-For``. The caller is the last of them whom a trusted
        proxy vouches for: reading ends at what is no address, and at who is not trusted.

        >>> behind = TrustedProxies("10.0.0.0/24").address_behind
        >>> behind("10.0.0.1", ["198.51.100.1, 192.0.2.7"]), behind("192.0.2.9", ["198.51.100.1"])
        ('192.0.2.7', '192.0.2.9')
        >>> behind("10.0.0.1", ["192.0.2.7, unknown"]), behind("10.0.0.1", ["192.0.2.7, 10.0.0.2"])
        ('10.0.0.1', '192.0.2.7')
        """
        if not self._networks:
            return peer
        known = _read(peer.partition("%")[0])
        if known is None or not self._trusts(known):
            return peer
        for hop in _from_the_right(told):
            address = _read(hop)
            if address is None:
                break
            known = address
            if not self._trusts(known):
                break
        return str(known)

    def _trusts(self, address: _Address) -> bool:
        return any(address in network for network in self._networks)


def _from_the_right(lines: Iterable[str]) -> Iterator[str]:
    return reversed(",".join(lines).split(","))


def _read(text: str) -> _Address | None:
    """Return an address, with or without a port; ``None`` for anything else.

    >>> [str(_read(one)) for one in (" 192.0.2.7:99", "[2001:db8::1]:99", "::ffff:192.0.2.7", "a")]
    ['192.0.2.7', '2001:db8::1', '192.0.2.7', 'None']
    """
    name = text.strip()
    if name.startswith("["):
        name = name[1:].partition("]")[0]
    elif name.count(":") == 1:
        name = name.partition(":")[0]
    if "%" in name:  # a zone is of one machine, and may be any text
        return None
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def _network(text: str) -> _Network:
    try:
        network = ipaddress.ip_network(text)
    except ValueError:
        raise _refusal(text, "as 10.0.0.5 or 10.0.0.0/24") from None
    if network.prefixlen == 0:
        raise _refusal(text, "which is not everybody's")
    return network


def _refusal(text: str, needed: str) -> InvalidSettingError:
    return InvalidSettingError(
        f"The setting trusted_proxies (STEELYARD_TRUSTED_PROXIES) has {text!r}; give the address or "
        f"network of a proxy, {needed}."
    )
