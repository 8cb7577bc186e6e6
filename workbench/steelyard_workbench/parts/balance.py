"""An account's balance, its holds, and its expected total."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_DOWN, Decimal
from typing import TypeVar

import panel as pn
from panel.viewable import Viewable

from steelyard.accounts.wire import WalletBalance
from steelyard.billing.wire import Billing
from steelyard.client import console_calls
from steelyard.client.saving import Saving
from steelyard.errors import PriceChangedError
from steelyard_workbench.kit.components.files import Download, bounded
from steelyard_workbench.kit.page import Loaded
from steelyard_workbench.kit.personal import Section
from steelyard_workbench.kit.views import cards

_CENT = Decimal("0.01")
Job = TypeVar("Job")


class Balance(Section):
    """The balances; of purchases and the ledger for those who have to do with money."""

    def build(self) -> list[Viewable]:
        """Return the figures."""
        self.has_money = self.session.role in {"owner", "billing"}
        if not self.has_money:
            wallet = Loaded("The balance", lambda: self.client.account.get().wallet, show_wallet)
            return [self.part(wallet)]
        self.billing: Loaded[Billing] = Loaded("The balance", self.client.billing.get, show_billing)
        ledger = Download("Ledger as CSV", self._ledger, lambda: "ledger.csv")
        return [self.part(self.billing), pn.Row(ledger)]

    async def refresh(self) -> None:
        """Fetch the figures again: something was bought or given."""
        for part in self.parts:
            await part.refresh(quietly=True)

    def _ledger(self) -> bytes:
        call = console_calls.transactions_csv()
        return bounded(
            lambda path, progress: self.client.save_export(
                Saving(call=call, path=path, format="csv", progress=progress)
            ),
            "ledger.csv",
            "read it with client.billing.transactions in Python.",
        )


def show_wallet(wallet: WalletBalance) -> Viewable:
    """Show an account's balance to a user who may not manage its money."""
    return cards(_known(wallet))


def show_billing(billing: Billing) -> Viewable:
    """Show an account's balance, spending and pending purchases."""
    return cards(
        [
            *_known(billing),
            ("Not paid yet", usd(billing.pending_usd), "waits for its payment"),
            ("Spent", usd(billing.spent_usd), f"and {usd(billing.refunded_usd)} sent back"),
        ]
    )


def _known(money: WalletBalance | Billing) -> list[tuple[str, str, str]]:
    return [
        ("Available", usd(money.available_usd), "to spend now"),
        ("Held", usd(money.reserved_usd), "by work in progress"),
        ("Paid", usd(money.paid_usd), "bought or added"),
        ("Promotional", usd(money.promotional_usd), "given; spent first"),
    ]


def usd(amount: str | Decimal) -> str:
    """Return an amount as it is read: in whole cents rounded down, or as a part of a cent.

    >>> usd("1234.509"), usd("-0.0000012345"), usd("3")
    ('$1,234.50', '-$0.0000012', '$3.00')
    """
    value = Decimal(amount)
    size, sign = abs(value), "-" if value < 0 else ""
    places = 2 if not size or size >= _CENT else 1 - size.adjusted()
    return f"{sign}${size.quantize(Decimal(1).scaleb(-places), ROUND_DOWN):,f}"


class AgreedPrice:
    """The price that a start may have: nothing until it was shown."""

    def __init__(self) -> None:
        self.usd = "0"

    def start(self, start: Callable[[str], Job]) -> Job | None:
        """Start for at most this price; returns ``None`` where it costs ``usd``, which is then agreed to."""
        try:
            job = start(self.usd)
        except PriceChangedError as error:
            self.usd = str((error.details or [{}])[0].get("price_usd"))
            return None
        self.usd = "0"
        return job
