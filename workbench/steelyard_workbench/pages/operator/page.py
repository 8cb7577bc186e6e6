"""Operator: every account and credit, payments to look into, connected models."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.billing.wire import ParkedNotice
from steelyard.client import console_calls
from steelyard.people.operator_wire import AccountEntry, ConnectedModel
from steelyard.people.wire import CurrentSession
from steelyard_workbench.kit.basics import small_text
from steelyard_workbench.kit.components.mark_table import mark_table
from steelyard_workbench.kit.components.side_by_side import side_by_side
from steelyard_workbench.kit.page import Loaded
from steelyard_workbench.kit.personal import PagedTable, PersonalPage, Section
from steelyard_workbench.kit.problems import needed
from steelyard_workbench.kit.views import empty, facts, heading, table, with_details
from steelyard_workbench.kit.words import moment
from steelyard_workbench.parts.backup import BackupSection
from steelyard_workbench.parts.balance import usd

_NOT = with_details(
    "**This page is for operators of the server.** Whoever runs it makes one.",
    "`steelyard account operator ADDRESS`, or the setting `operators`",
)
_PAGE = 50
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


class OperatorPage(PersonalPage):
    """The whole server."""

    slug = "operator"
    title = "Operator"
    summary = "The accounts of this server, their credit, and what payments and models need."

    look_ms = 1500
    backup: BackupSection | None = None

    def why_not(self, who: CurrentSession) -> str:
        """Return why the user may not see it."""
        return "" if who.user.is_operator else _NOT

    def build_for(self, _: CurrentSession) -> list[Viewable]:
        """Return the parts of the page."""
        session, visit = self.session, self.visit
        self.accounts = AllAccounts(session, visit)
        self.transfers = TransferSection(session, visit)
        self.notices = NoticeSection(session, visit)
        self.backup = BackupSection(session, visit)
        return [
            self.section(self.backup),
            heading("Accounts"),
            self.section(self.accounts),
            heading("Bank transfers"),
            self.section(self.transfers),
            heading("Parked notices"),
            self.section(self.notices),
            heading("Connected models"),
            self.part(Loaded("Connected models", self._fetch_models, show_models)),
        ]

    def _fetch_models(self) -> list[ConnectedModel]:
        return list(self.client.operator.models().data)

    async def look(self) -> None:
        """Bring a backup that goes on up to date."""
        if self.backup is not None:
            await self.backup.look()


class AllAccounts(Section):
    """The accounts, the newest first."""

    def build(self) -> list[Viewable]:
        """Return the list; an account is opened beside it."""
        self.accounts: PagedTable[AccountEntry] = PagedTable(
            "The accounts",
            lambda cursor: self.client.send(
                console_calls.accounts_page(page_size=_PAGE, cursor=cursor)
            ),
            ("name", "available", "held", "made, UTC", "state"),
            _cells,
            nothing="No accounts.",
            scope=self.scope,
            open_=self.open_account,
            opens="Show the account, and add credit",
            numbers=(1, 2),
        )
        self.part(self.accounts.part)
        return [side_by_side(self.accounts, self.opened), self.said]

    def open_account(self, account: AccountEntry) -> None:
        """Show an account's balance, and the form that adds credit."""
        self.amount = pmui.TextInput(label="Credit to add, USD", width=180)
        wallet = account.wallet
        self.open(
            heading(account.name),
            facts(
                {
                    "Id": account.id,
                    "Available": usd(wallet.available_usd),
                    "Held": usd(wallet.reserved_usd),
                    "Paid": usd(wallet.paid_usd),
                    "Promotional": usd(wallet.promotional_usd),
                    "Owes": usd(wallet.financial_shortfall_usd),
                }
            ),
            self.amount,
            pn.Row(
                self.button(
                    "Add credit",
                    partial(self._add, account),
                    "No credit was added.",
                    variant="contained",
                ),
                self.close_button(),
            ),
        )

    async def _add(self, account: AccountEntry) -> None:
        amount = needed(self.amount, "Write an amount.")
        now = await self.session.confirm(self.client.operator.add_credit, account.id, amount)
        if not self.scope.has_ended:
            self.open_account(now)
        await self.accounts.part.refresh(quietly=True)
        self.tell(f"{now.name} has {usd(now.wallet.available_usd)} available.")


def _cells(account: AccountEntry) -> tuple[str, ...]:
    is_going = account.deletes_at is not None
    return (
        account.name,
        usd(account.wallet.available_usd),
        usd(account.wallet.reserved_usd),
        moment(account.created_at),
        f"deleted on {moment(account.deletes_at)}" if is_going else "active",
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
        return [small_text(_NOTICES), side_by_side(self.part(self.notices), self.opened), self.said]

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
        await self.done("The notice is dismissed.", self.notices)


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
