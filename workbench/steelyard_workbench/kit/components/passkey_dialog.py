"""The browser's own dialog of passkeys: makes one, or signs with one that it has."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import panel as pn
import param

from steelyard.wire.hosts import is_address, is_loopback
from steelyard_workbench.kit.components.unseen import Unseen

#: Seconds that a dialog may stay open: longer than its challenge is valid.
_OPEN_S = 660.0
_ANSWER_S, _DRAWN_S = 30.0, 10.0
_CLOSED = (
    "No passkey was chosen: the browser's dialog was closed, or has none for this page. Start again, or sign "
    "in with a code."
)
_WHY = {
    "NotAllowedError": _CLOSED,
    "AbortError": _CLOSED,
    "InvalidStateError": "This device has a passkey of yours for this page already.",
    "SecurityError": (
        "The browser keeps no passkeys for this address; open the workbench by its name, over https "
        "or as http://localhost."
    ),
    "NotSupportedError": "The server cannot read the passkeys of this device. Use another device.",
}
_NOT_KNOWN = "The browser's passkey dialog failed. Start again, or sign in with a code."


class DialogRefusedError(Exception):
    """A passkey dialog without a result; the text gives the reason and the remedy."""


class PasskeyDialog(Unseen):
    """Asks the browser; one question at a time."""

    # One value: separate ones need not come to the browser in that order.
    asked = param.Dict(default={}, doc="The number of a question, what to do, and its options.")

    _esm = Path(__file__).with_suffix(".js")

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._turn, self._drawn = 0, asyncio.Event()
        self._answer: asyncio.Future[dict[str, Any]] | None = None
        self.on_msg(lambda event: self._on_answer(event.data))

    async def until_drawn(self) -> None:
        """Wait, not for long, until the browser has drawn it and its neighbours."""
        if pn.state.curdoc is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._drawn.wait(), _DRAWN_S)

    async def origin(self) -> str:
        """Return the origin of the page; raise ``DialogRefusedError`` where it can have no passkeys."""
        answer = await self._ask({"how": ""}, _ANSWER_S)
        if not answer.get("is_able"):
            raise DialogRefusedError(
                "Passkeys need https or http://localhost. Open this page at such an address."
            )
        origin = str(answer["origin"])
        where = urlsplit(origin)
        if is_address(where.hostname or ""):
            by_name = f"http://localhost:{where.port}" if is_loopback(where.hostname or "") else ""
            raise DialogRefusedError(
                "Browsers keep no passkeys for an IP address. Open the workbench by its name"
                f"{f': {by_name}' if by_name else ''}."
            )
        return origin

    async def make(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return a new passkey."""
        return await self._credential("create", options)

    async def give(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return a passkey's signature."""
        return await self._credential("get", options)

    async def _credential(self, how: str, options: dict[str, Any]) -> dict[str, Any]:
        answer = await self._ask({"how": how, "options": options}, _OPEN_S)
        if "credential" not in answer:
            raise DialogRefusedError(_WHY.get(answer.get("refused", ""), _NOT_KNOWN))
        credential: dict[str, Any] = answer["credential"]
        return credential

    async def _ask(self, question: dict[str, Any], wait_s: float) -> dict[str, Any]:
        self._turn += 1
        self._answer = asyncio.get_running_loop().create_future()
        self.asked = {"turn": self._turn, **question}
        try:
            return await asyncio.wait_for(self._answer, wait_s)
        except TimeoutError as error:
            raise DialogRefusedError(
                "The browser's dialog was open for too long. Start again."
            ) from error

    def _on_answer(self, answer: dict[str, Any]) -> None:
        self._drawn.set()
        awaited = self._answer
        if awaited is not None and not awaited.done() and answer.get("turn") == self._turn:
            awaited.set_result(answer)
