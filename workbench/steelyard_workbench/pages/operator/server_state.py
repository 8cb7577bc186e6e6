"""Operators' work beside accounts: transfers, parked notices, connected models."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.billing.wire import ParkedNotice
from steelyard.people.operator_wire import ConnectedModel
from steelyard_workbench.kit.basics import small_text
from steelyard_workbench.kit.components.facts import facts, heading, table
from steelyard_workbench.kit.components.mark_table import mark_table
from steelyard_workbench.kit.components.numbers import moment
from steelyard_workbench.kit.components.side_by_side import side_by_side
from steelyard_workbench.kit.loaded import Loaded
from steelyard_workbench.kit.personal import Section
from steelyard_workbench.kit.problems import needed
from steelyard_workbench.kit.states import empty
from steelyard_workbench.parts.balance import usd

_TRANSFER = (
    "When a bank transfer arrives, enter the id of the purchase it names, such as `pur_01k6…`."
)
_NOTICES = (
    "Messages of a payment provider that do not match a purchase. No credit was "
    "added. Check with the provider, add credit above where it is due, and dismiss "
    "the notice."
)
_NO_MODELS = (
    "No connected models. *All models* gets a reader or a judge, and says how one of another server is "
    "connected."
)


class TransferSection(Section):
    """A form that notes that the money of a purchase came."""

    def build(self) -> list[Viewable]:
        """Return the form."""
        self.purchase = pmui.TextInput(label="Id of the purchase", max_length=64, width=320)
        return [
            small_text(_TRANSFER),
            pn.FlexBox(
                self.purchase,
                self.button("Confirm the transfer", self._confirm, "Not confirmed."),
                align_items="center",
            ),
            self.said,
        ]

    async def _confirm(self) -> None:
        purchase_id = needed(self.purchase, "Write the id of the purchase.")
        paid = await self.session.confirm(self.client.operator.confirm_purchase, purchase_id)
        self.purchase.value = ""
        self.tell(f"{paid.id} of {usd(paid.amount_usd)} is {paid.state}.")


class NoticeSection(Section):
    """The parked notices."""

    def build(self) -> list[Viewable]:
        """Return the list."""
        self.notices = Loaded(
            "The parked notices", lambda: self.client.operator.notices().data, self._show
        )
        return [
            small_text(_NOTICES),
            side_by_side(self.part(self.notices), self.opened),
            self.said,
        ]

    def _show(self, notices: Sequence[ParkedNotice]) -> Viewable:
        if not notices:
            return empty("No notice is parked.", is_good=True)
        return mark_table(
            ("notice", "provider", "purchase", "came, UTC", "why"),
            [
                (
                    notice.id,
                    notice.provider,
                    notice.purchase_id or "—",
                    moment(notice.received_at),
                    notice.reason,
                )
                for notice in notices
            ],
            label="Parked notices",
            open_=lambda place: self.open_notice(notices[place]),
            opens="Show the notice",
        )

    def open_notice(self, notice: ParkedNotice) -> None:
        """Show a notice, and the button that closes it."""
        self.open(
            heading(f"Notice {notice.id}"),
            facts({"Purchase": notice.purchase_id or "—", "Why": notice.reason}),
            pn.Row(
                self.button("Put away", partial(self._clear, notice.id), "Not put away."),
                self.close_button(),
            ),
        )

    async def _clear(self, notice_id: str) -> None:
        await self.session.confirm(self.client.operator.clear_notice, notice_id)
        self.close()
        await self.notices.refresh(quietly=True)
        self.tell("The notice is dismissed.")


class ConnectedModelSection(Section):
    """The models that answer on other servers."""

    def build(self) -> list[Viewable]:
        """Return the list."""
        models = Loaded("Connected models", lambda: self.client.operator.models().data, show_models)
        return [self.part(models)]


def show_models(models: Sequence[ConnectedModel]) -> Viewable:
    """Show connected models: whether each answers, and how it is."""
    if not models:
        return empty(_NO_MODELS)
    return table(
        ("model", "state", "calibrated", "labels rows", "requests that wait"),
        [
            (
                model.name,
                "answers" if model.is_available else "does not answer",
                "yes" if model.is_calibrated else "no",
                "yes" if model.is_teacher else "no",
                f"{model.n_waiting:,}",
            )
            for model in models
        ],
        label="Connected models",
        numbers=(4,),
    )
