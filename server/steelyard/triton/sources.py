"""The models to serve: the base models of the settings, and the LoRA fine-tunes in use.

A fine-tune of heads alone has no weights of its own: its heads stay in the service, and its passes
are its base model's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from steelyard.errors import EngineUnavailableError, NotFoundError
from steelyard.families.lineage.lineage import answering, kept_warm, latest_of
from steelyard.families.store import StoredLineage, all_revisions, load_lineage
from steelyard.scoring.assets import AUTO
from steelyard.scoring.entailment.folder import EncoderFacts, read_folder
from steelyard.scoring.reading import identity_at
from steelyard.scoring.shipped import BASE, HASHING
from steelyard.scoring.tuned import read_artifact
from steelyard.serving.auto import completed
from steelyard.serving.base import parse_base_models
from steelyard.serving.connected.files import declared_in_place
from steelyard.serving.reader.declaring import WIRE
from steelyard.settings import InvalidSettingError, Settings, frames_url_of, home_of
from steelyard.storage import open_state
from steelyard.storage.artifacts import ArtifactStore
from steelyard.storage.frame_store import open_store
from steelyard.storage.home import state_url_of
from steelyard.triton.repository import ModelSource, Source, base_source, reader_source


@dataclass(frozen=True, slots=True)
class TunedModel:
    """A fine-tuned model in use."""

    adapter: str
    ref: str
    base: str
    artifact_sha256: str


@dataclass(frozen=True, slots=True)
class Exportable:
    """Models that can be exported, and why others cannot."""

    sources: list[Source] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    #: Names of all readers here.
    readers: list[str] = field(default_factory=list)


def find_sources(
    settings: Settings,
    *,
    names: Collection[str] = (),
    engine: str | None = None,
    with_readers: bool = False,
) -> Exportable:
    """Find the models that a Triton of these settings serves; readers where named or asked for."""
    plan = Exportable()
    chosen = engine or settings.engine
    if chosen == HASHING:
        chosen = AUTO
    bases = _find_bases(settings, chosen, plan)
    tuned = tuned_models(settings)
    readers = _find_readers(settings)
    plan.readers.extend(readers)
    requested = set(names)
    known = {
        *bases,
        *plan.left_out,
        *readers,
        *(key for model in tuned for key in (model.adapter, model.ref)),
    }
    unknown = sorted(requested - known)
    if unknown:
        raise NotFoundError(
            f"There is no model {unknown[0]!r} in use here; there are {', '.join(sorted(known))}."
        )
    if not requested:
        plan.sources.extend(bases.values())
    else:
        plan.sources.extend(source for name, source in bases.items() if name in requested)
        for name in plan.left_out.keys() - requested:
            del plan.left_out[name]
    for model in tuned:
        if not requested or requested & {model.adapter, model.ref}:
            _add_tuned(settings, model, bases, plan, is_named=bool(requested))
    for name in readers.keys() & requested if not with_readers else readers:
        try:
            plan.sources.append(reader_source(name, readers[name]()))
        except (InvalidSettingError, OSError) as error:
            plan.left_out[name] = f"Its folder cannot be used: {error}"
    return plan


def tuned_models(settings: Settings) -> list[TunedModel]:
    """Return the fine-tuned models in use, oldest first.

    In use are models that answer or are kept warm, and the newest of every family that is on: the
    family may move to it by itself. There are none before the state is made.
    """
    url = state_url_of(settings)
    if not _is_there(url):
        return []
    with closing(open_state(url)) as state:
        stored = state.read_now(
            lambda connection: [
                load_lineage(connection, account) for account in sorted(all_revisions(connection))
            ]
        )
    return [model for account in stored for model in models_in_use(account)]


def models_in_use(stored: StoredLineage) -> list[TunedModel]:
    """Return an account's models in use, oldest first; see ``tuned_models``."""
    lineage = stored.lineage
    adapters = answering(lineage).keys() | kept_warm(lineage).keys()
    for family in lineage.families.values():
        latest = latest_of(lineage, family) if family.switch.is_on else None
        if latest is not None:
            adapters.add(latest.adapter)
    models = sorted(
        (lineage.models[adapter] for adapter in adapters),
        key=lambda model: (model.created_at, model.family, model.version),
    )
    return [
        TunedModel(model.adapter, model.ref, model.base, stored.artifacts[model.adapter])
        for model in models
        if model.adapter in stored.artifacts
    ]


def tuned_source(folder: Path, model: TunedModel, base: ModelSource) -> ModelSource | None:
    """Return the source of a fine-tune's Triton model; ``None`` for one of heads alone."""
    manifest = read_artifact(folder)
    if not manifest.has_adapter:
        return None
    trained, files = manifest.base, base.files
    if trained.sha256 != identity_at(files.sha256, files.reading):
        raise EngineUnavailableError(
            f"It was trained on other weights of {trained.name} than those here; fine-tune again."
        )
    if trained.engine != files.engine:
        raise EngineUnavailableError(
            f"It was trained on the engine {trained.engine}, and this is for {files.engine}; use "
            f"--engine {trained.engine}, or fine-tune again."
        )
    return ModelSource(model.adapter, model.artifact_sha256, files, folder)


def _find_bases(settings: Settings, engine: str, plan: Exportable) -> dict[str, ModelSource]:
    shipped = base_source(engine=engine)
    bases = {shipped.name: shipped}
    for name, source in parse_base_models(settings.base_models).items():
        if source == HASHING:
            plan.left_out[name] = "It is the test double, and has no weights."
        else:
            folder = Path(source).expanduser()
            bases[name] = base_source(folder, name=name, engine=engine)
    return bases


def _find_readers(settings: Settings) -> dict[str, Callable[[], EncoderFacts]]:
    """Return the functions that read each reader's folder, by the reader's name."""
    home = home_of(settings)
    return {
        name: partial(
            read_folder,
            home / model.file,
            labels=model.labels,
            hypothesis_first=model.hypothesis_first,
        )
        for name, model in completed(declared_in_place(settings), BASE.name).models.items()
        if model.wire == WIRE
    }


def _add_tuned(
    settings: Settings,
    model: TunedModel,
    bases: dict[str, ModelSource],
    plan: Exportable,
    *,
    is_named: bool,
) -> None:
    base = bases.get(model.base)
    if base is None:
        plan.left_out[model.adapter] = f"Its base model {model.base} is not here."
        return
    try:
        store = open_store(frames_url_of(settings), "models")
        folder = ArtifactStore(store, home_of(settings) / "models").fetch(model.artifact_sha256)
        source = tuned_source(folder, model, base)
    except EngineUnavailableError as error:
        plan.left_out[model.adapter] = error.message
        return
    if source is not None:
        plan.sources.append(source)
    elif is_named:  # else nobody misses it
        plan.left_out[model.adapter] = f"It has heads alone: its passes are those of {model.base}."


def _is_there(url: str) -> bool:
    """Return whether a state was ever made; looking for models makes none."""
    try:
        parsed = make_url(url)
    except ArgumentError:
        return True  # opening it says what is wrong
    if parsed.get_backend_name() != "sqlite":
        return True
    return Path(parsed.database or "").expanduser().is_file()
