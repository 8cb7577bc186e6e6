"""Comparisons of versions of named decisions: start, follow, stop, and their effect on a move."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, get_args

import msgspec
from msgspec import UNSET, structs
from sqlalchemy import Connection, Row

from steelyard import errors
from steelyard.caller import Caller
from steelyard.datasets.service import DatasetService
from steelyard.datasets.store import mark_dataset_used
from steelyard.datasets.version_service import DatasetAt
from steelyard.decision_log.withheld import describe_withheld
from steelyard.decisions.tokens import count_input_tokens
from steelyard.evaluations.judges import Judges
from steelyard.evaluations.models import EvaluatedModel, EvaluatedModels
from steelyard.house import House
from steelyard.ids import new_id
from steelyard.job_frame.queue import JobQueue
from steelyard.jobs.failures import Failure
from steelyard.ledger.max_price import check_price
from steelyard.ledger.money import to_usd
from steelyard.named import store as rows
from steelyard.named.cases import (
    Case,
    cases_of_recorded,
    cases_of_rows,
    cases_of_stored,
    count_without_text,
)
from steelyard.named.comparison_wire import (
    CompareVersions,
    ComparisonEstimate,
    ComparisonPage,
    ComparisonResult,
    ComparisonsQuery,
    NamedComparison,
)
from steelyard.named.content import read_stored
from steelyard.named.served import unknown_decision, unknown_version
from steelyard.named.service import who
from steelyard.operations.holds import require_credit
from steelyard.operations.idempotency import SECONDS_A_DAY
from steelyard.operations.write import Write
from steelyard.serving.registry import HostedModel
from steelyard.storage.pages import OrderedPage, newest_first
from steelyard.storage.rows import lock_account
from steelyard.wire.decoding import decoder_of
from steelyard.wire.filling import filled
from steelyard.wire.origins import LabelledBy
from steelyard.wire.violations import BODY

#: Decisions about contexts that a comparison answers at most, by each version.
_MOST_DECISIONS = 20_000

_decode_result = decoder_of(ComparisonResult).decode
_decode_error = decoder_of(Failure).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """The versions of a comparison that is asked for, and what they are asked about."""

    decision: Row[Any]
    versions: tuple[Row[Any], Row[Any]]
    models: list[EvaluatedModel]
    at: DatasetAt | None
    cases: list[Case]
    #: Held-out rows and stored decisions, at most.
    limits: tuple[int, int]
    since: float
    now: float
    warnings: list[str]


class NamedComparisons(JobQueue[NamedComparison, ComparisonPage]):
    """The comparisons of every account."""

    jobs = rows.COMPARISONS
    page_type = ComparisonPage

    def __init__(
        self,
        house: House,
        datasets: DatasetService,
        models: EvaluatedModels,
        default: HostedModel,
        judges: Judges,
    ) -> None:
        super().__init__(house)
        self._datasets, self._models, self._judges = datasets, models, judges
        self._counter, self._default_model = default.decide.tokenizer, default.name

    async def estimate(self, caller: Caller, request: CompareVersions) -> ComparisonEstimate:
        """Return what a comparison would ask of both versions, and its price."""
        plan = await self._plan(caller, request)
        tokens = await asyncio.to_thread(self._count_tokens, plan)
        price_nano = await self._price(caller, plan, tokens)
        check_price(price_nano, request.max_price_usd, "The comparison")
        return ComparisonEstimate(
            contexts=len(plan.cases),
            input_tokens_before=tokens[0],
            input_tokens_after=tokens[1],
            price_usd=to_usd(price_nano),
            warnings=plan.warnings,
        )

    async def create(self, write: Write, request: CompareVersions) -> NamedComparison:
        """Ask for two versions to be compared; the price is held, in one transaction."""
        await self._writes.replay_known(write)
        caller = write.caller
        plan = await self._plan(caller, request)
        price_nano = await self._price(caller, plan)
        before, after = plan.versions
        decision, at, models, now = plan.decision, plan.at, plan.models, plan.now

        def work(connection: Connection) -> NamedComparison:
            model_ids = [model.id for model in models]
            self._models.require_ready(connection, caller.account_id, model_ids)
            check_price(price_nano, request.max_price_usd, "The comparison")
            lock_account(connection, caller.account_id)
            self.check_room(connection, caller.account_id)
            if self._accounts_enabled:
                require_credit(connection, caller.account_id, price_nano, "The comparison")
            values = {
                "id": new_id("ndc"),
                "account_id": caller.account_id,
                "named_id": decision.id,
                "name": decision.name,
                "dataset_id": None if at is None else at.dataset_id,
                "dataset_version": None if at is None else at.version,
                "made_by": who(caller),
                "created_at": now,
                "updated_at": now,
                "from_number": before.number,
                "to_number": after.number,
                "from_model_id": models[0].id,
                "to_model_id": models[1].id,
                "rows": plan.limits[0],
                "stored": plan.limits[1],
                "contexts": len(plan.cases),
                "completed_contexts": 0,
                "price_nano": price_nano,
                "progress": msgspec.json.encode(
                    {
                        "warnings": plan.warnings,
                        "since": plan.since,
                        "disagreement": request.disagreement,
                        "recorded": plan.cases if request.recorded else (),
                    }
                ),
            }
            self.jobs.add(connection, values, key_id=caller.key_id, route=write.route)
            if at is not None:
                mark_dataset_used(connection, at.dataset_id, now)
            queued = self.to_wire(self.jobs.require(connection, caller, str(values["id"])))
            return structs.replace(queued, warnings=plan.warnings or UNSET)

        return await self.queue(write, work, window_s=SECONDS_A_DAY)

    def read_page(
        self, connection: Connection, account_id: str, query: ComparisonsQuery
    ) -> OrderedPage:
        """Return the rows of a page, of one named decision where the query names it."""
        table = self.jobs.table
        return newest_first(
            connection,
            table,
            owned=table.c.account_id == account_id,
            where=[] if query.decision is None else [table.c.name == query.decision],
            limit=query.limit,
            cursor=query.cursor,
        )

    @staticmethod
    def to_wire(row: Row[Any]) -> NamedComparison:
        """Return a comparison as the wire has it."""
        error = None if row.error is None else _decode_error(row.error)
        return filled(
            NamedComparison,
            row,
            object="named.comparison",
            decision=row.name,
            version=row.to_number,
            against=row.from_number,
            recorded=row.from_number == row.to_number,
            price_usd=to_usd(row.price_nano),
            result=None if row.result is None else _decode_result(row.result),
            error=None if error is None else error.message,
            error_code=None if error is None else error.code,
            warnings=UNSET,
        )

    @staticmethod
    def reader_of(connection: Connection, dataset_id: str) -> str | None:
        """Return the work that reads a dataset, as ``DatasetService.register_reader`` asks."""
        return "a comparison" if rows.COMPARISONS.has_unfinished(connection, dataset_id) else None

    async def _plan(self, caller: Caller, request: CompareVersions) -> _Plan:
        """Return the versions and what they would be asked about."""
        now = self._now()
        decision, before, after = await self._state.read(
            lambda connection: _find_versions(connection, caller, request)
        )
        models = [await self._model(caller, version) for version in (before, after)]
        at = None
        if decision.dataset_id is not None and request.rows and not request.recorded:
            at = await self._datasets.dataset_at(caller, decision.dataset_id)
            at = at if at.method == "sft" else None
        warnings: list[str] = []
        if at is not None:
            warnings = await self._judges.check_rows(
                caller,
                at.dataset_id,
                at.version,
                path=(*BODY, "rows"),
                judged=sorted({model.named or model.id for model in models}),
                origins=get_args(LabelledBy),
            )
        decisions = read_stored(after.content).decisions
        most = max(1, _MOST_DECISIONS // len(decisions))
        limits = (min(request.rows, most), min(request.stored, most))
        since = 0.0 if request.traffic_s is None else now - request.traffic_s
        n_without_text = 0
        if request.recorded:
            cases = await asyncio.to_thread(cases_of_recorded, request.recorded, decisions)
        else:
            cases, n_without_text = await asyncio.to_thread(
                self._cases, caller, decision.name, after, at, limits, (since, now)
            )
        warnings += describe_withheld(n_without_text, "are not compared")
        return _Plan(
            decision=decision,
            versions=(before, after),
            models=models,
            at=at,
            cases=cases,
            limits=limits,
            since=since,
            now=now,
            warnings=warnings,
        )

    def _cases(
        self,
        caller: Caller,
        name: str,
        version: Row[Any],
        at: DatasetAt | None,
        limits: tuple[int, int],
        window: tuple[float, float],
    ) -> tuple[list[Case], int]:
        decisions = {decision.id for decision in read_stored(version.content).decisions}
        labelled = [] if at is None else cases_of_rows(self._datasets, at, decisions, limits[0])
        span = dict(zip(("since", "until"), window, strict=True))
        stored = cases_of_stored(self._state, caller.account_id, name, most=limits[1], **span)
        n_without_text = 0
        if len(stored) < limits[1]:
            n_without_text = count_without_text(self._state, caller.account_id, name, **span)
        return [*labelled, *stored], n_without_text

    async def _model(self, caller: Caller, version: Row[Any]) -> EvaluatedModel:
        content = msgspec.json.decode(version.content)
        return await self._models.find(caller, content.get("model") or self._default_model)

    async def _price(
        self, caller: Caller, plan: _Plan, tokens: tuple[int, int] | None = None
    ) -> int:
        model_ids = [model.id for model in plan.models]
        prices = await self._models.prices_of(caller.account_id, model_ids)
        if not any(prices.values()):
            return 0
        if tokens is None:
            tokens = await asyncio.to_thread(self._count_tokens, plan)
        written = _most_written(plan)
        return sum(
            (n_read + n_written) * prices.get(model_id, 0)
            for n_read, n_written, model_id in zip(tokens, written, model_ids, strict=True)
        )

    def _count_tokens(self, plan: _Plan) -> tuple[int, int]:
        """Return the input tokens of all requests to the earlier version, and to the other."""
        before, after = (read_stored(version.content).decisions for version in plan.versions)
        n_before = n_after = 0
        for case in plan.cases:
            if case.recorded is None:
                n_before += count_input_tokens(self._counter, case.context, before)
            n_after += count_input_tokens(self._counter, case.context, after)
        return n_before, n_after


def _most_written(plan: _Plan) -> list[int]:
    """Return the most tokens that each side's model writes before it answers."""
    n_cases = (sum(case.recorded is None for case in plan.cases), len(plan.cases))
    return [
        n * len(read_stored(version.content).decisions) * model.thought_tokens
        for n, version, model in zip(n_cases, plan.versions, plan.models, strict=True)
    ]


def _find_versions(
    connection: Connection, caller: Caller, request: CompareVersions
) -> tuple[Row[Any], Row[Any], Row[Any]]:
    decision = rows.find_decision(connection, caller.account_id, request.decision)
    if decision is None:
        raise unknown_decision(request.decision)
    after = _version_at(connection, decision, request.version)
    if request.recorded:
        return decision, after, after
    before = _version_at(connection, decision, request.against)
    if before.number == after.number:
        raise errors.InvalidReferenceError(
            f"Both are version {after.number} of {request.decision!r}; name two versions.",
            path=(*BODY, "version"),
        )
    return decision, before, after


def _version_at(connection: Connection, decision: Row[Any], at: str | int) -> Row[Any]:
    number = at if isinstance(at, int) else rows.alias_number(connection, decision.id, at)
    version = None if number is None else rows.find_version(connection, decision.id, number)
    if version is None:
        raise unknown_version(decision.name, at)
    return version
