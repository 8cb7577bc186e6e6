"""The composition of a server: settings become rooms, and rooms what the routes call."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath

from steelyard import tracing
from steelyard.accounts.rate_limits import RequestLimits, TokenAllowance
from steelyard.accounts.service import AccountService, effective_limits
from steelyard.alarms.distances import Distances
from steelyard.alarms.references import References
from steelyard.alarms.service import Alarms
from steelyard.alarms.watching import LOOK_S, Watcher
from steelyard.app import rooms
from steelyard.app.counting import open_counting
from steelyard.app.foundation import (
    Foundation,
    database_damage,
    lay_foundation,
    open_datasets,
    open_tuned,
    rows_to_tune_on,
    rules_of_lineages,
)
from steelyard.app.maps import open_maps
from steelyard.app.people import open_people
from steelyard.app.reviews import open_reviews
from steelyard.app.services import ApiServices
from steelyard.app.sweep import Sweeper
from steelyard.billing.amounts import referral_nano_of
from steelyard.billing.providers import open_provider
from steelyard.billing.service import PurchaseService
from steelyard.billing.topping_up import TopUps
from steelyard.datasets.frames.scanning import load_definitions
from steelyard.datasets.from_feedback import FeedbackRows
from steelyard.datasets.row_service import DatasetRows
from steelyard.datasets.service import DatasetService
from steelyard.datasets.version_service import DatasetAt
from steelyard.decision_log.answers import StoredAnswers
from steelyard.decision_log.feedback import FeedbackService
from steelyard.decision_log.service import DecisionLog
from steelyard.decision_log.store import record_answer
from steelyard.dialects.openai.service import OpenAIDecisionService
from steelyard.dialects.systemone.service import SystemOneService
from steelyard.discovery.service import DiscoveryService, PublishedLimits, full_queues
from steelyard.evaluations.figures import EvaluationFigures
from steelyard.evaluations.frontier import EvaluationFrontier
from steelyard.evaluations.models import EvaluatedModels
from steelyard.evaluations.service import EvaluationService
from steelyard.families.fine_tuning.service import FineTuneJobs
from steelyard.families.lineage.fees import Tariff
from steelyard.families.lineage_store import LineageStore
from steelyard.families.lineage_writes import LineageWrites
from steelyard.families.service import FamilyService
from steelyard.families.store import dataset_of_family
from steelyard.jobs.child import WorkerChild
from steelyard.jobs.ticker import Ticker
from steelyard.labeling.finalizing import LabelingFinalizer
from steelyard.labeling.reviewed import LabelingReviews
from steelyard.labeling.service import LabelingJobs
from steelyard.labeling.sources import LabelingSources
from steelyard.labeling.teachers import Teachers
from steelyard.models.calls import TunedCalls
from steelyard.models.evaluated import EvaluatedFamilies
from steelyard.models.service import FamilyModels
from steelyard.operations.service import LEASE_GRACE_S, OperationLog
from steelyard.people.account_service import OwnAccount
from steelyard.people.export_service import AccountExports
from steelyard.people.operator_service import Operator
from steelyard.people.session_service import Sessions, note
from steelyard.people.usage_service import UsageService
from steelyard.prompt_tuning.service import PromptTunings
from steelyard.room import House
from steelyard.serving.base import ModelLoader, NamedModelLoader
from steelyard.serving.judge.declaring import declare_judge
from steelyard.serving.service import DecisionService
from steelyard.settings import Settings, home_of, read_settings
from steelyard.shadows.service import Shadows
from steelyard.storage.artifacts import ArtifactStore
from steelyard.storage.damage import STATE, DamageNotes
from steelyard.storage.frame_store import FrameStore
from steelyard.views.service import Views
from steelyard.webhooks.sender import WebhookSender
from steelyard.webhooks.service import Webhooks
from steelyard.wire.hosts import host_names


@contextmanager
def open_service(
    settings: Settings | None = None,
    *,
    load_model: ModelLoader | None = None,
    load_further: NamedModelLoader | None = None,
    prepares_jobs: bool = False,
) -> Iterator[ApiServices]:
    """Open the state, load every model, and return what an HTTP application answers with.

    Where jobs are prepared, the process that runs them gets ready meanwhile.
    """
    settings = settings or read_settings()
    with ExitStack() as closing:
        worker = WorkerChild(dataclasses.asdict(settings))
        closing.callback(worker.close)
        if prepares_jobs and settings.jobs == "on":
            worker.prepare()
        closing.enter_context(tracing.exporting())
        declare_judge(settings)
        on = lay_foundation(settings, load_model, load_further, closing)
        on.models.warm_up()
        _drop_repaired(on)
        windows = open_counting(settings, closing)
        operations = OperationLog(
            on.state,
            accounts_enabled=settings.accounts == "on",
            lease_s=settings.deadline_s + LEASE_GRACE_S,
        )
        datasets = open_datasets(on)
        people = open_people(on)
        watcher = _open_watcher(on, datasets)
        _open_sweeper(on, operations, datasets, people.sessions, watcher)
        _start_child(on, worker)
        families = _open_families(on, datasets, worker.wake)
        allowance = TokenAllowance(windows, settings.tokens_per_minute)
        decisions = DecisionService(
            on.models,
            operations,
            allowance,
            deadline_s=settings.deadline_s,
            stores_by_default=settings.store == "on",
            record=record_answer,
            tuned=families.calls,
        )
        evaluated = EvaluatedModels(on.models, families.evaluated)
        evaluations = _open_evaluations(on, datasets, evaluated, worker.wake)
        figures = EvaluationFigures(
            evaluations, on.frames("evaluations"), datasets=datasets, rows=on.rows
        )
        reviews = open_reviews(on, datasets)
        labeling = _open_labeling(on, datasets, families.lineages, evaluated, worker.wake)
        shadows = Shadows(on.state, on.writes, on.models, evaluated, families.lineages)
        ticker = Ticker(
            shadows.tick,
            name="steelyard-shadows",
            failure="Could not score with shadows",
            explain=on.state.explain,
        )
        on.closing.callback(ticker.close)
        accounts = AccountService(
            on.state,
            accounts_enabled=settings.accounts == "on",
            limits=effective_limits(settings),
        )
        own_account = OwnAccount(on.state, accounts)
        purchases = _open_purchases(on)
        dataset_rows = _open_rows(on, datasets)
        answers = StoredAnswers(on.archive())
        log = DecisionLog(on.state, retention_days=settings.retention_days, answers=answers)
        yield ApiServices(
            settings=settings,
            state=on.state,
            models=on.models,
            accounts=accounts,
            alarms=Alarms(on.state, on.writes),
            alarm_watcher=watcher,
            allowance=allowance,
            limits=RequestLimits(
                windows,
                per_minute=settings.requests_per_minute,
                public_per_minute=settings.public_requests_per_minute,
            ),
            decisions=decisions,
            systemone=SystemOneService(decisions, on.models),
            openai_decisions=OpenAIDecisionService(decisions),
            decision_log=log,
            feedback=FeedbackService(
                on.writes,
                retention_days=settings.retention_days,
                find_archived=log.find_archived,
            ),
            datasets=datasets,
            dataset_rows=dataset_rows,
            feedback_rows=FeedbackRows(
                on.state,
                datasets,
                on.rows,
                on.writes,
                retention_days=settings.retention_days,
                answers=answers,
            ),
            drafts=reviews.drafts,
            draft_rows=reviews.rows,
            draft_seals=reviews.seals,
            draft_assignments=reviews.assignments,
            blind_answers=reviews.answers,
            draft_outcomes=reviews.outcomes,
            evaluations=evaluations,
            evaluation_figures=figures,
            evaluation_frontier=EvaluationFrontier(on.state, datasets, evaluated, figures),
            labeling_finalizer=labeling.finalizer,
            labeling_jobs=labeling.jobs,
            labeling_reviews=LabelingReviews(
                on.state, on.frames("labeling"), reviews.drafts, reviews.reviews, on.rows
            ),
            labeling_sources=labeling.sources,
            labeling_teachers=labeling.teachers,
            maps=open_maps(on, datasets, evaluations, worker.wake),
            prompt_tunings=_open_prompt_tunings(on, datasets, evaluated, worker.wake),
            operator=Operator(on.state, accounts, purchases, on.models),
            purchases=purchases,
            families=families.families,
            family_models=families.models,
            exports=AccountExports(
                on.state,
                own=own_account,
                accounts=accounts,
                members=people.members,
                sessions=people.sessions,
                purchases=purchases,
                datasets=datasets,
                rows=dataset_rows,
                models=families.models,
                answers=answers,
                retention_days=settings.retention_days,
            ),
            keys=people.keys,
            oidc_sign_ins=people.oidc_sign_ins,
            passkeys=people.passkeys,
            own_account=own_account,
            members=people.members,
            sessions=people.sessions,
            sign_ins=people.sign_ins,
            shadows=shadows,
            usage=UsageService(on.state),
            webhooks=_open_webhooks(on),
            views=Views(on.state, on.writes),
            fine_tunes=families.fine_tunes,
            discovery=_open_discovery(on, families, labeling.teachers),
        )


def _drop_repaired(on: Foundation) -> None:
    """Forget damage that was met by an earlier server and is no more."""
    notes = DamageNotes(home_of(on.settings))
    for part in notes.found():
        if part == STATE:
            is_whole = database_damage(on.settings) is None
        else:
            room, name = PurePosixPath(part).parts[-2:]
            is_whole = on.frames(room).damage_of(name) is None
        if is_whole:
            notes.drop(part)


def _open_sweeper(
    on: Foundation,
    operations: OperationLog,
    datasets: DatasetService,
    sessions: Sessions,
    watcher: Watcher,
) -> None:
    """Remove what is over, and files that no job needs: the worker ends before it would."""
    services: dict[type, object] = {
        ArtifactStore: on.artifacts(),
        DatasetService: datasets,
        Sessions: sessions,
        Watcher: watcher,
    }
    house = House(on.settings, on.state, on.frames, services)
    sweeper = Sweeper(
        on.state,
        operations,
        retention_days=on.settings.retention_days,
        further=[sweep(house) for room in rooms.ROOMS for sweep in room.sweeps],
    )
    on.closing.callback(sweeper.close)


def _open_watcher(on: Foundation, datasets: DatasetService) -> Watcher:
    """Look at stored decisions for drift, again and again."""
    model = on.models.default
    watcher = Watcher(
        on.state,
        References(on.state, on.frames("evaluations"), datasets),
        has_accounts=on.settings.accounts == "on",
        distances=model.embed and Distances(model.embed, model.evaluation_key),
    )
    ticker = Ticker(
        watcher.tick,
        name="steelyard-alarms",
        failure="Could not look for drift",
        explain=on.state.explain,
        interval_s=LOOK_S,
    )
    on.closing.callback(ticker.close)
    on.closing.callback(watcher.stop)
    return watcher


def _start_child(on: Foundation, worker: WorkerChild) -> None:
    """Let the process run jobs where the settings leave them to this server."""
    if on.settings.jobs == "on":
        worker.start(functools.partial(on.state.read_now, rooms.has_jobs))
        on.closing.callback(worker.close)


@dataclass(frozen=True, slots=True)
class _Families:
    """What answers for families, and for calls to them."""

    lineages: LineageStore
    families: FamilyService
    models: FamilyModels
    fine_tunes: FineTuneJobs
    calls: TunedCalls
    evaluated: EvaluatedFamilies


def _tariff_of(settings: Settings) -> Tariff:
    return Tariff(token_nano=settings.fine_tune_price, minimum_nano=settings.fine_tune_minimum)


def _open_families(on: Foundation, datasets: DatasetService, wake: Callable[[], None]) -> _Families:
    settings, tuned = on.settings, open_tuned(on)
    lineages = LineageStore(on.state, lambda: rules_of_lineages(on), engines=tuned, wake=wake)
    writes = LineageWrites(lineages, on.writes, warm_wait_s=settings.warm_wait_s)
    families = FamilyService(
        lineages, writes, rows_to_tune_on(on), on.models, tariff=_tariff_of(settings)
    )
    models = FamilyModels(on.state, lineages, writes, on.models)
    datasets.register_reader(families.reader_of)
    datasets.register_families(dataset_of_family)
    # Before the engines that it may ask for models.
    ticker = Ticker(
        families.tick,
        name="steelyard-lineage",
        failure="Could not update the lineage of models",
        explain=on.state.explain,
    )
    on.closing.callback(ticker.close)
    calls = TunedCalls(models, tuned, on.models, warm_wait_s=settings.warm_wait_s)
    return _Families(
        lineages,
        families,
        models,
        FineTuneJobs(on.state, lineages, on.writes, on.frames("fine_tunes")),
        calls,
        EvaluatedFamilies(on.models, lineages, tuned, calls=calls),
    )


def _open_evaluations(
    on: Foundation, datasets: DatasetService, models: EvaluatedModels, wake: Callable[[], None]
) -> EvaluationService:
    evaluations = EvaluationService(
        on.state,
        on.writes,
        datasets,
        models,
        count_decisions=functools.partial(_count_decisions, on.rows),
        max_queue=on.settings.job_queue,
        max_queue_per_account=on.settings.job_queue_per_account,
        wake=wake,
    )
    datasets.register_reader(evaluations.reader_of)
    return evaluations


def _count_decisions(store: FrameStore, at: DatasetAt) -> int:
    return sum(definition.evaluation for definition in load_definitions(store, at.manifest))


def _open_rows(on: Foundation, datasets: DatasetService) -> DatasetRows:
    embedding = on.models.default
    rows = DatasetRows(datasets, on.rows, embed=embedding.embed, scorer=embedding.evaluation_key)
    on.closing.callback(rows.close)
    return rows


@dataclass(frozen=True, slots=True)
class _Labeling:
    """What answers for labeling."""

    sources: LabelingSources
    teachers: Teachers
    jobs: LabelingJobs
    finalizer: LabelingFinalizer


def _open_labeling(
    on: Foundation,
    datasets: DatasetService,
    lineages: LineageStore,
    models: EvaluatedModels,
    wake: Callable[[], None],
) -> _Labeling:
    settings, store = on.settings, on.frames("labeling")
    counter = on.models.default.decide.tokenizer
    teachers = Teachers(on.models, lineages, models)
    return _Labeling(
        LabelingSources(on.state, store, on.writes, counter, wake=wake),
        teachers,
        LabelingJobs(
            on.state,
            store,
            on.writes,
            teachers,
            counter,
            accounts_enabled=settings.accounts == "on",
            max_queue=settings.job_queue,
            max_queue_per_account=settings.job_queue_per_account,
            wake=wake,
        ),
        LabelingFinalizer(on.state, store, on.writes, datasets),
    )


def _open_prompt_tunings(
    on: Foundation,
    datasets: DatasetService,
    models: EvaluatedModels,
    wake: Callable[[], None],
) -> PromptTunings:
    settings, base = on.settings, on.models.default
    tunings = PromptTunings(
        on.state,
        on.writes,
        datasets,
        models,
        base.decide.tokenizer,
        default_model=base.name,
        accounts_enabled=settings.accounts == "on",
        max_queue=settings.job_queue,
        max_queue_per_account=settings.job_queue_per_account,
        wake=wake,
    )
    datasets.register_reader(tunings.reader_of)
    datasets.register_doubts(tunings.doubts_on)
    return tunings


def _open_purchases(on: Foundation) -> PurchaseService:
    settings = on.settings
    has_accounts = settings.accounts == "on"
    purchases = PurchaseService(
        on.state,
        open_provider(settings),
        accounts_enabled=has_accounts,
        referral_nano=referral_nano_of(settings),
        note=note,
    )
    if has_accounts:
        top_ups = TopUps(on.state, purchases)
        ticker = Ticker(
            top_ups.tick,
            name="steelyard-top-ups",
            failure="Could not look after purchases",
            explain=on.state.explain,
        )
        on.closing.callback(ticker.close)
    return purchases


def _open_webhooks(on: Foundation) -> Webhooks:
    allowed = host_names(on.settings.webhook_hosts)
    sender = WebhookSender(on.state, allowed=allowed)
    on.closing.callback(sender.close)
    return Webhooks(on.state, on.writes, allowed=allowed, wake=sender.wake)


def _open_discovery(on: Foundation, families: _Families, teachers: Teachers) -> DiscoveryService:
    limits = PublishedLimits.of(on.settings)
    return DiscoveryService(
        on.models,
        limits,
        tariff=_tariff_of(on.settings),
        hour_nano=on.settings.keep_warm_price,
        models=[families.models.models],
        warnings=[full_queues(limits, families.fine_tunes.waiting)],
        teachers=teachers.available,
        training_available=True,
    )
