"""Account: the account itself, its members and keys, sessions, and the audit."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.accounts.wire import AccountSummary
from steelyard.caller import LOCAL_ACCOUNT
from steelyard.client import console_calls
from steelyard.people.roles import ANYBODY, ROLES, Role
from steelyard.people.wire import AuditEntry, CurrentSession, Member, Session
from steelyard.wire.storing import STORE_SENTENCES
from steelyard_workbench.kit.basics import small_text, stack
from steelyard_workbench.kit.components.files import Download, bounded
from steelyard_workbench.kit.components.mark_table import mark_table
from steelyard_workbench.kit.components.side_by_side import side_by_side
from steelyard_workbench.kit.page import Loaded
from steelyard_workbench.kit.personal import PagedTable, PersonalPage, Section
from steelyard_workbench.kit.problems import needed
from steelyard_workbench.kit.session import role_of
from steelyard_workbench.kit.views import Details, empty, facts, heading, table, verdict
from steelyard_workbench.kit.words import ago, ahead, moment
from steelyard_workbench.pages.account.api_keys import ApiKeys
from steelyard_workbench.parts.passkeys import PasskeyPanel
from steelyard_workbench.parts.storing import store_field

_EXPORT = (
    "A zip of all that the account has: datasets, models, stored answers, the ledger, members, keys "
    "without their secrets, and the audit. Three an hour."
)
_DELETION = (
    "All that the account has is removed after seven days: data, models, keys, credit and members. "
    "Until then everything works as before, and an owner can take it back here. **Export it first**: "
    "after the seven days nothing can be brought back."
)
_MAY = {
    "owner": "everything, members and deletion included",
    "developer": "data, models and keys of its own; no money, no members",
    "billing": "money and receipts; reads usage",
    "reviewer": "reads datasets, reviews rows and labeling jobs",
}
_COLUMNS = ("address", "role", "state", "invited by", "since")
_STATES = {"joined": "joined", "invited": "invited", "expired": "invitation ran out"}
_HOW = (
    "You sign in with a code that goes to your address. A session ends after 12 hours without use, "
    "and after 30 days. What is sensitive needs a code given within the last 15 minutes."
)
_SHOWN_AGENT = 60
#: Words of an agent with the names of browsers and systems; of several, the first here is meant.
_BROWSERS = {"Edg/": "Edge", "Firefox/": "Firefox", "Chrome/": "Chrome", "Safari/": "Safari"}
_SYSTEMS = {
    "Windows": "Windows",
    "Android": "Android",
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Mac OS X": "macOS",
    "Linux": "Linux",
}
_PAGE = 50
_EVERYBODY: frozenset[Role | None] = frozenset(ANYBODY)


class Profile(Section):
    """A user's role in the account, and the owner's actions on it."""

    def build(self) -> list[Viewable]:
        """Return the facts, and for owners the name, the export and the deletion."""
        self.called = pmui.TextInput(label="Name of the account", max_length=128, width=320)
        if self.session.role not in {"owner", "developer", "billing"}:
            return [facts(self._who())]
        self.account = Loaded("The account", self.client.account.get, self._show)
        return [self.part(self.account), self.said, self.question]

    def _who(self) -> dict[str, str]:
        who = self.session.who
        role = self.session.role
        account = next((account for account in who.accounts if account.id == who.account_id), None)
        values = {"You": who.user.email}
        if who.user.is_operator:
            values["On this server"] = "operator"
        if account is None:
            return values | {"Account": "none; an owner of one can invite you"}
        return values | {"Account": account.name, "Your role": role or ""}

    def _show(self, account: AccountSummary) -> Viewable:
        values = self._who() | {"Account": account.user.name}
        views: list[Viewable] = []
        is_owner = self.session.role == "owner"
        if account.deletes_at is not None:
            text = f"This account is deleted on {moment(account.deletes_at)} UTC"
            views.append(verdict("bad", f"{text}.", "" if is_owner else "An owner can restore it."))
            if is_owner:
                views.append(
                    self.button(
                        "Restore the account", self._restore, "Not restored.", variant="contained"
                    )
                )
        views += [
            facts(values),
            Details(lambda: [facts({"Id": self.session.who.account_id})], "id"),
        ]
        if not is_owner:
            return stack(*views)
        self.called.value = account.user.name
        self.store = store_field(account.store)
        views += [
            heading("Name"),
            pn.FlexBox(
                self.called,
                self.button("Rename", self._rename, "Not renamed."),
                align_items="center",
            ),
            heading("Answers that are stored"),
            pn.FlexBox(
                self.store, self.button("Set it", self._limit, "Not set."), align_items="center"
            ),
            heading("Export"),
            small_text(_EXPORT),
            self._download("Export the account"),
        ]
        # That of the server itself is never deleted.
        if account.deletes_at is None and self.session.who.account_id != LOCAL_ACCOUNT:
            delete = self.harmful(
                "Delete the account …",
                "Delete the account?",
                _DELETION,
                "Delete the account",
                self._delete,
                "Not deleted.",
                self._download("Export it first"),
                typed=account.user.name,
            )
            views += [heading("Deletion"), small_text(_DELETION), delete]
        return stack(*views)

    def _download(self, label: str) -> Download:
        return Download(label, self.export, lambda: "account.zip")

    def export(self) -> bytes:
        """Return the account's data on the person, as a zip."""
        return bounded(
            lambda path, progress: self.client.account.export_to(path, progress=progress),
            "account.zip",
            "write it with client.account.export_to in Python.",
        )

    async def _rename(self) -> None:
        name = needed(self.called, "Write a name for the account.")
        renamed = await asyncio.to_thread(self.client.account.rename, name)
        await self.look_who()
        await self.account.refresh(quietly=True)
        self.tell(f"The account is called {renamed.user.name}.")

    async def _limit(self) -> None:
        limited = await asyncio.to_thread(self.client.account.limit_storing, self.store.value)
        self.tell(f"The account stores {STORE_SENTENCES[limited.store]}.")

    async def _delete(self) -> None:
        account = await self.session.confirm(self.client.account.delete)
        await self.account.refresh(quietly=True)
        self.tell(
            f"The account is deleted on {moment(account.deletes_at)} UTC, unless you restore it."
        )

    async def _restore(self) -> None:
        await asyncio.to_thread(self.client.account.restore)
        await self.account.refresh(quietly=True)
        self.tell("The account stays.")


