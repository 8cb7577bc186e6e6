"""Credit that is bought: purchases with their state, where to pay them, and receipts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from html import escape
from itertools import islice

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.billing.states import PurchaseState
from steelyard.billing.wire import NewPurchase, Purchase
from steelyard.errors import SteelyardError
from steelyard_workbench.kit.basics import small_text
from steelyard_workbench.kit.components.files import Download
from steelyard_workbench.kit.components.mark_table import mark_table
from steelyard_workbench.kit.components.side_by_side import side_by_side
from steelyard_workbench.kit.page import Loaded
from steelyard_workbench.kit.personal import Section
from steelyard_workbench.kit.problems import typed
from steelyard_workbench.kit.views import empty, facts, heading
from steelyard_workbench.kit.words import moment
from steelyard_workbench.parts.balance import usd

#: Purchases that are listed.
_MOST = 100
_TRANSFER = (
    "Pay by bank transfer, and name `{id}` in it. Whoever runs this server confirms it when the money "
    "came, and the credit is there then."
)
_STATES: dict[PurchaseState, str] = {
    "pending": "waits for its payment",
    "paid": "paid",
    "failed": "failed",
    "expired": "not paid in time",
    "refunded": "refunded",
    "disputed": "disputed",
}


class Purchases(Section):
    """The account's purchases, and the form of one; ``on_change`` is awaited when one has changed."""

    on_change: Callable[[], Awaitable[None]] | None = None

    def build(self) -> list[Viewable]:
        """Return the form and the list."""
        self.amount = pmui.TextInput(label="Amount, USD", width=160, value="25")
        self.purchases: Loaded[list[Purchase]] = Loaded("The purchases", self._fetch, self._show)
        return [
            self.form(
                "Buy credit",
                self._buy,
                "Nothing was bought.",
                small_text("5 to 10,000, in whole cents."),
                amount_usd=self.amount,
            ),
            self.said,
            side_by_side(self.part(self.purchases), self.opened),
        ]

    async def look(self) -> None:
        """See whether a purchase that waits has another state."""
        purchases = self.purchases.data
        if purchases is None or not any(purchase.state == "pending" for purchase in purchases):
            return
        try:
            newest = await asyncio.to_thread(self._fetch)
        except SteelyardError:
            return  # the next look may do
        if newest != purchases and not self.scope.has_ended:
            await self._again()

    def _fetch(self) -> list[Purchase]:
        return list(islice(self.client.billing.purchases(), _MOST))

    def _show(self, purchases: Sequence[Purchase]) -> Viewable:
        if not purchases:
            return empty("No purchases yet. Credit is added when a payment arrives.")
        return mark_table(
            ("purchase", "amount", "state", "by", "begun, UTC", "paid, UTC"),
            [
                (
                    purchase.id,
                    usd(purchase.amount_usd),
                    _STATES[purchase.state],
                    f"{purchase.provider}{', by itself' if purchase.is_top_up else ''}",
                    moment(purchase.created_at),
                    moment(purchase.paid_at),
                )
                for purchase in purchases
            ],
            label="Purchases",
            numbers=(1,),
            open_=lambda place: self.open_purchase(purchases[place]),
            opens="Show the purchase and its receipt",
        )

    def open_purchase(self, purchase: Purchase) -> None:
        """Show a purchase, how to pay it, or its receipt."""
        values = {
            "Amount": usd(purchase.amount_usd),
            "State": _STATES[purchase.state],
            "Begun": moment(purchase.created_at),
        }
        if purchase.paid_at is not None:
            values["Paid"] = moment(purchase.paid_at)
        if purchase.ended_at is not None:
            values["Ended"] = moment(purchase.ended_at)
        views: list[Viewable] = [heading(f"Purchase {purchase.id}"), facts(values)]
        if purchase.state == "pending":
            views.append(how_to_pay(NewPurchase(purchase=purchase)))
        foot: list[Viewable] = [self.close_button()]
        if purchase.paid_at is not None:
            receipt = partial(self.client.billing.receipt, purchase.id)
            name = f"receipt-{purchase.id}.html"
            foot.insert(0, Download("Receipt", receipt, lambda: name).__panel__())
        self.open(*views, pn.Row(*foot))

    async def _buy(self) -> None:
        begun = await self.session.confirm(self.client.billing.buy, typed(self.amount))
        self.tell(f"A purchase of {usd(begun.purchase.amount_usd)} is begun.", how_to_pay(begun))
        await self._again()

    async def _again(self) -> None:
        await self.purchases.refresh(quietly=True)
        if self.on_change is not None:
            await self.on_change()


def how_to_pay(begun: NewPurchase) -> Viewable:
    """Show where a purchase is paid."""
    purchase, url = begun.purchase, begun.checkout_url
    if url is not None and url.startswith(("https://", "http://")):
        return pn.pane.HTML(
            f'<a href="{escape(url, quote=True)}" target="_blank" rel="noopener noreferrer">'
            f"Pay at {escape(purchase.provider)}</a>",
            styles={"font-size": "1rem"},
        )
    if purchase.provider == "manual":
        return empty(_TRANSFER.format(id=purchase.id))
    return empty(
        f"It is paid on the page of {purchase.provider} that opened when it was begun; it ends by "
        f"itself on {moment(purchase.expires_at)} UTC. Begin another where that page is gone."
    )
