"""The setting ``scorer``: where passes run, and the file that may say so while a server runs."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from steelyard.settings import InvalidSettingError

#: Triton's own port for gRPC.
DEFAULT_PORT = 8001
_SCHEMES = {"triton": False, "tritons": True}
_FILE = "file"
#: Characters of a file that are read: a URL is shorter.
_LONGEST = 4_096


@dataclass(frozen=True, slots=True)
class TritonAddress:
    """Where a Triton server takes gRPC.

    Parameters
    ----------
    host : str
        A name or an address, without brackets.
    port : int
    is_secure : bool, default False
        Whether the connection is TLS, its certificate checked against the system's authorities or
        those of ``GRPC_DEFAULT_SSL_ROOTS_FILE_PATH``.
    """

    host: str
    port: int
    is_secure: bool = False

    @property
    def target(self) -> str:
        """Host and port as gRPC takes them."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """As the setting is written."""
        return f"{'tritons' if self.is_secure else 'triton'}://{self.target}"

    @property
    def is_loopback(self) -> bool:
        """Whether it is this machine's own, so that memory may be shared with it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def parse_address(text: str) -> TritonAddress | None:
    """Read a URL of a scorer; ``None`` for a blank one, which is this process.

    Raises
    ------
    steelyard.settings.InvalidSettingError
        When it is no such URL.

    Examples
    --------
    >>> parse_address("triton://127.0.0.1").port
    8001
    """
    text = text.strip()
    if not text:
        return None
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise _refusal(text) from None
    extra = (parts.path.strip("/"), parts.query, parts.fragment, parts.username, parts.password)
    if parts.scheme not in _SCHEMES or not host or any(extra):
        raise _refusal(text)
    return TritonAddress(host, DEFAULT_PORT if port is None else port, _SCHEMES[parts.scheme])


@dataclass(frozen=True, slots=True)
class ScorerSource:
    """What the setting ``scorer`` says: an address, or a file that holds one.

    Parameters
    ----------
    text : str
        A URL; read again from ``file`` where there is one.
    file : pathlib.Path or None
        Its first line is the URL; blank for in process.
    """

    text: str
    file: Path | None = None

    @property
    def is_in_process(self) -> bool:
        """Whether nothing but this process will ever score."""
        return self.file is None and not self.text

    def read(self) -> TritonAddress | None:
        """Give where passes run now.

        Raises
        ------
        steelyard.settings.InvalidSettingError
            When the file cannot be read, or it or the setting is no URL of a scorer.
        """
        if self.file is None:
            return parse_address(self.text)
        try:
            with self.file.open(encoding="utf-8") as file:
                lines = file.read(_LONGEST).splitlines()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is no text"
            raise InvalidSettingError(
                f"The file {self.file} of the setting scorer (STEELYARD_SCORER) cannot be read: "
                f"{why}."
            ) from error
        return parse_address(lines[0] if lines else "")


def parse_scorer(text: str) -> ScorerSource:
    """Read the setting ``scorer``.

    Parameters
    ----------
    text : str
        ``triton://HOST:PORT``, ``tritons://HOST:PORT``, ``file:///PATH``, or blank.

    Raises
    ------
    steelyard.settings.InvalidSettingError
        When it is none of these.

    Examples
    --------
    >>> parse_scorer("file:///etc/steelyard/scorer").file
    PosixPath('/etc/steelyard/scorer')
    """
    text = text.strip()
    if text.partition(":")[0] == _FILE:
        parts = urlsplit(text)
        if parts.netloc not in {"", "localhost"} or not parts.path.startswith("/"):
            raise _refusal(text)
        return ScorerSource("", Path(parts.path))
    parse_address(text)
    return ScorerSource(text)


def _refusal(text: str) -> InvalidSettingError:
    return InvalidSettingError(
        f"The setting scorer (STEELYARD_SCORER) is {text[:120]!r}; give triton://HOST:PORT, "
        "tritons://HOST:PORT for TLS, file:///PATH for a file that holds one of these, or nothing "
        "for this process."
    )
