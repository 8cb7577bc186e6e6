"""The rows of fine-tunes: new rows of a dataset, the rows and price of the next fine-tune.

A fine-tune trains on the training rows that came or changed since its family's latest model was trained
and on as many earlier ones, drawn with its seed, and is judged on every evaluation row. One that moves its family
to another base model trains on every row, as nothing has learned from the earlier ones there. A
version's rows keep their places in all later ones, so new rows are those past the ones that the
version trained on had. Everything here is a function of versions that never change, so that an
estimate and a start agree.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import numpy as np
from msgspec import UNSET, structs
from numpy.typing import NDArray
from sqlalchemy import Connection

from steelyard import errors
from steelyard.caller import Caller
from steelyard.datasets.access import require_dataset, require_version
from steelyard.datasets.frames.pages import RowStore
from steelyard.datasets.frames.scanning import load_definitions
from steelyard.datasets.labels import SUPERVISION_OF
from steelyard.datasets.store import DatasetRow, VersionRow, find_dataset, find_version
from steelyard.datasets.version_service import DatasetAt, LabelledRow, read_side
from steelyard.datasets.versions import Manifest
from steelyard.datasets.wire import Side
from steelyard.evaluations.measures.gate_rules import NEEDED
from steelyard.families.fine_tune_wire import JobLineage, JobSplit, ResolvedHyperparameters
from steelyard.families.fine_tuning.counts import (
    EvaluationCounts,
    contexts_of,
    count_evaluation,
    judged_decisions,
)
from steelyard.families.fine_tuning.tokens import RowTokens
from steelyard.families.lineage.continuing import Changes, NewRows
from steelyard.families.lineage.fees import count_trained_tokens, default_steps, passes_of
from steelyard.families.lineage.plan import Tokenizers, TuningBasis, TuningBounds, TuningPlan
from steelyard.families.wire import ContinueRows, Hyperparameters
from steelyard.recent import Recent
from steelyard.scoring.shipped import READER
from steelyard.storage import State
from steelyard.storage.frame_store import FrameStore
from steelyard.trainer.lora import TUNING_BATCH, TUNING_LEARNING_RATE, lacking_for_lora
from steelyard.trainer.task import Group, TaskRow
from steelyard.wire.filling import filled
from steelyard.wire.methods import Method
from steelyard.wire.origins import origins_of
from steelyard.wire.violations import BODY, show

#: The most earlier training rows that go with new ones.
MAX_EARLIER = 4096
#: A seed that is chosen here is below this: every library takes it, and JSON keeps it exact.
_SEEDS = 2**31
#: Counts of evaluation decisions kept in memory.
_CACHED_COUNTS = 256

Places = NDArray[np.int64]


class TuningRows:
    """Counts, checks and gives the rows of fine-tunes."""

    def __init__(
        self,
        state: State,
        store: FrameStore,
        tokenizers: Tokenizers,
        *,
        bounds: TuningBounds | None = None,
        needed: int = NEEDED,
        lacking_for_lora: Callable[[], str | None] = lacking_for_lora,
        has_reader: Callable[[], bool] = lambda: True,
    ) -> None:
        self._state = state
        self._store = store
        self._rows = RowStore(store)
        self._tokenizers = tokenizers
        self._tokens = RowTokens(store)
        self._bounds = bounds or TuningBounds()
        self._needed = needed
        self._lacking_for_lora = lacking_for_lora
        self._has_reader = has_reader
        self._evaluations: Recent[tuple[str, ...], EvaluationCounts] = Recent(_CACHED_COUNTS)

    @property
    def bounds(self) -> TuningBounds:
        """How many training rows a fine-tune takes."""
        return self._bounds

    async def growth(
        self,
        caller: Caller,
        basis: TuningBasis,
        *,
        version: int | None = None,
        counted: bool = True,
        ahead: Manifest | None = None,
    ) -> NewRows:
        """Return a family's new rows since it last trained; ``ahead`` is a version that is not there yet."""

        def find(
            connection: Connection,
        ) -> tuple[DatasetRow, list[VersionRow | None], list[Manifest]]:
            row = _require_known(connection, caller.account_id, basis.dataset_id)
            if row.deleted_at is not None:
                return row, [None, None, None], []
            numbers = (row.version, min(version or row.version, row.version), basis.trained_version)
            versions = [
                None if number is None else find_version(connection, row.id, number)
                for number in numbers
            ]
            return row, versions, _elsewhere(connection, basis) if counted else []

        row, (newest, at, trained), elsewhere = await self._state.read(find)
        growth = NewRows(
            version=row.version if ahead is None else ahead.version,
            added_at=None if newest is None else newest.created_at,
            added_from=None if newest is None else newest.added_from,
            needed=self._needed,
            is_deleted=row.deleted_at is not None,
            is_archived=row.archived_at is not None,
        )
        if not counted or at is None:
            return growth
        manifest = at.manifest if ahead is None else ahead
        before = None if trained is None else trained.manifest
        changes = changes_of(manifest, before)
        evaluation = await self._count(manifest, before, basis.method, elsewhere)
        lineage = self._lineage(changes, evaluation, is_move=basis.is_move)
        return _grown(growth, lineage, evaluation, changes)

    def _check_hyperparameters(self, given: Hyperparameters, basis: TuningBasis) -> None:
        """Refuse settings that contradict each other, and those that this server cannot run."""
        if given.first is not None and (given.heads == "words" or basis.learned):
            why = (
                "heads read words alone already"
                if given.heads == "words"
                else f"{basis.family} starts from a model, which answers"
            )
            raise errors.InvalidRequestError.at(
                (*BODY, "hyperparameters", "first"),
                f"first is {given.first!r}, and {why}; leave first out.",
                "not_allowed",
            )
        if given.heads == "evidence" and not self._has_reader():
            raise errors.TrainingUnavailableError(
                f"heads are to read the evidence of {READER.name}, which is not here; install the "
                "Steelyard that it ships with, or leave heads out."
            )
        if given.lora_rank is None:
            return
        if given.heads == "words":
            raise errors.InvalidRequestError.at(
                (*BODY, "hyperparameters", "lora_rank"),
                f"lora_rank is {given.lora_rank}, and heads that read words alone read no "
                "encoder; leave one of the two out.",
                "not_allowed",
            )
        if (lacking := self._lacking_for_lora()) is not None:
            raise errors.TrainingUnavailableError(lacking)

    async def plan(
        self,
        caller: Caller,
        basis: TuningBasis,
        *,
        version: int | None = None,
        hyperparameters: Hyperparameters | None = None,
    ) -> TuningPlan:
        """Plan the rows of a fine-tune; equal arguments give equal plans."""
        newest, manifest, trained, elsewhere = await self._state.read(
            partial(_find_versions, account_id=caller.account_id, basis=basis, version=version)
        )
        self._check_hyperparameters(hyperparameters or Hyperparameters(), basis)
        _check_kind(manifest, basis)
        if basis.trained_version is None:
            for other in elsewhere:
                if (other.dataset_id, other.version) == basis.learned[0]:
                    await asyncio.to_thread(self._check_decisions, manifest, other, basis)
        changes = changes_of(manifest, trained)
        self._check_rows(manifest, changes, basis)
        seed = _seed_of(hyperparameters, manifest, basis.family)
        places = select_places(changes, seed, is_move=basis.is_move)
        evaluation = await self._count(manifest, trained, basis.method, elsewhere)
        if evaluation.has_images:
            raise errors.ImagesNotSupportedError(
                f"Rows of the dataset {basis.dataset_id} have images, and {basis.base} reads text "
                "alone; make a dataset without them.",
                path=basis.dataset_path,
            )
        tokens = await self._check_tokens(manifest, basis)
        resolved = _resolve(hyperparameters, seed, len(places))
        lineage = self._lineage(changes, evaluation, is_move=basis.is_move)
        growth = NewRows(
            version=newest.version,
            added_at=newest.created_at,
            added_from=newest.added_from,
            needed=self._needed,
        )
        split = JobSplit(
            train_rows=len(places),
            validation_rows=evaluation.new_rows + evaluation.earlier_rows,
            trained_tokens=count_trained_tokens(
                tokens[places].tolist(), resolved.steps, TUNING_BATCH
            ),
        )
        return filled(
            TuningPlan,
            basis,
            dataset_version=manifest.version,
            hyperparameters=resolved,
            split=split,
            lineage=lineage,
            rows=_tell(lineage),
            passes=passes_of(resolved.steps, TUNING_BATCH, len(places)),
            growth=_grown(growth, lineage, evaluation, changes),
        )

    def select(
        self,
        at: DatasetAt,
        trained: DatasetAt | None,
        *,
        seed: int,
        learned: Sequence[DatasetAt] = (),
        is_move: bool = False,
    ) -> Iterator[TaskRow]:
        """Yield the rows of a fine-tune: those it trains on, then those it is judged on.

        It blocks. Equal arguments give equal rows. Nothing is judged on a context that the model to
        start from was trained on: a dataset with the same rows as another has other sides.
        """
        before = None if trained is None else trained.manifest
        changes = changes_of(at.manifest, before)
        places = select_places(changes, seed, is_move=is_move)
        taken = set(places.tolist())
        seen = self._contexts_of(learned)
        for place, row in enumerate(read_side(self._rows, at, "training")):
            if place in taken:
                group: Group = "earlier" if place < changes.earlier else "new"
                is_seen = row.context_sha256 in seen
                yield _task_row(row, place, "training", group, is_seen=is_seen)
        n_judged = at.manifest.rows_before("evaluation", before)
        known = judged_decisions(self._store, at.manifest, before)
        for place, row in enumerate(read_side(self._rows, at, "evaluation")):
            if row.context_sha256 in seen:
                continue
            same, is_whole = known.get(row.index, (frozenset(), False))
            group = "earlier" if place < n_judged or is_whole else "new"
            made = _task_row(row, place, "evaluation", group)
            yield structs.replace(made, earlier_decisions=sorted(same)) if group == "new" else made

    def _contexts_of(self, versions: Iterable[DatasetAt]) -> frozenset[str]:
        """Return the contexts of the training sides."""
        manifests = [version.manifest for version in versions]
        frames = [
            contexts_of(self._store, other_manifest, "training") for other_manifest in manifests
        ]
        with self._store.reading(
            *(name for other_manifest in manifests for name in other_manifest.part_names())
        ):
            contexts = [frame.collect()["context_sha256"] for frame in frames]
        return frozenset(name.hex() for names in contexts for name in names)

    async def _count(
        self,
        manifest: Manifest,
        trained: Manifest | None,
        method: Method,
        learned: Sequence[Manifest],
    ) -> EvaluationCounts:
        key = _count_key(manifest, trained, learned)
        counts = self._evaluations.find(key)
        if counts is None:
            counts = await asyncio.to_thread(
                count_evaluation, self._store, manifest, trained, method, learned
            )
            self._evaluations.note(key, counts)
        return counts

    async def _check_tokens(self, manifest: Manifest, basis: TuningBasis) -> NDArray[np.int32]:
        """Return the tokens of every training row; no row of either side may have too many."""
        counter, most = self._tokenizers(basis.base)
        parts = [*manifest.parts_of("training"), *manifest.parts_of("evaluation")]
        tokens = await self._tokens.of(parts, counter)
        longest = int(tokens.max())
        if longest > most:
            raise errors.ContextTooLongError(
                f"A row of the dataset {manifest.dataset_id} has {longest} input tokens, and "
                f"{basis.base} reads {most}; shorten its context, or leave it out of the dataset.",
                path=basis.dataset_path,
            )
        return tokens[: manifest.split.training]

    def _lineage(
        self, changes: Changes, evaluation: EvaluationCounts, *, is_move: bool
    ) -> JobLineage:
        is_few = evaluation.new_decisions < self._needed
        return JobLineage(
            new_training=changes.new,
            earlier_training=count_earlier(changes, is_move=is_move),
            new_evaluation=evaluation.new_rows,
            earlier_evaluation=evaluation.earlier_rows,
            judged_on="all" if changes.is_correction and is_few else "new",
        )

    def _check_rows(self, manifest: Manifest, changes: Changes, basis: TuningBasis) -> None:
        is_first = basis.trained_version is None
        if not is_first and changes.training < 1:
            raise errors.NoNewDataError(
                f"Version {manifest.version} of the dataset {manifest.dataset_id} has no training "
                "rows that the family has not trained on; add or correct rows first."
            )
        n_rows = changes.new + count_earlier(changes, is_move=basis.is_move)
        if (is_first or basis.is_move) and n_rows < self._bounds.min_rows:
            raise errors.TooFewRowsError(
                f"The dataset {manifest.dataset_id} has {n_rows} training rows, and a first "
                f"fine-tune needs {self._bounds.min_rows}; add rows first.",
                path=basis.dataset_path,
            )
        if n_rows > self._bounds.max_rows:
            raise errors.TooManyRowsError(
                f"The fine-tune would train on {n_rows} rows, and {self._bounds.max_rows} is the "
                "most; name an earlier dataset_version, or make a smaller dataset."
            )

    def _check_decisions(self, manifest: Manifest, origin: Manifest, basis: TuningBasis) -> None:
        fingerprints, known = (
            {definition.fingerprint for definition in load_definitions(self._store, version)}
            for version in (manifest, origin)
        )
        if not fingerprints & known:
            raise errors.DatasetMismatchError(
                f"The dataset {manifest.dataset_id} asks none of the decisions that the model to "
                "start from was trained on; start from a base model.",
                path=basis.dataset_path,
            )


