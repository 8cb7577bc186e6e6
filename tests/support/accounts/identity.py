"""An identity provider of the tests' own: OpenID Connect over HTTP, with PKCE and signed tokens."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT, SECRET = "steelyard-tests", "a-secret-of-the-two"


@dataclass
class Identity:
    """A provider: who is signed in there, and how its next token goes wrong."""

    now: Callable[[], float]
    email: Any = "mia@example.org"
    #: Claims of tokens that are other than they should be; None leaves one out.
    changed: dict[str, Any] = field(default_factory=dict)
    algorithm: str = "RS256"
    url: str = ""
    keys: list[RSAKey] = field(default_factory=lambda: [RSAKey.generate_key(auto_kid=True)])
    asked: dict[str, dict[str, str]] = field(default_factory=dict)

    def authorize(self, authorize_url: str) -> str:
        """Sign in as a person does at its page, and return the code that comes back."""
        query = {name: one for name, [one] in parse_qs(urlsplit(authorize_url).query).items()}
        assert query["response_type"] == "code"
        assert query["client_id"] == CLIENT
        assert query["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(16)
        self.asked[code] = query
        return code

    def answer(self, path: str, form: dict[str, str], authorization: str) -> tuple[int, Any]:
        if path == "/.well-known/openid-configuration":
            ends = {
                "authorization_endpoint": "authorize",
                "token_endpoint": "token",
                "jwks_uri": "keys",
            }
            return 200, {"issuer": self.url, **{k: f"{self.url}/{v}" for k, v in ends.items()}}
        if path == "/keys":
            return 200, {"keys": [key.as_dict(private=False) for key in self.keys]}
        asked = self.asked.pop(form["code"], None)
        given = hashlib.sha256(form["code_verifier"].encode()).digest()
        challenge = _text(given).decode()
        is_known = asked is not None and asked["code_challenge"] == challenge
        basic = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        is_client = authorization == f"Basic {basic}"
        if not is_known or not is_client or form["redirect_uri"] != asked["redirect_uri"]:
            return 400, {"error": "invalid_grant"}
        token = {"access_token": "a", "token_type": "Bearer", "id_token": self._token(asked)}
        return 200, token

    def _token(self, asked: dict[str, str]) -> str:
        claims = {
            "iss": self.url,
            "aud": CLIENT,
            "sub": "1",
            "iat": int(self.now()),
            "exp": int(self.now()) + 300,
            "nonce": asked["nonce"],
            "email": self.email,
            "email_verified": True,
            **({"auth_time": int(self.now())} if "max_age" in asked else {}),
            **self.changed,
        }
        claims = {name: value for name, value in claims.items() if value is not None}
        header = {"alg": self.algorithm, "kid": self.keys[-1].kid}
        if self.algorithm in {"none", "HS256"}:
            signed = b".".join(_text(json.dumps(one).encode()) for one in (header, claims))
            # Signed with what everybody knows: the public key.
            public = self.keys[-1].as_pem(private=False)
            seal = hmac.digest(public, signed, "sha256") if self.algorithm == "HS256" else b""
            return (signed + b"." + _text(seal)).decode()
        return jwt.encode(header, claims, self.keys[-1], algorithms=[self.algorithm])


def _text(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


@contextmanager
def identity_provider(now: Callable[[], float]) -> Iterator[Identity]:
    """Run a provider on a free loopback port."""
    identity = Identity(now)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if not self.path.startswith("/authorize?"):
                self._send({})
                return
            # Whoever comes is signed in here already, and is led back at once.
            code = identity.authorize(self.path)
            asked = identity.asked[code]
            back = urlencode({"code": code, "state": asked["state"]})
            self.send_response(302)
            self.send_header("Location", f"{asked['redirect_uri']}?{back}")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self._send({name: one for name, [one] in parse_qs(body).items()})

        def _send(self, form: dict[str, str]) -> None:
            authorization = self.headers.get("Authorization", "")
            status, told = identity.answer(self.path, form, authorization)
            data = json.dumps(told).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Write nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    identity.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield identity
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()
