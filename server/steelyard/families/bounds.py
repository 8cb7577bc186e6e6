"""Bounds of families: found on the held-out answers of the model that one serves, kept, removed."""

from __future__ import annotations

import asyncio
import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import UNSET, to_builtins
from sqlalchemy import Connection

from steelyard import errors
from steelyard.caller import Caller
from steelyard.datasets.service import DatasetService
from steelyard.families.fine_tuning.service import FineTuneJobs
from steelyard.families.lineage.draft import LineageChange, LineageDraft
from steelyard.families.lineage.lineage import (
    AnswerBound,
    Conditions,
    FamilyModel,
    FineTune,
    Lineage,
    latest_of,
)
from steelyard.families.lineage.references import Guard, check_served, find_family
from steelyard.families.lineage_store import Applied, LineageStore
from steelyard.families.lineage_writes import LineageWrites
from steelyard.families.serializers import family_to_wire
from steelyard.families.wire import AbstainOnNovel, BoundFamily, Family, FamilyBound
from steelyard.operations.write import Write
from steelyard.storage.artifacts import ArtifactStore

if TYPE_CHECKING:
    from steelyard.calibration.certify import CertifiedThreshold


class FamilyBounds:
    """Finds and keeps the bounds of every account's families."""

    def __init__(
        self,
        lineages: LineageStore,
        writes: LineageWrites,
        fine_tunes: FineTuneJobs,
        datasets: DatasetService,
        artifacts: ArtifactStore,
    ) -> None:
        self._lineages = lineages
        self._writes = writes
        self._fine_tunes = fine_tunes
        self._datasets = datasets
        self._artifacts = artifacts

    async def put(self, write: Write, name: str, request: BoundFamily) -> Family:
        """Find the threshold from which answers are wrong at most so often, and keep it.

        Raise ``BoundNotCertifiedError`` where the held-out rows certify none.
        """
        await self._writes.replay_known(write)
        lineage = (await self._lineages.read(write.caller.account_id)).lineage
        latest = _serving(lineage, name, request.served, "find a bound")
        adapter = lineage.families[name].served
        bound = await self._find(write.caller, latest, lineage.jobs[latest.job_id], request)
        return await self._set(write, name, adapter, bound=bound)

    async def remove(self, write: Write, name: str) -> Family:
        """Remove a family's bound: its answers are no longer certified, and none abstains for it."""
        return await self._set(write, name, UNSET, bound=None)

    async def abstain_on_novel(self, write: Write, name: str, request: AbstainOnNovel) -> Family:
        """Make a family abstain on new texts; ``NoveltyUnknownError`` where its model cannot tell them."""
        await self._writes.replay_known(write)
        state = await self._lineages.read(write.caller.account_id)
        model = _serving(state.lineage, name, request.served, "abstain on unlike texts")
        served = state.lineage.families[name].served
        sha256 = state.artifacts.get(model.adapter)
        if sha256 is None:
            raise errors.ModelUnavailableError(
                f"The files of {model.ref} are not here; continue {name}."
            )
        await asyncio.to_thread(self._check_novelty, model, sha256, request.false_alarms)
        return await self._set(write, name, served, false_alarms=request.false_alarms)

    async def remove_novelty(self, write: Write, name: str) -> Family:
        """Make a family answer texts unlike its training rows as any other."""
        return await self._set(write, name, UNSET, false_alarms=None)

    def _check_novelty(self, model: FamilyModel, sha256: str, false_alarms: float) -> None:
        # Imports numpy's readers of files, which few ask for.
        from steelyard.scoring.novelty import TrainingTexts  # noqa: PLC0415

        training = TrainingTexts.load(self._artifacts.fetch(sha256))
        if training is None:
            raise errors.NoveltyUnknownError(
                f"{model.ref} keeps no vectors of its training rows; continue the family on a base "
                "model that has vectors of texts, with this version of Steelyard."
            )
        if training.limit(false_alarms) is None:
            raise errors.NoveltyUnknownError(
                f"{len(training.evaluation)} held-out contexts of {model.ref} cannot tell {false_alarms:g} "
                f"of false alarms; allow more, or have {math.ceil(1 / false_alarms) - 1} contexts for "
                "evaluation and continue the family."
            )

    async def _find(
        self, caller: Caller, model: FamilyModel, job: FineTune, request: BoundFamily
    ) -> AnswerBound:
        # Slow to load, and few ask for a bound.
        from steelyard.calibration.certify import certify_threshold  # noqa: PLC0415

        records, measures = await self._fine_tunes.held_out(caller, job.id)
        is_counted = measures.counted[measures.right]
        n = int(is_counted.sum())
        if not n:
            raise errors.BoundNotCertifiedError(
                f"{model.ref} has no held-out answers; add evaluation rows and continue the family."
            )
        certified = await asyncio.to_thread(
            certify_threshold,
            measures.p_top[is_counted],
            measures.values[measures.right][is_counted],
            records.context_codes[is_counted],
            error=request.error,
            confidence=request.confidence,
        )
        if not certified.holds:
            n_rows = len(np.unique(records.context_codes[is_counted]))
            raise _uncertified(model, certified, request, n_rows)
        at = await self._datasets.dataset_at(
            caller, job.dataset_id, job.dataset_version, is_new_work=False
        )
        definitions = await asyncio.to_thread(self._datasets.definitions, at)
        return AnswerBound(
            shown=FamilyBound(
                error=request.error,
                confidence=request.confidence,
                threshold=certified.threshold,
                measured_error=certified.error,
                answered=certified.answered,
                decisions=n,
                contexts=certified.n_contexts,
                model=model.ref,
                dataset_id=job.dataset_id,
                dataset_version=job.dataset_version,
                found_at=time.time(),
            ),
            adapter=model.adapter,
            wordings=frozenset(
                definition.fingerprint for definition in definitions if definition.evaluation
            ),
        )

    async def _set(self, write: Write, name: str, served: Guard, **changes: Any) -> Family:
        """Change a family, unless it serves another model by now than the one looked at."""

        def command(lineage: Lineage, conditions: Conditions) -> LineageChange:
            draft = LineageDraft(lineage, conditions)
            check_served(find_family(lineage, name), served)
            draft.change_family(name, **changes)
            return draft.done()

        def tell(_: Connection, applied: Applied) -> Family:
            family = applied.lineage.families[name]
            return family_to_wire(applied.lineage, family, applied.conditions)

        return await self._writes.once(write, command, tell)


