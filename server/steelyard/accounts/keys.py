"""Make API keys, and format them for display.

A key is ``steelyard_sk_`` and 32 random bytes in an URL-safe alphabet. Its first characters are
kept to find it by, and its SHA-256 to check it by: against 200 random secret bits, a
slow hash made for passwords would protect nothing.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from sqlalchemy import Connection, Row

from steelyard.accounts import store as rows
from steelyard.accounts.wire import ApiKey
from steelyard.caller import Scope
from steelyard.errors import InvalidRequestError
from steelyard.ids import new_id
from steelyard.ledger.books import utc_month
from steelyard.ledger.money import to_usd
from steelyard.ledger.store import spent_by_key
from steelyard.wire.filling import filled
from steelyard.wire.storing import StoreSetting
from steelyard.wire.violations import BODY, show

KEY_START = "steelyard_sk_"
_SECRET_BYTES = 32
#: Visible characters of the secret, to find the key by; over 200 random bits are left.
_SHOWN_CHARACTERS = 8
PREFIX_LENGTH = len(KEY_START) + _SHOWN_CHARACTERS
#: A key as ``insert_key`` makes it; longer headers are not even hashed.
KEY_LENGTH = len(KEY_START) + 43
_MAX_NAME = 128
SCOPES: tuple[Scope, ...] = get_args(Scope)


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key just made."""

    key: ApiKey
    secret: str = field(repr=False)


def refused(field: str, message: str) -> InvalidRequestError:
    """Return the refusal of a field."""
    return InvalidRequestError.at((*BODY, field), message, "invalid")


def checked_name(name: str) -> str:
    """Return the name of a key or an account as it is kept, or refuse it."""
    name = name.strip()
    if not name or len(name) > _MAX_NAME or not name.isprintable():
        raise refused(
            "name", f"A name has 1 to {_MAX_NAME} printable characters; {show(name)} has not."
        )
    return name


def check_cap(scope: str, monthly_cap_nano: int | None) -> None:
    """Refuse a cap that a key cannot have."""
    if monthly_cap_nano is not None and scope != "inference":
        raise refused(
            "monthly_cap_usd",
            f"A key of scope {scope} has no monthly cap; make an inference key, or leave the "
            "cap out.",
        )
    if monthly_cap_nano is not None and monthly_cap_nano < 0:
        raise refused("monthly_cap_usd", "The monthly cap is negative; give 0 or more.")


def insert_key(
    connection: Connection,
    account_id: str,
    *,
    name: str,
    scope: Scope,
    at: float,
    monthly_cap_nano: int | None = None,
    expires_at: float | None = None,
    made_by: str | None = None,
    role: str | None = None,
    store: StoreSetting = "on",
) -> NewKey:
    """Write a new key. Its secret is returned here and nowhere else."""
    name = checked_name(name)
    if scope not in SCOPES:
        raise refused("scope", f"There is no scope {scope!r}; give {', '.join(SCOPES)}.")
    check_cap(scope, monthly_cap_nano)
    secret = KEY_START + secrets.token_urlsafe(_SECRET_BYTES)
    key_id = new_id("key")
    values = {
        "id": key_id,
        "account_id": account_id,
        "name": name,
        "prefix": secret[:PREFIX_LENGTH],
        "sha256": hash_secret(secret),
        "scope": scope,
        "monthly_cap_nano": monthly_cap_nano,
        "created_at": at,
        "expires_at": expires_at,
        "made_by": made_by,
        "role": role,
        "store": store,
    }
    rows.API_KEYS.insert(connection, values)
    row = rows.API_KEYS.find(connection, account_id, key_id)
    assert row is not None  # noqa: S101  it was written here
    return NewKey(shown_keys(connection, [row], at)[0], secret)


def hash_secret(secret: str) -> str:
    """Return the hash of a key's secret, which is stored in its place."""
    return hashlib.sha256(secret.encode("ascii")).hexdigest()


def shown_keys(connection: Connection, key_rows: Sequence[Row[Any]], at: float) -> list[ApiKey]:
    """Return keys in wire form, each with its spending in the month of ``at``."""
    capped = [row.id for row in key_rows if row.monthly_cap_nano is not None]
    spent = spent_by_key(connection, capped, utc_month(at)) if capped else {}
    return [_to_wire(row, spent.get(row.id, 0)) for row in key_rows]


def _to_wire(row: Row[Any], spent_nano: int) -> ApiKey:
    cap = row.monthly_cap_nano
    return filled(
        ApiKey,
        row,
        role=row.role or "owner",
        monthly_cap_usd=None if cap is None else to_usd(cap),
        month_spent_usd=None if cap is None else to_usd(spent_nano),
    )
