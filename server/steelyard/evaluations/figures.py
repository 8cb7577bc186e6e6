"""The measures of an evaluation and figures made of them: detail, records, comparisons, policies.

Everything here rests on the stored predictions of evaluations that succeeded. Those read last are
kept in memory, since a reader asks several things of the same evaluation. Predictions tell of rows:
they go with the dataset, and its evaluations keep their metrics alone.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from msgspec import UNSET, Raw
from numpy.typing import NDArray
from sqlalchemy import Row

from steelyard import errors
from steelyard.caller import Caller
from steelyard.datasets.frames.pages import RowStore
from steelyard.datasets.service import DatasetService
from steelyard.datasets.version_service import decode_example
from steelyard.datasets.versions import Manifest
from steelyard.evaluations import predictions, queries_wire, wire
from steelyard.evaluations.exports import Piece, export_table
from steelyard.evaluations.measures.comparison import compare_evaluations
from steelyard.evaluations.measures.curves import binary_cost_curve
from steelyard.evaluations.measures.outcomes import outcome_table
from steelyard.evaluations.measures.policies import (
    Costs,
    expected_cost,
    policy_cost_curve,
    policy_report,
    rows_of_decision,
)
from steelyard.evaluations.measures.records import (
    BoolArray,
    IndexArray,
    RecordMeasures,
    Records,
    Supervision,
    UnmeasurableError,
    job_records,
    measure_records,
)
from steelyard.evaluations.measuring import MAX_MEASURED, SUPERVISION
from steelyard.evaluations.prediction_columns import records_of
from steelyard.evaluations.rows import slices_of
from steelyard.evaluations.service import EvaluationService
from steelyard.evaluations.thresholds_wire import OutcomeThreshold, ThresholdTrial
from steelyard.exports import export_pieces
from steelyard.jobs.serial_executor import SerialExecutor
from steelyard.storage.frame_store import FrameStore
from steelyard.wire.decoding import decoder_of
from steelyard.wire.measures import Measure
from steelyard.wire.violations import BODY, Path, Violations, show

if TYPE_CHECKING:
    import pyarrow as pa

#: Evaluations kept in memory: 10,000 records take about 5 MB.
_CACHED_EVALUATIONS = 4


#: Rows so near to each other are read together: they mostly lie in one group of rows.
_NEAR = 256


class OverallDetail(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of an ``EvaluationDetail`` that cover all decisions together."""

    overall: wire.Measures
    input_tokens: int | None = None


_decode_overall = decoder_of(OverallDetail).decode


@dataclass(frozen=True, slots=True, eq=False)
class _Scored:
    """The records of an evaluation, their measures, their slices, and their rows."""

    records: Records
    measures: RecordMeasures
    slices: dict[str, list[str | None]]
    rows: NDArray[np.int64]
    is_sample: bool


