"""Usage and billing: an account's balance, its spending, and buying credit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from html import escape
from itertools import islice
from typing import Any

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.billing.states import PurchaseState
from steelyard.billing.wire import Billing, NewPurchase, Purchase, Referral, TopUp
from steelyard.errors import SteelyardError
from steelyard.people.wire import CurrentSession
from steelyard_workbench.kit.basics import small_text, stack
from steelyard_workbench.kit.components.copy_text import CopyText
from steelyard_workbench.kit.components.files import Download
from steelyard_workbench.kit.components.mark_table import mark_table
from steelyard_workbench.kit.components.side_by_side import side_by_side
from steelyard_workbench.kit.page import Loaded
from steelyard_workbench.kit.personal import PersonalPage, Section
from steelyard_workbench.kit.problems import needed, typed
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.views import empty, facts, heading, verdict
from steelyard_workbench.kit.words import is_free, moment
from steelyard_workbench.pages.usage.spending import SpendingSection, from_text
from steelyard_workbench.parts.balance import Balance, usd

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
_NO_MONEY = "Purchases, top-ups and referrals are for the roles owner and billing."
_WHAT = (
    "When less than a threshold is available, the account buys an amount by itself, up to a cap in a "
    "UTC month: at most one purchase at a time, and after three failures no more."
)


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


class UsagePage(PersonalPage):
    """The money of the account."""

    slug = "usage"
    title = "Usage and billing"
    summary = "The balance of this account, and its spending."
    watched = ("view",)
    look_ms = 5000
    roles = frozenset({"owner", "developer", "billing"})

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.purchases: Purchases | None = None
        self.spending: SpendingSection | None = None

    def build_for(self, _: CurrentSession) -> list[Viewable]:
        """Return the balance, the spending and, for some roles, purchases."""
        session, visit = self.session, self.visit
        balance = Balance(session, visit)
        self.spending = SpendingSection(session, visit)
        views = [
            heading("Balance"),
            self.section(balance),
            heading("Spending"),
            self.section(self.spending),
        ]
        self.purchases = None
        if session.role not in {"owner", "billing"}:
            return [*views, heading("Purchases"), empty(_NO_MONEY)]
        self.purchases = Purchases(session, visit)
        self.purchases.on_change = balance.refresh
        self.top_ups = TopUpSection(session, visit)
        self.referrals = Referrals(session, visit)
        return [
            *views,
            heading("Purchases"),
            self.section(self.purchases),
            heading("Automatic top-up"),
            self.section(self.top_ups),
            heading("Referral"),
            self.section(self.referrals),
        ]

    def on_session(self, *_: Any) -> None:
        """Show the spending that is chosen now."""
        if self.spending is not None:
            self.spending.look_at(from_text(self.session.view))

    async def look(self) -> None:
        """See whether a purchase that waits was paid."""
        if self.purchases is not None and self.session.is_connected:
            await self.purchases.look()


class Referrals(Section):
    """The account's own code, and a form that redeems another's."""

    def build(self) -> list[Viewable]:
        """Return the code and the form."""
        self.code = pmui.TextInput(label="Code of somebody else", max_length=32, width=220)
        self.referral = Loaded("The referral", self.client.billing.referral, self._show)
        return [self.part(self.referral), self.said]

    def _show(self, referral: Referral) -> Viewable:
        if is_free(referral.referral_usd):
            return empty("Referrals are off on this server.")
        text = (
            f"Who redeems your code before a first purchase gets {usd(referral.referral_usd)} with "
            f"it, and so do you. Redeemed {referral.redeemed:,} times, which gave you "
            f"{usd(referral.earned_usd)}."
        )
        return stack(
            small_text(text),
            CopyText(referral.code, "your code"),
            pn.FlexBox(
                self.code,
                self.button("Redeem", self._redeem, "Not redeemed.", fields={"code": self.code}),
                align_items="center",
            ),
        )

    async def _redeem(self) -> None:
        code = needed(self.code, "Write a code.")
        redeemed = await self.session.confirm(self.client.billing.redeem, code)
        amount = usd(redeemed.referral_usd)
        self.tell(f"The code is noted: {amount} come with the first purchase that is paid.")


class TopUpSection(Section):
    """The automatic top-up: its state, and the form that sets or ends it."""

    def build(self) -> list[Viewable]:
        """Return the state and the form."""
        self.threshold = pmui.TextInput(label="Buy below, USD", width=160)
        self.amount = pmui.TextInput(label="Buy each time, USD", width=170)
        self.cap = pmui.TextInput(label="At most in a month, USD", width=200)
        self.end = self.button("Turn off", self._end, "Not turned off.", visible=False)
        self.billing = Loaded(
            "The automatic top-up", self.client.billing.get, self._show, n_lines=2
        )
        return [
            small_text(_WHAT),
            self.part(self.billing),
            self.form(
                "Set",
                self._set,
                "Not set.",
                self.end,
                threshold_usd=self.threshold,
                amount_usd=self.amount,
                monthly_cap_usd=self.cap,
            ),
            self.said,
        ]

    def _show(self, billing: Billing) -> Viewable:
        top_up, card = billing.top_up, billing.payment_method
        self.end.visible = top_up is not None
        if top_up is not None:
            self.threshold.value = top_up.threshold_usd
            self.amount.value = top_up.amount_usd
            self.cap.value = top_up.monthly_cap_usd
        by = "by bank transfer, which waits for you" if billing.provider == "manual" else ""
        if card is not None:
            by = f"with the {card.brand} card that ends with {card.last4}"
        if top_up is None:
            return empty("Automatic top-up is off.")
        terms = (
            f"Buys {usd(top_up.amount_usd)} when less than {usd(top_up.threshold_usd)} is available, "
            f"at most {usd(top_up.monthly_cap_usd)} a month{f', {by}' if by else ''}."
        )
        return stack(_verdict(top_up, terms))

    async def _set(self) -> None:
        threshold = needed(self.threshold, "Write below which balance to buy.")
        amount = needed(self.amount, "Write an amount.")
        cap = needed(self.cap, "Write how much a month at most.")
        await self.session.confirm(self.client.billing.set_top_up, threshold, amount, cap)
        await self.billing.refresh(quietly=True)
        self.tell("Automatic top-up is on.")

    async def _end(self) -> None:
        await self.session.confirm(self.client.billing.end_top_up)
        await self.billing.refresh(quietly=True)
        self.tell("Automatic purchases are off. A purchase that has started goes on.")


def _verdict(top_up: TopUp, terms: str) -> Viewable:
    if not top_up.is_on:
        at = f" on {moment(top_up.off_at)} UTC" if top_up.off_at is not None else ""
        return verdict(
            "bad", f"Off{at}, after {top_up.failures} failures.", f"Set it again. {terms}"
        )
    under_way = f" `{top_up.under_way}` is under way." if top_up.under_way is not None else ""
    return verdict("good", "On.", terms + under_way)
