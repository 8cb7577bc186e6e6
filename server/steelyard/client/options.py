"""Where a client calls and how long it tries: checked once, when it is made."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from steelyard.client.session_token import SessionToken
from steelyard.wire.hosts import is_loopback

#: The most times that one call is repeated.
MAX_RETRIES = 10
#: One segment of the path that a proxy has a server under.
_SEGMENT = re.compile(r"[A-Za-z0-9._~-]+")


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """Address, key and patience of a client.

    Parameters
    ----------
    url
        The server's address: scheme, host, port, and the path that a proxy has it under.
    api_key
        Sent with every call; never shown.
    timeout_s
        Seconds for one call with all its attempts and waits. Rows that go up or come down may take
        longer while their bytes keep moving.
    max_retries
        How often a call is repeated after a failure that may pass; 0 to 10.
    gzip_over
        Bodies of more bytes than this are compressed; ``None`` for none.
    session
        The token of a user's session, sent in place of a key; empty for a client that is to sign
        in. The client keeps the token that the server gives in its place.
    account_id
        Which of the user's accounts the calls of a session are for; the first when left out.
    agent
        The caller's name for the server, such as the browser of a signed-in user.
    forwarded_for
        The address it calls for, as ``X-Forwarded-For`` has it: addresses, the nearest last.
        Servers believe those that they have among their trusted proxies.

    Raises
    ------
    ValueError
        When a value cannot be used. The message never holds the key.

    Examples
    --------
    >>> ClientOptions("http://127.0.0.1:8420/", "secret")
    ClientOptions(url='http://127.0.0.1:8420', timeout_s=120.0, max_retries=2, gzip_over=None)
    """

    url: str
    api_key: str | None = field(default=None, repr=False)
    timeout_s: float = 120.0
    max_retries: int = 2
    gzip_over: int | None = None
    session: str | SessionToken | None = field(default=None, repr=False)
    account_id: str | None = field(default=None, repr=False)
    agent: str | None = field(default=None, repr=False)
    forwarded_for: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "url", _address(self.url))
        object.__setattr__(self, "timeout_s", float(self.timeout_s))
        if self.api_key is not None and not _is_token(self.api_key):
            raise ValueError(
                "The API key is not one word of visible ASCII characters; copy it again, or leave "
                "it out where the server has no accounts."
            )
        if isinstance(self.session, str):
            object.__setattr__(self, "session", SessionToken(self.session))
        token = self.session.value if isinstance(self.session, SessionToken) else ""
        if self.session is not None and (self.api_key is not None or not _is_token(token or "-")):
            raise ValueError(
                "The session is not one word of visible ASCII characters, or comes with an API key; "
                "give one of the two."
            )
        if self.account_id is not None and not _is_token(self.account_id):
            raise ValueError("account_id is no id of an account; look at client.auth.session().")
        for name in ("agent", "forwarded_for"):
            text = getattr(self, name) or ""
            if not (text.isascii() and text.isprintable()):
                raise ValueError(f"{name} is not printable ASCII; leave it out.")
        if not 0 < self.timeout_s < float("inf"):
            raise ValueError(f"timeout_s is {self.timeout_s:g}; give a positive number of seconds.")
        if not 0 <= self.max_retries <= MAX_RETRIES:
            raise ValueError(f"max_retries is {self.max_retries}; give 0 to {MAX_RETRIES}.")
        if self.gzip_over is not None and self.gzip_over < 0:
            raise ValueError(f"gzip_over is {self.gzip_over}; give a number of bytes, 0 or more.")

    @property
    def session_token(self) -> SessionToken | None:
        """The session that calls are made with."""
        return self.session if isinstance(self.session, SessionToken) else None

    @property
    def is_loopback(self) -> bool:
        """Whether the server is on this machine, which no proxy leads to."""
        return is_loopback(urlsplit(self.url).hostname or "")


def _address(url: str) -> str:
    try:
        parts = urlsplit(url.strip())
        has_port = parts.port is not None
    except ValueError:
        raise ValueError(_refusal(url)) from None
    if parts.username is not None or parts.password is not None:
        # What stands before the @ may be a secret, so it is not repeated.
        raise ValueError("The server's address holds a user or password; give api_key instead.")
    segments = [segment for segment in parts.path.split("/") if segment]
    if (
        parts.scheme not in {"http", "https"}
        or not parts.hostname
        or parts.query
        or parts.fragment
        or not all(_SEGMENT.fullmatch(segment) and segment.strip(".") for segment in segments)
        or segments[-1:] == ["v1"]
    ):
        raise ValueError(_refusal(url))
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    port = f":{parts.port}" if has_port else ""
    return "/".join([f"{parts.scheme}://{host}{port}", *segments])


def _refusal(url: str) -> str:
    return (
        f"The server's address is {url!r}; give it as http://127.0.0.1:8420, or as "
        "https://example.org/steelyard behind a proxy, without what follows it."
    )


def _is_token(text: str) -> bool:
    return bool(text) and all("!" <= letter <= "~" for letter in text)
