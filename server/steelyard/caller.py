"""Who calls: the account, the key and what it may do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Scope = Literal["full", "inference", "read"]

#: The account of a server without accounts, and of whoever runs one with them.
LOCAL_ACCOUNT = "local"


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of one request."""

    account_id: str
    key_id: str | None
    scope: Scope
    address: str

    @property
    def is_operator(self) -> bool:
        """Whether it may know what concerns the whole server, every account's share in it."""
        return self.scope == "full" and self.account_id == LOCAL_ACCOUNT
