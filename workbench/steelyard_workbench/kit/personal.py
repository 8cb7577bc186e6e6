"""Common parts of a signed-in user's pages: the reason for an empty page, and parts with actions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, ClassVar

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.errors import (
    AccountsOffError,
    ConsoleOnlyError,
    NotSignedInError,
    SteelyardError,
)
from steelyard.people.roles import Role
from steelyard.people.wire import CurrentSession
from steelyard_workbench.kit.basics import Boxed, action_button, stack
from steelyard_workbench.kit.components.confirmation import Confirmation
from steelyard_workbench.kit.page import Loaded, Page
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.tasks import Scope, Write
from steelyard_workbench.kit.views import empty, verdict, with_details

_OFF = with_details(
    "**Accounts are off**: this server has no members, and nothing costs anything. Whoever runs the "
    "server switches them on, and people sign in here.",
    "`steelyard up --accounts on`, or `STEELYARD_ACCOUNTS=on`",
)
_KEY = with_details(
    "**This workbench calls with an API key**, which reads its account and changes nothing. Started "
    "without one, people sign in here.",
    "The key is `STEELYARD_API_KEY` of its environment.",
)
_AGAIN = "**You are not signed in.** Load this page again to sign in."


class Section(Boxed):
    """A part of such a page: lists, forms, and the result of an action.

    ``parts`` load once the page is shown. ``said``: the result of the last change. ``opened``: the view
    opened beside a list. ``question``: the place of ``ask``'s dialog.
    """

    def __init__(self, session: Session, scope: Scope) -> None:
        super().__init__()
        self.session, self.client, self.scope = session, session.client, scope
        self.parts: list[Loaded[Any]] = []
        self.said = stack()
        self.opened = pn.Column(width=420, visible=False)
        self.question = stack()
        self._box = stack(*self.build())

    def build(self) -> list[Viewable]:
        """Return its content."""
        raise NotImplementedError

    def part(self, part: Loaded[Any]) -> Viewable:
        """Add a part that loads when the page is shown."""
        part.refresh.scope = self.scope
        self.parts.append(part)
        return part.__panel__()

    def button(
        self,
        label: str,
        work: Callable[[], Awaitable[None]],
        title: str,
        *,
        fields: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> pmui.Button:
        """Return a button that does something once; ``title`` is said where that fails.

        ``fields``: where the fields of the request are entered; those that are refused are marked.
        """
        new_button = pmui.Button(label=label, **{"variant": "outlined", "size": "small", **options})
        new_button.on_click(self.write(work, title, fields).on_event)
        return new_button

    def form(
        self,
        label: str,
        work: Callable[[], Awaitable[None]],
        title: str,
        *more: Viewable,
        **fields: Any,
    ) -> Viewable:
        """Return the fields of a request, by their names in it, with the button that sends it once."""
        send = self.button(label, work, title, variant="contained", fields=fields)
        return pn.FlexBox(*fields.values(), send, *more, align_items="center")

    def write(
        self,
        work: Callable[[], Awaitable[None]],
        title: str,
        fields: Mapping[str, Any] | None = None,
    ) -> Write[[], None]:
        """Return something that is done once; ``title`` is said where that fails."""

        async def do() -> None:
            self.said[:] = []
            await work()

        return Write(do, title, self.said, scope=self.scope, fields=fields)

    def ask(
        self,
        title: str,
        text: str,
        action: str,
        work: Callable[[], Awaitable[None]],
        problem: str,
        *more: Viewable,
        typed: str = "",
    ) -> None:
        """Ask before a harmful action, which starts once this dialog is closed: it may open another."""
        write = self.write(work, problem)

        async def start() -> bool:
            write.start()
            return True

        self.confirmation = Confirmation(
            title,
            pmui.Typography(text, variant="body1"),
            *more,
            action=action,
            act=start,
            typed=typed,
            is_harmful=True,
        )
        self.question[:] = [self.confirmation]

    async def look_who(self) -> None:
        """Find out anew who is signed in: a name or a role may have changed."""
        with suppress(SteelyardError):
            self.session.who = await asyncio.to_thread(self.client.auth.session)

    def tell(self, text: str, *more: Viewable) -> None:
        """Show that an action is done; in a corner where the page was left."""
        if not self.scope.say_if_ended(text):
            self.said[:] = [verdict("good", text), *more]

    def open(self, *views: Viewable) -> None:
        """Show something beside a list."""
        self.said[:] = []
        self.opened[:] = list(views)
        self.opened.visible = True

    def close_button(self) -> pmui.Button:
        """Return the button that closes an opened item beside a list."""
        return action_button("Close", lambda _: self.close(), variant="text", size="small")

    def close(self) -> None:
        """Show nothing beside a list."""
        self.opened[:] = []
        self.opened.visible = False


class PersonalPage(Page):
    """A page for a person who is signed in."""

    #: Who sees it; ``None`` for everybody.
    roles: ClassVar[frozenset[Role] | None] = None

    def build(self) -> list[Viewable]:
        """Return the page's content, or the reason for an empty page."""
        who = self.session.who
        if who is None:
            return [self.part(Loaded("Who you are", self._why_nobody, empty, n_lines=2))]
        why = self.why_not(who)
        return [empty(why)] if why else self.build_for(who)

    def build_for(self, who: CurrentSession) -> list[Viewable]:
        """Return the page's content for a user."""
        raise NotImplementedError

    def why_not(self, who: CurrentSession) -> str:
        """Return why a person may not see it, as Markdown; empty where they may."""
        del who
        role = self.session.role
        if self.roles is None or role in self.roles:
            return ""
        return why_not(role, self.roles)

    def section(self, section: Section) -> Viewable:
        """Add a part of the page."""
        self.parts += section.parts
        return section.__panel__()

    def _why_nobody(self) -> str:
        try:
            self.client.auth.session()
        except AccountsOffError:
            return _OFF
        except ConsoleOnlyError:
            return _KEY
        except NotSignedInError:
            return _AGAIN
        return _AGAIN


def why_not(role: Role | None, roles: frozenset[Role]) -> str:
    """Return the missing permission of a role, as Markdown."""
    needed = " or ".join(sorted(roles))
    if role is None:
        return (
            f"**You are not a member of an account.** Ask an owner to invite you, as {needed}, or "
            "whoever runs the server."
        )
    return (
        f"**Not for your role, {role}.** This is for {needed}; an owner of the account can change "
        "your role."
    )
