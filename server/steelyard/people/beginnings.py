"""Sign-ins and passkeys that were begun: each is known by a secret of its browser, and taken once."""

from __future__ import annotations

import hashlib

from sqlalchemy import Connection

from steelyard.errors import RateLimitedError
from steelyard.people import limits
from steelyard.people import store as rows


def begin(
    connection: Connection,
    kind: str,
    secret: str,
    *,
    now: float,
    limit: int,
    network: str,
    email: str | None = None,
) -> float:
    """Note a beginning and return when it is over, or refuse one too many in an hour.

    It is counted by its address, and by its network until its account is known.
    """
    by = {"network": network} if email is None else {"email": email}
    times = rows.challenge_times(connection, now - limits.HOUR_S, kind=kind, **by)
    wait_s = limits.wait_s(times, limit, now)
    if wait_s is not None:
        raise RateLimitedError(
            "This was begun too often in this hour; wait, or sign in with a code by mail.",
            retry_after_s=wait_s,
        )
    ends_at = now + limits.CODE_S
    rows.insert_challenge(
        connection,
        _id_of(kind, secret),
        email=email or "",
        network=network,
        tries=0,
        at=now,
        expires_at=ends_at,
    )
    return ends_at


def take(connection: Connection, kind: str, secret: str, now: float) -> bool:
    """Use a beginning up, and return whether it was one that lives."""
    begun_id = _id_of(kind, secret)
    row = rows.find_challenge(connection, begun_id)
    if row is None or not limits.is_alive(row.created_at, row.expires_at, now):
        return False
    rows.CHALLENGES.change(connection, begun_id, ended_at=now)
    return True


def _id_of(kind: str, secret: str) -> str:
    """Return the stored hash of a secret that has 256 bits."""
    return f"{kind}_{hashlib.sha256(secret.encode()).hexdigest()}"
