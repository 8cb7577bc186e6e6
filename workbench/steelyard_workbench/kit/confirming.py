"""Sensitive actions: where a code is needed first, a dialog asks for one, and the action then runs once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import panel as pn
import panel_material_ui as pmui

from steelyard.client import Client
from steelyard.errors import ConfirmSignInError
from steelyard_workbench.kit.basics import Boxed, action_button, small_text, stack
from steelyard_workbench.kit.components.unseen import FirstField
from steelyard_workbench.kit.problems import typed
from steelyard_workbench.kit.tasks import Write
from steelyard_workbench.kit.words import escape_markdown

P = ParamSpec("P")
T = TypeVar("T")
#: Seconds that the dialog stays open: longer than a code works.
_OPEN_S = 900.0
_WHY = (
    "Keys, members, money and deletion need a code given within the last 15 minutes. It goes to the "
    "address that you signed in with."
)


class CodeDialog(Boxed):
    """A dialog that sends a code and takes it; ``answer`` says at its close whether one was given."""

    def __init__(self, client: Client) -> None:
        super().__init__()
        self._client = client
        self._challenge = ""
        self.answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.said = small_text("A code is being sent …")
        self.code = pmui.TextInput(label="Code", width=320)
        self.problem = stack()
        self.send = Write(self._send, "The code was not sent.", self.problem)
        self.give = Write(self._give, "Not confirmed.", self.problem)
        enter = action_button("Confirm", self.give.on_event, variant="contained")
        self.code.param.watch(self.give.on_event, "enter_pressed")
        again = action_button("Send another code", self.send.on_event, variant="text")
        cancel = action_button("Cancel", lambda _: self.close())
        self._box = self.dialog = pmui.Dialog(
            pn.Column(
                small_text(_WHY),
                self.said,
                self.code,
                self.problem,
                pn.Row(enter, cancel, again),
                FirstField(),
                width=460,
            ),
            title="Confirm that it is you",
            open=True,
            close_on_click=True,
        )
        self.dialog.param.watch(lambda _: self.close(), "open")

    def close(self, *, is_confirmed: bool = False) -> None:
        """Close it, with or without a code."""
        if not self.answer.done():
            self.answer.set_result(is_confirmed)
        self.dialog.open = False

    async def _send(self) -> None:
        current = await asyncio.to_thread(self._client.auth.session)
        begun = await asyncio.to_thread(self._client.auth.start, current.user.email)
        self._challenge = begun.challenge_id
        self.problem[:] = []
        email = escape_markdown(current.user.email)
        self.said.object = f"A code is on its way to **{email}**; it works for ten minutes."

    async def _give(self) -> None:
        code = typed(self.code)
        if not (code and self._challenge):
            return
        await asyncio.to_thread(self._client.auth.verify, self._challenge, code)
        self.close(is_confirmed=True)


class Confirming(Boxed):
    """Makes the calls of one browser that may need a code first."""

    def __init__(self, client: Client) -> None:
        super().__init__()
        self._client = client
        #: Called once a code was given.
        self.on_confirmed: Callable[[], None] | None = None
        self.shown: CodeDialog | None = None
        self._box = pn.Column(margin=0)

    @property
    def is_open(self) -> bool:
        """Whether it asks for a code."""
        return self.shown is not None

    async def __call__(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Make a call in a thread, after a code if it needs one; raise ``ConfirmSignInError`` without."""
        try:
            return await asyncio.to_thread(call, *args, **kwargs)
        except ConfirmSignInError:
            is_confirmed = await self._ask()
        if not is_confirmed:
            raise ConfirmSignInError(
                "No code was entered, so nothing was changed. Try again, and enter the code."
            )
        return await asyncio.to_thread(call, *args, **kwargs)

    async def _ask(self) -> bool:
        """Return whether a code was given, in the dialog that is open or in a new one."""
        if self.shown is not None:
            return await asyncio.shield(self.shown.answer)
        dialog = self.shown = CodeDialog(self._client)
        self._box[:] = [dialog]
        dialog.send.start()
        try:
            is_confirmed = await asyncio.wait_for(asyncio.shield(dialog.answer), _OPEN_S)
        except TimeoutError:
            is_confirmed = False
        finally:
            self.shown = None
            dialog.close()
        if is_confirmed and self.on_confirmed is not None:
            self.on_confirmed()
        return is_confirmed
