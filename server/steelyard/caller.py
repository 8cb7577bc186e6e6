"""The caller of a request: the account, the key and its permissions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Scope = Literal["full", "inference", "read"]

#: The account of a server without accounts, and of the operator of one with them.
LOCAL_ACCOUNT = "local"


@dataclass(frozen=True, slots=True)
class SignedIn:
    """The session of a user in the console, and the user's role in the caller's account."""

    session_id: str
    user_id: str
    email: str
    role: str | None
    confirmed_at: float
    is_confirmed: bool
    is_operator: bool


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of one request."""

    account_id: str
    key_id: str | None
    scope: Scope
    address: str
    session: SignedIn | None = None
    #: The most that is stored of its answers, by its account and its key.
    store: Literal["on", "features", "off"] = "on"

    @property
    def only_reviews(self) -> bool:
        """Whether it is a reviewer's session, which sees no known rows of a review and no scores."""
        return self.session is not None and self.session.role == "reviewer"

    @property
    def is_operator(self) -> bool:
        """Whether it may read about the whole server: every account's share in it."""
        return self.scope == "full" and self.account_id == LOCAL_ACCOUNT
