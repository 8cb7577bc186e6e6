"""Usage and billing: an account's balance, its spending, and buying credit."""

from __future__ import annotations

from typing import Any

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.billing.wire import Referral
from steelyard.people.wire import CurrentSession
from steelyard_workbench.kit.basics import small_text, stack
from steelyard_workbench.kit.components.copy_text import CopyText
from steelyard_workbench.kit.components.facts import heading
from steelyard_workbench.kit.components.numbers import is_free
from steelyard_workbench.kit.loaded import Loaded
from steelyard_workbench.kit.personal import PersonalPage, Section
from steelyard_workbench.kit.problems import needed
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.states import empty
from steelyard_workbench.pages.usage.buying import Purchases
from steelyard_workbench.pages.usage.spending import SpendingSection, from_text
from steelyard_workbench.pages.usage.top_up import TopUpSection
from steelyard_workbench.parts.balance import Balance, usd

_NO_MONEY = "Purchases, top-ups and referrals are for the roles owner and billing."


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

    def build_for(self, who: CurrentSession) -> list[Viewable]:
        """Return the balance, the spending and, for some roles, purchases."""
        del who
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

    def on_session(self, *events: Any) -> None:
        """Show the spending that is chosen now."""
        del events
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
