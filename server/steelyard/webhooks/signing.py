"""Signatures of deliveries, as https://www.standardwebhooks.com describes them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

_PREFIX = "whsec_"
_SECRET_BYTES = 32


def new_secret() -> str:
    """Return a new secret, such as ``whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD…``."""
    return _PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def sign(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the signature of a message with a secret.

    >>> sign("whsec_" + "A" * 32, "msg_1", 1700000000, b"{}")
    'v1,LzeNxZHo3O8fwpFJpLh/0B99ugILNFJw+/9lTgx0APs='
    """
    key = base64.b64decode(secret.removeprefix(_PREFIX))
    signed = f"{message_id}.{timestamp}.".encode() + body
    digest = hmac.new(key, signed, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def headers(secrets_: list[str], message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Return a message's headers: its id, the time it is sent, and a signature by each secret."""
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(
            sign(secret, message_id, timestamp, body) for secret in secrets_
        ),
    }
