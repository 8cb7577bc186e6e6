"""Actions on a dataset as a whole: rename, archive, restore, delete."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.client import Client
from steelyard.datasets.wire import Dataset
from steelyard.errors import SteelyardError
from steelyard_workbench.kit.basics import Boxed, stack
from steelyard_workbench.kit.components.choices import Choice, Choices
from steelyard_workbench.kit.components.confirmation import Confirmation
from steelyard_workbench.kit.escaping import escape_markdown
from steelyard_workbench.kit.problems import problem_of
from steelyard_workbench.kit.states import failed
from steelyard_workbench.kit.tasks import OneAtATime


class DatasetActions(Boxed):
    """Buttons of a dataset, after those of ``steps``; it is changed only where the user may."""

    def __init__(
        self,
        client: Client,
        dataset: Dataset,
        steps: Sequence[Choice] = (),
        *,
        on_changed: Callable[[], None],
        on_deleted: Callable[[], None],
        may_change: bool = True,
    ) -> None:
        super().__init__()
        self.client, self._dataset = client, dataset
        self._on_changed, self._on_deleted = on_changed, on_deleted
        self.asked: Confirmation | None = None
        self.problem = stack()
        self.restore = OneAtATime(self._restore, "Not restored:", self.problem)
        self.archive = OneAtATime(self._archive, "Not archived:", self.problem)
        self._steps = list(steps)
        changes = self._changes() if may_change else []
        self.buttons = Choices(self._steps + changes, layout="row")
        self._dialog = pn.Column()
        self._box = stack(self.buttons, self.problem, self._dialog)

    def _changes(self, *, may_change: bool = True) -> list[Choice]:
        is_archived = self._dataset.archived_at is not None
        hint = "It stays readable, takes no new work, and can be restored."
        changes = [
            Choice("Rename", self.ask_name, look="outlined"),
            Choice("Restore", self.restore.start, look="filled")
            if is_archived
            else Choice("Archive", self.archive.start, look="outlined", hint=hint),
            Choice("Delete", self.ask_delete, look="danger"),
        ]
        return changes if may_change else [replace(choice, do=None) for choice in changes]

    def ask_name(self) -> None:
        """Ask for another name."""
        field = pmui.TextInput(
            label="Name", value=self._dataset.name, max_length=128, sizing_mode="stretch_width"
        )

        async def rename() -> bool:
            done = await self._do(
                lambda: self.client.datasets.rename(self._dataset.id, field.value_input)
            )
            if done:
                self._on_changed()
            return done

        self._ask("Rename the dataset", field, action="Rename", act=rename)

    def ask_delete(self) -> None:
        """Ask whether to delete it, and for its name."""
        n_versions = self._dataset.version
        warning = pmui.Typography(
            f"{escape_markdown(self._dataset.name)} has {self._dataset.rows:,} rows in {n_versions} "
            f"version{'' if n_versions == 1 else 's'}. All of them go, for good; models that were "
            "trained on them stay.",
            variant="body1",
        )

        async def delete() -> bool:
            done = await self._do(lambda: self.client.datasets.delete(self._dataset.id))
            if done:
                self._on_deleted()
            return done

        self._ask(
            "Delete the dataset?",
            warning,
            action="Delete it",
            act=delete,
            typed=self._dataset.name,
            is_harmful=True,
        )

    async def _archive(self) -> None:
        if await self._do(lambda: self.client.datasets.archive(self._dataset.id)):
            self._on_changed()

    async def _restore(self) -> None:
        if await self._do(lambda: self.client.datasets.restore(self._dataset.id)):
            self._on_changed()

    async def _do(self, work: Callable[[], Any]) -> bool:
        """Do something that a permission may be missing for: then no button can be used."""
        try:
            await asyncio.to_thread(work)
        except SteelyardError as error:
            problem = problem_of(error, "Not changed:")
            if not problem.is_forbidden:
                raise
            self.buttons.offer(self._steps + self._changes(may_change=False))
            self.problem[:] = [failed(problem)]
            if self.asked is not None:
                self.asked.close()
            return False
        return True

    def _ask(self, title: str, content: Viewable, **options: Any) -> None:
        self.asked = Confirmation(title, content, **options)
        self._dialog[:] = [self.asked]
