"""Periodic work on money: expire purchases, buy for accounts that run low, describe new cards."""

from __future__ import annotations

import datetime as dt
import functools
import logging
import time
from collections.abc import Callable

from sqlalchemy import Connection

from steelyard.billing import applying
from steelyard.billing import store as rows
from steelyard.billing.notices import Card
from steelyard.billing.service import PurchaseService
from steelyard.errors import PaymentProviderError
from steelyard.ids import new_id
from steelyard.ledger.store import available
from steelyard.storage import State

_log = logging.getLogger(__name__)

#: What one tick looks at, at most.
_AT_ONCE = 50
#: Seconds in which a card may be charged for one purchase: less than a provider keeps the key under
#: which it is charged once, a day.
_CHARGE_S = 20 * 3_600.0


class TopUps:
    """Buys for the accounts that want it; ticked by one thread of each server process."""

    def __init__(
        self, state: State, service: PurchaseService, *, now: Callable[[], float] = time.time
    ) -> None:
        self._state = state
        self._service = service
        self._provider = service.provider
        self._now = now

    def tick(self) -> None:
        """Do the work that is due."""
        if not self._state.read_now(rows.is_anything_waiting):
            return
        self._expire()
        for account_id in self._state.read_now(
            lambda connection: rows.low_accounts(connection, _AT_ONCE)
        ):
            self._state.write_now(functools.partial(self._begin, account_id))
        self._charge()
        self._learn_cards()

    def _expire(self) -> None:
        now = self._now()
        for purchase in self._state.read_now(
            lambda connection: rows.expired_purchases(connection, now, _AT_ONCE)
        ):
            notice = applying.notice_of(purchase, "expired")
            self._state.write_now(
                functools.partial(
                    applying.take,
                    provider=purchase.provider,
                    event_id=f"expire {purchase.id}",
                    notice=notice,
                    now=now,
                    referral_nano=0,
                )
            )

    def _begin(self, account_id: str, connection: Connection) -> None:
        """Write the purchase of an account that is still low, before its provider hears of it."""
        now = self._now()
        top_up = rows.find_top_up(connection, account_id)
        if top_up is None or available(connection, account_id) >= top_up.threshold_nano:
            return
        bought = rows.topped_up_since(connection, account_id, _month_began(now))
        if bought + top_up.amount_nano > top_up.monthly_cap_nano:
            return
        purchase_id = new_id("pur")
        if not rows.begin_top_up(connection, account_id, purchase_id):
            return
        applying.begin(
            connection,
            purchase_id,
            account_id=account_id,
            provider=self._provider.name,
            amount_nano=top_up.amount_nano,
            now=now,
            lifetime_s=_CHARGE_S if self._provider.needs_card else self._provider.lifetime_s,
            is_top_up=True,
        )

    def _charge(self) -> None:
        """Ask the provider about every automatic purchase that it has not answered yet."""
        name = self._provider.name
        for purchase in self._state.read_now(
            lambda connection: rows.uncharged_top_ups(connection, name, _AT_ONCE)
        ):
            card = self._state.read_now(
                functools.partial(rows.find_card, account_id=purchase.account_id, provider=name)
            )
            if card is not None and card.method is None:
                continue  # it is learnt first
            known = card and Card(
                customer=card.customer, method=card.method, brand=card.brand, last4=card.last4
            )
            try:
                begun = self._provider.charge(applying.ask_of(purchase), known)
            except PaymentProviderError as error:
                _log.warning("Could not charge %s: %s", purchase.id, error.message)
                continue
            self._service.heard(purchase, begun)

    def _learn_cards(self) -> None:
        name = self._provider.name
        for saved in self._state.read_now(
            lambda connection: rows.unknown_cards(connection, name, _AT_ONCE)
        ):
            try:
                card = self._provider.card_of(saved.payment)
            except PaymentProviderError as error:
                _log.warning("Could not read a saved card: %s", error.message)
                continue
            if card is not None:
                self._state.write_now(
                    functools.partial(
                        rows.describe_card,
                        account_id=saved.account_id,
                        payment=saved.payment,
                        card=card,
                    )
                )


def _month_began(now: float) -> float:
    """Return when the UTC month of a time began."""
    at = dt.datetime.fromtimestamp(now, dt.UTC)
    return dt.datetime(at.year, at.month, 1, tzinfo=dt.UTC).timestamp()
