"""Which browsers a workbench answers: its own names alone, its own pages' websockets, signed sessions."""

from __future__ import annotations

import secrets
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from tornado.httputil import HTTPHeaders, HTTPServerRequest
from tornado.web import OutputTransform

from steelyard.wire.hosts import host_of, is_loopback

_MISDIRECTED = 421
#: What Tornado calls no handler for.
_NO_METHOD = "MISDIRECTED"
_SCHEMES = ("http://", "https://")
#: Who may show a page in a frame: itself, and notebooks on this machine.
_FRAMES = "'self' http://localhost:* http://127.0.0.1:* vscode-webview:"


def server_options(host: str, port: int, names: frozenset[str]) -> dict[str, Any]:
    """Return the options of Panel's server that keep other sites' pages out; ``names`` are a proxy's."""
    own = f"[{host}]" if ":" in host else host
    origins = [f"{own}:{port}", f"localhost:{port}"]
    return {
        "transforms": [partial(Guard, names)],
        "websocket_origin": [*origins, *sorted(names)],
        "sign_sessions": True,
        "secret_key": secrets.token_urlsafe(32),
    }


class Guard(OutputTransform):
    """Adds the security headers to an answer, or refuses a request that was meant for elsewhere."""

    def __init__(self, names: frozenset[str], request: HTTPServerRequest) -> None:
        self._host = request.host
        is_absolute = (request.uri or "").startswith(_SCHEMES)  # then it says who is meant
        name = host_of(urlsplit(request.uri).netloc if is_absolute else request.host)
        # Panel reads no address of IPv6.
        self._is_ours = ":" not in name and (is_loopback(name) or name in names)
        if not self._is_ours:
            request.method = _NO_METHOD  # so that no page is made for it

    def transform_first_chunk(
        self,
        status_code: int,
        headers: HTTPHeaders,
        chunk: bytes,
        finishing: bool,  # noqa: ARG002
    ) -> tuple[int, HTTPHeaders, bytes]:
        """Return the answer's status, headers and first bytes."""
        if not self._is_ours:
            chunk = b"This workbench is not called that; open it as localhost, or add the name to STEELYARD_HOSTS."
            status_code, headers = _MISDIRECTED, HTTPHeaders({"Content-Type": "text/plain"})
            headers["Content-Length"] = str(len(chunk))
        headers.update(self._security())
        return status_code, headers, chunk

    def transform_chunk(self, chunk: bytes, finishing: bool) -> bytes:  # noqa: ARG002
        """Return further bytes of an answer; none of a refused one."""
        return chunk if self._is_ours else b""

    def _security(self) -> dict[str, str]:
        policy = {
            "default-src": "'self'",
            # Bokeh makes functions of the texts of its callbacks, and styles elements itself.
            "script-src": "'self' 'unsafe-inline' 'unsafe-eval' blob:",
            "style-src": "'self' 'unsafe-inline'",
            "img-src": "'self' data: blob:",
            "font-src": "'self' data:",
            "connect-src": f"'self' blob: ws://{self._host} wss://{self._host}",
            "worker-src": "'self' blob:",
            "object-src": "'none'",
            "base-uri": "'self'",
            "form-action": "'self'",
            "frame-ancestors": _FRAMES,
        }
        return {
            "Content-Security-Policy": "; ".join(
                f"{name} {value}" for name, value in policy.items()
            ),
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
        }