def _serving(lineage: Lineage, name: str, served: Guard, what: str) -> FamilyModel:
    """Return the model that a family serves, or the latest where it serves none."""
    family = find_family(lineage, name)
    check_served(family, served)
    adapter = family.served
    latest = latest_of(lineage, family) if adapter is None else lineage.models[adapter]
    if latest is None:
        raise errors.FamilyEmptyError(
            f"The family {name} has no model yet; {what} once it has one."
        )
    return latest


def _uncertified(
    model: FamilyModel, nearest: CertifiedThreshold, request: BoundFamily, n_rows: int
) -> errors.BoundNotCertifiedError:
    more = (
        "While that is so, no number of rows would certify it; allow more errors, or train a better "
        "model."
        if nearest.missing_rows is None
        else f"Answered alike, {nearest.missing_rows:,} more evaluation rows would certify it."
    )
    return errors.BoundNotCertifiedError(
        f"{n_rows:,} held-out rows cannot certify that answers of {model.ref} are wrong in at most "
        f"{request.error:g} with a confidence of {request.confidence:g}. From a top probability of "
        f"{nearest.threshold:.4f} on, {nearest.error:.4f} of {nearest.n_contexts:,} contexts' answers are "
        f"wrong. {more}",
        details=[{"missing_rows": nearest.missing_rows, "nearest": to_builtins(nearest)}],
    )
