"""Operator: every account and credit, payments to look into, connected models."""

from __future__ import annotations

from panel.viewable import Viewable

from steelyard.people.wire import CurrentSession
from steelyard_workbench.kit.components.facts import heading
from steelyard_workbench.kit.personal import PersonalPage
from steelyard_workbench.kit.states import with_details
from steelyard_workbench.pages.operator.all_accounts import AllAccounts
from steelyard_workbench.pages.operator.server_state import (
    ConnectedModelSection,
    NoticeSection,
    TransferSection,
)
from steelyard_workbench.parts.backup import BackupSection

_NOT = with_details(
    "**This page is for operators of the server.** Whoever runs it makes one.",
    "`steelyard account operator ADDRESS`, or the setting `operators`",
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

    def build_for(self, who: CurrentSession) -> list[Viewable]:
        """Return the parts of the page."""
        del who
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
            self.section(ConnectedModelSection(session, visit)),
        ]

    async def look(self) -> None:
        """Bring a backup that goes on up to date."""
        if self.backup is not None:
            await self.backup.look()
