"""Who calls: the account, the key and what it may do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Scope = Literal["full", "inference", "read"]

#: The account of a server without accounts.
LOCAL_ACCOUNT = "local"


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of one request.

    Parameters
    ----------
    account_id : str
        Whose resources it sees and who pays; ``LOCAL_ACCOUNT`` where accounts are off.
    key_id : str or None
        The API key it came with; ``None`` where accounts are off.
    scope : {"full", "inference", "read"}
        What the key may do.
    address : str
        The network address it came from.
    """

    account_id: str
    key_id: str | None
    scope: Scope
    address: str
