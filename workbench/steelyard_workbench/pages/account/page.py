"""Account: the account itself, its members and keys, sessions, and the audit."""

from __future__ import annotations

from typing import Any

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.client import console_calls
from steelyard.people.roles import ANYBODY, Role
from steelyard.people.wire import AuditEntry, CurrentSession
from steelyard_workbench.kit.basics import stack
from steelyard_workbench.kit.components.numbers import moment
from steelyard_workbench.kit.paged import PagedTable
from steelyard_workbench.kit.personal import PersonalPage, Section
from steelyard_workbench.kit.session import role_of
from steelyard_workbench.pages.account.api_keys import ApiKeys
from steelyard_workbench.pages.account.members import MemberSection
from steelyard_workbench.pages.account.profile import Profile
from steelyard_workbench.pages.account.sessions import SessionSection

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


_EVERYBODY: frozenset[Role | None] = frozenset(ANYBODY)

#: The parts of the page by the name that stands in the address, with the roles that they are for.
_SECTIONS: dict[str, tuple[str, type[Section], frozenset[Role | None]]] = {
    "profile": ("Profile", Profile, _EVERYBODY),
    "members": ("Members", MemberSection, frozenset(("owner", "developer", "billing"))),
    "keys": ("Keys", ApiKeys, frozenset(("owner", "developer"))),
    "sessions": ("Sessions and security", SessionSection, _EVERYBODY),
    "audit": ("Audit", Audit, frozenset(("owner",))),
}


class AccountPage(PersonalPage):
    """The account of the signed-in user, a part at a time."""

    slug = "account"
    title = "Account"
    summary = "Members of this account, its API keys, and where you are signed in."
    watched = ("view",)

    def build_for(self, who: CurrentSession) -> list[Viewable]:
        """Return the choice of a part, and the part."""
        role = role_of(who)
        self.choice = pmui.RadioButtonGroup(
            label="Part of the account",
            options={title: name for name, (title, _, roles) in _SECTIONS.items() if role in roles},
            value=self._chosen(),
        )
        pn.bind(self._on_choice, self.choice, watch=True)
        self._body = stack(self._shown())
        return [self.choice, self._body]

    def on_session(self, *events: Any) -> None:
        """Show the part that is chosen now."""
        del events
        if self.session.who is None:
            return
        self.choice.value = self._chosen()
        self.begin_visit()
        self._body[:] = [self._shown()]
        for part in list(self.parts):
            part.start()

    def _on_choice(self, name: str) -> None:
        self.session.view = name

    def _chosen(self) -> str:
        _, _, roles = _SECTIONS.get(self.session.view, ("", None, ()))
        return self.session.view if self.session.role in roles else "profile"

    def _shown(self) -> Viewable:
        self.open_section = _SECTIONS[self._chosen()][1](self.session, self.visit)
        return self.section(self.open_section)