def changes_of(manifest: Manifest, trained: Manifest | None) -> Changes:
    """Return the changes between the version that a family trained on and a later one."""
    earlier = manifest.rows_before("training", trained)
    both = earlier + manifest.rows_before("evaluation", trained)
    return Changes(
        earlier=earlier,
        new=manifest.split.training - earlier,
        gone=0 if trained is None else trained.split.training - earlier,
        every_new=manifest.rows - both,
        every_gone=0 if trained is None else trained.rows - both,
    )


def _require_known(connection: Connection, account_id: str, dataset_id: str) -> DatasetRow:
    """Return a dataset of an account, a deleted one too."""
    row = find_dataset(connection, account_id, dataset_id)
    if row is None:
        raise errors.NotFoundError(
            f"There is no dataset {show(dataset_id)}; look at GET /v1/datasets."
        )
    return row


def count_earlier(changes: Changes, *, is_move: bool) -> int:
    """Return how many of the earlier training rows a fine-tune takes."""
    return changes.earlier if is_move else min(changes.training, changes.earlier, MAX_EARLIER)


def select_places(changes: Changes, seed: int, *, is_move: bool = False) -> Places:
    """Return the places of the training rows that a fine-tune takes, among all of them, ascending."""
    n_drawn = count_earlier(changes, is_move=is_move)
    n_earlier, n_new = changes.earlier, changes.new
    # A generator's bits are the same in every version of NumPy; draws from them are not.
    keys = np.random.PCG64(seed).random_raw(n_earlier)
    drawn = np.sort(np.argsort(keys, kind="stable")[:n_drawn])
    return np.concatenate([drawn, np.arange(n_earlier, n_earlier + n_new)]).astype(np.int64)


