"""The room of models by name."""

from __future__ import annotations

from steelyard.datasets.row_service import DatasetRows
from steelyard.datasets.service import DatasetService
from steelyard.evaluations.judges import Judges
from steelyard.evaluations.models import EvaluatedModels
from steelyard.families.lineage_store import LineageStore
from steelyard.families.lineage_writes import LineageWrites
from steelyard.families.tuned import TunedModels
from steelyard.house import House
from steelyard.models.calls import TunedCalls
from steelyard.models.evaluated import EvaluatedFamilies
from steelyard.models.judge_routes import JUDGE_ROUTES
from steelyard.models.judge_setup import JudgeSetup
from steelyard.models.qualifications import Qualifications
from steelyard.models.route_setup import RouteSetup
from steelyard.models.routes import ROUTES
from steelyard.models.service import FamilyModels
from steelyard.models.setup_tasks import SetupTasks
from steelyard.models.stress_reports import StressReports
from steelyard.models.tables import judge_qualifications
from steelyard.room import Room
from steelyard.serving.connected.declarations import Declarations
from steelyard.serving.registry import ModelRegistry
from steelyard.serving.service import DecisionService
from steelyard.settings import home_of


def _open_base(
    registry: ModelRegistry, tuned: TunedModels, models: EvaluatedModels, lineages: LineageStore
) -> tuple[object, ...]:
    models.register_tuned(EvaluatedFamilies(registry, lineages, tuned))
    return ()


def _open(
    house: House,
    registry: ModelRegistry,
    tuned: TunedModels,
    lineages: LineageStore,
    datasets: DatasetService,
    rows: DatasetRows,
    lineage_writes: LineageWrites,
    decisions: DecisionService,
    evaluated_models: EvaluatedModels,
    label_judges: Judges,
) -> tuple[object, ...]:
    models = FamilyModels(house.state, lineages, lineage_writes, registry)
    calls = TunedCalls(models, tuned, registry, warm_wait_s=house.settings.warm_wait_s)
    decisions.register_tuned(calls)
    evaluated_models.register_tuned(EvaluatedFamilies(registry, lineages, tuned, calls=calls))
    tasks = SetupTasks(home_of(house.settings), house.writes, house.get(Declarations))
    house.close_at_end(tasks)
    judges = JudgeSetup(house.settings, registry, datasets, rows, tasks)
    routes = RouteSetup(house.settings, registry, datasets, rows, tasks)
    qualifications = Qualifications(house, judges, datasets, rows, tasks, lineages)
    label_judges.register(qualifications)
    return models, tasks, judges, qualifications, routes, StressReports(home_of(house.settings))


ROOM = Room(
    name="models",
    after=("families",),
    nouns=("judges", "routes"),
    tables=(judge_qualifications,),
    routes=(*ROUTES, *JUDGE_ROUTES),
    base=_open_base,
    open=_open,
)
