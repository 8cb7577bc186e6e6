"""A till: purchases of accounts in a state of its own, with a scripted provider."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from sqlalchemy import func, select, text

from steelyard.accounts.service import AccountService
from steelyard.billing.notices import Ask, Begun, Card, Notice, ProviderEvent
from steelyard.billing.providers import Provider
from steelyard.billing.service import PurchaseService
from steelyard.billing.topping_up import TopUps
from steelyard.billing.wire import CreatePurchase, Purchase, SetTopUp
from steelyard.caller import Caller
from steelyard.errors import PaymentProviderError
from steelyard.ledger.money import NANO
from steelyard.ledger.store import balances_of
from steelyard.ledger.tables import ledger_entries
from steelyard.operations.write import Write
from steelyard.storage import State

OPERATOR = Caller("local", None, "full", "")


class ToldProvider:
    """Answers charges as a test sets it; ``down`` answers nothing."""

    name = "told"
    lifetime_s = 3600.0
    needs_card = False

    def __init__(self) -> None:
        self.charged: list[str] = []
        self.says: str = "paid"

    def begin(self, ask: Ask) -> Begun:
        return Begun(reference=ask.purchase_id, checkout_url=f"https://pay.test/{ask.purchase_id}")

    def charge(self, ask: Ask, card: Card | None) -> Begun:
        self.charged.append(ask.purchase_id)
        if self.says == "down":
            raise PaymentProviderError("It is down.")
        return Begun(reference=ask.purchase_id, notice=notice(self.says, ask))

    def refund(self, ask: Ask) -> Notice | None:
        return notice("refunded", ask)

    def card_of(self, payment: str) -> Card | None:
        return None

    def read(self, body: bytes, headers: Mapping[str, str]) -> ProviderEvent:
        raise NotImplementedError


def notice(kind: Any, ask: Ask, **changed: Any) -> Notice:
    """Return a provider's report of a purchase as it is, but for the given changes."""
    said = {
        "amount_nano": ask.amount_nano,
        "purchase_id": ask.purchase_id,
        "account_id": ask.account_id,
        **changed,
    }
    return Notice(kind=kind, **said)


class Till:
    """Buys for accounts; ``clock`` moves as a test says."""

    def __init__(
        self, state: State, provider: Provider | None = None, *, referral_nano: int = 0
    ) -> None:
        self.clock = 1_790_000_000.0
        self.state = state
        self.provider: Any = provider or ToldProvider()
        self.service = PurchaseService(
            state,
            self.provider,
            accounts_enabled=True,
            referral_nano=referral_nano,
            now=lambda: self.clock,
        )
        self.top_ups = TopUps(state, self.service, now=lambda: self.clock)
        self.accounts = AccountService(state, accounts_enabled=True)

    def buy(self, usd: str = "20", key: str | None = None) -> Purchase:
        write = Write(OPERATOR, "POST /v1/billing/purchases", key, digest=usd)
        return asyncio.run(self.service.create(write, CreatePurchase(amount_usd=usd))).purchase

    def set_top_up(self, threshold: str, amount: str, cap: str) -> None:
        request = SetTopUp(threshold_usd=threshold, amount_usd=amount, monthly_cap_usd=cap)
        asyncio.run(self.service.set_top_up(Write(OPERATOR), request))

    def ask(self, purchase: Purchase, account_id: str = "local") -> Ask:
        amount = int(float(purchase.amount_usd) * NANO)
        return Ask(purchase_id=purchase.id, account_id=account_id, amount_nano=amount)

    def tell(self, event: str, kind: str, purchase: Purchase, **changed: Any) -> str:
        said = notice(kind, self.ask(purchase), **changed)
        return self.state.write_now(lambda connection: self.service.take(connection, event, said))

    def state_of(self, purchase: Purchase) -> str:
        return asyncio.run(self.service.purchase(OPERATOR, purchase.id)).state

    def books(self, account_id: str = "local") -> dict[str, int]:
        """Return the books, whose sums are checked against the ledger's."""
        books = self.state.read_now(lambda connection: balances_of(connection, account_id))
        of_account = ledger_entries.c.account_id == account_id
        sums = select(ledger_entries.c.book, func.sum(ledger_entries.c.amount_nano))
        sums = sums.where(of_account).group_by(ledger_entries.c.book)
        entries = self.state.read_now(lambda connection: list(connection.execute(sums).all()))
        assert {book: amount for book, amount in books.items() if amount} == {
            book: int(amount) for book, amount in entries if amount
        }
        assert sum(books.values()) == 0
        return books

    def query(self, sql: str) -> list[Any]:
        return self.state.read_now(lambda connection: list(connection.execute(text(sql)).all()))
