"""One-time codes and tokens of sessions: how they are made, read and hashed.

A code has 36 bits, lives ten minutes and takes five tries; its hash is slow and salted with its
challenge, so that a copy of the state does not give it away in that time. A token has 256 random
bits: against them a slow hash would protect nothing.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

#: Digits and letters of which none looks like another, in any hand or typeface.
ALPHABET = "34679ACDEFGHJKLMNPQRTWXY"
CODE_LENGTH = 8
TOKEN_START = "steelyard_ss_"  # noqa: S105  the prefix of every token
_TOKEN_BYTES = 32
#: As ``new_token`` makes it; longer cookies are not even hashed.
TOKEN_LENGTH = len(TOKEN_START) + 43
#: scrypt's cost: 4 MiB and some milliseconds.
_COST, _BLOCK = 2**12, 8
#: Held against where there is no code, so that both cases do the same.
NOBODYS_HASH = "0" * 64


def new_code() -> str:
    """Return a new code."""
    return "".join(secrets.choice(ALPHABET) for _ in range(CODE_LENGTH))


def shown(code: str) -> str:
    """Return a code as people read it.

    >>> shown("34679ACD")
    '3467-9ACD'
    """
    return f"{code[:4]}-{code[4:]}"


def read_code(text: str) -> str:
    """Return a typed code in its original form.

    >>> read_code(" 3467-9acd ")
    '34679ACD'
    """
    return "".join(text.split()).replace("-", "").upper()


def hash_code(challenge_id: str, code: str) -> str:
    """Return the stored hash of a code; some milliseconds of work."""
    derived = hashlib.scrypt(
        code.encode(), salt=challenge_id.encode(), n=_COST, r=_BLOCK, p=1, dklen=32
    )
    return derived.hex()


def is_same(given: str, known: str) -> bool:
    """Whether two hashes are the same, in a time that does not tell where they differ."""
    return hmac.compare_digest(given, known)


def new_token() -> str:
    """Return a new session's token."""
    return TOKEN_START + secrets.token_urlsafe(_TOKEN_BYTES)


def new_rotation_key() -> str:
    """Return a key that ``rotated_token`` makes a token's successor with."""
    return secrets.token_hex(_TOKEN_BYTES)


def rotated_token(token: str, key: str) -> str:
    """Return the token that replaces another, the same for every holder of that one."""
    made = hmac.digest(key.encode(), token.encode("ascii"), "sha256")
    return TOKEN_START + base64.urlsafe_b64encode(made).decode().rstrip("=")


def hash_token(token: str) -> str | None:
    """Return the stored hash of a token; ``None`` for an impossible token."""
    if len(token) != TOKEN_LENGTH or not token.isascii() or not token.startswith(TOKEN_START):
        return None
    return hashlib.sha256(token.encode("ascii")).hexdigest()
