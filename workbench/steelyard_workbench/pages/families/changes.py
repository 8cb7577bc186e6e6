"""A change of one family: confirmed, sent with the page's version, and its result shown.

Every change is sent with the visible state (``served``, ``latest``, the adapter behind a number), so
that nothing is done to a family that has become another: it is fetched again then, and the difference
is shown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.errors import (
    FamilyChangedError,
    KeyScopeError,
    ModelChangedError,
    ModelDeletedError,
    ModelDiscardedError,
    NothingToRollBackError,
    RollbackChangedError,
    ServedChangedError,
    SteelyardError,
)
from steelyard.families.fine_tune_wire import Job
from steelyard.families.wire import Family, ModelVersion
from steelyard_workbench.kit.basics import Boxed, stack
from steelyard_workbench.kit.components.dialogs import Confirmation
from steelyard_workbench.kit.page import Loaded
from steelyard_workbench.kit.problems import Problem, problem_of
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.views import failed, verdict
from steelyard_workbench.kit.words import escape_markdown
from steelyard_workbench.pages.families.result import HeldOutResult
from steelyard_workbench.parts.families.labels import differences

T = TypeVar("T")
#: What a server refuses with when the family is no longer as it was shown.
CHANGED = (
    FamilyChangedError,
    ModelChangedError,
    ModelDeletedError,
    ModelDiscardedError,
    NothingToRollBackError,
    RollbackChangedError,
    ServedChangedError,
)


@dataclass(frozen=True, slots=True)
class Seen:
    """A family as it was fetched, with the fine-tune that is looked at, and its held-out result.

    ``running`` is its fine-tune that has not ended, if any. ``job`` is ``None`` when there is none, or it
    could not be loaded; ``result``, until it was judged. ``dataset`` is the name of the family's
    dataset; its id once that is deleted.
    """

    family: Family
    job: Job | None
    problem: Problem | None = None
    dataset: str = ""
    result: HeldOutResult | None = None
    running: Job | None = None


class FamilyChanges(Boxed):
    """A family that is shown, and how it is changed; ``forbidden`` says why it may not be."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._client = session.client
        self._name = session.family
        self.forbidden = ""
        self.dialog: Confirmation | None = None
        self.loaded: Loaded[Seen] = Loaded("The model line", self._fetch, self._show, n_lines=8)
        self.notes = stack()
        self._dialog_place = pn.Column()

    @property
    def family(self) -> Family:
        """The family as it is shown; ``LookupError`` before it was fetched."""
        if self.loaded.data is None:
            raise LookupError(f"{self._name} is still loading.")
        return self.loaded.data.family

    def close_dialog(self) -> None:
        """Close the confirmation."""
        if self.dialog is not None:
            self.dialog.close()

    def _fetch(self) -> Seen:
        raise NotImplementedError

    def _show(self, seen: Seen) -> Viewable:
        raise NotImplementedError

    def _ask(self, title: str, *content: str | Viewable, **options: Any) -> Confirmation:
        """Open a confirmation; texts are Markdown."""
        views = [pmui.Markdown(part) if isinstance(part, str) else part for part in content]
        self.dialog = Confirmation(title, *views, **options)
        self._dialog_place[:] = [self.dialog]
        return self.dialog

    async def _run(self, done: str, call: Callable[[], Any]) -> None:
        """Do something, and show the family's new state; refusals are raised."""
        try:
            await asyncio.to_thread(call)
        except CHANGED as error:
            await self._tell_change(error)
            return
        self.notes[:] = [verdict("good", "Done.", done)]
        await self.loaded.refresh(quietly=True)

    async def _directly(self, doing: str, done: str, call: Callable[[], Any]) -> None:
        try:
            await self._run(done, call)
        except Exception as error:  # noqa: BLE001  every failure is shown
            await self._fail(error, doing)

    async def _confirmed(self, done: str, call: Callable[[], Any]) -> bool:
        try:
            await self._run(done, call)
        except KeyScopeError as error:
            await self._forbid(error)
            raise
        return True

    async def _answer(self, doing: str, call: Callable[[], T]) -> T | None:
        """Return the server's answer; ``None`` once its refusal is shown."""
        try:
            return await asyncio.to_thread(call)
        except CHANGED as error:
            await self._tell_change(error)
        except Exception as error:  # noqa: BLE001  every failure is shown
            await self._fail(error, doing)
        return None

    async def _tell_change(self, error: SteelyardError) -> None:
        """Fetch the family again, and say how it changed meanwhile."""
        before = self.family
        await self.loaded.refresh(quietly=True)
        happened = "; ".join(differences(before, self.family)) or escape_markdown(error.message)
        self.notes[:] = [
            verdict("unsure", f"{self._name} changed meanwhile; nothing was done.", f"{happened}.")
        ]

    async def _forbid(self, error: KeyScopeError) -> None:
        self.forbidden = error.message
        await self.loaded.refresh(quietly=True)

    async def _fail(self, error: Exception, doing: str) -> None:
        problem = problem_of(error, f"Not done: {doing[0].lower()}{doing[1:]}.")
        if isinstance(error, KeyScopeError):
            await self._forbid(error)
        self.notes[:] = [failed(problem)]


def adapter_of(model: ModelVersion | None) -> str | None:
    """Return the adapter of a model; ``None`` where there is no model."""
    return None if model is None else model.adapter
