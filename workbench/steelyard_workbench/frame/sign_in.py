"""Signing in: the form before the workbench, and the dialog that goes to another account."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from html import escape
from urllib.parse import urlsplit

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.client import Client
from steelyard.people.wire import AccountRole, SignedInUser, SignInWays
from steelyard_workbench.kit.basics import Boxed, action_button, html_pane, small_text, stack
from steelyard_workbench.kit.components.dialogs import DrawnDialog
from steelyard_workbench.kit.components.passkey_dialog import PasskeyDialog
from steelyard_workbench.kit.components.unseen import FirstField, IdentityVisit
from steelyard_workbench.kit.look import LINK_CSS
from steelyard_workbench.kit.problems import Problem, typed
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.tasks import Write
from steelyard_workbench.kit.theme import TITLE
from steelyard_workbench.kit.views import FRAME, empty, verdict, with_details
from steelyard_workbench.kit.words import escape_markdown
from steelyard_workbench.parts.passkeys import refused_dialog, sign_in_with_passkey

_HINT = with_details(
    "Without a mail server the code is printed in the terminal that the server runs in, and whoever runs "
    "the server lets the first people in.",
    "`steelyard account invite`",
)
_LINK = "font-size:1rem;line-height:2.4;overflow-wrap:anywhere"


class SignIn(Boxed):
    """The two steps, the server's other ``ways`` to sign in under them, and ``why`` above, as Markdown."""

    def __init__(
        self,
        client: Client,
        on_done: Callable[[SignedInUser], Awaitable[None]],
        why: str = "",
        ways: SignInWays | None = None,
    ) -> None:
        super().__init__()
        self._client, self._on_done = client, on_done
        self._challenge = ""
        self.email = pmui.TextInput(label="E-mail address", sizing_mode="stretch_width")
        self.code = pmui.TextInput(label="Code", sizing_mode="stretch_width")
        self.problem = stack()
        self.ask = Write(self._ask, "The code was not sent.", self.problem)
        self.give = Write(self._give, "Not signed in.", self.problem)
        self._send = action_button("Send a code", self.ask.on_event, variant="contained")
        self.email.param.watch(self.ask.on_event, "enter_pressed")
        self._enter = action_button("Sign in", self.give.on_event, variant="contained")
        self.code.param.watch(self.give.on_event, "enter_pressed")
        self._other = action_button("Another address", lambda _: self._show_first(), variant="text")
        self._dialog, self._visit = PasskeyDialog(), IdentityVisit()
        self._visit.on_msg(lambda event: self._on_no_visit(**event.data))
        self.give_passkey = Write(self._give_passkey, on_failure=self._tell_passkey)
        others = [] if ways is None else self._others(ways)
        self._steps = stack()
        title = pmui.Typography("Sign in", variant="h1", sx={"fontSize": TITLE, "fontWeight": 700})
        reason = [small_text(why)] if why else []
        self._box = stack(
            title,
            *reason,
            self._steps,
            *others,
            self.problem,
            self._dialog,
            self._visit,
            name="Sign in",
            styles=FRAME | {"max-width": "420px", "margin": "8vh auto 0", "padding": "24px"},
        )
        self._show_first()

    def _show_first(self) -> None:
        self._challenge = ""
        self.problem[:] = []
        self._steps[:] = [self.email, self._send, empty(_HINT), FirstField()]

    async def _ask(self) -> None:
        email = typed(self.email)
        if not email:
            return
        begun = await asyncio.to_thread(self._client.auth.start, email)
        self._challenge = begun.challenge_id
        self.problem[:] = []
        self.code.value = ""
        text = f"A code is on its way to **{escape_markdown(email)}**; it works for ten minutes."
        self._steps[:] = [
            pmui.Typography(text, variant="body1"),
            self.code,
            pn.Row(self._enter, self._other),
            empty(_HINT),
            FirstField(),
        ]

    async def _give(self) -> None:
        code = typed(self.code)
        if not (code and self._challenge):
            return
        signed_in = await asyncio.to_thread(self._client.auth.verify, self._challenge, code)
        self.problem[:] = []
        await self._on_done(signed_in)

    def _others(self, ways: SignInWays) -> list[Viewable]:
        """Return a button for each further way."""
        views: list[Viewable] = []
        if ways.passkeys:
            passkey = action_button("Sign in with a passkey", self.give_passkey.on_event)
            views.append(passkey)
        if ways.issuer is not None:
            name = urlsplit(ways.issuer).netloc or ways.issuer
            provider = action_button(f"Sign in with {name}", lambda _: self._go_to_provider())
            views.append(provider)
        return views

    async def _give_passkey(self) -> None:
        self.problem[:] = []
        signed_in = await sign_in_with_passkey(self._client, self._dialog)
        await self._on_done(signed_in)

    def _tell_passkey(self, error: Exception) -> Problem | None:
        dialog, problem = refused_dialog(error, "Not signed in.")
        self.problem[:] = [dialog]
        return problem

    def _go_to_provider(self) -> None:
        self.problem[:] = []
        self._visit.visits += 1

    def _on_no_visit(self, *, message: str) -> None:
        self.problem[:] = [verdict("bad", "Not signed in.", escape_markdown(message))]


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
