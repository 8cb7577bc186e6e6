"""Tables of users, their roles in accounts, challenges, sessions, letters, and the audit."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
)

from steelyard.storage.tables import metadata

#: A user is an e-mail address, in lower case. ``is_operator`` is set by a command.
users = Table(
    "users",
    metadata,
    Column("id", Text, primary_key=True),
    Column("email", Text, nullable=False, unique=True),
    Column("is_operator", Integer, nullable=False),
    Column("created_at", Double, nullable=False),
)

#: A user's part in an account; an invitation until ``joined_at``.
memberships = Table(
    "memberships",
    metadata,
    Column("id", Text, primary_key=True),
    Column("account_id", Text, ForeignKey("accounts.id"), nullable=False),
    Column("email", Text, nullable=False, index=True),
    Column("role", Text, nullable=False),
    Column("invited_by", Text),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    Column("joined_at", Double),
    CheckConstraint("role IN ('owner', 'developer', 'billing', 'reviewer')", name="role"),
    UniqueConstraint("account_id", "email"),
)

#: A code asked for. It is made when its letter goes out: until then ``code_hash`` is null. Other ways
#: to sign in begin with a row here too, whose id is the hash of a secret.
sign_in_challenges = Table(
    "sign_in_challenges",
    metadata,
    Column("id", Text, primary_key=True),
    Column("email", Text, nullable=False),
    Column("network", Text, nullable=False),
    Column("code_hash", Text),
    Column("tries_left", Integer, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    Column("ended_at", Double),
    Index(None, "email", "created_at"),
    Index(None, "network", "created_at"),
)

#: Sessions by the hash of their token. With ``rotation_key`` whoever holds the token before is given
#: the same new one, for a moment. ``confirmed_at`` is when a code was last given, or 0.
sessions = Table(
    "sessions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("user_id", Text, ForeignKey("users.id"), nullable=False, index=True),
    Column("sha256", Text, nullable=False, unique=True),
    Column("previous_sha256", Text, index=True),
    Column("rotated_at", Double),
    Column("must_rotate", Integer, nullable=False),
    Column("network", Text, nullable=False),
    Column("agent", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("confirmed_at", Double, nullable=False),
    Column("last_used_at", Double, nullable=False),
    Column("idle_until", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    Column("ended_at", Double),
    Column("rotation_key", Text),
)

#: Public keys of users' passkeys. ``host`` is where one was made, and alone works.
passkeys = Table(
    "passkeys",
    metadata,
    Column("id", Text, primary_key=True),
    Column("user_id", Text, ForeignKey("users.id"), nullable=False, index=True),
    Column("credential_id", Text, nullable=False, unique=True),
    Column("public_key", Text, nullable=False),
    Column("sign_count", BigInteger, nullable=False),
    Column("host", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("last_used_at", Double),
)

#: Letters that wait to be sent; a code is not among what is kept of one.
letters = Table(
    "letters",
    metadata,
    Column("id", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("email", Text, nullable=False),
    Column("challenge_id", Text),
    Column("account_name", Text),
    Column("sender", Text),
    Column("tries", Integer, nullable=False),
    Column("next_at", Double, nullable=False, index=True),
    Column("expires_at", Double, nullable=False),
    Column("text", Text),
)

#: What was done in the console; rows are added, and removed by age alone.
audit_entries = Table(
    "audit_entries",
    metadata,
    Column("id", Text, primary_key=True),
    Column("account_id", Text, ForeignKey("accounts.id"), nullable=False),
    Column("email", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("subject", Text),
    Column("address", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Index(None, "account_id", "created_at"),
    Index(None, "created_at"),
)
