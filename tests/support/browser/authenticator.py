"""A passkey in software: makes keys and signs challenges as an authenticator and its browser do."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from dataclasses import dataclass, field
from typing import Any

import cbor2
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

_PRESENT, _VERIFIED, _HAS_KEY = 0x01, 0x04, 0x40


@dataclass
class SoftPasskey:
    """One key; each call can make its statements wrong."""

    origin: str
    host: str
    user_handle: str = ""
    count: int = 0
    id: str = field(default_factory=lambda: to_text(secrets.token_bytes(16)))
    key: Any = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    def make(self, options: dict[str, Any], **wrong: Any) -> dict[str, Any]:
        """Return ``toJSON`` of the result of ``navigator.credentials.create``."""
        assert options["authenticatorSelection"]["residentKey"] == "required"
        assert options["authenticatorSelection"]["userVerification"] == "required"
        self.user_handle = options["user"]["id"]
        point = self.key.public_key().public_numbers()
        cose = {1: 2, 3: -7, -1: 1, -2: point.x.to_bytes(32), -3: point.y.to_bytes(32)}
        own_id = to_bytes(self.id)
        attested = bytes(16) + len(own_id).to_bytes(2) + own_id + cbor2.dumps(cose)
        data = self._data(_HAS_KEY, **wrong) + attested
        made = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})
        response = {
            "clientDataJSON": to_text(self._client_data("webauthn.create", options, **wrong)),
            "attestationObject": to_text(made),
            "transports": ["internal"],
        }
        return self._credential(response)

    def give(self, options: dict[str, Any], **wrong: Any) -> dict[str, Any]:
        """Return ``toJSON`` of the result of ``navigator.credentials.get``."""
        assert options["userVerification"] == "required"
        assert options.get("allowCredentials", []) == []
        self.count += 1
        client_data = self._client_data("webauthn.get", options, **wrong)
        data = self._data(0, **wrong)
        signed = data + hashlib.sha256(client_data).digest()
        signature = self.key.sign(signed, ec.ECDSA(hashes.SHA256()))
        response = {
            "clientDataJSON": to_text(client_data),
            "authenticatorData": to_text(data),
            "signature": to_text(signature),
            "userHandle": wrong.get("user_handle", self.user_handle),
        }
        return self._credential(response)

    def _credential(self, response: dict[str, Any]) -> dict[str, Any]:
        return {
            "id": self.id,
            "rawId": self.id,
            "type": "public-key",
            "authenticatorAttachment": "platform",
            "clientExtensionResults": {},
            "response": response,
        }

    def _client_data(self, made_by: str, options: dict[str, Any], **wrong: Any) -> bytes:
        said = {
            "type": wrong.get("kind", made_by),
            "challenge": wrong.get("challenge", options["challenge"]),
            "origin": wrong.get("origin", self.origin),
            "crossOrigin": wrong.get("is_framed", False),
        }
        return json.dumps(said).encode()

    def _data(self, flags: int, **wrong: Any) -> bytes:
        host = wrong.get("host", self.host)
        flags |= _PRESENT | (_VERIFIED if wrong.get("is_verified", True) else 0)
        count = wrong.get("count", self.count)
        return hashlib.sha256(host.encode()).digest() + bytes([flags]) + count.to_bytes(4)


def to_text(data: bytes) -> str:
    """Return bytes as base64url."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def to_bytes(text: str) -> bytes:
    """Return the bytes of base64url."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