def _check_kind(manifest: Manifest, basis: TuningBasis) -> None:
    method = basis.method
    if manifest.method != method:
        raise errors.SupervisionMismatchError(
            f"The rows of the dataset {manifest.dataset_id} have "
            f"{SUPERVISION_OF[manifest.method]}, and method {method!r} trains on "
            f"{SUPERVISION_OF[method]}; use method {manifest.method!r}, or another dataset.",
            path=(*BODY, "method"),
        )
    if manifest.split.training == 0:
        raise errors.EvaluationOnlyError(
            f"The dataset {manifest.dataset_id} has evaluation rows alone; fine-tune on a dataset "
            "with training rows.",
            path=basis.dataset_path,
        )


def _seed_of(given: Hyperparameters | None, manifest: Manifest, family: str) -> int:
    """Return the seed asked for, or one that is the same whenever it is asked again."""
    if given is not None and given.seed is not None:
        return given.seed
    named = f"{manifest.sha256}\n{manifest.version}\n{family}".encode()
    return int.from_bytes(hashlib.sha256(named).digest()[:8], "big") % _SEEDS


def _resolve(given: Hyperparameters | None, seed: int, n_rows: int) -> ResolvedHyperparameters:
    given = given or Hyperparameters()
    return ResolvedHyperparameters(
        steps=default_steps(n_rows, TUNING_BATCH) if given.steps is None else given.steps,
        learning_rate=(
            TUNING_LEARNING_RATE if given.learning_rate is None else float(given.learning_rate)
        ),
        lora_rank=given.lora_rank or 0,
        seed=seed,
        judged_by=UNSET if given.judged_by is None else sorted(set(given.judged_by)),
        heads=UNSET if given.heads in {None, "auto"} else given.heads,
        first=UNSET if given.first is None else given.first,
    )


