"""The composition root: builds services from settings. The only place that names engines.

A deployment is a loaded model, the queue before it and the service that answers: what a process
has that calls ``steelyard.decide``, and nothing is kept there. A server has more: a state, and every
base model that the settings name.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
import os
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.base_models import (
    LoadedModel,
    ModelLoader,
    NamedModelLoader,
    load_further_model,
    load_named_model,
    open_host,
    open_models,
    parse_base_models,
)
from steelyard.decisions.tokens import TokenCounter
from steelyard.scoring.batching import Batcher
from steelyard.scoring.protocol import Scorer
from steelyard.services.answers import AnswerService
from steelyard.services.decide import DecideService
from steelyard.settings import (
    InvalidSettingError,
    Settings,
    frames_url_of,
    home_of,
    jobs_url_of,
    read_settings,
    state_url_of,
)

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from steelyard.api.services import ApiServices
    from steelyard.jobs.workflows import JobRuntime
    from steelyard.scoring.engine_host import RemoteHost
    from steelyard.services.datasets import DatasetService
    from steelyard.services.decision_log import DecisionLog
    from steelyard.services.draft_rows import DraftRows
    from steelyard.services.draft_seals import DraftSeals
    from steelyard.services.drafts import DraftService
    from steelyard.services.evaluation_rows import FrozenDataset
    from steelyard.services.families import FamilyService
    from steelyard.services.fine_tune_jobs import FineTuneJobs
    from steelyard.services.lines import LineKeeper, LineRules
    from steelyard.services.models import ModelRegistry
    from steelyard.services.tuned_calls import TunedCalls
    from steelyard.services.tuned_models import Base, TunedModels
    from steelyard.services.tuning_rows import TuningRows
    from steelyard.storage.frames.artifacts import ArtifactStore
    from steelyard.storage.frames.store import FrameStore
    from steelyard.storage.state import State

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Deployment:
    """A model that is loaded and answers.

    Parameters
    ----------
    answers : steelyard.services.answers.AnswerService
        Answers requests.
    model : LoadedModel
        What answers them.
    settings : steelyard.settings.Settings
        What it was built from.
    """

    answers: AnswerService
    model: LoadedModel
    settings: Settings

    @property
    def model_name(self) -> str:
        """Name of the model, as in answers."""
        return self.model.scorer.name

    @property
    def engine(self) -> str:
        """Engine and precision."""
        return self.model.scorer.engine


@contextmanager
def open_deployment(
    settings: Settings | None = None, *, load_model: ModelLoader | None = None
) -> Iterator[Deployment]:
    """Load a model and give what answers with it; closes both at the end.

    Parameters
    ----------
    settings : Settings, optional
        The environment's when left out.
    load_model : callable, optional
        Called with the engine and the threads instead of loading what they name.

    Raises
    ------
    steelyard.errors.EngineUnavailableError
        When the model cannot be loaded.
    """
    deployment, batcher = _build(settings or read_settings(), load_model or load_named_model)
    try:
        yield deployment
    finally:
        batcher.close()
        deployment.model.scorer.close()


@contextmanager
def open_service(
    settings: Settings | None = None,
    *,
    load_model: ModelLoader | None = None,
    load_further: NamedModelLoader | None = None,
) -> Iterator[ApiServices]:
    """Open the state, load every model, and give what an HTTP application answers with.

    Parameters
    ----------
    settings : Settings, optional
        The environment's when left out.
    load_model : callable, optional
        Called with the engine and the threads instead of loading what they name.
    load_further : callable, optional
        Called for each model of ``base_models`` instead of ``load_further_model``.

    Raises
    ------
    steelyard.errors.EngineUnavailableError
        When a model cannot be loaded.
    steelyard.errors.StorageUnavailableError
        When the state cannot be opened.
    steelyard.settings.InvalidSettingError
        When a setting cannot be used.
    """
    from steelyard.api.services import ApiServices
    from steelyard.jobs.child import WorkerChild
    from steelyard.services.accounts import AccountService, effective_limits
    from steelyard.services.allowance import RequestLimits, TokenAllowance
    from steelyard.services.dataset_rows import DatasetRows
    from steelyard.services.decisions import DecisionService
    from steelyard.services.discovery import DiscoveryService, PublishedLimits
    from steelyard.services.evaluated_models import EvaluatedModels
    from steelyard.services.evaluation_figures import EvaluationFigures
    from steelyard.services.evaluations import EvaluationService
    from steelyard.services.feedback import FeedbackService
    from steelyard.services.feedback_rows import FeedbackRows
    from steelyard.services.openai_decisions import OpenAIDecisionService
    from steelyard.services.operations import LEASE_GRACE_S, KeyedWrites, OperationLog
    from steelyard.services.rate_windows import RateWindows
    from steelyard.services.sweep import Sweeper
    from steelyard.services.systemone import SystemOneService
    from steelyard.storage.state import open_state

    settings = settings or read_settings()
    has_accounts = settings.accounts == "on"
    with ExitStack() as closing:
        state = open_state(state_url_of(settings))
        closing.callback(state.close)
        host = open_host(settings, closing)
        models, bases = _open_models(settings, host, load_model, load_further, closing)
        windows = RateWindows(home_of(settings) / "rates.sqlite" if settings.workers > 1 else None)
        closing.callback(windows.close)
        allowance = TokenAllowance(windows, settings.tokens_per_minute)
        operations = OperationLog(
            state, accounts_enabled=has_accounts, lease_s=settings.deadline_s + LEASE_GRACE_S
        )
        store = _open_frames(settings, "datasets")
        datasets = _open_datasets(settings, state, store)
        sweeps = [datasets.sweep, *_job_sweeps(settings, state)]
        sweeper = Sweeper(state, operations, retention_days=settings.retention_days, further=sweeps)
        closing.callback(sweeper.close)
        worker = WorkerChild(
            dataclasses.asdict(settings), functools.partial(state.read_now, _has_jobs)
        )
        if settings.jobs == "on":
            worker.start()
            closing.callback(worker.close)
        lines = _open_lines(settings, state, store, models, bases, host, worker.wake, closing)
        datasets.register_reader(lines.families.reader_of)
        decisions = DecisionService(
            models,
            operations,
            allowance,
            deadline_s=settings.deadline_s,
            stores_by_default=settings.store == "on",
            tuned=lines.calls,
        )
        evaluations = EvaluationService(
            state,
            KeyedWrites(state),
            datasets,
            EvaluatedModels(models, calls=lines.calls, lines=lines.keeper),
            count_decisions=functools.partial(_count_decisions, store),
            max_queue=settings.job_queue,
            max_queue_per_account=settings.job_queue_per_account,
            wake=worker.wake,
        )
        datasets.register_reader(evaluations.reader_of)
        reviews = _open_reviews(settings, state, datasets, store, models, closing)
        dataset_rows = DatasetRows(
            datasets, store, embed=models.default.embed, scorer=models.default.evaluation_key
        )
        closing.callback(dataset_rows.close)
        yield ApiServices(
            settings=settings,
            decisions=decisions,
            decision_log=_open_log(settings, state),
            feedback=FeedbackService(KeyedWrites(state), retention_days=settings.retention_days),
            feedback_rows=FeedbackRows(
                state, datasets, store, KeyedWrites(state), retention_days=settings.retention_days
            ),
            models=models,
            discovery=DiscoveryService(
                models,
                PublishedLimits.of(settings),
                lines.fine_tunes.waiting,
                training_available=lines.keeper.rules.lacking() is None,
            ),
            accounts=AccountService(
                state, accounts_enabled=has_accounts, limits=effective_limits(settings)
            ),
            systemone=SystemOneService(decisions, models),
            openai_decisions=OpenAIDecisionService(decisions),
            datasets=datasets,
            evaluations=evaluations,
            evaluation_figures=EvaluationFigures(
                evaluations,
                _open_frames(settings, "evaluations"),
                datasets=datasets,
                rows=store,
            ),
            families=lines.families,
            fine_tunes=lines.fine_tunes,
            dataset_rows=dataset_rows,
            drafts=reviews.drafts,
            draft_rows=reviews.rows,
            draft_seals=reviews.seals,
            allowance=allowance,
            limits=RequestLimits(
                windows,
                per_minute=settings.requests_per_minute,
                public_per_minute=settings.public_requests_per_minute,
            ),
            state=state,
        )


@contextmanager
def open_worker(
    settings: Settings | None = None,
    *,
    load_model: ModelLoader | None = None,
    load_further: NamedModelLoader | None = None,
) -> Iterator[JobRuntime]:
    """Open what jobs need, and run them until the end of the block.

    Parameters
    ----------
    settings, load_model, load_further
        As for ``open_service``; of the server whose jobs these are.

    Raises
    ------
    steelyard.errors.EngineUnavailableError, steelyard.errors.StorageUnavailableError
        When a model cannot be loaded, or the state cannot be opened.
    steelyard.settings.InvalidSettingError
        When a setting cannot be used.
    RuntimeError
        When the process runs jobs already.
    """
    from steelyard.jobs.workflows import JobRuntime
    from steelyard.services.evaluated_models import EvaluatedModels
    from steelyard.services.evaluation_runs import EvaluationRuns
    from steelyard.services.fine_tune_runs import FineTuneRuns
    from steelyard.services.held_out_evaluations import HeldOutEvaluations
    from steelyard.services.lines import LineKeeper
    from steelyard.services.trainer_bases import TrainerBases
    from steelyard.storage.state import open_state

    settings = settings or read_settings()
    with ExitStack() as closing:
        state = open_state(state_url_of(settings))
        closing.callback(state.close)
        sources = parse_base_models(settings.base_models)
        host = open_host(settings, closing)
        models, bases = _open_models(settings, host, load_model, load_further, closing)
        store = _open_frames(settings, "datasets")
        datasets = _open_datasets(settings, state, store)
        artifacts = _open_artifacts(settings)
        keeper = LineKeeper(state, _line_rules(settings, models))
        evaluations = EvaluationRuns(
            state,
            _open_frames(settings, "evaluations"),
            datasets,
            EvaluatedModels(
                models, lines=keeper, tuned=_open_tuned(settings, artifacts, bases, host, closing)
            ),
        )
        fine_tunes = FineTuneRuns(
            state,
            keeper,
            _tuning_rows(state, store, models),
            datasets,
            artifacts,
            _open_frames(settings, "fine_tunes"),
            folder=home_of(settings) / "fine_tunes",
            bases=TrainerBases(models, sources),
            threads=settings.threads,
            held_out=HeldOutEvaluations(_open_frames(settings, "evaluations"), datasets, models),
        )

        def are_alive(instances: Collection[str]) -> set[str]:
            return state.write_now(
                lambda connection: {one for one in instances if state.is_alive(connection, one)}
            )

        url = jobs_url_of(settings)
        yield closing.enter_context(
            JobRuntime(
                url, executor=state.instance, are_alive=are_alive, work=[evaluations, fine_tunes]
            )
        )


def _open_models(
    settings: Settings,
    host: RemoteHost | None,
    load_model: ModelLoader | None,
    load_further: NamedModelLoader | None,
    closing: ExitStack,
) -> tuple[ModelRegistry, dict[str, Base]]:
    from steelyard.billing.prices import Prices

    return open_models(
        settings,
        Prices.parse(settings.prices),
        parse_base_models(settings.base_models),
        load_model or functools.partial(load_named_model, host=host),
        load_further or functools.partial(load_further_model, host=host),
        closing,
        host,
    )


def _open_datasets(settings: Settings, state: State, store: FrameStore) -> DatasetService:
    from steelyard.services.dataset_ingest import RowBounds
    from steelyard.services.datasets import DatasetService
    from steelyard.services.idempotency import KeyedWrites

    bounds = RowBounds(settings.dataset_min_rows, settings.dataset_rows)
    return DatasetService(state, store, KeyedWrites(state), bounds=bounds)


@dataclass(frozen=True, slots=True)
class _ServedReviews:
    """What a server answers for drafts."""

    drafts: DraftService
    rows: DraftRows
    seals: DraftSeals


def _open_log(settings: Settings, state: State) -> DecisionLog:
    from steelyard.services.decision_log import DecisionLog

    return DecisionLog(state, retention_days=settings.retention_days)


def _open_reviews(
    settings: Settings,
    state: State,
    datasets: DatasetService,
    store: FrameStore,
    models: ModelRegistry,
    closing: ExitStack,
) -> _ServedReviews:
    from steelyard.services.dataset_ingest import RowBounds
    from steelyard.services.draft_reviews import Reviews
    from steelyard.services.draft_rows import DraftRows
    from steelyard.services.draft_seals import DraftSeals
    from steelyard.services.drafts import DraftService
    from steelyard.services.idempotency import KeyedWrites
    from steelyard.services.suspects import SuspectSearch

    reviews, writes = Reviews(state), KeyedWrites(state)
    drafts = DraftService(state, datasets, store, writes, reviews)
    datasets.register_reader(drafts.reader_of)
    embedding = models.default
    suspects = SuspectSearch(store, embed=embedding.embed, scorer=embedding.evaluation_key)
    closing.callback(suspects.close)
    bounds = RowBounds(settings.dataset_min_rows, settings.dataset_rows)
    return _ServedReviews(
        drafts,
        DraftRows(drafts, store, reviews, suspects, writes),
        DraftSeals(drafts, datasets, store, writes, reviews, bounds=bounds),
    )


@dataclass(frozen=True, slots=True)
class _ServedLines:
    """What a server answers for families, and for calls to them."""

    keeper: LineKeeper
    families: FamilyService
    fine_tunes: FineTuneJobs
    calls: TunedCalls


def _open_lines(
    settings: Settings,
    state: State,
    datasets: FrameStore,
    models: ModelRegistry,
    bases: Mapping[str, Base],
    host: RemoteHost | None,
    wake: Callable[[], None],
    closing: ExitStack,
) -> _ServedLines:
    from steelyard.families.fees import Tariff
    from steelyard.services.families import FamilyService
    from steelyard.services.fine_tune_jobs import FineTuneJobs
    from steelyard.services.line_clock import LineClock
    from steelyard.services.lines import LineKeeper
    from steelyard.services.operations import KeyedWrites
    from steelyard.services.tuned_calls import TunedCalls

    tuned = _open_tuned(settings, _open_artifacts(settings), bases, host, closing)
    keeper = LineKeeper(state, _line_rules(settings, models), engines=tuned, wake=wake)
    writes = KeyedWrites(state)
    families = FamilyService(
        state,
        keeper,
        writes,
        _tuning_rows(state, datasets, models),
        models,
        tariff=Tariff(token_nano=settings.fine_tune_price, minimum_nano=settings.fine_tune_minimum),
        warm_wait_s=settings.warm_wait_s,
    )
    # Before the engines that it may ask for models.
    closing.callback(LineClock(families.tick).close)
    return _ServedLines(
        keeper,
        families,
        FineTuneJobs(state, keeper, writes, _open_frames(settings, "fine_tunes")),
        TunedCalls(families, tuned, bases, warm_wait_s=settings.warm_wait_s),
    )


def _has_jobs(connection: Connection) -> bool:
    """Tell whether there is an evaluation or a fine-tune that has not ended."""
    from steelyard.storage.state import evaluations, fine_tunes

    return evaluations.has_unfinished(connection) or fine_tunes.has_unfinished(connection)


def _open_artifacts(settings: Settings) -> ArtifactStore:
    from steelyard.storage.frames.artifacts import ArtifactStore

    return ArtifactStore(_open_frames(settings, "models"), home_of(settings) / "models")


def _job_sweeps(settings: Settings, state: State) -> list[Callable[[], object]]:
    """Give what removes files that no job needs; the worker ends before it would sweep."""
    from steelyard.services.job_files import FineTuneFiles, sweep_predictions

    fine_tunes = FineTuneFiles(
        state,
        _open_artifacts(settings),
        _open_frames(settings, "fine_tunes"),
        home_of(settings) / "fine_tunes",
    )
    predictions = _open_frames(settings, "evaluations")
    return [functools.partial(sweep_predictions, state, predictions), fine_tunes.sweep]


def _open_tuned(
    settings: Settings,
    artifacts: ArtifactStore,
    bases: Mapping[str, Base],
    host: RemoteHost | None,
    closing: ExitStack,
) -> TunedModels:
    from steelyard.services.tuned_models import TunedModels

    tuned = TunedModels(
        artifacts,
        bases,
        functools.partial(_load_tuned, host=host),
        max_loaded=settings.loaded_models,
        max_queue=settings.max_queue,
        threads=settings.threads or None,
        close_s=settings.shutdown_s,
    )
    closing.callback(tuned.close)
    return tuned


def _load_tuned(
    folder: Path, base: Any, *, threads: int | None, adapter: str, host: RemoteHost | None
) -> Scorer:
    # Imported by the first tuned model: what heads need is slow to import.
    from steelyard.scoring.tuned import load_tuned

    return load_tuned(folder, base, threads=threads, host=host, hosted_name=adapter)


def _line_rules(settings: Settings, models: ModelRegistry) -> LineRules:
    from steelyard.services.lines import LineRules

    return LineRules.of(settings, models.names, trainable=models.names)


def _tuning_rows(state: State, store: FrameStore, models: ModelRegistry) -> TuningRows:
    from steelyard.services.trainer_bases import lacking_for_lora
    from steelyard.services.tuning_rows import TuningRows

    def tokenizer_of(base: str) -> tuple[TokenCounter, int]:
        hosted = models.get(base)
        return hosted.decide.tokenizer, hosted.max_input_tokens

    return TuningRows(state, store, tokenizer_of, lacking_for_lora=lacking_for_lora)


def _count_decisions(store: FrameStore, at: FrozenDataset) -> int:
    from steelyard.storage.frames.scanning import load_definitions

    return sum(definition.evaluation for definition in load_definitions(store, at.manifest))


def _open_frames(settings: Settings, name: str) -> FrameStore:
    from steelyard.storage.frames.store import open_store

    try:
        return open_store(frames_url_of(settings), name)
    except ValueError as error:
        raise InvalidSettingError(
            f"The setting frames_url (STEELYARD_FRAMES_URL) cannot be used: {error}"
        ) from error


class _Default:
    """The process's deployment. A forked child makes its own: threads do not survive a fork."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self._lock = threading.Lock()
        self._deployment: Deployment | None = None

    def get(self) -> Deployment:
        with self._lock:
            if self._deployment is None:
                self._deployment, _ = _build(read_settings(), load_named_model)
            return self._deployment


_default = _Default()
os.register_at_fork(after_in_child=_default.forget)


def default_deployment() -> Deployment:
    """Give this process's deployment, built from the environment at the first call."""
    return _default.get()


def _build(settings: Settings, load_model: ModelLoader) -> tuple[Deployment, Batcher]:
    model = load_model(settings.engine, settings.threads or None)
    batcher = Batcher(model.scorer, max_queue=settings.max_queue)
    decide = DecideService(
        model_name=model.scorer.name,
        temperatures=model.temperatures,
        tokenizer=model.tokenizer,
    )
    answers = AnswerService(decide, batcher, deadline_s=settings.deadline_s)
    return Deployment(answers, model, settings), batcher
