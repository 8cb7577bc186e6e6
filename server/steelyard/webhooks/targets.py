"""Allowed addresses of webhooks: by their URL, and by the resolved addresses of its name."""

from __future__ import annotations

import socket
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from steelyard.wire.addresses import is_public_address
from steelyard.wire.hosts import is_loopback

MAX_URL = 2048
_PORTS = {"https": 443, "http": 80}


class RefusedTargetError(ValueError):
    """An address that webhooks may not have; the message gives the reason and the remedy."""


@dataclass(frozen=True, slots=True)
class Target:
    """The parts of a webhook's URL that say where it is."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """The value of the ``Host`` header."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        return name if self.port == _PORTS[self.scheme] else f"{name}:{self.port}"

    def url_at(self, address: str) -> str:
        """Return the URL with an address of the host in its place."""
        name = f"[{address}]" if ":" in address else address
        return f"{self.scheme}://{name}:{self.port}{self.path}"


def read_target(url: str, allowed: Collection[str]) -> Target:
    """Return where a URL leads, or raise; ``allowed`` are the hosts that the operator lists.

    >>> read_target("https://example.com/hooks?a=1", ()).url_at("192.0.2.7")
    'https://192.0.2.7:443/hooks?a=1'
    """
    needed = "url must be https://HOST[:PORT][/PATH]."
    if len(url) > MAX_URL or not url.isascii() or not url.isprintable() or " " in url:
        raise RefusedTargetError(f"{needed} It has at most {MAX_URL} visible ASCII characters.")
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").removesuffix("."), parts.port
    except ValueError:
        raise RefusedTargetError(needed) from None
    if not host or "%" in host or parts.scheme not in _PORTS or port == 0 or "#" in url:
        raise RefusedTargetError(needed)
    if parts.username is not None or parts.password is not None:
        raise RefusedTargetError(
            "url must have no user and no password; deliveries are signed with the webhook's secret."
        )
    if parts.scheme != "https" and host not in allowed:
        raise RefusedTargetError(
            f"{needed} Whoever runs the server may allow http:// to a host in the setting "
            "webhook_hosts."
        )
    if host not in allowed and _is_private(host):
        raise _private(host)
    path = f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"
    return Target(parts.scheme, host, port or _PORTS[parts.scheme], path)


def check_addresses(host: str, addresses: Sequence[str], allowed: Collection[str]) -> None:
    """Refuse a host unless every address that it resolves to is public, or the operator lists it."""
    if host not in allowed and not all(is_public_address(address) for address in addresses):
        raise _private(host)


def _is_private(host: str) -> bool:
    """Whether a host is seen to be private before its name is resolved, however it is spelled."""
    with suppress(OSError):  # 127.1, 0x7f000001 and 2130706433 are an address, too
        host = socket.inet_ntoa(socket.inet_aton(host))
    return is_loopback(host) or host.endswith(".localhost") or is_public_address(host) is False


def _private(host: str) -> RefusedTargetError:
    return RefusedTargetError(
        f"{host} is an address of a private network or of this machine. Give a public one, or ask "
        "whoever runs the server to list the host in the setting webhook_hosts."
    )
