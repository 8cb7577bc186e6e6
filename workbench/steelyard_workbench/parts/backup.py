"""Backups of the server's home: the newest, the button that makes one, and how one is restored."""

from __future__ import annotations

import asyncio
import shlex
import time
from functools import partial

from panel.viewable import Viewable

from steelyard.backups.wire import BackupList
from steelyard.errors import KeyScopeError
from steelyard_workbench.kit.basics import small_text, stack
from steelyard_workbench.kit.components.copy_text import CopyText
from steelyard_workbench.kit.page import Loaded
from steelyard_workbench.kit.personal import Section
from steelyard_workbench.kit.views import (
    Details,
    empty,
    facts,
    heading,
    table,
    verdict,
    with_details,
)
from steelyard_workbench.kit.words import ago
from steelyard_workbench.parts.setup_tasks import show_task, size_text

_ELSEWHERE = "**This server's data is not in files of its own.** Its database and its store are copied apart."
_RESTORE = (
    "Stop the server, run this on its machine, and start the server again. The backup is checked first, and "
    "the data that was there is kept beside it."
)
_WEEK_S, _MOST = 7 * 86_400, 5


class BackupSection(Section):
    """When the home was last copied, and a button that copies it."""

    def build(self) -> list[Viewable]:
        """Return the part."""
        self._is_open = False
        self.backups = Loaded("The backups", self._fetch, self._show, n_lines=3)
        return [heading("Backup"), self.part(self.backups), self.said]

    async def look(self) -> None:
        """Bring a backup that goes on up to date."""
        listed = self.backups.data
        if listed is not None and listed.task is not None and listed.task.status == "running":
            await self.backups.refresh(quietly=True)

    def _fetch(self) -> BackupList | None:
        try:
            return self.client.operator.backups()
        except KeyScopeError:  # the workbench calls with a key of an account
            return None

    def _show(self, listed: BackupList | None) -> Viewable:
        if listed is None:
            return empty("Operators of this server back it up.")
        if listed.problem is not None:
            return empty(with_details(_ELSEWHERE, listed.problem))
        task = listed.task
        shown = [_newest(listed), *([] if task is None else show_task(task))]
        if task is None or task.status != "running":
            label, problem = "Back up now", "Not backed up."
            shown.append(self.button(label, self._back_up, problem, variant="contained"))
        details = Details(
            partial(_details, listed),
            "earlier backups, how to restore",
            is_open=self._is_open,
            on_open=self._keep_open,
        )
        return stack(*shown, details)

    def _keep_open(self, is_open: bool) -> None:
        self._is_open = is_open

    async def _back_up(self) -> None:
        await asyncio.to_thread(self.client.operator.back_up)
        await self.backups.refresh(quietly=True)


def _newest(listed: BackupList) -> Viewable:
    if not listed.data:
        text = "Rows, models and decisions are on one disk alone, and are lost with it."
        return verdict("unsure", "No backup yet.", text)
    newest = listed.data[0]
    is_old = time.time() - newest.made_at > _WEEK_S
    text = f"{newest.files:,} files, {size_text(newest.bytes)}, every one checked."
    return verdict("unsure" if is_old else "good", f"Last backed up {ago(newest.made_at)}.", text)


def _details(listed: BackupList) -> list[Viewable]:
    shown: list[Viewable] = [facts({"Backups are in": listed.folder, "They are of": listed.home})]
    if not listed.data:
        return shown
    rows = [
        (
            backup.name,
            f"{backup.files:,}",
            size_text(backup.bytes),
            backup.version,
            ago(backup.made_at),
        )
        for backup in listed.data[:_MOST]
    ]
    columns = ("backup", "files", "size", "Steelyard", "when")
    newest = f"{listed.folder}/{listed.data[0].name}"
    restore = ["steelyard", "restore", newest, "--home", listed.home, "--force"]
    return [
        *shown,
        table(columns, rows, label="Backups", numbers=(1, 2)),
        small_text(_RESTORE),
        CopyText(shlex.join(restore), "the command"),
    ]
