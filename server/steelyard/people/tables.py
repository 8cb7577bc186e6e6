"""Tables of users, their roles in accounts, challenges, sessions, letters, and the audit."""

import sqlalchemy as sa

from steelyard.storage.tables import metadata

#: A user is an e-mail address, in lower case. ``is_operator`` is set by a command.
users = sa.Table(
    "users",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("email", sa.Text, nullable=False, unique=True),
    sa.Column("is_operator", sa.Integer, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
)

#: A user's part in an account; an invitation until ``joined_at``.
memberships = sa.Table(
    "memberships",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
    sa.Column("email", sa.Text, nullable=False, index=True),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("invited_by", sa.Text),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("expires_at", sa.Double, nullable=False),
    sa.Column("joined_at", sa.Double),
    sa.CheckConstraint("role IN ('owner', 'developer', 'billing', 'reviewer')", name="role"),
    sa.UniqueConstraint("account_id", "email"),
)

#: A code asked for. It is made when its letter goes out: until then ``code_hash`` is null. Other ways
#: to sign in begin with a row here too, whose id is the hash of a secret.
sign_in_challenges = sa.Table(
    "sign_in_challenges",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("email", sa.Text, nullable=False),
    sa.Column("network", sa.Text, nullable=False),
    sa.Column("code_hash", sa.Text),
    sa.Column("tries_left", sa.Integer, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("expires_at", sa.Double, nullable=False),
    sa.Column("ended_at", sa.Double),
    sa.Index(None, "email", "created_at"),
    sa.Index(None, "network", "created_at"),
)

#: Sessions by the hash of their token. With ``rotation_key`` whoever holds the token before is given
#: the same new one, for a moment. ``confirmed_at`` is when a code was last given, or 0.
sessions = sa.Table(
    "sessions",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("user_id", sa.Text, sa.ForeignKey("users.id"), nullable=False, index=True),
    sa.Column("sha256", sa.Text, nullable=False, unique=True),
    sa.Column("previous_sha256", sa.Text, index=True),
    sa.Column("rotated_at", sa.Double),
    sa.Column("must_rotate", sa.Integer, nullable=False),
    sa.Column("network", sa.Text, nullable=False),
    sa.Column("agent", sa.Text, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("confirmed_at", sa.Double, nullable=False),
    sa.Column("last_used_at", sa.Double, nullable=False),
    sa.Column("idle_until", sa.Double, nullable=False),
    sa.Column("expires_at", sa.Double, nullable=False),
    sa.Column("ended_at", sa.Double),
    sa.Column("rotation_key", sa.Text),
)

#: Public keys of users' passkeys. ``host`` is where one was made, and alone works.
passkeys = sa.Table(
    "passkeys",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("user_id", sa.Text, sa.ForeignKey("users.id"), nullable=False, index=True),
    sa.Column("credential_id", sa.Text, nullable=False, unique=True),
    sa.Column("public_key", sa.Text, nullable=False),
    sa.Column("sign_count", sa.BigInteger, nullable=False),
    sa.Column("host", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("last_used_at", sa.Double),
)

#: Letters that wait to be sent, without the codes in them.
letters = sa.Table(
    "letters",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("email", sa.Text, nullable=False),
    sa.Column("challenge_id", sa.Text),
    sa.Column("account_name", sa.Text),
    sa.Column("sender", sa.Text),
    sa.Column("tries", sa.Integer, nullable=False),
    sa.Column("next_at", sa.Double, nullable=False, index=True),
    sa.Column("expires_at", sa.Double, nullable=False),
    sa.Column("text", sa.Text),
)

#: What was done in the console; rows are added, and removed by age alone.
audit_entries = sa.Table(
    "audit_entries",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("account_id", sa.Text, sa.ForeignKey("accounts.id"), nullable=False),
    sa.Column("email", sa.Text, nullable=False),
    sa.Column("action", sa.Text, nullable=False),
    sa.Column("subject", sa.Text),
    sa.Column("address", sa.Text, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Index(None, "account_id", "created_at"),
    sa.Index(None, "created_at"),
)
