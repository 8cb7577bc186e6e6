"""The room of named decisions."""

from __future__ import annotations

from steelyard.datasets.service import DatasetService
from steelyard.errors import errors_of
from steelyard.errors import named as errors
from steelyard.evaluations.judges import Judges
from steelyard.evaluations.models import EvaluatedModels
from steelyard.house import House
from steelyard.jobs.work import Work
from steelyard.named.compare_service import NamedComparisons
from steelyard.named.routes import ROUTES
from steelyard.named.served import ServedDecisions
from steelyard.named.service import NamedDecisions
from steelyard.named.shares import LOOK_S, Shares, ShareWatch
from steelyard.room import Room, jobs_of
from steelyard.serving.registry import ModelRegistry
from steelyard.serving.service import DecisionService


def _open(
    house: House,
    datasets: DatasetService,
    models: EvaluatedModels,
    decisions: DecisionService,
    registry: ModelRegistry,
    judges: Judges,
) -> tuple[object, ...]:
    served = ServedDecisions(house.state)
    decisions.register_named(served.open)
    comparisons = NamedComparisons(house, datasets, models, registry.default, judges)
    datasets.register_reader(comparisons.reader_of)
    named = NamedDecisions(house.state, house.writes, served)
    watch = ShareWatch(house.state)
    house.tick(
        watch.tick,
        name="steelyard-shares",
        failure="Could not look at shares of traffic",
        interval_s=LOOK_S,
    )
    return served, named, comparisons, Shares(named), watch


def _open_runs(house: House, datasets: DatasetService, models: EvaluatedModels) -> Work:
    from steelyard.named.compare_run import ComparisonRuns

    return ComparisonRuns(house.state, datasets, models)


ROOM = Room(
    name="named",
    after=("evaluations", "decision_log"),
    nouns=("named-decisions", "named-comparisons"),
    events=("decision.moved", "decision.share_ended"),
    errors=errors_of(errors),
    routes=ROUTES,
    open=_open,
    jobs=(jobs_of(NamedComparisons, _open_runs),),
)
