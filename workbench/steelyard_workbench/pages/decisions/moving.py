"""Dialogs that move the aliases of a named decision, back too, and one that archives it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import panel as pn
import panel_material_ui as pmui

from steelyard.client import Client
from steelyard.decisions.named import PRODUCTION
from steelyard.errors import ComparisonNeededError, InvalidRequestError, MoveRefusedError
from steelyard.named.wire import AliasMove
from steelyard_workbench.kit import corner
from steelyard_workbench.kit.basics import small_text
from steelyard_workbench.kit.components.dialogs import Confirmation
from steelyard_workbench.kit.problems import needed, typed
from steelyard_workbench.kit.words import escape_markdown
from steelyard_workbench.parts.families.verdicts import plain_reasons
from steelyard_workbench.parts.named.looking import STAGING, Looked

_NOT_PASSED = "No comparison with production passed this version in the last 7 days. Compare them, or overrule."


class Moves:
    """Asks before an alias moves, with a reason for the history; ``on_moved`` is awaited after it."""

    def __init__(
        self, client: Client, place: pn.Column, on_moved: Callable[[], Awaitable[None]]
    ) -> None:
        self._named, self._place, self._on_moved = client.named_decisions, place, on_moved

    def ask_production(self, looked: Looked, number: int, *, overrules: bool = False) -> None:
        """Ask about moving production: with a passed comparison, or with a reason all the same."""
        name, now = looked.decision.name, looked.version.version
        if not overrules:
            self._ask(
                f"Move production to version {number}?",
                f"It is at version {now}. Every request follows within a second.",
                "Move production",
                lambda why: self._named.move(name, PRODUCTION, number, expected=now, reason=why),
            )
            return
        result = None if looked.comparison is None else looked.comparison.result
        why_not = [] if result is None else plain_reasons(result.reasons, result.sentences)
        self._ask(
            f"Overrule, and move production to version {number}?",
            f"{next(iter(why_not), 'No comparison passed it.')} Your reason stays in the history.",
            "Overrule and move",
            lambda why: self._named.move(name, PRODUCTION, number, expected=now, overrule=why),
            needs_reason=True,
        )

    def ask_alias(self, looked: Looked, number: int) -> None:
        """Ask which alias to point to which version."""
        alias = pmui.TextInput(label="Name, such as staging", value=STAGING, width=220)
        version = pmui.Select(
            label="Version",
            options=[each.version for each in looked.versions],
            value=number,
            width=220,
        )
        self._ask(
            "Put a version in use under a name?",
            "Applications that ask for the name are answered by that version.",
            "Point it there",
            lambda why: self._named.move(
                looked.decision.name, typed(alias), version.value, reason=why
            ),
            alias,
            version,
        )

    def ask_roll_back(self, looked: Looked, last: AliasMove) -> None:
        """Ask about pointing an alias to where it was before its last move."""
        self._ask(
            f"Roll {last.alias} back to version {last.from_version}?",
            f"It is at version {last.to_version}. No comparison is needed.",
            "Roll back",
            lambda why: self._named.roll_back(looked.decision.name, last.alias, reason=why),
        )

    def ask_archive(self, name: str) -> None:
        """Ask about archiving the decision."""
        text = "It then answers no requests. Its versions stay, and it can be brought back."
        self._ask(
            f"Archive {name}?",
            text,
            "Archive",
            lambda _: self._named.archive(name),
            has_reason=False,
        )

    def _ask(
        self,
        title: str,
        text: str,
        action: str,
        call: Callable[[str | None], Any],
        *fields: Any,
        needs_reason: bool = False,
        has_reason: bool = True,
    ) -> None:
        label = "Why, for the history" + ("" if needs_reason else " (may be empty)")
        reason = pmui.TextInput(label=label, visible=has_reason, sizing_mode="stretch_width")

        async def act() -> bool:
            why = typed(reason) or None
            if needs_reason:
                why = needed(reason, "Write why, for those who read the history.")
            try:
                await asyncio.to_thread(partial(call, why))
            except (ComparisonNeededError, MoveRefusedError):
                raise InvalidRequestError(_NOT_PASSED) from None
            corner.say(f"Done: {title[0].lower()}{title[1:-1]}.")
            await self._on_moved()
            return True

        about = small_text(escape_markdown(text))
        self.dialog = Confirmation(title, about, *fields, reason, action=action, act=act)
        self._place[:] = [self.dialog]


def last_move(looked: Looked) -> AliasMove | None:
    """Return the newest move of production; ``None`` where it is at its first version."""
    last = next((move for move in looked.moves if move.alias == PRODUCTION), None)
    return None if last is None or last.from_version is None else last
