"""Feedback as rows: outcomes of stored decisions, for the next fine-tune to learn.

A row has the decisions of the stored request, as far as an outcome was observed of each, and its targets
are the observed outcomes. Its metadata names the stored decision, so that a dataset takes each once.
Everything else is the rule of datasets (``steelyard.datasets.service``): sides, duplicates, bounds.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import msgspec
import polars as pl
from msgspec import Struct

from steelyard import errors
from steelyard.caller import Caller
from steelyard.datasets.definitions import fingerprints_by_id
from steelyard.datasets.frames.scanning import load_definitions, load_retired, scan
from steelyard.datasets.from_feedback_wire import (
    DatasetFromFeedback,
    FeedbackRowCounts,
    RowsFromFeedback,
)
from steelyard.datasets.ingesting import MadeRows, read_sent
from steelyard.datasets.rows import hash_context
from steelyard.datasets.service import DatasetService
from steelyard.datasets.tasks import fingerprint
from steelyard.datasets.uploads import Upload
from steelyard.datasets.versions import Manifest
from steelyard.datasets.wire import AddRows, CreateDataset, Dataset
from steelyard.decision_log.answers import StoredAnswers
from steelyard.decision_log.store import AnswerCriteria, ObservedDecision, page_observed
from steelyard.decision_log.withheld import describe_withheld, has_text
from steelyard.decisions.validation import decisions_of
from steelyard.operations.idempotency import SECONDS_A_DAY, KeyedWrites
from steelyard.operations.write import Write
from steelyard.storage import State
from steelyard.storage.frame_store import FrameStore
from steelyard.wire.decoding import convert
from steelyard.wire.limits import MAX_DECISIONS
from steelyard.wire.payloads import open_payload
from steelyard.wire.violations import BODY, Violations

#: In a row's metadata: the id of the stored decision that it was made of.
STORED_ID = "decision_id"
#: The most values of a row's metadata.
_MAX_METADATA = 16
#: The most characters of who labelled a row.
_MAX_VALUE = 128
#: Stored decisions read at a time.
_PAGE = 500
#: Wordings of decisions whose fingerprints are kept at hand.
_CACHED_WORDINGS = 4096


@dataclass(frozen=True, slots=True)
class _Known:
    """A dataset's wordings, and the stored decisions that are rows of it already."""

    wordings: Mapping[str, Collection[bytes]]
    stored_ids: frozenset[str]
    #: Of the contexts that are held out, the hashes.
    evaluation_contexts: frozenset[bytes]