class EvaluationFigures:
    """Figures of evaluations that succeeded."""

    def __init__(
        self,
        evaluations: EvaluationService,
        store: FrameStore,
        *,
        datasets: DatasetService,
        rows: FrameStore,
    ) -> None:
        self._evaluations = evaluations
        self._store = store
        self._datasets, self._rows = datasets, RowStore(rows)
        self._load = lru_cache(_CACHED_EVALUATIONS)(self._read_scored)
        # Resampling many rows takes some kilobytes of each: hundreds of megabytes at the most rows.
        self._resampling = SerialExecutor()

    async def detail(self, caller: Caller, evaluation_id: str) -> Raw:
        """Return everything measured, an ``EvaluationDetail`` as it was stored."""
        row = await self._succeeded(caller, evaluation_id)
        return Raw(await asyncio.to_thread(self._store.read, f"{row.detail_sha256}.json"))

    async def records(
        self, caller: Caller, evaluation_id: str, query: queries_wire.RecordsQuery
    ) -> wire.EvaluationRecordPage:
        """Return a page of scored decisions."""
        _check_query(query)
        row = await self._succeeded(caller, evaluation_id)
        page = await asyncio.to_thread(self._page, row, query)
        if not query.context:
            return page
        places = {record.row for record in page.data}
        at = await self._datasets.dataset_at(
            caller, row.dataset_id, row.dataset_version, is_new_work=False
        )
        contexts = await asyncio.to_thread(self._read_contexts, at.manifest, places)
        data = [
            msgspec.structs.replace(record, context=contexts.get(record.row, UNSET))
            for record in page.data
        ]
        return msgspec.structs.replace(page, data=data)

    async def export(
        self, caller: Caller, evaluation_id: str, query: queries_wire.ExportRecordsQuery
    ) -> Iterator[bytes]:
        """Return scored decisions in a format, in pieces that are made as they are asked for."""
        _check_query(query)
        row = await self._succeeded(caller, evaluation_id)
        scored = await asyncio.to_thread(self._scored, row)
        at = await self._datasets.dataset_at(
            caller, row.dataset_id, row.dataset_version, is_new_work=False
        )
        about, outcomes = "Decisions that an evaluation of Steelyard scored.", None
        if scored.is_sample:
            _check_streamed(query)
            pieces = functools.partial(self._pieces, row, query)
        else:
            indexes = _ordered(scored, np.flatnonzero(_chosen(scored, query)), query.order)
            piece = Piece(scored.records, scored.measures, scored.rows, indexes)
            pieces = functools.partial(iter, [piece])
            about, outcomes = f"{len(indexes)} d{about[1:]}", piece.outcomes()
        table = export_table(
            pieces,
            lambda places: self._read_contexts(at.manifest, places),
            supervision=scored.records.supervision,
            measured=list(scored.measures.values),
            outcomes=outcomes,
            title=f"{row.model_label} on {at.name}",
            about=about,
        )
        return export_pieces(table, query.format)

    def _pieces(self, row: Row[Any], query: queries_wire.RecordFilter) -> Iterator[Piece]:
        """Yield the decisions that a query asks for, a partition in memory at a time."""
        for table in predictions.read_groups(self._store, row.predictions_sha256):
            scored = _scored_of(table, SUPERVISION[row.method])
            chosen = np.flatnonzero(_chosen(scored, query))
            yield Piece(scored.records, scored.measures, scored.rows, chosen)

    async def compare(
        self, caller: Caller, query: queries_wire.ComparisonQuery
    ) -> wire.EvaluationComparison:
        """Compare two evaluations on the decisions that both scored."""
        first = await self._succeeded(caller, query.before)
        second = await self._succeeded(caller, query.after)
        if first.method != second.method:
            raise errors.SupervisionMismatchError(
                "One evaluation has targets and the other rewards; compare evaluations of one "
                "dataset.",
                path=("query", "after"),
            )
        return await self._resampling.take(lambda: asyncio.to_thread(self._compare, first, second))

    async def try_policy(
        self, caller: Caller, evaluation_id: str, trial: queries_wire.PolicyTrial
    ) -> wire.PolicyReport:
        """Return the actions of a policy on the scored decisions."""
        row = await self._succeeded(caller, evaluation_id)
        return await self._resampling.take(lambda: asyncio.to_thread(self._try_policy, row, trial))

    async def cost_curve(
        self, caller: Caller, evaluation_id: str, trial: queries_wire.CostTrial
    ) -> wire.CostCurve:
        """Return the mean cost of acting by threshold."""
        _check_costs(trial)
        row = await self._succeeded(caller, evaluation_id)
        return await self._resampling.take(lambda: asyncio.to_thread(self._cost_curve, row, trial))

    async def outcome_threshold(
        self, caller: Caller, evaluation_id: str, trial: ThresholdTrial
    ) -> OutcomeThreshold:
        """Return the probability from which to act on an outcome, and the effect of each threshold."""
        row = await self._succeeded(caller, evaluation_id)
        _check_has_targets(row)
        return await self._resampling.take(lambda: asyncio.to_thread(self._threshold, row, trial))

    async def overall(self, row: Row[Any]) -> OverallDetail:
        """Return the measures of a succeeded evaluation over all its decisions."""
        stored = await asyncio.to_thread(self._store.read, f"{row.detail_sha256}.json")
        return _decode_overall(stored)

    async def expected_cost(
        self, row: Row[Any], decision_id: str, action_costs: Costs, *, path: Path
    ) -> Measure:
        """Return the mean cost of the cheapest actions; ``path`` is that of the costs."""

        def work() -> Measure:
            scored = self._scored(row)
            with _measured((*path[:-1], "decision")):
                return expected_cost(scored.records, decision_id, action_costs, path=path)

        return await self._resampling.take(lambda: asyncio.to_thread(work))

    async def _succeeded(self, caller: Caller, evaluation_id: str) -> Row[Any]:
        row = await self._evaluations.find(caller, evaluation_id, with_dataset=True)
        if row.status != "succeeded":
            raise errors.EvaluationNotReadyError(
                f"The evaluation is {row.status}; its figures are there once it has succeeded."
            )
        return row

    def _page(self, row: Row[Any], query: queries_wire.RecordsQuery) -> wire.EvaluationRecordPage:
        scored = self._scored(row)
        indexes = _ordered(scored, np.flatnonzero(_chosen(scored, query)), query.order)
        shown = indexes[query.offset : query.offset + query.limit].tolist()
        data = [
            wire.EvaluationRecord(row=int(scored.rows[index]), **msgspec.structs.asdict(record))
            for index in shown
            for record in job_records(scored.records, scored.measures, start=index, stop=index + 1)
        ]
        return wire.EvaluationRecordPage(
            data=data,
            total=len(indexes),
            offset=query.offset,
            limit=query.limit,
            has_more=query.offset + len(data) < len(indexes),
        )

    def _read_contexts(self, manifest: Manifest, places: Collection[int]) -> dict[int, Any]:
        """Return the context of each place among the evaluation rows."""
        values: dict[int, Any] = {}
        for first, last in _near_runs(sorted(places)):
            page = self._rows.page(
                manifest, partition="evaluation", offset=first, limit=last - first + 1
            )
            values.update(
                (first + index, decode_example(row.json).context) for index, row in enumerate(page)
            )
        return values

    def _compare(self, before: Row[Any], after: Row[Any]) -> wire.EvaluationComparison:
        old, new = self._scored(before), self._scored(after)
        with _measured():
            return compare_evaluations(old.records, new.records, groups=new.slices)

    def _try_policy(self, row: Row[Any], trial: queries_wire.PolicyTrial) -> wire.PolicyReport:
        scored = self._scored(row)
        with _measured():
            return policy_report(
                scored.records,
                trial.decision_id,
                action_costs=trial.action_costs,
                abstain_below=trial.abstain_below,
                measures=scored.measures,
            )

    def _cost_curve(self, row: Row[Any], trial: queries_wire.CostTrial) -> wire.CostCurve:
        scored = self._scored(row)
        _check_has_targets(row)
        with _measured():
            if trial.action_costs is not None:
                return policy_cost_curve(
                    scored.records,
                    trial.decision_id,
                    action_costs=trial.action_costs,
                    abstain_cost=trial.abstain_cost or 0.0,
                )
            rows = rows_of_decision(scored.records, trial.decision_id)
            return binary_cost_curve(
                outcome_table(scored.records, scored.measures, rows),
                false_positive=trial.false_positive or 0.0,
                false_negative=trial.false_negative or 0.0,
            )

    def _threshold(self, row: Row[Any], trial: ThresholdTrial) -> OutcomeThreshold:
        # Slow to load, and few ask for a threshold.
        from steelyard.evaluations.measures.thresholds import outcome_threshold  # noqa: PLC0415

        scored = self._scored(row)
        with _measured():
            return outcome_threshold(scored.records, scored.measures, trial)

    def _scored(self, row: Row[Any]) -> _Scored:
        return self._load(row.predictions_sha256, SUPERVISION[row.method])

    def _read_scored(self, sha256: str, supervision: Supervision) -> _Scored:
        sample = predictions.read_sample(self._store, sha256, MAX_MEASURED)
        return _scored_of(sample.table, supervision, is_sample=sample.share is not None)


