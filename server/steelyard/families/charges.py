"""The money of fine-tunes and of hours of keep warm: held under a reference, then settled once.

Each reference (a fine-tune's id, an hour's id) is one operation. It belongs to no process: the
fine-tune or the hour says when it ends, in the transaction in which that is written.
"""

from __future__ import annotations

import dataclasses

from sqlalchemy import Connection

from steelyard.families.lineage.draft import LineageChange
from steelyard.families.lineage.events import Hold, Settle
from steelyard.families.lineage.lineage import Conditions, Lineage
from steelyard.operations import holds

_ROUTE_OF_FINE_TUNES = "POST /v1/families"
_ROUTE_OF_HOURS = "keep-warm"


class Purse:
    """The holds and charges of one transaction, counted and then written."""

    def __init__(self, connection: Connection, account_id: str, now: float) -> None:
        self._connection = connection
        self._account_id = account_id
        self._now = now
        self._change_nano = 0
        self._postings: list[tuple[Hold | Settle, str | None, str]] = []

    def judge(self, conditions: Conditions) -> Conditions:
        """Return conditions with the credit that the steps so far have left."""
        if conditions.available_nano is None:
            return conditions
        left = conditions.available_nano + self._change_nano
        return dataclasses.replace(conditions, available_nano=left)

    def take(self, change: LineageChange, key_id: str | None) -> None:
        """Note the hold or charge of a step, and the API key behind it, if any."""
        for effect in change.effects:
            if isinstance(effect, Hold):
                self._change_nano -= effect.reserved_nano
                what = _name_of(change.lineage, effect.reference)
                self._postings.append((effect, key_id, what))
            elif isinstance(effect, Settle):
                self._change_nano += effect.reserved_nano - effect.amount_nano
                self._postings.append((effect, None, ""))

    def post(self) -> None:
        """Write it."""
        for effect, key_id, what in self._postings:
            if isinstance(effect, Settle):
                self._settle(effect)
            else:
                self._hold(effect, key_id=key_id, what=what)

    def _hold(self, effect: Hold, *, key_id: str | None, what: str) -> None:
        """Write an effect's hold; the caller has checked that credit covers it."""
        holds.hold(
            self._connection,
            self._operation_id(effect.reference),
            account_id=self._account_id,
            key_id=key_id,
            route=_ROUTE_OF_HOURS if _is_hour(effect.reference) else _ROUTE_OF_FINE_TUNES,
            what=what,
            amount_nano=effect.reserved_nano,
            at=self._now,
        )

    def _settle(self, effect: Settle) -> None:
        """Charge a part of a hold and release the rest; a second call changes nothing."""
        holds.settle(
            self._connection,
            self._operation_id(effect.reference),
            reserved_nano=effect.reserved_nano,
            amount_nano=effect.amount_nano,
            at=self._now,
        )

    def _operation_id(self, reference: str) -> str:
        # Hours are counted by account, so their ids are not unique among accounts.
        return f"{self._account_id}:{reference}"


def _is_hour(reference: str) -> bool:
    return reference.startswith("keep_warm_")


def _name_of(lineage: Lineage, reference: str) -> str:
    if not _is_hour(reference):
        return lineage.jobs[reference].family
    warm = (adapter for adapter, window in lineage.windows.items() if window.id == reference)
    adapter = next(warm, None)
    return "" if adapter is None else lineage.models[adapter].ref
