"""Base models as a server has them: loaded as the settings say, each with its queue.

Here: the shipped model, the further ones of ``base_models``, and the test double. Not here: the
services that answer with them (``steelyard.app``), and fine-tuned models.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import logging
import re
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from steelyard.calibration.temperature import TemperatureTable
from steelyard.decisions.contexts import CLEANED_READING
from steelyard.decisions.tokens import TokenCounter
from steelyard.scoring.batching import Batcher
from steelyard.scoring.protocol import Scorer
from steelyard.scoring.shipped import HASHING
from steelyard.serving.decide import DecideService
from steelyard.settings import InvalidSettingError, Settings
from steelyard.wire.names import FOREIGN_PREFIX

if TYPE_CHECKING:
    from steelyard.ledger.prices import Prices
    from steelyard.scoring.remote.engine_host import RemoteHost
    from steelyard.serving.connected.declarations import Declarations
    from steelyard.serving.registry import Base, HostedModel, ModelRegistry

_log = logging.getLogger(__name__)

_MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_SHIPPED = "The base model that ships with Steelyard."
_DOUBLE = "A test double: its answers are fixed and mean nothing."


class LoadedModel(Protocol):
    """A loaded scorer with its tokenizer and calibration."""

    @property
    def scorer(self) -> Scorer:
        """The scorer of requests."""

    @property
    def tokenizer(self) -> TokenCounter:
        """Counts input tokens."""

    @property
    def temperatures(self) -> TemperatureTable:
        """Turns logits into calibrated probabilities."""

    @property
    def card(self) -> Path | None:
        """The model card, when there is one."""

    @property
    def manifest(self) -> Mapping[str, Any]:
        """Name, version, and the files with their hashes."""


@dataclass(frozen=True, slots=True)
class ModelDouble:
    """The hashing scorer in the shape of a loaded model; its answers mean nothing."""

    scorer: Scorer
    tokenizer: TokenCounter
    temperatures: TemperatureTable = field(default_factory=TemperatureTable)
    card: Path | None = None
    manifest: Mapping[str, Any] = field(default_factory=dict)


#: Loads a model: the engine's name, and its threads or ``None``.
ModelLoader = Callable[[str, int | None], LoadedModel]
#: Loads a model of the setting ``base_models``: name, folder or ``hashing``, engine, threads.
NamedModelLoader = Callable[[str, str, str, int | None], LoadedModel]


def load_named_model(
    engine: str, threads: int | None, host: RemoteHost | None = None
) -> LoadedModel:
    """Load the shipped model on an engine, or the test double."""
    if engine == HASHING:
        from steelyard.scoring.hashing import HashingScorer, WordCounter

        return ModelDouble(HashingScorer(), WordCounter())
    from steelyard.scoring.assets import load_base_model

    return load_base_model(engine=engine, threads=threads, host=host)


def load_further_model(
    name: str, source: str, engine: str, threads: int | None, host: RemoteHost | None = None
) -> LoadedModel:
    """Load a model of the setting ``base_models``."""
    if source == HASHING:
        from steelyard.scoring.hashing import HashingScorer, WordCounter

        return ModelDouble(HashingScorer(name, name=name), WordCounter())
    from steelyard.scoring.assets import AUTO, load_base_model

    return load_base_model(
        engine=AUTO if engine == HASHING else engine,
        threads=threads,
        folder=Path(source).expanduser(),
        host=host,
        hosted_name=name,
    )


def open_host(settings: Settings, closing: ExitStack) -> RemoteHost | None:
    """Return the maker of remote engines; ``None`` where the settings name no server."""
    if not settings.scorer:
        return None
    from steelyard.scoring.remote.engine_host import RemoteHost
    from steelyard.scoring.remote.triton_address import parse_scorer, read_tls

    host = RemoteHost(
        parse_scorer(settings.scorer, read_tls(settings)),
        falls_back=settings.scorer_fallback == "in-process",
        timeout_s=min(settings.scorer_timeout_s, settings.deadline_s),
    )
    closing.callback(host.close)
    return host


def parse_base_models(text: str) -> dict[str, str]:
    """Read the setting ``base_models``: name to folder, or to ``hashing``.

    >>> parse_base_models("small=/srv/models/small, double=hashing")
    {'small': '/srv/models/small', 'double': 'hashing'}
    """
    sources: dict[str, str] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, _, source = (part.strip() for part in entry.partition("="))
        if not _MODEL_NAME.fullmatch(name) or not source:
            raise _bad_base_model(entry, "write NAME=FOLDER or NAME=hashing")
        if name in sources:
            raise _bad_base_model(entry, f"name {name!r} once")
        if name.startswith(FOREIGN_PREFIX):
            raise _bad_base_model(entry, f"choose a name that starts other than {name[:3]!r}")
        sources[name] = source
    return sources


def _bad_base_model(entry: str, needed: str) -> InvalidSettingError:
    return InvalidSettingError(
        f"The setting base_models (STEELYARD_BASE_MODELS) has the entry {entry[:80]!r}; {needed}."
    )


def open_models(
    settings: Settings,
    prices: Prices,
    sources: Mapping[str, str],
    load_model: ModelLoader,
    load_further: NamedModelLoader,
    closing: ExitStack,
    host: RemoteHost | None,
    declarations: Declarations,
) -> tuple[ModelRegistry, dict[str, Base]]:
    """Load every model of the settings; the queue of each closes with ``closing``."""
    from steelyard.scoring.lower import CONTEXT_STATES, QUESTION_STATES
    from steelyard.serving.connected_hosting import ConnectedRegistry
    from steelyard.serving.registry import Base, ModelRegistry
    from steelyard.serving.routed.hosting import RoutedModels

    QUESTION_STATES.bound(settings.question_cache_bytes)
    CONTEXT_STATES.bound(settings.context_cache_bytes)
    threads = settings.threads or None
    shipped = load_model(settings.engine, threads)
    default = shipped.scorer.name
    hosted = [_host(default, shipped, _SHIPPED, settings, prices, closing)]
    scorers = [shipped.scorer]
    for name, source in sources.items():
        if name == default:
            raise _bad_base_model(
                f"{name}={source}", f"{name!r} is the default, which needs no entry: leave it out"
            )
        model = load_further(name, source, settings.engine, threads)
        description = f"A base model named {name}."
        hosted.append(_host(name, model, description, settings, prices, closing))
        scorers.append(model.scorer)
    bases = {model.name: Base(model, scorer) for model, scorer in zip(hosted, scorers, strict=True)}
    connected = ConnectedRegistry(settings, declarations, prices, shipped.tokenizer, bases, closing)
    routed = RoutedModels(hosted, connected)
    known = {model.name for model in (*hosted, *connected.current())}
    unknown = sorted(prices.by_model.keys() - known)
    if unknown:
        _log.warning("The setting prices names models that are not here: %s.", ", ".join(unknown))
    closing.callback(declarations.watch(connected.look).close)
    statuses = None if host is None else host.statuses
    registry = ModelRegistry(hosted, engine_statuses=statuses, connected=routed.current)
    return registry, bases


def _host(
    name: str,
    model: LoadedModel,
    description: str,
    settings: Settings,
    prices: Prices,
    closing: ExitStack,
) -> HostedModel:
    from steelyard.serving.registry import HostedModel, ModelFacts, ModelHealth

    queue = Batcher(model.scorer, max_queue=settings.max_queue)
    closing.callback(_close_model, queue, model.scorer, settings.shutdown_s)
    is_double = not model.manifest
    decide = DecideService(
        model_name=name,
        temperatures=model.temperatures,
        tokenizer=model.tokenizer,
        warns=reads_cleaned(model.scorer),
    )
    facts = ModelFacts(
        decide=decide,
        engine=model.scorer.engine,
        description=_DOUBLE if is_double else model.manifest.get("description", description),
        release_date=_release_date(model),
        evaluation_key=_identity(name, model),
        embed=getattr(model.scorer, "embed", getattr(model.scorer, "embed_words", None)),
    )
    health = ModelHealth(getattr(model.scorer, "engine_status", None))
    return HostedModel(facts, queue, price_nano=prices.of(name), health=health)


def reads_cleaned(scorer: Scorer) -> bool:
    """Whether a scorer leaves out unreadable parts, and recognises languages that it cannot read."""
    return int(getattr(scorer, "reading", 0)) >= CLEANED_READING


def _close_model(queue: Batcher, scorer: Scorer, timeout_s: float) -> None:
    if queue.close(timeout_s):
        scorer.close()
    else:
        # Closing an engine under the call that hangs in it would be worse than leaving it.
        _log.warning("The engine of %s did not end its last call; it is left.", scorer.name)


def _release_date(model: LoadedModel) -> dt.date:
    """Return the manifest's ``release_date``, or the day on which the model's files were written."""
    try:
        return dt.date.fromisoformat(str(model.manifest.get("release_date", "")))
    except ValueError:
        file = model.card if model.card is not None and model.card.exists() else Path(__file__)
        return dt.datetime.fromtimestamp(file.stat().st_mtime, dt.UTC).date()


def _identity(name: str, model: LoadedModel) -> str:
    """Return a hash that identifies a model's answers: of its files, its engine, its calibration."""
    manifest = model.manifest or {"name": name}
    keys = ("name", "files", "tokenizer", "temperatures", "reading")
    parts = {key: manifest[key] for key in keys if key in manifest}
    parts["engine"] = model.scorer.engine
    return hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()
