"""The setting ``scorer``: where passes run, and the file that may say so while a server runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from steelyard.settings import InvalidSettingError, Settings
from steelyard.wire.hosts import is_loopback

#: Triton's own port for gRPC.
DEFAULT_PORT = 8001
_SCHEMES = {"triton": False, "tritons": True}
_FILE = "file"
#: Characters of a file that are read: a URL is shorter.
_LONGEST = 4_096


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Files in PEM that a connection over TLS uses; read again for each connection."""

    roots: Path | None = None
    certificate: Path | None = None
    key: Path | None = None

    def options(self) -> dict[str, Any]:
        """Return them as tritonclient takes them."""
        if (self.certificate is None) != (self.key is None):
            raise InvalidSettingError(
                "The settings scorer_certificate and scorer_key (STEELYARD_SCORER_CERTIFICATE, "
                "STEELYARD_SCORER_KEY) need each other: give both or neither."
            )
        named = {"roots": self.roots, "certificate": self.certificate, "key": self.key}
        for name, path in named.items():
            try:
                if path is not None:
                    path.open("rb").close()
            except OSError as error:
                raise InvalidSettingError(
                    f"The file {path} of the setting scorer_{name} (STEELYARD_SCORER_"
                    f"{name.upper()}) cannot be read: {error.strerror}."
                ) from error
        texts = {name: None if path is None else str(path) for name, path in named.items()}
        return {
            "ssl": True,
            "root_certificates": texts["roots"],
            "certificate_chain": texts["certificate"],
            "private_key": texts["key"],
        }


_NO_FILES = TlsFiles()


@dataclass(frozen=True, slots=True)
class TritonAddress:
    """Where a Triton server takes gRPC."""

    host: str
    port: int
    is_secure: bool = False
    tls: TlsFiles = _NO_FILES

    @property
    def target(self) -> str:
        """Host and port as gRPC takes them."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """As the setting is written."""
        return f"{'tritons' if self.is_secure else 'triton'}://{self.target}"

    def tls_options(self) -> dict[str, Any]:
        """Return the TLS options of tritonclient."""
        return self.tls.options() if self.is_secure else {}

    @property
    def is_loopback(self) -> bool:
        """Whether it is this machine's own, so that memory may be shared with it."""
        return is_loopback(self.host)


def parse_address(text: str, tls: TlsFiles = _NO_FILES) -> TritonAddress | None:
    """Read a URL of a scorer; ``None`` for a blank one, which is this process."""
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
    chosen = DEFAULT_PORT if port is None else port
    address = TritonAddress(host, chosen, _SCHEMES[parts.scheme], tls)
    address.tls_options()  # an unreadable file is refused here
    return address


@dataclass(frozen=True, slots=True)
class ScorerSource:
    """The value of the setting ``scorer``: an address, or a file that holds one."""

    text: str
    file: Path | None = None
    tls: TlsFiles = _NO_FILES

    def read(self) -> TritonAddress | None:
        """Return where passes run now."""
        if self.file is None:
            return parse_address(self.text, self.tls)
        try:
            with self.file.open(encoding="utf-8") as file:
                lines = file.read(_LONGEST).splitlines()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is not text"
            raise InvalidSettingError(
                f"The file {self.file} of the setting scorer (STEELYARD_SCORER) cannot be read: "
                f"{why}."
            ) from error
        return parse_address(lines[0] if lines else "", self.tls)


def parse_scorer(text: str, tls: TlsFiles = _NO_FILES) -> ScorerSource:
    """Read the setting ``scorer``."""
    text = text.strip()
    if text.partition(":")[0] == _FILE:
        parts = urlsplit(text)
        if parts.netloc not in {"", "localhost"} or not parts.path.startswith("/"):
            raise _refusal(text)
        return ScorerSource("", Path(parts.path), tls)
    parse_address(text, tls)
    return ScorerSource(text, None, tls)


def read_tls(settings: Settings) -> TlsFiles:
    """Return the files for TLS that settings name."""
    return TlsFiles(
        *(
            Path(named).expanduser() if named else None
            for named in (settings.scorer_roots, settings.scorer_certificate, settings.scorer_key)
        )
    )


def _refusal(text: str) -> InvalidSettingError:
    return InvalidSettingError(
        f"The setting scorer (STEELYARD_SCORER) is {text[:120]!r}; give triton://HOST:PORT, "
        "tritons://HOST:PORT for TLS, file:///PATH for a file that holds one of these, or nothing "
        "for this process."
    )