def _grown(
    growth: NewRows, lineage: JobLineage, evaluation: EvaluationCounts, changes: Changes
) -> NewRows:
    return structs.replace(
        growth,
        rows=_tell(lineage),
        evaluation_decisions=evaluation.new_decisions,
        every_decision=evaluation.decisions,
        judged_on=lineage.judged_on,
        changes=changes,
    )


def _tell(lineage: JobLineage) -> ContinueRows:
    return ContinueRows(
        new=lineage.new_training,
        earlier=lineage.earlier_training,
        evaluation=lineage.new_evaluation + lineage.earlier_evaluation,
    )


def _find_versions(
    connection: Connection, *, account_id: str, basis: TuningBasis, version: int | None
) -> tuple[VersionRow, Manifest, Manifest | None, list[Manifest]]:
    """Return a dataset's newest version, the one to train on, the last one trained on, and others'."""
    row = require_dataset(connection, account_id, basis.dataset_id, is_new_work=True)
    newest = require_version(connection, row)
    at = newest if version is None else require_version(connection, row, version)
    trained = None
    if basis.trained_version is not None:
        trained = require_version(connection, row, basis.trained_version).manifest
    return newest, at.manifest, trained, _elsewhere(connection, basis)


def _elsewhere(connection: Connection, basis: TuningBasis) -> list[Manifest]:
    """Return the versions of other datasets that were learned, but for those that are deleted."""
    versions = (
        find_version(connection, *learned)
        for learned in basis.learned
        if learned[0] != basis.dataset_id
    )
    return [row.manifest for row in versions if row is not None]


def _count_key(
    manifest: Manifest, trained: Manifest | None, learned: Iterable[Manifest]
) -> tuple[str, ...]:
    # Not the version's hash alone: two datasets may have the same rows on other sides. Not its number
    # alone: a draft may still become another next version.
    versions = (manifest, *([] if trained is None else [trained]))
    named = (
        f"{version.dataset_id}@{version.version} {version.sha256}"
        for version in (*versions, *learned)
    )
    return ("first" if trained is None else "next", *named)


def _task_row(
    row: LabelledRow, place: int, side: Side, group: Group, *, is_seen: bool = False
) -> TaskRow:
    return TaskRow(
        is_seen=is_seen,
        row=place,
        side=side,
        group=group,
        context=row.context,
        context_sha256=row.context_sha256,
        decisions=row.decisions,
        targets=row.targets,
        rewards=row.rewards,
        by=list(origins_of(row.metadata)),
    )
