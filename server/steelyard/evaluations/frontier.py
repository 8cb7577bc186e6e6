"""The frontier of a dataset: its models by quality, price and latency."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET
from sqlalchemy import Connection, Row

from steelyard import errors
from steelyard.caller import Caller
from steelyard.datasets.access import require_dataset
from steelyard.datasets.service import DatasetService
from steelyard.evaluations import store as rows
from steelyard.evaluations.figures import EvaluationFigures, binary_costs
from steelyard.evaluations.frontier_wire import MAX_POINTS, Frontier, FrontierPoint
from steelyard.evaluations.measures.dominance import PricedModel, dominated
from steelyard.evaluations.measures.policies import Costs
from steelyard.evaluations.models import EvaluatedModels
from steelyard.evaluations.queries_wire import FrontierQuery
from steelyard.evaluations.service import EvaluationService
from steelyard.ledger.money import to_usd
from steelyard.storage import State
from steelyard.wire.decoding import decoder_of
from steelyard.wire.measures import Measure
from steelyard.wire.violations import Violations

_COSTS = ("query", "action_costs")
_decode_costs = decoder_of(dict[str, dict[str, float]]).decode


class EvaluationFrontier:
    """Holds the models that were evaluated on a dataset against each other."""

    def __init__(
        self,
        state: State,
        datasets: DatasetService,
        models: EvaluatedModels,
        figures: EvaluationFigures,
    ) -> None:
        self._state, self._datasets = state, datasets
        self._models, self._figures = models, figures

    async def find(self, caller: Caller, query: FrontierQuery) -> Frontier:
        """Return each model's newest evaluation, and whether another model dominates it."""
        costs = _costs_of(query)
        version, newest = await self._latest(caller, query)
        prices = await self._models.prices_of(caller.account_id, [row.model_id for row in newest])
        here = [row for row in newest if row.model_id in prices]
        points = [
            await self._point(row, query, costs, prices[row.model_id]) for row in here[:MAX_POINTS]
        ]
        sign = -1.0 if query.measure == "accuracy" else 1.0
        worse = dominated(
            [
                PricedModel(
                    loss=sign * point.estimate.value,
                    price=_number(point.price_usd_per_1000),
                    latency=point.latency_ms,
                )
                for point in points
            ]
        )
        marked = [
            msgspec.structs.replace(point, dominated=is_worse)
            for point, is_worse in zip(points, worse, strict=True)
        ]
        return Frontier(
            dataset_id=query.dataset,
            dataset_version=version,
            measure=query.measure,
            data=sorted(marked, key=lambda point: (sign * point.estimate.value, point.model)),
            unlisted=len(here) - len(points),
        )

    async def _latest(
        self, caller: Caller, query: FrontierQuery
    ) -> tuple[int | None, list[Row[Any]]]:
        """Return the version that was asked for or evaluated last, and its models' evaluations."""
        chosen: tuple[int, str] | None = None
        if query.version is not None:
            at = await self._datasets.dataset_at(
                caller, query.dataset, query.version, is_new_work=False
            )
            chosen = at.version, at.evaluation_sha256

        def work(connection: Connection) -> tuple[int | None, list[Row[Any]]]:
            account_id = caller.account_id
            require_dataset(connection, account_id, query.dataset)
            newest = chosen or rows.newest_evaluated(connection, account_id, query.dataset)
            if newest is None:
                return None, []
            version, sha256 = newest
            return version, rows.latest_by_model(connection, account_id, query.dataset, sha256)

        return await self._state.read(work)

    async def _point(
        self, row: Row[Any], query: FrontierQuery, costs: Costs | None, price_nano: int
    ) -> FrontierPoint:
        evaluation = EvaluationService.to_wire(row)
        detail = await self._figures.overall(row)
        if costs is not None and query.decision is not None:
            estimate = await self._figures.expected_cost(row, query.decision, costs, path=_COSTS)
        else:
            measured = detail.overall.accuracy
            if query.measure == "log_loss":
                measured = detail.overall.loss
            estimate = _with_targets(measured)
        latency_ms = UNSET if evaluation.metrics is None else evaluation.metrics.latency_ms
        tokens = detail.input_tokens
        return FrontierPoint(
            evaluation=evaluation.id,
            model=evaluation.model_label,
            family=evaluation.model_name,
            estimate=estimate,
            price_usd_per_1000=None
            if tokens is None
            else to_usd(round(1000 * tokens * price_nano / detail.overall.n)),
            latency_ms=None if latency_ms is UNSET else latency_ms,
            dominated=False,
        )


def _with_targets(measured: object) -> Measure:
    if not isinstance(measured, Measure):
        raise errors.SupervisionMismatchError(
            "The dataset has rewards, and these measures need targets; see the details of its "
            "evaluations for what each model earned.",
            path=("query", "measure"),
        )
    return measured


def _number(usd: str | None) -> float | None:
    return None if usd is None else float(usd)


def _costs_of(query: FrontierQuery) -> Costs | None:
    """Return the cost of each action by outcome, with its fields held against each other."""
    violations = Violations()
    if query.measure != "expected_cost":
        for name in ("decision", "false_positive", "false_negative", "action_costs"):
            if getattr(query, name) is not None:
                violations.add(("query", name), "goes with expected_cost; leave it out.", "refused")
        violations.raise_if_any()
        return None
    if query.decision is None:
        violations.add(("query", "decision"), "is missing; name the decision.", "missing")
    given = binary_costs(query, ("query",), violations)
    costs: Mapping[str, Mapping[str, float]] = {}
    if query.action_costs is None:
        costs = {
            "yes": {"yes": 0.0, "no": given.get("false_positive", 0.0)},
            "no": {"yes": given.get("false_negative", 0.0), "no": 0.0},
        }
    else:
        try:
            costs = _decode_costs(query.action_costs)
        except msgspec.DecodeError as error:
            violations.add(
                _COSTS, f"is not JSON of action to outcome to cost: {error}.", "invalid_value"
            )
    violations.raise_if_any()
    return costs