class MemberSection(Section):
    """The members of the account."""

    def build(self) -> list[Viewable]:
        """Return the members, and for owners a form that invites."""
        self.members = Loaded("The members", lambda: self.client.members.list().data, self._show)
        self.email = pmui.TextInput(label="E-mail address", width=300)
        self.role = pmui.Select(label="Role", options=list(ROLES), value="developer", width=150)
        views = [side_by_side(self.part(self.members), self.opened), self.said, self.question]
        if self.session.role == "owner":
            invite = self.form(
                "Invite", self._invite, "Not invited.", email=self.email, role=self.role
            )
            views += [heading("Invite somebody"), invite]
        return [*views, heading("Roles"), facts(_MAY)]

    def _show(self, members: Sequence[Member]) -> Viewable:
        rows = [
            (
                member.email,
                member.role,
                _STATES[member.state],
                member.invited_by or "—",
                moment(member.joined_at or member.created_at),
            )
            for member in members
        ]
        if not members:
            return empty("This account has no members yet.")
        if self.session.role != "owner":
            return table(_COLUMNS, rows, label="Members")
        return mark_table(
            _COLUMNS,
            rows,
            label="Members",
            open_=lambda place: self.open_member(members[place]),
            opens="Change the role, or remove",
        )

    def open_member(self, member: Member) -> None:
        """Show a member's role, and its changes."""
        self.new_role = pmui.Select(label="Role", options=list(ROLES), value=member.role, width=150)
        change = self.button("Change the role", partial(self._change, member), "Not changed.")
        remove = self.harmful(
            "Remove …",
            f"Remove {member.email}?",
            "What they made stays. Their keys go on working: revoke them under Keys if they should not.",
            "Remove",
            partial(self._remove, member),
            "Not removed.",
        )
        self.open(heading(member.email), self.new_role, pn.Row(change, remove, self.close_button()))

    async def _invite(self) -> None:
        email = needed(self.email, "Write an e-mail address.")
        member = await self.session.confirm(self.client.members.invite, email, self.role.value)
        self.email.param.update(value="", value_input="")
        await self.members.refresh(quietly=True)
        self.tell(f"{member.email} is invited as {member.role}, for 14 days.")

    async def _change(self, member: Member) -> None:
        changed = await self.session.confirm(
            self.client.members.change, member.id, self.new_role.value
        )
        await self._again(member, f"{changed.email} is {changed.role}.")

    async def _remove(self, member: Member) -> None:
        await self.session.confirm(self.client.members.remove, member.id)
        await self._again(member, f"{member.email} is no longer a member of the account.")

    async def _again(self, member: Member, text: str) -> None:
        if member.email == self.session.who.user.email:
            await self.look_who()
        await self.done(text, self.members)


