"""Rows of users, challenges, sessions, letters and the audit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from steelyard.ids import new_id
from steelyard.people.tables import (
    audit_entries,
    letters,
    memberships,
    sessions,
    sign_in_challenges,
    users,
)
from steelyard.storage.rows import Rows
from steelyard.storage.statements import Statement
from steelyard.storage.tables import accounts

AUDIT = Rows(audit_entries)
LETTERS = Rows(letters)
CHALLENGES = Rows(sign_in_challenges)
#: How ids of codes that were asked for begin.
CODE = "chal"


def challenge_times(
    connection: sa.Connection,
    since: float,
    *,
    email: str | None = None,
    network: str | None = None,
    kind: str = CODE,
) -> list[float]:
    """Return when sign-ins of a kind were begun of late, for an address, from a network, or both."""
    table = sign_in_challenges.c
    where = [table.created_at > since, table.id.startswith(f"{kind}_", autoescape=True)]
    if email is not None:
        where.append(table.email == email)
    if network is not None:
        where.append(table.network == network)
    return list(connection.scalars(sa.select(table.created_at).where(*where)))


def is_known_network(connection: sa.Connection, network: str) -> bool:
    """Return whether anybody has signed in from a network; whose address it was makes no difference."""
    known = sa.select(sessions.c.id).where(sessions.c.network == network).limit(1)
    return connection.scalar(known) is not None


def live_challenges(connection: sa.Connection, email: str, now: float) -> list[sa.Row[Any]]:
    """Return the codes of an address that can still be given, newest first."""
    table = sign_in_challenges.c
    return list(
        connection.execute(
            sa.select(sign_in_challenges)
            .where(
                table.email == email,
                table.id.startswith(f"{CODE}_", autoescape=True),
                table.ended_at.is_(None),
                table.tries_left > 0,
                table.expires_at > now,
            )
            .order_by(table.created_at.desc(), table.id.desc())
        )
    )


def insert_challenge(
    connection: sa.Connection,
    challenge_id: str,
    *,
    email: str,
    network: str,
    tries: int,
    at: float,
    expires_at: float,
) -> None:
    """Write a new challenge; one without tries is a beginning that no letter is sent for."""
    connection.execute(
        sa.insert(sign_in_challenges).values(
            id=challenge_id,
            email=email,
            network=network,
            tries_left=tries,
            created_at=at,
            expires_at=expires_at,
        )
    )


def find_challenge(connection: sa.Connection, challenge_id: str) -> sa.Row[Any] | None:
    """Return a challenge that has not ended."""
    table = sign_in_challenges.c
    return connection.execute(
        sa.select(sign_in_challenges).where(table.id == challenge_id, table.ended_at.is_(None))
    ).first()


def end_challenges(connection: sa.Connection, challenge_ids: Sequence[str], at: float) -> None:
    """Write that codes can no longer be given."""
    connection.execute(
        sa.update(sign_in_challenges)
        .where(sign_in_challenges.c.id.in_(challenge_ids))
        .values(ended_at=at, code_hash=None)
    )


def insert_letter(
    connection: sa.Connection, kind: str, email: str, *, at: float, expires_at: float, **values: Any
) -> None:
    """Queue a letter."""
    row = {"id": new_id("mail"), "kind": kind, "email": email, "tries": 0, **values}
    connection.execute(sa.insert(letters).values(next_at=at, expires_at=expires_at, **row))


#: Asked every second by every server, as a rule in vain.
_FIRST_DUE_LETTER = Statement(
    sa.select(letters.c.id)
    .where(
        sa.or_(
            letters.c.next_at <= sa.bindparam("now"), letters.c.expires_at <= sa.bindparam("now")
        )
    )
    .limit(1)
)


def is_letter_due(connection: sa.Connection, now: float) -> bool:
    """Return whether a letter is to be sent or dropped."""
    return _FIRST_DUE_LETTER.first(connection, {"now": now}) is not None


def take_letter(connection: sa.Connection, now: float, until: float) -> sa.Row[Any] | None:
    """Lease the letter that waits longest until a time; remove expired ones."""
    connection.execute(sa.delete(letters).where(letters.c.expires_at <= now))
    row = connection.execute(
        sa.select(letters).where(letters.c.next_at <= now).order_by(letters.c.next_at).limit(1)
    ).first()
    if row is not None:
        delay_letter(connection, row.id, until, row.tries + 1)
    return row


def delay_letter(connection: sa.Connection, letter_id: str, until: float, tries: int) -> None:
    """Write when a letter is tried again."""
    where = letters.c.id == letter_id
    connection.execute(sa.update(letters).where(where).values(next_at=until, tries=tries))


def find_user(connection: sa.Connection, email: str) -> sa.Row[Any] | None:
    """Return a user by its address."""
    return connection.execute(sa.select(users).where(users.c.email == email)).first()


def insert_user(connection: sa.Connection, email: str, at: float) -> sa.Row[Any]:
    """Write a new user."""
    connection.execute(
        sa.insert(users).values(id=new_id("user"), email=email, is_operator=0, created_at=at)
    )
    return connection.execute(sa.select(users).where(users.c.email == email)).one()


def make_operator(connection: sa.Connection, email: str) -> None:
    """Write that a user is an operator."""
    connection.execute(sa.update(users).where(users.c.email == email).values(is_operator=1))


def has_operator(connection: sa.Connection) -> bool:
    """Whether a command made anybody an operator."""
    return bool(connection.scalar(sa.select(sa.exists().where(users.c.is_operator == 1))))


def is_invited(connection: sa.Connection, email: str, now: float) -> bool:
    """Whether an invitation of an address is open."""
    table = memberships.c
    open_ = sa.and_(table.email == email, table.joined_at.is_(None), table.expires_at > now)
    return bool(connection.scalar(sa.select(sa.exists().where(open_))))


def join(connection: sa.Connection, email: str, now: float) -> None:
    """Turn the open invitations of an address into memberships."""
    table = memberships.c
    connection.execute(
        sa.update(memberships)
        .where(table.email == email, table.joined_at.is_(None), table.expires_at > now)
        .values(joined_at=now)
    )


def accounts_of(connection: sa.Connection, email: str) -> Sequence[sa.Row[str, str, str, str]]:
    """Return the accounts of an address with its roles, that joined first being first."""
    return connection.execute(
        sa.select(accounts.c.id, accounts.c.name, accounts.c.store, memberships.c.role)
        .join(memberships, memberships.c.account_id == accounts.c.id)
        .where(memberships.c.email == email, memberships.c.joined_at.is_not(None))
        .order_by(memberships.c.joined_at, accounts.c.id)
    ).all()


def insert_session(connection: sa.Connection, **values: Any) -> None:
    """Write a new session; the values are by column of ``tables.sessions``."""
    connection.execute(sa.insert(sessions).values(must_rotate=0, **values))


def find_session(
    connection: sa.Connection, sha256: str, rotated_after: float
) -> sa.Row[Any] | None:
    """Return a session that was not ended, with its user, by its token's hash or that of just before."""
    table = sessions.c
    of = sa.or_(
        table.sha256 == sha256,
        sa.and_(table.previous_sha256 == sha256, table.rotated_at > rotated_after),
    )
    return connection.execute(
        sa.select(sessions, users.c.email, users.c.is_operator)
        .join(users, users.c.id == table.user_id)
        .where(of, table.ended_at.is_(None))
    ).first()


