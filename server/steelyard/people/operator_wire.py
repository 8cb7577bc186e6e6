"""Wire forms of the whole server as operators see and change it; times are Unix seconds."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from steelyard.accounts.wire import WalletBalance
from steelyard.billing.wire import ParkedNotice
from steelyard.wire.queries import CursorPage
from steelyard.wire.schemas import doc


class AccountEntry(Struct, frozen=True, kw_only=True):
    """An account and its money."""

    id: str
    name: str
    created_at: float
    deletes_at: Annotated[
        float | None, doc("When all that it has is removed, where that was asked for.")
    ] = None
    wallet: WalletBalance


class AccountEntryPage(CursorPage[AccountEntry], frozen=True):
    """A page of accounts, the newest first."""


class AddCredit(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The credit to add."""

    amount_usd: Annotated[str, Meta(min_length=1, max_length=32, description="More than 0.")]


class ParkedNoticeList(Struct, frozen=True, kw_only=True):
    """The notices that are still open, the oldest first, at most 200."""

    data: list[ParkedNotice]


class ClearedNotice(Struct, frozen=True, kw_only=True):
    """A notice that was put away."""

    id: str
    cleared: Literal[True] = True


class ConnectedModel(Struct, frozen=True, kw_only=True):
    """A model that answers on another server, or by a route."""

    name: str
    engine: str
    is_available: Annotated[bool, doc("Whether it answers at the moment.")]
    is_calibrated: bool
    is_teacher: Annotated[bool, doc("Whether it may label rows.")]
    n_waiting: Annotated[int, doc("Requests that wait for it.")]


class ConnectedModelList(Struct, frozen=True, kw_only=True):
    """The models that are not this server's own."""

    data: list[ConnectedModel]
