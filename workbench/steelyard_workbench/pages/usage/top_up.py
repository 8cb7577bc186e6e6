"""Credit that an account buys by itself when little is left."""

from __future__ import annotations

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.billing.wire import Billing, TopUp
from steelyard_workbench.kit.basics import small_text, stack
from steelyard_workbench.kit.components.numbers import moment
from steelyard_workbench.kit.loaded import Loaded
from steelyard_workbench.kit.personal import Section
from steelyard_workbench.kit.problems import needed
from steelyard_workbench.kit.states import empty, verdict
from steelyard_workbench.parts.balance import usd

_WHAT = (
    "When less than a threshold is available, the account buys an amount by itself, up to a cap in a "
    "UTC month: at most one purchase at a time, and after three failures no more."
)


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
            pn.FlexBox(
                self.threshold,
                self.amount,
                self.cap,
                self.button(
                    "Set",
                    self._set,
                    "Not set.",
                    variant="contained",
                    fields={
                        "threshold_usd": self.threshold,
                        "amount_usd": self.amount,
                        "monthly_cap_usd": self.cap,
                    },
                ),
                self.end,
                align_items="center",
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
