"""Actions in the console of an account, with their user, time and address."""

from __future__ import annotations

from panel.viewable import Viewable

from steelyard.client import console_calls
from steelyard.people.wire import AuditEntry
from steelyard_workbench.kit.components.numbers import moment
from steelyard_workbench.kit.paged import PagedTable
from steelyard_workbench.kit.personal import Section

_PAGE = 50


class Audit(Section):
    """The audit, for owners."""

    def build(self) -> list[Viewable]:
        """Return the entries."""
        self.entries: PagedTable[AuditEntry] = PagedTable(
            "The audit",
            lambda cursor: self.client.send(
                console_calls.audit_page(page_size=_PAGE, cursor=cursor)
            ),
            ("when, UTC", "who", "what", "of", "from"),
            _cells,
            nothing="No entries yet. Sign-ins and changes of keys, members and money are listed here.",
            scope=self.scope,
        )
        self.part(self.entries.part)
        return [self.entries.__panel__()]


def _cells(entry: AuditEntry) -> tuple[str, ...]:
    return (
        moment(entry.created_at),
        entry.email,
        entry.action.replace(".", ": ").replace("_", " "),
        entry.subject or "",
        entry.address,
    )
