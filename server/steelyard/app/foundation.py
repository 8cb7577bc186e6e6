"""What the rooms of a server and of its job worker are built on, and what both build of them."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import make_url

from steelyard.datasets.ingesting import RowBounds
from steelyard.datasets.service import DatasetService
from steelyard.decision_log.archive.files import ArchiveFiles
from steelyard.decisions.tokens import TokenCounter
from steelyard.families.fine_tuning.rows import TuningRows
from steelyard.families.lineage.lineage import LineageRules
from steelyard.families.tuned import TunedModels
from steelyard.ledger.prices import Prices
from steelyard.operations.idempotency import KeyedWrites
from steelyard.scoring.protocol import Scorer
from steelyard.scoring.remote.engine_host import RemoteHost
from steelyard.serving.base import (
    ModelLoader,
    NamedModelLoader,
    further_sources,
    load_further_model,
    load_named_model,
    open_host,
    open_models,
    parse_base_models,
)
from steelyard.serving.registry import Base, ModelRegistry
from steelyard.settings import InvalidSettingError, Settings, frames_url_of, home_of
from steelyard.storage import State, open_state
from steelyard.storage.artifacts import ArtifactStore
from steelyard.storage.damage import DamageNotes, damage_of_database, is_empty_database
from steelyard.storage.frame_store import FrameStore, open_store
from steelyard.storage.home import state_url_of


@dataclass(frozen=True, slots=True)
class Foundation:
    """The state, the base models and the rows of datasets; ``closing`` ends what is opened."""

    settings: Settings
    state: State
    host: RemoteHost | None
    models: ModelRegistry
    bases: Mapping[str, Base]
    rows: FrameStore
    closing: ExitStack

    @property
    def writes(self) -> KeyedWrites:
        """Writes once for each idempotency key."""
        return KeyedWrites(self.state)

    @property
    def bounds(self) -> RowBounds:
        """How many rows a dataset has."""
        return RowBounds(self.settings.dataset_min_rows, self.settings.dataset_rows)

    def frames(self, name: str) -> FrameStore:
        """Return the store of a room's files."""
        return open_frames(self.settings, name)

    def archive(self) -> ArchiveFiles:
        """Return the files of stored decisions that have left the state."""
        return ArchiveFiles(self.frames("decision_log"))

    def artifacts(self) -> ArtifactStore:
        """Return the files of tuned models."""
        return ArtifactStore(self.frames("models"), home_of(self.settings) / "models")


def lay_foundation(
    settings: Settings,
    load_model: ModelLoader | None,
    load_further: NamedModelLoader | None,
    closing: ExitStack,
) -> Foundation:
    """Open the state and load every base model."""
    _check_state_is_there(settings)
    state = open_state(state_url_of(settings), DamageNotes(home_of(settings)))
    closing.callback(state.close)
    host = open_host(settings, closing)
    models, bases = open_models(
        settings,
        Prices.parse(settings.prices),
        further_sources(settings)
        if load_model is None
        else parse_base_models(settings.base_models),
        load_model or functools.partial(load_named_model, host=host),
        load_further or functools.partial(load_further_model, host=host),
        closing,
        host,
    )
    return Foundation(
        settings, state, host, models, bases, open_frames(settings, "datasets"), closing
    )


def _check_state_is_there(settings: Settings) -> None:
    """Refuse to make a state beside files that another one refers to."""
    path = state_path_of(settings)
    if path is None or settings.new_state == "on" or not is_empty_database(path):
        return
    frames = home_of(settings) / "frames"
    if next(frames.glob("*/owner/state"), None) is not None:
        raise InvalidSettingError(
            f"The state {path} is empty or missing, and {frames} has the files of one. Put it back, "
            "with `steelyard restore` from a backup; or start with --new-state on, which begins anew "
            "and leaves the files."
        )


def open_frames(settings: Settings, name: str) -> FrameStore:
    """Return the store of a room's files."""
    try:
        return open_store(frames_url_of(settings), name, DamageNotes(home_of(settings)))
    except ValueError as error:
        raise InvalidSettingError(
            f"The setting frames_url (STEELYARD_FRAMES_URL) cannot be used: {error}"
        ) from error


def state_path_of(settings: Settings) -> Path | None:
    """Return the file of the state; ``None`` where it is not in SQLite."""
    url = make_url(state_url_of(settings))
    if url.get_backend_name() != "sqlite" or not url.database:
        return None
    return Path(url.database).expanduser().absolute()


def database_damage(settings: Settings, *, deep: bool = False) -> str | None:
    """Return what is wrong with the file of the state; ``None`` also where it has none."""
    path = state_path_of(settings)
    return None if path is None else damage_of_database(path, deep=deep)


def open_datasets(on: Foundation) -> DatasetService:
    """Return the datasets of every account."""
    return DatasetService(on.state, on.rows, on.writes, bounds=on.bounds)


def open_tuned(on: Foundation) -> TunedModels:
    """Return what loads tuned models in this process."""
    settings = on.settings
    tuned = TunedModels(
        on.artifacts(),
        on.bases,
        functools.partial(_load_tuned, host=on.host),
        find_base=on.models.find,
        max_loaded=settings.loaded_models,
        max_queue=settings.max_queue,
        threads=settings.threads or None,
        close_s=settings.shutdown_s,
    )
    on.closing.callback(tuned.close)
    return tuned


def rules_of_lineages(on: Foundation) -> LineageRules:
    """Return what holds for every account's models."""
    return LineageRules.of(on.settings, on.models.names)


def rows_to_tune_on(on: Foundation) -> TuningRows:
    """Return what reads the rows of fine-tunes."""

    def tokenizer_of(base: str) -> tuple[TokenCounter, int]:
        hosted = on.models.get(base)
        return hosted.decide.tokenizer, hosted.max_input_tokens

    return TuningRows(on.state, on.rows, tokenizer_of)


def _load_tuned(
    folder: Path, base: Any, *, threads: int | None, adapter: str, host: RemoteHost | None
) -> Scorer:
    # Imported by the first tuned model: what heads need is slow to import.
    from steelyard.scoring.tuned import load_tuned  # noqa: PLC0415

    return load_tuned(folder, base, threads=threads, host=host, hosted_name=adapter)
