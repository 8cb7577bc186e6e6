"""Referrals: a code for each account, redeemed before a first purchase, paid for by both."""

from __future__ import annotations

import secrets
from typing import Any

from sqlalchemy import Connection, Row, func, insert, select, update

from steelyard.billing import store as rows
from steelyard.billing.tables import referral_codes, referrals
from steelyard.errors import ReferralRefusedError
from steelyard.ledger import books as ledger
from steelyard.operations.posting import post_operation

#: Without letters and digits that look alike.
_ALPHABET = "23456789ABCDEFGHJKMNPQRSTVWXYZ"
_LENGTH = 10


def code_of(connection: Connection, account_id: str, now: float) -> str:
    """Return an account's code; it is made when it is first asked for."""
    query = select(referral_codes.c.code).where(referral_codes.c.account_id == account_id)
    known: str | None = connection.execute(query).scalar()
    if known is not None:
        return known
    code = "".join(secrets.choice(_ALPHABET) for _ in range(_LENGTH))
    connection.execute(
        insert(referral_codes), {"account_id": account_id, "code": code, "created_at": now}
    )
    return code


def earned(connection: Connection, account_id: str) -> tuple[int, int]:
    """Return how many accounts redeemed a code, and its owner's reward, in nano-USD."""
    row = connection.execute(
        select(func.count(), func.coalesce(func.sum(referrals.c.granted_nano), 0)).where(
            referrals.c.owner_account_id == account_id
        )
    ).one()
    return int(row[0]), int(row[1])


def redeem(connection: Connection, account_id: str, code: str, now: float) -> None:
    """Note whose code an account redeems, or refuse it."""
    owner: str | None = connection.execute(
        select(referral_codes.c.account_id).where(
            referral_codes.c.code == code.strip().upper().replace("-", "")
        )
    ).scalar()
    if owner is None:
        raise ReferralRefusedError("No account has this code; look at it again.")
    if owner == account_id:
        raise ReferralRefusedError("The code is this account's own; another account may redeem it.")
    if _find_referral(connection, account_id) is not None:
        raise ReferralRefusedError("The account has redeemed a code before; one is the most.")
    redeemed = _find_referral(connection, owner)
    if redeemed is not None and redeemed.owner_account_id == account_id:
        raise ReferralRefusedError(
            "The code's owner has redeemed this account's code, and a pair counts once; redeem "
            "another account's code."
        )
    if rows.has_paid(connection, account_id):
        raise ReferralRefusedError(
            "The account has paid for credit before; a code counts for a first purchase."
        )
    connection.execute(
        insert(referrals),
        {"account_id": account_id, "owner_account_id": owner, "redeemed_at": now},
    )


def grant(connection: Connection, account_id: str, amount_nano: int, now: float) -> None:
    """Credit both sides with the first purchase that is paid; later ones change nothing."""
    referral = _find_referral(connection, account_id)
    if referral is None or not amount_nano:
        return
    granted = connection.execute(
        update(referrals)
        .where(referrals.c.account_id == account_id, referrals.c.granted_at.is_(None))
        .values(granted_at=now, granted_nano=amount_nano)
    )
    if granted.rowcount == 0:
        return
    for account in (account_id, referral.owner_account_id):
        post_operation(
            connection, account, "referral", ledger.referral(amount_nano), amount_nano, now
        )


def _find_referral(connection: Connection, account_id: str) -> Row[Any] | None:
    return connection.execute(select(referrals).where(referrals.c.account_id == account_id)).first()
