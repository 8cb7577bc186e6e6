"""Open the services of models by name, and the runs of their setups."""

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
from steelyard.models.judge_setup import JudgeSetup
from steelyard.models.qualifications import Qualifications
from steelyard.models.route_setup import RouteSetup
from steelyard.models.service import FamilyModels
from steelyard.models.setup_run import SetupRuns
from steelyard.models.setups import ModelSetups
from steelyard.models.stress_reports import StressReports
from steelyard.serving.connected.declarations import Declarations
from steelyard.serving.registry import ModelRegistry
from steelyard.serving.service import DecisionService
from steelyard.settings import home_of


def open_base(
    registry: ModelRegistry, tuned: TunedModels, models: EvaluatedModels, lineages: LineageStore
) -> tuple[object, ...]:
    """Register the models of families with evaluations."""
    models.register_tuned(EvaluatedFamilies(registry, lineages, tuned))
    return ()


def open_models(
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
    """Open the services of models, judges, routes and qualifications."""
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


def open_downloads(house: House, declarations: Declarations, judges: JudgeSetup) -> Work:
    """Open the runs of downloads."""
    return SetupRuns(house.state, declarations, {"download": judges.run_download})


def open_measuring(
    house: House,
    declarations: Declarations,
    judges: JudgeSetup,
    routes: RouteSetup,
    qualifications: Qualifications,
) -> Work:
    """Open the runs that ask a model: checks, calibrations, fits and qualifications."""
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
