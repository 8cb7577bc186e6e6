"""Which pages are this server's own: those that people are led back to, and that passkeys are of."""

from __future__ import annotations

from urllib.parse import urlsplit

from steelyard.settings import Settings
from steelyard.wire.hosts import host_names, is_loopback


class OwnPages:
    """Pages on loopback, and over https on the hosts that the settings name."""

    def __init__(self, settings: Settings) -> None:
        self._hosts = host_names(settings.hosts) | {urlsplit(settings.url).hostname or ""}

    def host_of(self, url: str) -> str | None:
        """Return the host of a page of one's own; ``None`` of any other."""
        try:
            parts = urlsplit(url)
            name = parts.hostname or ""
            parts.port  # noqa: B018  raises where it is none
        except ValueError:
            return None
        is_local = parts.scheme == "http" and is_loopback(name)
        is_own = is_local or (parts.scheme == "https" and name in self._hosts)
        return name if is_own else None

    def host_of_origin(self, origin: str) -> str | None:
        """Return the host of an origin of one's own, as ``location.origin`` has it."""
        host = self.host_of(origin)
        parts = urlsplit(origin if host else "")
        is_bare = origin == f"{parts.scheme}://{parts.netloc}".lower() and "@" not in origin
        return host if host and is_bare else None
