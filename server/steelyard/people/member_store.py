"""Rows of memberships."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Connection, Row, func, insert, or_, select

from steelyard.http.routing import REVIEWERS
from steelyard.ids import new_id
from steelyard.people.tables import memberships
from steelyard.storage.rows import Rows

MEMBERS = Rows(memberships)


def insert_member(
    connection: Connection,
    account_id: str,
    email: str,
    role: str,
    *,
    at: float,
    expires_at: float,
    joined_at: float | None = None,
    invited_by: str | None = None,
) -> Row[Any]:
    """Write a member, or an invitation."""
    member_id = new_id("mem")
    connection.execute(
        insert(memberships).values(
            id=member_id,
            account_id=account_id,
            email=email,
            role=role,
            invited_by=invited_by,
            created_at=at,
            expires_at=expires_at,
            joined_at=joined_at,
        )
    )
    return connection.execute(select(memberships).where(memberships.c.id == member_id)).one()


def all_members(connection: Connection, account_id: str) -> Sequence[Row[Any]]:
    """Return an account's members and invitations, the oldest first."""
    table = memberships.c
    return connection.execute(
        select(memberships)
        .where(table.account_id == account_id)
        .order_by(table.created_at, table.id)
    ).all()


def reviewers_of(
    connection: Connection, account_id: str, *, now: Callable[[], float]
) -> dict[str, bool]:
    """Return the addresses of an account's members who may review, and whether each is only invited."""
    table = memberships.c
    members = connection.execute(
        select(table.email, table.joined_at).where(
            table.account_id == account_id,
            table.role.in_(REVIEWERS),
            or_(table.joined_at.is_not(None), table.expires_at > now()),
        )
    )
    return {member.email: member.joined_at is None for member in members}


def owners_of(connection: Connection, account_id: str) -> Sequence[str]:
    """Return the addresses of an account's owners who have joined."""
    table = memberships.c
    return connection.scalars(
        select(table.email).where(
            table.account_id == account_id, table.role == "owner", table.joined_at.is_not(None)
        )
    ).all()


def find_member(
    connection: Connection,
    account_id: str,
    *,
    member_id: str | None = None,
    email: str | None = None,
) -> Row[Any] | None:
    """Return a member or invitation by its id or address."""
    table = memberships.c
    of = table.email == email if member_id is None else table.id == member_id
    return connection.execute(select(memberships).where(table.account_id == account_id, of)).first()


def count_owners(connection: Connection, account_id: str) -> int:
    """Return how many owners have joined an account."""
    table = memberships.c
    count = connection.scalar(
        select(func.count())
        .select_from(memberships)
        .where(table.account_id == account_id, table.role == "owner", table.joined_at.is_not(None))
    )
    return count or 0