class SessionSection(Section):
    """The sessions of the signed-in user."""

    def build(self) -> list[Viewable]:
        """Return the sessions, and how to end them."""
        self.sessions = Loaded(
            "Your sessions", lambda: self.client.account.sessions().data, self._show
        )
        passkeys = PasskeyPanel(self.client, self.session.confirm)
        self.part(passkeys.listed)
        return [
            small_text(_HOW),
            side_by_side(self.part(self.sessions), self.opened),
            self.button("End all others", self._end_others, "Not ended."),
            self.said,
            heading("Your passkeys"),
            passkeys,
        ]

    def _show(self, sessions: Sequence[Session]) -> Viewable:
        return mark_table(
            ("from", "with", "began", "last used", "ends by itself"),
            [
                (
                    f"{session.network or 'unknown'}{', this one' if session.is_current else ''}",
                    agent_text(session.agent),
                    ago(session.created_at),
                    ago(session.last_used_at),
                    ahead(min(session.idle_until, session.expires_at)),
                )
                for session in sessions
            ],
            label="Your sessions",
            open_=lambda place: self.open_session(sessions[place]),
            opens="Show the session",
        )

    def open_session(self, session: Session) -> None:
        """Show a session and the button that ends it."""
        values = {
            "From": session.network or "unknown",
            "With": session.agent or "—",
            "Began": moment(session.created_at),
            "Last code": moment(session.confirmed_at),
            "Ends at the latest": moment(session.expires_at),
        }
        if session.is_current:
            end: Viewable = small_text(
                "This is the one that you use. *Sign out*, at the top, ends it."
            )
        else:
            end = self.button("End the session", partial(self._end, session.id), "Not ended.")
        self.open(heading("Session"), facts(values), pn.Row(end, self.close_button()))

    async def _end(self, session_id: str) -> None:
        await asyncio.to_thread(self.client.account.end_session, session_id)
        await self.done("The session is ended.", self.sessions)

    async def _end_others(self) -> None:
        ended = await asyncio.to_thread(self.client.account.end_other_sessions)
        await self.done(f"Other sessions ended: {ended.ended}.", self.sessions)


def agent_text(agent: str) -> str:
    """Return the browser and system that an agent names, or how it begins.

    >>> agent_text("Mozilla/5.0 (X11; Linux x86_64; rv:150.0) Gecko/20100101 Firefox/150.0")
    'Firefox on Linux'
    >>> agent_text("curl/8.14.1")
    'curl/8.14.1'
    """
    browser = next((name for word, name in _BROWSERS.items() if word in agent), "")
    system = next((name for word, name in _SYSTEMS.items() if word in agent), "")
    if browser and system:
        return f"{browser} on {system}"
    return agent[:_SHOWN_AGENT] or "—"


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
        pn.bind(lambda name: self.session.param.update(view=name), self.choice, watch=True)
        self._body = stack(self._shown())
        return [self.choice, self._body]

    def on_session(self, *_: Any) -> None:
        """Show the part that is chosen now."""
        if self.session.who is None:
            return
        self.choice.value = self._chosen()
        self.begin_visit()
        self._body[:] = [self._shown()]
        for part in list(self.parts):
            part.start()

    def _chosen(self) -> str:
        _, _, roles = _SECTIONS.get(self.session.view, ("", None, ()))
        return self.session.view if self.session.role in roles else "profile"

    def _shown(self) -> Viewable:
        self.open_section = _SECTIONS[self._chosen()][1](self.session, self.visit)
        return self.section(self.open_section)
