"""Common parts of a signed-in user's pages: why one is empty, parts with actions, and lists in pages."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Generic, TypeVar

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.errors import AccountsOffError, ConsoleOnlyError, NotSignedInError, SteelyardError
from steelyard.people.roles import Role
from steelyard.people.wire import CurrentSession
from steelyard.wire.queries import CursorPage
from steelyard_workbench.kit.basics import Boxed, action_button, stack
from steelyard_workbench.kit.components.dialogs import Confirmation
from steelyard_workbench.kit.components.mark_table import MarkTable, mark_table
from steelyard_workbench.kit.page import Loaded, Page
from steelyard_workbench.kit.problems import not_loaded
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.tasks import OneAtATime, Scope, Write
from steelyard_workbench.kit.views import empty, table, verdict, with_details

T = TypeVar("T")
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


class PagedTable(Boxed, Generic[T]):
    """A table of a paged list.

    ``what``: its name, as ``The audit``, for messages. ``fetch`` takes a cursor, or ``None``, and
    returns a page; blocks, and runs in a thread. ``cells`` takes one thing and returns its texts.
    ``nothing``: the text of an empty list, as Markdown. ``open_`` is called with the thing
    whose line was opened.
    """

    def __init__(
        self,
        what: str,
        fetch: Callable[[str | None], CursorPage[T]],
        columns: Sequence[str],
        cells: Callable[[T], Sequence[str]],
        *,
        nothing: str,
        scope: Scope,
        open_: Callable[[T], None] | None = None,
        opens: str = "",
        numbers: Sequence[int] = (),
    ) -> None:
        super().__init__()
        self._what, self._fetch, self._columns, self._cells = what, fetch, columns, cells
        self._nothing, self._open, self._opens, self._numbers = nothing, open_, opens, numbers
        self.found: list[T] = []
        self._cursor: str | None = None
        self._problem = stack()
        self.load_older = OneAtATime(
            self._load_older, not_loaded("What is older"), self._problem, scope=scope
        )
        self.older = action_button(
            "Load older", self.load_older.on_event, variant="text", size="small", visible=False
        )
        self.part: Loaded[CursorPage[T]] = Loaded(what, lambda: fetch(None), self._begin)
        self._table = stack()
        self._box = stack(self.part, self.older, self._problem)

    def _begin(self, page: CursorPage[T]) -> Viewable:
        self.load_older.drop()
        self._problem[:] = []
        self.found, self._cursor = list(page.data), page.next_cursor
        self._table = stack()
        self._show()
        return self._table

    async def _load_older(self) -> None:
        page = await asyncio.to_thread(self._fetch, self._cursor)
        self._problem[:] = []
        self.found = [*self.found, *page.data]
        self._cursor = page.next_cursor
        self._show()

    def _show(self) -> None:
        self.older.visible = self._cursor is not None
        rows = [list(self._cells(entry)) for entry in self.found]
        view: Any = self._table[0] if self._table else None
        open_ = self._open
        if not rows:
            self._table[:] = [empty(self._nothing)]
        elif isinstance(view, MarkTable):
            view.rows = rows
        elif open_ is not None:
            self._table[:] = [
                mark_table(
                    self._columns,
                    rows,
                    label=self._what,
                    open_=lambda place: open_(self.found[place]),
                    numbers=self._numbers,
                    opens=self._opens,
                )
            ]
        else:
            self._table[:] = [table(self._columns, rows, label=self._what, numbers=self._numbers)]


class Section(Boxed):
    """A part of such a page: lists, forms, and the result of an action.

    ``parts`` load once the page is shown. ``said``: the result of the last change. ``opened``: the view
    opened beside a list. ``question``: the place of the dialog of ``harmful``.
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

    def harmful(
        self,
        label: str,
        title: str,
        text: str,
        action: str,
        work: Callable[[], Awaitable[None]],
        problem: str,
        *more: Viewable,
        typed: str = "",
    ) -> pmui.Button:
        """Return a button that asks before a harmful action.

        That starts once the dialog is closed: it may open another.
        """
        write = self.write(work, problem)

        async def start() -> bool:
            write.start()
            return True

        def ask(_: object) -> None:
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

        return action_button(label, ask, size="small", color="danger")

    async def look_who(self) -> None:
        """Find out anew who is signed in: a name or a role may have changed."""
        with suppress(SteelyardError):
            self.session.who = await asyncio.to_thread(self.client.auth.session)

    def tell(self, text: str, *more: Viewable) -> None:
        """Show that an action is done; in a corner where the page was left."""
        if not self.scope.say_if_ended(text):
            self.said[:] = [verdict("good", text), *more]

    async def done(self, text: str, listed: Loaded[Any]) -> None:
        """Close what is open beside a list, show the list anew, and say that an action is done."""
        self.close()
        await listed.refresh(quietly=True)
        self.tell(text)

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

    def why_not(self, _: CurrentSession) -> str:
        """Return why a person may not see it, as Markdown; empty where they may."""
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
