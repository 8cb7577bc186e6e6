"""Usage and billing: an account's balance, its spending, and buying credit."""

from __future__ import annotations

from typing import Any

from panel.viewable import Viewable

from steelyard.people.wire import CurrentSession
from steelyard_workbench.kit.components.facts import heading
from steelyard_workbench.kit.personal import PersonalPage
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.states import empty
from steelyard_workbench.pages.usage.buying import Purchases
from steelyard_workbench.pages.usage.referring import Referrals
from steelyard_workbench.pages.usage.spending import SpendingSection, from_text
from steelyard_workbench.pages.usage.top_up import TopUpSection
from steelyard_workbench.parts.balance import Balance

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
