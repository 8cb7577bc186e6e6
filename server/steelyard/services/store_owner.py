"""Whose files a store holds: what no row of a state refers to may be another state's.

A store is chosen by a setting of its own, so a server may be started with a state that is not the
one whose files are there. Sweeping then would remove all of them.
"""

from __future__ import annotations

import hashlib
import logging
from typing import Protocol

from sqlalchemy import select

from steelyard.services.caller import LOCAL_ACCOUNT
from steelyard.storage.state import State
from steelyard.storage.state.tables import accounts

_log = logging.getLogger(__name__)


class Claimed(Protocol):
    """A store that remembers whose it is; ``FrameStore`` and ``ArtifactStore`` are."""

    def claim(self, owner: str) -> bool:
        """Take a store that is nobody's; say whether it is the owner's."""
        ...


def owns(state: State, store: Claimed) -> bool:
    """Tell whether a store's files are a state's to remove; it blocks.

    The first state that asks owns the store.

    Parameters
    ----------
    state : State
    store : FrameStore or ArtifactStore

    Raises
    ------
    steelyard.errors.StorageUnavailableError
        When the state or the store cannot be used.
    """
    # When it was made tells one state from another, and a copy of it is the same one.
    made = state.read_now(
        lambda connection: connection.execute(
            select(accounts.c.created_at).where(accounts.c.id == LOCAL_ACCOUNT)
        ).scalar_one()
    )
    is_ours = store.claim(hashlib.sha256(f"state of {made!r}".encode()).hexdigest())
    if not is_ours:
        _log.warning(
            "The files at STEELYARD_FRAMES_URL are another state's, so none of them is removed. Give "
            "this server a place of its own, or remove the file owner/state there if that state is "
            "gone."
        )
    return is_ours
