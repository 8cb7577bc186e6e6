"""Every account of the server, for its operators: its balance, and credit for it."""

from __future__ import annotations

from functools import partial

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.client import console_calls
from steelyard.people.operator_wire import AccountEntry
from steelyard_workbench.kit.components.facts import facts, heading
from steelyard_workbench.kit.components.numbers import moment
from steelyard_workbench.kit.components.side_by_side import side_by_side
from steelyard_workbench.kit.paged import PagedTable
from steelyard_workbench.kit.personal import Section
from steelyard_workbench.kit.problems import needed
from steelyard_workbench.parts.balance import usd

_PAGE = 50
_NONE = "No accounts."


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
            nothing=_NONE,
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
