"""Ownership of a store: a file without a row in this state may belong to another one.

A store is chosen by a setting of its own, so a server may be started with a state that is not the
one whose files are there. Sweeping then would remove all of them.
"""

from __future__ import annotations

import functools
import hashlib
import logging
from collections.abc import Callable, Collection

from sqlalchemy import Connection

from steelyard.accounts.store import find_account
from steelyard.caller import LOCAL_ACCOUNT
from steelyard.storage import State
from steelyard.storage.artifacts import ArtifactStore
from steelyard.storage.frame_store import SWEEP_AFTER_S, FrameStore

_log = logging.getLogger(__name__)


def sweep_owned(
    state: State,
    store: FrameStore | ArtifactStore,
    find_live: Callable[[Connection], Collection[str]],
    *,
    older_than_s: float = SWEEP_AFTER_S,
) -> list[str]:
    """Remove files that a state does not refer to, from a store that it owns; it blocks."""
    if not owns(state, store):
        return []
    return store.sweep(state.read_now(find_live), older_than_s=older_than_s)


def owns(state: State, store: FrameStore | ArtifactStore) -> bool:
    """Return whether a store's files are this state's to remove: the first that asks owns it; it blocks."""
    # When it was made tells one state from another, and a copy of it is the same one.
    account = state.read_now(functools.partial(find_account, account_id=LOCAL_ACCOUNT))
    if account is None:
        msg = f"The state has no account {LOCAL_ACCOUNT!r}, which its first migration makes."
        raise RuntimeError(msg)
    identity = f"state of {account.created_at!r}"
    is_ours = store.claim(hashlib.sha256(identity.encode()).hexdigest())
    if not is_ours:
        _log.warning(
            "The files at STEELYARD_FRAMES_URL are another state's, so none of them is removed. Give "
            "this server a place of its own, or remove the file owner/state there if that state is "
            "gone."
        )
    return is_ours
