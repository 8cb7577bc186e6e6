"""The room of drift."""

from __future__ import annotations

from steelyard.alarms import golden_checks, tables
from steelyard.alarms.distances import Distances
from steelyard.alarms.references import References
from steelyard.alarms.routes import ROUTES
from steelyard.alarms.service import Alarms
from steelyard.alarms.store import alarm_on_answers
from steelyard.alarms.watching import LOOK_S, Watcher
from steelyard.datasets.service import DatasetService
from steelyard.evaluations.models import EvaluatedModels
from steelyard.evaluations.service import EvaluationService
from steelyard.house import House
from steelyard.named.service import NamedDecisions
from steelyard.named.shares import ShareWatch
from steelyard.room import Room
from steelyard.serving.registry import ModelRegistry


def _open(
    house: House,
    registry: ModelRegistry,
    datasets: DatasetService,
    shares: ShareWatch,
    evaluations: EvaluationService,
    models: EvaluatedModels,
    named: NamedDecisions,
) -> tuple[object, ...]:
    model = registry.default
    shares.register_alarms(alarm_on_answers)
    watcher = Watcher(
        house.state,
        References(house.state, house.frames("evaluations"), datasets),
        has_accounts=house.has_accounts,
        distances=model.embed and Distances(model.embed, model.evaluation_key),
    )
    house.tick(
        watcher.tick,
        name="steelyard-alarms",
        failure="Could not look for drift",
        interval_s=LOOK_S,
    )
    house.closing.callback(watcher.stop)
    golden = golden_checks.GoldenRowChecks(house, evaluations, datasets, models, named, registry)
    house.tick(
        golden.tick,
        name="steelyard-golden",
        failure="Could not look at golden rows",
        interval_s=golden_checks.LOOK_S,
    )
    return watcher, golden, Alarms(house.state, house.writes, golden, models)


def _sweep(watcher: Watcher) -> None:
    watcher.sweep()


ROOM = Room(
    name="alarms",
    after=("people", "named"),
    events=("alarm.raised", "alarm.cleared"),
    routes=ROUTES,
    open=_open,
    sweeps=(_sweep,),
    decisions=(tables.alarm_feedback.c.decision_id,),
)
