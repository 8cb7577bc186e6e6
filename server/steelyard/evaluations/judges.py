"""Models whose labels decide something: which they are, and whether people's labels bear them out."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

import msgspec
from msgspec import UNSET

from steelyard.caller import Caller
from steelyard.datasets.service import DatasetService
from steelyard.datasets.version_service import DatasetAt
from steelyard.errors import PathStep
from steelyard.wire.origins import UNKNOWN, counts, origins_of
from steelyard.wire.violations import Violations, show


class Qualified(Protocol):
    """The qualifications of connected models; the room of models fills it."""

    async def doubts(self, decisions: Sequence[Any] = ()) -> Mapping[str, str]:
        """Return why connected models are not to be relied on, on some decisions or on any."""

    async def kin(
        self, account_id: str, names: Collection[str], judged: Collection[str]
    ) -> Sequence[str]:
        """Return a sentence on each model that is of the same origin as one that it judges."""


class Judges:
    """Holds models to their qualifications wherever their labels decide something."""

    def __init__(self, datasets: DatasetService, *, must_qualify: bool = False) -> None:
        self._datasets = datasets
        self._qualified: Qualified | None = None
        #: Whether one that is to be doubted is refused; otherwise it is warned of.
        self.must_qualify = must_qualify

    def register(self, qualified: Qualified) -> None:
        """Register the qualifications, which stand above evaluations."""
        self._qualified = qualified

    async def doubts(self, decisions: Sequence[Any] = ()) -> Mapping[str, str]:
        """Return why connected models are not to be relied on, of those that are not."""
        return {} if self._qualified is None else await self._qualified.doubts(decisions)

    async def check(
        self,
        caller: Caller,
        names: Mapping[str, tuple[PathStep, ...]],
        decisions: Sequence[Any],
        *,
        judged: Collection[str] = (),
        verb: str = "is",
        remedy: str = "leave it out",
    ) -> list[str]:
        """Return what speaks against models as judges, or refuse those that have not qualified.

        ``names``: which field of the request has each, as ``verb`` says; ``judged``: the models that
        their labels decide about; ``remedy``: what else helps than to qualify it.
        """
        if self._qualified is None or not names:
            return []
        doubts = await self._qualified.doubts(decisions)
        doubts = {name: doubts[name] for name in names if name in doubts}
        if self.must_qualify:
            violations = Violations()
            for name, doubt in doubts.items():
                message = f"{verb} {show(name)}, but {doubt}; qualify it, or {remedy}."
                violations.add(names[name], message, "not_qualified")
            violations.raise_if_any()
        kin = await self._qualified.kin(caller.account_id, names, judged) if judged else []
        return [*(f"{name}: {doubt}." for name, doubt in doubts.items()), *kin]

    async def check_rows(
        self,
        caller: Caller,
        dataset_id: str,
        version: int,
        *,
        path: tuple[PathStep, ...],
        judged: Collection[str],
        origins: Collection[str] | None = None,
    ) -> list[str]:
        """Check the models that labelled held-out rows, as far as labels of such origins count."""
        if self._qualified is None:
            return []
        at = await self._datasets.dataset_at(caller, dataset_id, version)
        labeling = (await self._datasets.get(caller, dataset_id)).labeling
        teachers = [] if labeling is UNSET else labeling.teacher_models
        names = await asyncio.to_thread(self._labellers, at, teachers, origins)
        if not names:
            return []
        definitions = await asyncio.to_thread(self._datasets.definitions, at)
        decisions = [msgspec.json.decode(each.decision) for each in definitions if each.evaluation]
        paths = dict.fromkeys(names, path)
        return await self.check(caller, paths, decisions, judged=judged, verb="counts labels by")

    def _labellers(
        self, at: DatasetAt, teachers: Collection[str], origins: Collection[str] | None
    ) -> list[str]:
        names: set[str] = set()
        for metadata in self._datasets.evaluation_metadata(at):
            labelled_by = origins_of(metadata)
            if not counts(labelled_by, origins):
                continue
            if UNKNOWN in labelled_by:
                names.update(teachers)  # those of the labeling job that made the dataset
            elif "model" in labelled_by:
                names.update(str(metadata.get("who", "")).split(", "))
        return sorted(names - {""})