def use_session(
    connection: sa.Connection, session_id: str, last_used_at: float, idle_until: float
) -> None:
    """Write a session's use."""
    connection.execute(
        sa.update(sessions)
        .where(sessions.c.id == session_id)
        .values(last_used_at=last_used_at, idle_until=idle_until)
    )


def rotate_session(
    connection: sa.Connection, old_sha256: str, new_sha256: str, key: str, at: float
) -> None:
    """Replace a session's token."""
    connection.execute(
        sa.update(sessions)
        .where(sessions.c.sha256 == old_sha256)
        .values(
            sha256=new_sha256,
            previous_sha256=old_sha256,
            rotation_key=key,
            rotated_at=at,
            must_rotate=0,
        )
    )


def _live(now: float) -> tuple[sa.ColumnElement[bool], ...]:
    table = sessions.c
    return (table.ended_at.is_(None), table.idle_until > now, table.expires_at > now)


def live_sessions(
    connection: sa.Connection, user_id: str, now: float
) -> Sequence[sa.Row[str, str, str, str]]:
    """Return a user's sessions that live, the newest first."""
    table = sessions.c
    return connection.execute(
        sa.select(sessions)
        .where(table.user_id == user_id, *_live(now))
        .order_by(table.created_at.desc(), table.id.desc())
    ).all()


