"""Challenges for browsers about passkeys, and the check of their replies (WebAuthn).

A browser signs the origin of the page that asked, and an authenticator the host that a passkey is
of: a page elsewhere gets nothing that passes for one's own. Nothing is kept of a passkey but its
public key.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

from steelyard.people.wire import GivenPasskey, MadePasskey

_log = logging.getLogger(__name__)

_NAME = "Steelyard"
#: Milliseconds that a dialog stays open: as long as its challenge lives.
_DIALOG_MS = 600_000
#: Letters of a public key as base64url; one of 4096 bits has some 700.
_LONGEST_KEY = 2048


@dataclass(frozen=True, slots=True)
class ClientData:
    """The challenge and the origin in a browser's signature."""

    challenge: str
    origin: str


_NO_CLIENT_DATA = ClientData("", "")


@dataclass(frozen=True, slots=True)
class NewPasskey:
    """The stored fields of a new passkey."""

    credential_id: str
    public_key: str
    sign_count: int


def is_installed() -> bool:
    """Whether passkeys can be read here."""
    return find_spec("webauthn") is not None


def read_client_data(client_data: str) -> ClientData:
    """Return the challenge and origin of client data; both empty when it cannot be read."""
    try:
        fields = json.loads(_read(client_data))
        challenge, origin = fields["challenge"], fields["origin"]
        is_framed = fields.get("crossOrigin", False)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        challenge = origin = is_framed = None
    is_text = all(isinstance(text, str) and text.isascii() for text in (challenge, origin))
    return ClientData(challenge, origin) if is_text and is_framed is False else _NO_CLIENT_DATA


def handle_of(user_id: str) -> str:
    """Return the handle that authenticators store for a user."""
    return _write(user_id.encode())


def to_make(
    challenge: str, *, host: str, user_id: str, email: str, known: Iterable[str]
) -> dict[str, Any]:
    """Return the options for making a passkey that names and verifies its user."""
    from webauthn import generate_registration_options  # noqa: PLC0415
    from webauthn.helpers import structs  # noqa: PLC0415

    options = generate_registration_options(
        rp_id=host,
        rp_name=_NAME,
        user_id=user_id.encode(),
        user_name=email,
        user_display_name=email,
        challenge=_read(challenge),
        timeout=_DIALOG_MS,
        authenticator_selection=structs.AuthenticatorSelectionCriteria(
            resident_key=structs.ResidentKeyRequirement.REQUIRED,
            user_verification=structs.UserVerificationRequirement.REQUIRED,
        ),
        exclude_credentials=[
            structs.PublicKeyCredentialDescriptor(id=_read(credential_id))
            for credential_id in known
        ],
    )
    return _as_json(options)


def to_give(challenge: str, *, host: str) -> dict[str, Any]:
    """Return the options for signing, with any passkey of a host."""
    from webauthn import generate_authentication_options  # noqa: PLC0415
    from webauthn.helpers import structs  # noqa: PLC0415

    options = generate_authentication_options(
        rp_id=host,
        challenge=_read(challenge),
        timeout=_DIALOG_MS,
        user_verification=structs.UserVerificationRequirement.REQUIRED,
    )
    return _as_json(options)


def read_made(made: MadePasskey, client_data: ClientData, host: str) -> NewPasskey | None:
    """Return the stored fields of a passkey made for a host; ``None`` when it is not valid."""
    from webauthn import verify_registration_response  # noqa: PLC0415

    response = {
        "clientDataJSON": made.response.client_data,
        "attestationObject": made.response.attestation,
    }
    try:
        verified = verify_registration_response(
            credential=_credential(made.id, response),
            expected_challenge=_read(client_data.challenge),
            expected_rp_id=host,
            expected_origin=client_data.origin,
            require_user_verification=True,
        )
    except Exception as error:  # noqa: BLE001  what a stranger sends fails its readers in any way
        _log.debug("A new passkey was refused: %s", error)
        return None
    public_key = _write(verified.credential_public_key)
    is_bound = _write(verified.credential_id) == made.id and len(public_key) <= _LONGEST_KEY
    return NewPasskey(made.id, public_key, verified.sign_count) if is_bound else None


def read_count(
    given: GivenPasskey, client_data: ClientData, host: str, public_key: str | None
) -> int | None:
    """Return the sign count of a valid signature; ``None`` when it is not valid.

    Without a public key the answer is ``None`` too, after as much work.
    """
    from webauthn import verify_authentication_response  # noqa: PLC0415

    response = {
        "clientDataJSON": given.response.client_data,
        "authenticatorData": given.response.authenticator_data,
        "signature": given.response.signature,
        "userHandle": given.response.user_handle,
    }
    try:
        verified = verify_authentication_response(
            credential=_credential(given.id, response),
            expected_challenge=_read(client_data.challenge),
            expected_rp_id=host,
            expected_origin=client_data.origin,
            credential_public_key=_read(public_key or _nobodys_key()),
            # Compared with the stored one in the transaction that changes it.
            credential_current_sign_count=0,
            require_user_verification=True,
        )
    except Exception as error:  # noqa: BLE001  what a stranger sends fails its readers in any way
        _log.debug("A passkey was refused: %s", error)
        return None
    return None if public_key is None else verified.new_sign_count


def is_copied(known: int, given: int) -> bool:
    """Whether a count went back, as that of a copied key does; one that never counts stays at 0.

    >>> is_copied(4, 4), is_copied(4, 5), is_copied(0, 0)
    (True, False, False)
    """
    return (known > 0 or given > 0) and given <= known


@cache
def _nobodys_key() -> str:
    """Return a public key whose other half was thrown away."""
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415
    from webauthn.helpers import encode_cbor  # noqa: PLC0415

    point = ec.generate_private_key(ec.SECP256R1()).public_key().public_numbers()
    key = {1: 2, 3: -7, -1: 1, -2: point.x.to_bytes(32), -3: point.y.to_bytes(32)}
    return _write(encode_cbor(key))


def _credential(id_: str, response: dict[str, str]) -> dict[str, Any]:
    return {"id": id_, "rawId": id_, "type": "public-key", "response": response}


def _as_json(options: Any) -> dict[str, Any]:
    from webauthn import options_to_json  # noqa: PLC0415

    values: dict[str, Any] = json.loads(options_to_json(options))
    return values


def _read(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _write(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
