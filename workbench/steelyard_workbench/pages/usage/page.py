"""Usage and billing: an account's balance, its spending, and buying credit."""

from __future__ import annotations

from typing import Any

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.billing.wire import Billing, Referral, TopUp
from steelyard.people.wire import CurrentSession
from steelyard_workbench.kit.basics import small_text, stack
from steelyard_workbench.kit.components.copy_text import CopyText
from steelyard_workbench.kit.page import Loaded
from steelyard_workbench.kit.personal import PersonalPage, Section
from steelyard_workbench.kit.problems import needed
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.views import empty, heading, verdict
from steelyard_workbench.kit.words import is_free, moment
from steelyard_workbench.pages.usage.buying import Purchases
from steelyard_workbench.pages.usage.spending import SpendingSection, from_text
from steelyard_workbench.parts.balance import Balance, usd

_NO_MONEY = "Purchases, top-ups and referrals are for the roles owner and billing."
_WHAT = (
    "When less than a threshold is available, the account buys an amount by itself, up to a cap in a "
    "UTC month: at most one purchase at a time, and after three failures no more."
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