class FeedbackRows:
    """Makes rows of datasets from stored decisions with feedback."""

    def __init__(
        self,
        state: State,
        datasets: DatasetService,
        store: FrameStore,
        writes: KeyedWrites,
        *,
        retention_days: float,
        answers: StoredAnswers | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._state = state
        self._answers = answers or StoredAnswers()
        self._datasets = datasets
        self._store = store
        self._writes = writes
        self._retention_s = retention_days * SECONDS_A_DAY
        self._now = now

    async def to_dataset(
        self, write: Write, request: RowsFromFeedback, *, is_training: bool = False
    ) -> Struct:
        """Make a dataset of stored decisions with feedback, or add them to one.

        With ``is_training`` all rows are for training, and those of held-out contexts are left out.
        """
        await self._writes.replay_known(write)
        caller = write.caller
        manifest = await self._find(caller, request)
        fields = {} if request.name is None else {"name": request.name}
        if request.evaluation_fraction is not None:
            fields["evaluation_fraction"] = f"{request.evaluation_fraction:.17f}"
        with Upload("jsonl", fields) as upload:
            counts = await asyncio.to_thread(
                self._write, upload, caller, request, manifest, is_training
            )
            n_before = 0 if manifest is None else manifest.rows

            made = MadeRows(
                lambda _, dataset: _to_wire(dataset, counts, n_before),
                None if manifest is None else manifest.version,
            )
            if request.dataset_id is None:
                sent = await asyncio.to_thread(read_sent, upload, CreateDataset)
                return await self._datasets.create(write, sent, made)
            sent = await asyncio.to_thread(read_sent, upload, AddRows)
            return await self._datasets.add_rows(write, request.dataset_id, sent, made)

    async def _find(self, caller: Caller, request: RowsFromFeedback) -> Manifest | None:
        """Return the version to add to; ``None`` for a new dataset."""
        if request.dataset_id is None:
            return None
        manifest = (await self._datasets.dataset_at(caller, request.dataset_id)).manifest
        if request.dataset_version not in {None, manifest.version}:
            raise errors.DatasetChangedError(
                f"The dataset has version {manifest.version} by now, and the request names "
                f"{request.dataset_version}; nothing was added."
            )
        if manifest.method != "sft":
            raise errors.SupervisionMismatchError(
                "The rows of the dataset have rewards, and feedback tells what came true; add it "
                "to a dataset with targets.",
                path=(*BODY, "dataset_id"),
            )
        return manifest

    def _write(
        self,
        upload: Upload,
        caller: Caller,
        request: RowsFromFeedback,
        manifest: Manifest | None,
        is_training: bool,
    ) -> Counter[str]:
        """Write the rows to a file of the upload; return how many stored decisions went where."""
        known = None if manifest is None else self._known(manifest)
        counts: Counter[str] = Counter()
        criteria = self._criteria(caller, request)
        counts["stored"] = self._state.read_now(
            lambda connection: self._answers.count(connection, criteria)
        )
        file = upload.add_file("training" if is_training else "examples")
        for observed in self._observed(criteria):
            counts["observed"] += 1
            if known is not None and observed.decision.id in known.stored_ids:
                counts["already_there"] += 1
                continue
            if not has_text(observed.decision.request):
                counts["without_text"] += 1
                continue
            row = _row_of(observed, request, known)
            if row is None:
                counts["other_decisions"] += 1
                continue
            if (
                is_training
                and known is not None
                and hash_context(row["context"]) in known.evaluation_contexts
            ):
                counts["evaluation_contexts"] += 1
                continue
            file.write(msgspec.json.encode(row) + b"\n")
            counts["sent"] += 1
        if not counts["sent"]:
            summary = (
                f"{counts['stored']} stored decisions were looked at: {counts['observed']} have "
                f"feedback, {counts['already_there']} of them are rows of the dataset already, and "
                f"{counts['other_decisions']} are about other decisions."
            )
            withheld = describe_withheld(counts["without_text"], "make no rows")
            message = " ".join(["No stored decision makes a row.", summary, *withheld])
            if manifest is None:
                raise errors.NoRowsError(message)
            refusal = errors.NoNewRowsError(message)
            refusal.n_without_text = counts["without_text"]
            raise refusal
        return counts

    def _known(self, manifest: Manifest) -> _Known:
        definitions = load_definitions(self._store, manifest)
        is_evaluation = pl.col("side") == "evaluation"
        marked = pl.col("extra").str.contains(f'"{STORED_ID}"', literal=True)
        with self._store.reading(*manifest.part_names()):
            extras = scan(self._store, manifest).filter(marked).select("extra").collect()["extra"]
            contexts = scan(self._store, manifest).filter(is_evaluation).select("context_sha256")
            evaluation_contexts = set(contexts.collect()["context_sha256"])
        retired = load_retired(self._store, manifest)
        if retired is not None:
            # What a review excluded does not come back.
            extras = pl.concat([extras, retired.filter(marked)["extra"]])
            evaluation_contexts |= set(retired.filter(is_evaluation)["context_sha256"])
        metadata = (msgspec.json.decode(text).get("metadata") or {} for text in extras)
        return _Known(
            wordings=fingerprints_by_id(definitions),
            stored_ids=frozenset(
                str(row_metadata[STORED_ID])
                for row_metadata in metadata
                if STORED_ID in row_metadata
            ),
            evaluation_contexts=frozenset(evaluation_contexts),
        )

    def _criteria(self, caller: Caller, request: RowsFromFeedback) -> AnswerCriteria:
        return AnswerCriteria(
            account_id=caller.account_id,
            since=max(request.since or 0.0, self._now() - self._retention_s),
            until=request.until,
            model=request.model,
            named=request.named,
            ids=request.decision_ids,
            by=request.by,
            newest_first=False,
        )

    def _observed(self, criteria: AnswerCriteria) -> Iterator[ObservedDecision]:
        while True:
            page = self._state.read_now(partial(page_observed, criteria=criteria, limit=_PAGE))
            yield from page
            if len(page) < _PAGE:
                return
            criteria = replace(criteria, after=page[-1].place)


def _row_of(
    observed: ObservedDecision, request: RowsFromFeedback, known: _Known | None
) -> dict[str, Any] | None:
    """Return a stored decision as a row; ``None`` when nothing that was observed is wanted."""
    answered = msgspec.json.decode(observed.decision.request)
    decisions = [
        decision
        for decision in answered["decisions"]
        if decision["id"] in observed.outcomes
        and (request.decisions is None or decision["id"] in request.decisions)
        and _fits(decision, known)
    ][:MAX_DECISIONS]
    if not decisions:
        return None
    metadata = observed.decision.metadata
    notes = {} if metadata is None else msgspec.json.decode(metadata)
    notes.pop(STORED_ID, None)
    added = {**_origin(observed, decisions), STORED_ID: observed.decision.id}
    notes = dict(list(notes.items())[: _MAX_METADATA - len(added)])
    return {
        "context": answered["context"],
        "decisions": decisions,
        "targets": {decision["id"]: observed.outcomes[decision["id"]] for decision in decisions},
        "metadata": {**notes, **added},
    }


def _origin(observed: ObservedDecision, decisions: Collection[Mapping[str, Any]]) -> dict[str, str]:
    """Return where the labels of a row came from and who made them, as values of its metadata."""
    sources = [
        observed.sources[decision["id"]]
        for decision in decisions
        if decision["id"] in observed.sources
    ]
    origins = {source.by for source in sources}
    people = {source.who for source in sources if source.who is not None}
    origin = {"by": ", ".join(sorted(origins)), "who": ", ".join(sorted(people))}
    return {name: text[:_MAX_VALUE] for name, text in origin.items() if text}


def _fits(decision: Mapping[str, Any], known: _Known | None) -> bool:
    """Return whether a dataset can ask a stored decision, and the one it is for asks it already."""
    fingerprint = _fingerprint(msgspec.json.encode(decision))
    if fingerprint is None:
        return False
    return known is None or fingerprint in known.wordings.get(decision["id"], ())


@lru_cache(_CACHED_WORDINGS)
def _fingerprint(decision: bytes) -> bytes | None:
    """Return the fingerprint of a decision; ``None`` where a row cannot ask it, as an outcome ``abstain``."""
    try:
        return fingerprint(decisions_of([msgspec.json.decode(decision)])[0])
    except errors.InvalidRequestError:
        return None


def _to_wire(dataset: Dataset, counts: Mapping[str, int], n_before: int) -> DatasetFromFeedback:
    added = dataset.rows - n_before
    members = {name: getattr(dataset, name) for name in Dataset.__struct_fields__}
    return DatasetFromFeedback(
        **members,
        feedback=FeedbackRowCounts(
            stored=counts["stored"],
            added=added,
            without_feedback=counts["stored"] - counts["observed"],
            already_there=counts["already_there"],
            other_decisions=counts["other_decisions"],
            without_text=counts["without_text"],
            duplicates=counts["sent"] - added,
        ),
    )


def read_rows_from_feedback(payload: object) -> RowsFromFeedback:
    """Read a request for rows of feedback, or refuse it with everything that is wrong in it."""
    violations = Violations()
    fields = open_payload(payload, RowsFromFeedback, violations)
    name, dataset_id = fields.get("name"), fields.get("dataset_id")
    if name is None and dataset_id is None:
        violations.add(
            (*BODY, "name"), "is missing; give name, or dataset_id to add to.", "missing"
        )
    if name is not None and dataset_id is not None:
        violations.add((*BODY, "name"), "is given beside dataset_id; give one of them.", "refused")
    if isinstance(name, str) and name and not name.strip():
        violations.add((*BODY, "name"), "is blank; name the dataset.", "blank")
    if fields.get("dataset_version") is not None and dataset_id is None:
        violations.add((*BODY, "dataset_version"), "goes with dataset_id; leave it out.", "refused")
    since, until = fields.get("since"), fields.get("until")
    are_times_valid = not (
        (*BODY, "since") in violations.touched or (*BODY, "until") in violations.touched
    )
    if since is not None and until is not None and are_times_valid and until <= since:
        violations.add((*BODY, "until"), "is not after since; give a later time.", "empty_range")
    violations.raise_if_any()
    return convert(fields, RowsFromFeedback)
