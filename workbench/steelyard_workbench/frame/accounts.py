"""The accounts that a person has a part in: a dialog of links, since each is a workbench of its own."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from panel.viewable import Viewable

from steelyard.people.wire import AccountRole
from steelyard_workbench.kit.basics import html_pane
from steelyard_workbench.kit.components.drawn_dialog import DrawnDialog
from steelyard_workbench.kit.look import LINK_CSS
from steelyard_workbench.kit.session import Session

_LINK = "font-size:1rem;line-height:2.4;overflow-wrap:anywhere"


class AccountDialog(DrawnDialog):
    """The dialog that goes to another account: a page is opened anew, with nothing of the last."""

    def __init__(self, session: Session) -> None:
        super().__init__("Accounts", draw=self._lines, width=420)
        self._session = session

    def _lines(self) -> Iterator[Viewable]:
        who = self._session.who
        for account in () if who is None else who.accounts:
            yield self._line(account, is_here=account.id == who.account_id)

    def _line(self, account: AccountRole, *, is_here: bool) -> Viewable:
        address = escape(self._session.address(self._session.page, account=account.id))
        here = ' aria-current="true"' if is_here else ""
        role = f"{account.role}, open now" if is_here else account.role
        return html_pane(
            f'<div style="{_LINK}"><a href="{address}"{here}>{escape(account.name)}</a> · {role}</div>',
            LINK_CSS,
        )