def end_sessions(
    connection: sa.Connection,
    user_id: str,
    at: float,
    *,
    only: str | None = None,
    but: str | None = None,
) -> int:
    """End a user's sessions, or one, or all but one, and return how many ended."""
    where = [sessions.c.user_id == user_id, *_live(at)]
    if only is not None:
        where.append(sessions.c.id == only)
    if but is not None:
        where.append(sessions.c.id != but)
    return connection.execute(sa.update(sessions).where(*where).values(ended_at=at)).rowcount


def end_session_of_token(connection: sa.Connection, user_id: str, sha256: str, at: float) -> None:
    """End the session that a browser had before it signed in anew."""
    connection.execute(
        sa.update(sessions)
        .where(
            sessions.c.sha256 == sha256,
            sessions.c.user_id == user_id,
            sessions.c.ended_at.is_(None),
        )
        .values(ended_at=at)
    )


def must_rotate(connection: sa.Connection, email: str) -> None:
    """Write that the tokens of an address's sessions are replaced at their next use."""
    of = sa.select(users.c.id).where(users.c.email == email)
    connection.execute(
        sa.update(sessions)
        .where(sessions.c.user_id.in_(of), sessions.c.ended_at.is_(None))
        .values(must_rotate=1)
    )


def note(
    connection: sa.Connection,
    account_id: str,
    email: str,
    action: str,
    *,
    address: str,
    at: float,
    subject: str | None = None,
) -> None:
    """Add an entry to an account's audit."""
    connection.execute(
        sa.insert(audit_entries).values(
            id=new_id("audit"),
            account_id=account_id,
            email=email,
            action=action,
            subject=subject,
            address=address,
            created_at=at,
        )
    )


def note_for_all(
    connection: sa.Connection,
    email: str,
    action: str,
    *,
    address: str,
    at: float,
    subject: str | None = None,
) -> None:
    """Add an entry to the audit of every account of a user."""
    for account in accounts_of(connection, email):
        note(connection, account.id, email, action, address=address, at=at, subject=subject)


def audit_times(
    connection: sa.Connection, account_id: str, action: str, since: float
) -> list[float]:
    """Return when something was done of late in the console of an account."""
    table = audit_entries.c
    of = (table.account_id == account_id, table.action == action, table.created_at > since)
    return list(connection.scalars(sa.select(table.created_at).where(*of)))


def sweep(connection: sa.Connection, *, audit_before: float, before: float) -> None:
    """Remove challenges and sessions that are long over, and entries past their time."""
    connection.execute(sa.delete(audit_entries).where(audit_entries.c.created_at < audit_before))
    table = sign_in_challenges
    connection.execute(sa.delete(table).where(table.c.expires_at < before))
    connection.execute(
        sa.delete(sessions).where(
            sa.or_(sessions.c.expires_at < before, sessions.c.idle_until < before)
        )
    )
    connection.execute(
        sa.update(sessions).where(sessions.c.rotated_at < before).values(rotation_key=None)
    )
