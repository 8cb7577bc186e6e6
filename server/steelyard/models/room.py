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
from steelyard.jobs.work import Work
from steelyard.models.calls import TunedCalls
from steelyard.models.evaluated import EvaluatedFamilies
from steelyard.models.judge_routes import JUDGE_ROUTES
from steelyard.models.judge_setup import JudgeSetup
from steelyard.models.qualifications import Qualifications
from steelyard.models.route_setup import RouteSetup
from steelyard.models.routes import ROUTES
from steelyard.models.service import FamilyModels
from steelyard.models.setups import SETUPS, ModelSetups
from steelyard.models.stress_reports import StressReports
from steelyard.models.tables import judge_qualifications, model_setups
from steelyard.room import JobKind, Room, jobs_of, no_models
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
    declarations: Declarations,
) -> tuple[object, ...]:
    models = FamilyModels(house.state, lineages, lineage_writes, registry)
    calls = TunedCalls(models, tuned, registry, warm_wait_s=house.settings.warm_wait_s)
    decisions.register_tuned(calls)
    evaluated_models.register_tuned(EvaluatedFamilies(registry, lineages, tuned, calls=calls))
    setups = ModelSetups(house, declarations)
    judges = JudgeSetup(house.settings, registry, datasets, rows, setups)
    routes = RouteSetup(registry, datasets, rows, setups)
    qualifications = Qualifications(house, judges, datasets, rows, setups, lineages)
    label_judges.register(qualifications)
    return models, setups, judges, qualifications, routes, StressReports(home_of(house.settings))


def _open_downloads(house: House, declarations: Declarations, judges: JudgeSetup) -> Work:
    from steelyard.models.setup_run import SetupRuns

    return SetupRuns(house.state, declarations, {"download": judges.run_download})


def _open_measuring(
    house: House,
    declarations: Declarations,
    judges: JudgeSetup,
    routes: RouteSetup,
    qualifications: Qualifications,
) -> Work:
    from steelyard.models.setup_run import SetupRuns

    return SetupRuns(
        house.state,
        declarations,
        {
            "check": judges.run_check,
            "calibrate": judges.run_calibration,
            "fit": routes.run_fit,
            "qualify": qualifications.run_qualification,
        },
    )


ROOM = Room(
    name="models",
    after=("families",),
    nouns=("judges", "routes", "setups"),
    tables=(judge_qualifications, model_setups),
    routes=(*ROUTES, *JUDGE_ROUTES),
    base=_open_base,
    open=_open,
    jobs=(
        jobs_of(ModelSetups, _open_measuring, no_models, in_server=True),
        # A long download keeps no check waiting.
        JobKind(_open_downloads, None, SETUPS.has_unfinished, no_models, in_server=True),
    ),
)
