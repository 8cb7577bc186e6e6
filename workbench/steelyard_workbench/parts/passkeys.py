"""The passkeys of the signed-in user: list, add, and remove."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.client import Client
from steelyard.people.wire import Passkey, SignedInUser
from steelyard_workbench.kit.basics import Boxed, action_button, small_text, stack
from steelyard_workbench.kit.components.dialogs import Confirmation
from steelyard_workbench.kit.components.passkey_dialog import DialogRefusedError, PasskeyDialog
from steelyard_workbench.kit.page import Loaded
from steelyard_workbench.kit.problems import Problem, problem_of, typed
from steelyard_workbench.kit.tasks import Write
from steelyard_workbench.kit.views import empty, failed, verdict, with_details
from steelyard_workbench.kit.words import ago, escape_markdown

_HOW = (
    "With a passkey you sign in by a fingerprint, a face or a PIN of your device, without a code by "
    "mail. Adding and removing one needs a code given within the last 15 minutes."
)
_OFF = with_details(
    "This server has no passkeys; whoever runs it can install them.",
    "`pip install 'steelyard[passkeys]'`",
)
#: Characters of a name on a button.
_SHOWN_NAME = 40


class PasskeyPanel(Boxed):
    """A list of passkeys, with adding.

    ``client`` is that of the person who is signed in. ``confirm`` makes a call that may need a code
    first, given with its arguments; in a thread by default. ``listed``: started by the page that
    shows it.
    """

    def __init__(
        self, client: Client, confirm: Callable[..., Awaitable[Any]] = asyncio.to_thread
    ) -> None:
        super().__init__()
        self._client, self._confirm = client, confirm
        self.dialog = PasskeyDialog()
        self.listed = Loaded("Your passkeys", self._fetch, self._show, n_lines=2)
        self.called = pmui.TextInput(
            label="Name of the passkey", placeholder="Such as My laptop", max_length=128, width=320
        )
        self.problem = stack()
        self.add = Write(self._add, on_failure=self._tell)
        button = action_button("Add a passkey", self.add.on_event, variant="contained")
        self._form = pn.Row(self.called, button)
        self._asking = pn.Column(margin=0)
        self._box = stack(small_text(_HOW), self.listed, self.problem, self._asking, self.dialog)

    def _fetch(self) -> list[Passkey] | None:
        passkeys = self._client.auth.passkeys().data
        return passkeys if passkeys or self._client.auth.ways().passkeys else None

    async def _show(self, passkeys: list[Passkey] | None) -> Viewable:
        # A browser may lose a change of a part that it was sent a moment ago; so all of it comes at once.
        await self.dialog.until_drawn()
        if passkeys is None:
            return empty(_OFF)
        lines = [self._line(passkey) for passkey in passkeys] or [empty("You have no passkeys.")]
        return stack(*lines, self._form)

    def _line(self, passkey: Passkey) -> Viewable:
        used = "never used" if passkey.last_used_at is None else f"used {ago(passkey.last_used_at)}"
        text = (
            f"**{escape_markdown(passkey.name)}** of {escape_markdown(passkey.host)}, added "
            f"{ago(passkey.created_at)}, {used}"
        )
        label = f"Remove {passkey.name[:_SHOWN_NAME]}"
        remove = action_button(label, lambda _: self._ask_removal(passkey), size="small")
        return pn.Row(remove, small_text(text, align="center"))

    async def _add(self) -> None:
        name = typed(self.called) or "Passkey"
        self.problem[:] = []
        origin = await self.dialog.origin()
        begun = await self._confirm(self._client.auth.start_adding_passkey, origin)
        passkey = await self.dialog.make(begun.options)
        await self._confirm(self._client.auth.add_passkey, name, passkey)
        self.called.param.update(value="", value_input="")
        self.problem[:] = [verdict("good", "Added.", "You can sign in with it here from now on.")]
        await self.listed.refresh(quietly=True)

    def _ask_removal(self, passkey: Passkey) -> None:
        async def remove() -> bool:
            await self._confirm(self._client.auth.remove_passkey, passkey.id)
            self.problem[:] = []
            await self.listed.refresh(quietly=True)
            return True

        text = f"**{escape_markdown(passkey.name)}** no longer signs you in. The device keeps it until you remove it there."
        self._asking[:] = [
            Confirmation(
                "Remove the passkey?",
                small_text(text),
                action="Remove it",
                act=remove,
                is_harmful=True,
            )
        ]

    def _tell(self, error: Exception) -> Problem | None:
        dialog, problem = refused_dialog(error, "The passkey was not added.")
        self.problem[:] = [dialog]
        return problem


async def sign_in_with_passkey(client: Client, dialog: PasskeyDialog) -> SignedInUser:
    """Sign in with a passkey; raise ``DialogRefusedError`` where the browser gave none."""
    begun = await asyncio.to_thread(client.auth.start_passkey, await dialog.origin())
    assertion = await dialog.give(begun.options)
    return await asyncio.to_thread(client.auth.verify_passkey, assertion)


def refused_dialog(error: Exception, title: str) -> tuple[Viewable, Problem | None]:
    """Return the view of a passkey's failure: the browser's refusal, or a problem."""
    if isinstance(error, DialogRefusedError):
        return verdict("unsure", title, str(error)), None
    problem = problem_of(error, title)
    return failed(problem), problem
