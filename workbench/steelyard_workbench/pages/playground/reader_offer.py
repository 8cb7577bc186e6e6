"""Beside a yes/no of the models that ship: how far to rely on it, and the reader that answers better."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.client.answers import DecideAnswer
from steelyard.errors import SteelyardError
from steelyard.models.judge_wire import Judge
from steelyard.serving.reader.catalogue import READER, SHIPPED
from steelyard_workbench.kit.basics import stack
from steelyard_workbench.kit.personal import Section
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.tasks import OneAtATime, Scope
from steelyard_workbench.kit.views import card, verdict
from steelyard_workbench.kit.words import escape_markdown
from steelyard_workbench.parts.setup_tasks import show_task, size_text

_UNSURE = "Do not rely on this yes or no before you have measured it on rows of your own."
_WHY = "The models that ship were not measured on questions like yours."


def is_guessed(answer: DecideAnswer, base_models: frozenset[str]) -> bool:
    """Whether a model that ships decided a yes/no, by itself or along a route."""
    deciders = {
        result.route[-1].model if result.route else answer.model
        for result in answer.decisions.values()
        if result.kind == "binary"
    }
    return not deciders.isdisjoint(base_models | {SHIPPED})


class ReaderOffer(Section):
    """The sentence, and for operators the next step to a reader; ``ask_both`` then asks again with it."""

    def __init__(
        self, session: Session, scope: Scope, ask_both: Callable[[str], Awaitable[None]]
    ) -> None:
        self._ask_both = ask_both
        #: Whether a download is under way.
        self.is_waiting = False
        self.steps = stack()
        super().__init__(session, scope)
        self.refresh = OneAtATime(self.look, on_failure=lambda _: None, scope=scope)

    def build(self) -> list[Viewable]:
        """Return the sentence and the place of the steps."""
        return [card(verdict("unsure", _UNSURE, _WHY), self.steps, self.said)]

    async def look(self) -> None:
        """Bring the steps up to date; ask both once a reader that was waited for is there."""
        who = self.session.who
        if who is not None and not who.user.is_operator:
            return
        # Keys of another account may not list them.
        with suppress(SteelyardError):
            listed = (await asyncio.to_thread(self.client.judges.list)).data
            readers = [each for each in listed if each.kind == "reader" and each.name != SHIPPED]
            connected = next((each for each in readers if each.connected), None)
            if connected is None:
                self.steps[:] = self._ways_to(next(r for r in readers if r.name == READER))
            elif self.is_waiting:
                self.is_waiting = False
                await self._ask_both(connected.name)
            else:
                self.steps[:] = [self._ask_button(connected.name)]

    def _ways_to(self, reader: Judge) -> list[Viewable]:
        task = reader.task
        size = f" ({size_text(reader.bytes)})" if reader.bytes else ""
        if task is not None and task.status == "running":
            self.is_waiting = True
            return [*show_task(task), self.button("Stop", self._stop, "It was not stopped.")]
        self.is_waiting = False
        if task is not None and task.error is not None:
            problem = verdict("unsure", "The reader is not here yet.", escape_markdown(task.error))
            return [problem, self._get_button("Go on with the download")]
        return [self._get_button(f"Get the reader{size}")]

    def _get_button(self, label: str) -> pmui.Button:
        return self.button(label, self._get, f"{label}: not done.", variant="contained")

    def _ask_button(self, name: str) -> pmui.Button:
        async def ask() -> None:
            await self._ask_both(name)

        return self.button(f"Ask {name} too", ask, "It was not asked.", variant="contained")

    async def _get(self) -> None:
        await asyncio.to_thread(self.client.judges.download, READER)
        self.is_waiting = True
        await self.look()

    async def _stop(self) -> None:
        await asyncio.to_thread(self.client.judges.stop, READER)
