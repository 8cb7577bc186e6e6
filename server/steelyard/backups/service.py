"""Backups of this server's home, which a process that answers makes while it runs."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import msgspec

from steelyard.backups.copies import (
    MANIFEST,
    BackupError,
    BackupManifest,
    folder_of,
    places_of,
    whole_copies,
)
from steelyard.backups.wire import Backup, BackupList
from steelyard.caller import LOCAL_ACCOUNT, Caller
from steelyard.errors import ModelUnavailableError
from steelyard.house import House
from steelyard.models.setup_run import Outcome, SetupRun
from steelyard.models.setups import ModelSetups
from steelyard.settings import home_of
from steelyard.wire.decoding import decode

#: What a backup is of; no model or route can have this name.
HOME = "the home"
_MOST = 20


class Backups:
    """Lists the backups, and makes one at a time."""

    def __init__(self, house: House, setups: ModelSetups) -> None:
        self._settings, self._back_up, self._setups = house.settings, house.back_up, setups
        self._folder = folder_of(house.settings)

    async def list(self) -> BackupList:
        """Return the newest backups, and how far the one is that was begun last."""
        return await asyncio.to_thread(self._list)

    async def make(self, caller: Caller) -> BackupList:
        """Begin a backup; one that goes on already does so."""
        # It is the server's, not the caller's: an operator need not have an account.
        server = replace(caller, account_id=LOCAL_ACCOUNT)
        await self._setups.begin(server, "backup", HOME)
        return await self.list()

    def run(self, run: SetupRun) -> Outcome:
        """Copy the home."""
        try:
            self._back_up(self._folder, run.report)
        except BackupError as error:
            raise ModelUnavailableError(str(error)) from error
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise ModelUnavailableError(
                f"The home could not be copied to {self._folder}: {reason}. Make room there, or give the "
                "setting `backups` a folder that can be written."
            ) from error
        return Outcome()

    def _list(self) -> BackupList:
        problem = None
        try:
            places_of(self._settings)
        except BackupError as error:
            problem = str(error)
        copies = []
        for copy in whole_copies(self._folder)[: -_MOST - 1 : -1]:
            try:
                manifest = decode((copy / MANIFEST).read_bytes(), BackupManifest)
            except (OSError, msgspec.DecodeError):  # removed meanwhile, or damaged
                continue
            copies.append(
                Backup(
                    name=copy.name,
                    made_at=manifest.made_at,
                    version=manifest.version,
                    files=len(manifest.files),
                    bytes=manifest.n_bytes,
                )
            )
        return BackupList(
            data=copies,
            folder=str(self._folder),
            home=str(home_of(self._settings).absolute()),
            problem=problem,
            task=self._setups.last().tasks.get(HOME),
        )
