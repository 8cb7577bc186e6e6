"""The server's own pages, to which people are led back, and to which passkeys belong."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from steelyard.settings import InvalidSettingError, Settings, home_of
from steelyard.wire.hosts import host_names, is_loopback

#: The page of a workbench that identity providers lead back to.
RETURN_PATH = "/oidc"
#: Notes in a home of the workbenches that run on it, each with its address and process.
NOTES = "workbench-*.json"


class OwnPages:
    """Pages on loopback, and over https on the hosts that the settings name."""

    def __init__(self, settings: Settings) -> None:
        self._hosts = host_names(settings.hosts) | {urlsplit(settings.url).hostname or ""}
        self._home = home_of(settings)
        self._ports = {_port_of(url) for url in host_names(settings.workbenches)}

    def host_of(self, url: str) -> str | None:
        """Return the host of a page of one's own; ``None`` of any other."""
        parts = _split(url)
        name = "" if parts is None else parts.hostname or ""
        is_local = parts is not None and parts.scheme == "http" and is_loopback(name)
        is_own = parts is not None and parts.scheme == "https" and name in self._hosts
        return name if is_local or is_own else None

    def host_of_origin(self, origin: str) -> str | None:
        """Return the host of an origin of one's own, as ``location.origin`` has it."""
        host = self.host_of(origin)
        parts = urlsplit(origin if host else "")
        is_bare = origin == f"{parts.scheme}://{parts.netloc}".lower() and "@" not in origin
        return host if host and is_bare else None

    def may_return_to(self, url: str) -> bool:
        """Return whether an identity provider may lead back to a page.

        Any program of this machine can listen on loopback: there it is the workbench's page alone.
        """
        parts = _split(url)
        if parts is None or self.host_of(url) is None or "@" in parts.netloc:
            return False
        if parts.scheme == "https":
            return True
        port = parts.port or 80
        is_page = url == f"http://{parts.netloc}{RETURN_PATH}"
        return is_page and (port in self._ports or port in running_workbenches(self._home))


def running_workbenches(home: Path) -> set[int]:
    """Return the ports of the workbenches that run beside a server on its home."""
    ports = set()
    for path in home.glob(NOTES):
        with suppress(OSError, ValueError, KeyError, TypeError):
            note = json.loads(path.read_bytes())
            os.kill(int(note["pid"]), 0)
            ports.add(_port_of(note["url"]))
    return ports


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  raises where it is none
    except ValueError:
        return None
    return parts


def _port_of(url: str) -> int:
    parts = _split(url)
    if parts is None or parts.scheme != "http" or not is_loopback(parts.hostname or ""):
        raise InvalidSettingError(
            f"The setting workbenches (STEELYARD_WORKBENCHES) has {url!r}; give addresses on "
            "loopback, such as http://127.0.0.1:8421."
        )
    return parts.port or 80