def _check_has_targets(row: Row[Any]) -> None:
    if row.method != "sft":
        raise errors.SupervisionMismatchError(
            "Costs and precision need targets, and this evaluation has rewards; see its detail for "
            "what each outcome earned.",
            path=("path", "evaluation"),
        )


def _scored_of(table: pa.Table, supervision: Supervision, *, is_sample: bool = False) -> _Scored:
    with _measured():
        records = records_of(table, supervision)
    slices = {"kind": records.kinds.tolist(), **slices_of(table)}
    rows = table["row"].to_numpy()
    return _Scored(records, measure_records(records), slices, rows, is_sample)


def _near_runs(places: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last place of each run of places that lie near to each other."""
    for _, run in groupby(places, key=lambda place: place // _NEAR):
        near = list(run)
        yield near[0], near[-1]


def _check_query(query: queries_wire.RecordFilter) -> None:
    """Hold the fields of a query against each other."""
    violations = Violations()
    if query.slice is None and query.slice_by is not None:
        violations.add(("query", "slice"), "is missing; give the slice's value.", "missing")
    if query.slice_by is None and query.slice is not None:
        violations.add(("query", "slice_by"), "is missing; name the slice's property.", "missing")
    if len(query.context_sha256) > queries_wire.MAX_RECORD_CONTEXTS:
        violations.add(
            ("query", "context_sha256"),
            f"is given {len(query.context_sha256)} times; give at most {queries_wire.MAX_RECORD_CONTEXTS}.",
            "too_many",
        )
    violations.raise_if_any()


def _check_streamed(query: queries_wire.RecordFilter) -> None:
    """Refuse a query that needs every decision in memory, where there are too many."""
    violations = Violations()
    refused = {"order": query.order != "row", "slice_by": query.slice_by is not None}
    for name in [name for name, is_requested in refused.items() if is_requested]:
        message = (
            f"cannot be had of over {MAX_MEASURED:,} decisions, which are exported as the dataset "
            "has them; leave it out."
        )
        violations.add(("query", name), message, "too_many")
    violations.raise_if_any()


def _chosen(scored: _Scored, query: queries_wire.RecordFilter) -> BoolArray:
    """Return for each record whether a query asks for it."""
    records, measures = scored.records, scored.measures
    chosen = np.ones(len(records), dtype=bool)
    if query.decision is not None:
        chosen &= np.asarray(records.decision_ids == query.decision, dtype=bool)
    if query.wrong:
        is_right = measures.values[measures.right] > 0
        chosen &= ~is_right & measures.counted[measures.right]
    if query.target is not None:
        chosen &= _names_outcome(records, measures.truth, query.target)
    if query.top is not None:
        chosen &= _names_outcome(records, measures.top, query.top)
    if query.p_from is not None:
        chosen &= measures.p_top > query.p_from
    if query.p_to is not None:
        chosen &= measures.p_top <= query.p_to
    if query.slice_by is not None:
        values = scored.slices.get(query.slice_by)
        if values is None:
            known = ", ".join(sorted(scored.slices))
            message = f"slice_by is {show(query.slice_by)}; the properties here are {known}."
            raise errors.InvalidRequestError.at(("query", "slice_by"), message, "not_allowed")
        chosen &= np.array([value == query.slice for value in values], dtype=bool)
    if query.context_sha256:
        chosen &= np.isin(records.contexts.astype(np.str_), query.context_sha256)
    return chosen


def _names_outcome(records: Records, indexes: IndexArray, name: str) -> BoolArray:
    """Return for each record whether its outcome of an index has a name."""
    places = np.array(
        [names.index(name) if name in names else -1 for names in records.outcome_lists]
    )
    return np.asarray(indexes == places[records.outcome_codes], dtype=bool)


def _ordered(scored: _Scored, indexes: IndexArray, order: queries_wire.RecordOrder) -> IndexArray:
    """Put records into an order; those that are equal in it stay as the dataset has them."""
    measures = scored.measures
    if order == "row":
        return indexes
    if order == "loss" and "loss" in measures.values:
        key = -measures.values["loss"]
    elif order == "loss":
        # Where all outcomes earn the same, nothing is lost.
        key = np.where(measures.counted["scaled_reward"], measures.values["scaled_reward"], 2.0)
    else:
        key = measures.p_top if order == "least_sure" else -measures.p_top
    return indexes[np.argsort(key[indexes], kind="stable")]


@contextmanager
def _measured(path: Path = (*BODY, "decision_id")) -> Iterator[None]:
    """Raise an undefined measure as a refusal at ``path``, where the request names the decision."""
    try:
        yield
    except errors.InvalidRequestError:
        raise
    except UnmeasurableError as error:
        raise errors.NotMeasurableError(str(error)) from error
    except LookupError as error:
        unknown = errors.Violation(path, str(error.args[0]), "unknown_decision")
        raise errors.InvalidRequestError(violations=[unknown]) from error
    except ValueError as error:
        # Costs of a decision without "yes", or of one with rewards.
        raise errors.SupervisionMismatchError(str(error), path=path) from error


def _check_costs(trial: queries_wire.CostTrial) -> None:
    """Hold the fields of costs against each other: two for a binary decision, or a matrix."""
    violations = Violations()
    given = binary_costs(trial, BODY, violations)
    if trial.action_costs is None:
        if given == {"false_positive": 0, "false_negative": 0}:
            violations.add((*BODY, "false_positive"), "and false_negative are both 0.", "all_zero")
        if trial.abstain_cost is not None:
            violations.add(
                (*BODY, "abstain_cost"), "goes with action_costs; leave it out.", "refused"
            )
    violations.raise_if_any()


def binary_costs(
    query: queries_wire.CostTrial | queries_wire.FrontierQuery, at: Path, violations: Violations
) -> dict[str, float]:
    """Return the costs of a binary decision; note one that is alone, or beside a matrix."""
    costs = {"false_positive": query.false_positive, "false_negative": query.false_negative}
    given = {name: cost for name, cost in costs.items() if cost is not None}
    if query.action_costs is None:
        for name in sorted(costs.keys() - given.keys()):
            violations.add((*at, name), "is missing; give both costs, or action_costs.", "missing")
    else:
        for name in given:
            violations.add((*at, name), "is given beside action_costs; give one.", "refused")
    return given
