"""Referrals: a code of one's own for others, and another user's code."""

from __future__ import annotations

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.billing.wire import Referral
from steelyard_workbench.kit.basics import small_text, stack
from steelyard_workbench.kit.components.copy_text import CopyText
from steelyard_workbench.kit.components.numbers import is_free
from steelyard_workbench.kit.loaded import Loaded
from steelyard_workbench.kit.personal import Section
from steelyard_workbench.kit.problems import needed
from steelyard_workbench.kit.states import empty
from steelyard_workbench.parts.balance import usd


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
