"""A fine-tuned model: its artifact read from a folder, and the scorer made of it and its base.

An artifact is a folder whose ``manifest.json`` names the SHA-256 of every other file in it, and
which is itself named by the SHA-256 of that manifest. It holds heads for the decisions that the
model was trained on and, where LoRA was trained, its adapter, merged into the base model at load.

Here: checking and loading an artifact, and answering with it. Not here: where artifacts are kept
(``steelyard.storage.frames.artifacts``), how they are made (``steelyard.training.fine_tune``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Literal, cast

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.errors import EngineUnavailableError
from steelyard.scoring.assets import MANIFEST
from steelyard.scoring.engine_host import EngineHost
from steelyard.scoring.heads import Head, Heads
from steelyard.scoring.merging import merged_scorer
from steelyard.scoring.protocol import EngineStatus, ScoredDecision, Scorer
from steelyard.wire.evaluations import Method

FORMAT: Literal["steelyard-model-1"] = "steelyard-model-1"

_REPAIR = "restore it from a backup, or continue its family to make another"


class ArtifactBase(Struct, frozen=True, kw_only=True):
    """The base model that an artifact was trained on.

    Parameters
    ----------
    name : str
    sha256 : str
        Names its files; see ``identity_of``.
    engine : str
        Engine and precision that the heads learned from.
    """

    name: str
    sha256: str
    engine: str


class ArtifactManifest(Struct, frozen=True, kw_only=True):
    """What an artifact is made of.

    Parameters
    ----------
    format : str
        ``steelyard-model-1``.
    base : ArtifactBase
    method : {"sft", "reward"}
    has_adapter : bool
        Whether a LoRA adapter is among the files.
    parent_sha256 : str or None
        The artifact that it was trained from.
    versions : dict of str to str
        Of the packages that its bytes depend on.
    files : dict of str to str
        Path of every other file, with forward slashes, to its SHA-256 in hex.
    """

    format: Literal["steelyard-model-1"]
    base: ArtifactBase
    method: Method
    has_adapter: bool
    parent_sha256: str | None
    versions: dict[str, str]
    files: dict[str, str]


class TunedScorer:
    """Answers decisions that it has a head for through the head, any other through a scorer.

    Parameters
    ----------
    heads : steelyard.scoring.heads.Heads
    scorer : Scorer
        The base model, or the base model with LoRA merged in.
    owns_scorer : bool, default False
        Whether ``close`` closes it too; a base model that others share stays open.

    Notes
    -----
    A head that needs nothing of the scorer spares its pass. Keeps every promise of a ``Scorer``
    where the scorer below does. Thread-safe.
    """

    def __init__(self, heads: Heads, scorer: Scorer, *, owns_scorer: bool = False) -> None:
        self._heads = heads
        self._scorer = scorer
        self._owns_scorer = owns_scorer
        self._is_open = True

    @property
    def name(self) -> str:
        """Name of the base model."""
        return self._scorer.name

    @property
    def engine(self) -> str:
        """Engine and precision."""
        return self._scorer.engine

    @property
    def heads(self) -> Heads:
        """Heads by the decisions that they answer."""
        return self._heads

    @property
    def scorer(self) -> Scorer:
        """What reads contexts and answers decisions that have no head."""
        return self._scorer

    def score(self, requests: Sequence[RenderedRequest]) -> list[list[ScoredDecision]]:
        """Score every decision of every request, in the order given.

        Returns
        -------
        list of list of ScoredDecision
            A head's are log probabilities, and say that they are calibrated.

        Raises
        ------
        steelyard.errors.EngineUnavailableError
            After ``close``, or when the engine cannot answer.
        """
        self._check_open()
        heads = [[self._heads.find(decision) for decision in one.decisions] for one in requests]
        below = self._score_below(requests, heads)
        vectors = self._embed_contexts(requests, heads)
        return [
            [
                _answer(request.context, decision, head, scored, vectors.get(request.context))
                for decision, head, scored in zip(request.decisions, found, passed, strict=True)
            ]
            for request, found, passed in zip(requests, heads, below, strict=True)
        ]

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Give a unit vector of each text, as the scorer below does.

        Returns
        -------
        float32 array, shape (n_texts, width)

        Raises
        ------
        steelyard.errors.EngineUnavailableError
            After ``close``, or when the scorer below gives none.
        """
        self._check_open()
        embed = getattr(self._scorer, "embed", None)
        if embed is None:
            raise EngineUnavailableError(
                f"The model {self.name} gives no vectors of texts; take a model of another engine."
            )
        return cast("NDArray[np.float32]", embed(texts))

    def engine_status(self) -> EngineStatus | None:
        """Tell where passes go; ``None`` where they run in this process and nowhere else."""
        status: Callable[[], EngineStatus | None] | None = getattr(
            self._scorer, "engine_status", None
        )
        return None if status is None else status()

    def close(self) -> None:
        """Refuse every later ``score``; release what is not shared."""
        self._is_open = False
        if self._owns_scorer:
            self._scorer.close()

    def _score_below(
        self, requests: Sequence[RenderedRequest], heads: Sequence[Sequence[Head | None]]
    ) -> list[list[ScoredDecision | None]]:
        """Score in one call what the scorer must; None where a head needs none of it."""
        wanted = [
            [place for place, head in enumerate(found) if head is None or head.needs_base]
            for found in heads
        ]
        asked = [
            RenderedRequest(request.context, tuple(request.decisions[place] for place in places))
            for request, places in zip(requests, wanted, strict=True)
            if places
        ]
        # Answers do not depend on what is asked beside them, so that leaving some out is the same.
        answers = iter(self._scorer.score(asked) if asked else ())
        scored: list[list[ScoredDecision | None]] = []
        for request, places in zip(requests, wanted, strict=True):
            row: list[ScoredDecision | None] = [None] * len(request.decisions)
            if places:
                for place, one in zip(places, next(answers), strict=True):
                    row[place] = one
            scored.append(row)
        return scored

    def _embed_contexts(
        self, requests: Sequence[RenderedRequest], heads: Sequence[Sequence[Head | None]]
    ) -> dict[str, NDArray[np.float32]]:
        contexts = list(
            dict.fromkeys(
                request.context
                for request, found in zip(requests, heads, strict=True)
                if any(head is not None and head.needs_embedding for head in found)
            )
        )
        return dict(zip(contexts, self.embed(contexts), strict=True)) if contexts else {}

    def _check_open(self) -> None:
        if not self._is_open:
            raise EngineUnavailableError(
                "The fine-tuned model was unloaded; try again.", retry_after_s=1.0
            )


def identity_of(scorer: Scorer) -> str:
    """Name what a scorer's answers come from, whichever engine runs it.

    Returns
    -------
    str
        SHA-256 in hex: the scorer's own ``sha256`` where it tells one, else of its name.
    """
    own = getattr(scorer, "sha256", "")
    return own or hashlib.sha256(scorer.name.encode()).hexdigest()


def read_artifact(folder: Path) -> ArtifactManifest:
    """Read an artifact's manifest; the other files are not looked at.

    Raises
    ------
    steelyard.errors.EngineUnavailableError
        When there is none, or it is no manifest of this format.
    """
    path = folder / MANIFEST
    try:
        manifest = msgspec.json.decode(path.read_bytes(), type=ArtifactManifest)
    except OSError as error:
        raise _unusable(f"has no {MANIFEST}", "files_missing") from error
    except msgspec.DecodeError as error:
        raise _unusable(f"has a {MANIFEST} that cannot be read", "files_altered") from error
    for name in manifest.files:
        place = PurePosixPath(name)
        if place.is_absolute() or ".." in place.parts:
            raise _unusable(f"has a {MANIFEST} that names a file outside it", "files_altered")
    return manifest


def check_artifact(folder: Path, sha256: str | None = None) -> ArtifactManifest:
    """Check every file of an artifact against its manifest.

    Parameters
    ----------
    folder : pathlib.Path
    sha256 : str, optional
        What the manifest's SHA-256 must be; not looked at when left out.

    Raises
    ------
    steelyard.errors.EngineUnavailableError
        When the manifest cannot be read or is another, or a file is missing or altered.
    """
    manifest = read_artifact(folder)
    found = hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()
    if sha256 is not None and found != sha256:
        raise _unusable(f"has a {MANIFEST} of another model", "files_altered")
    for name, wanted in manifest.files.items():
        try:
            with (folder / name).open("rb") as file:
                is_same = hashlib.file_digest(file, "sha256").hexdigest() == wanted
        except OSError as error:
            raise _unusable(f"lacks its file {name}", "files_missing") from error
        if not is_same:
            raise _unusable(f"has a file {name} that was altered or cut short", "files_altered")
    return manifest


def load_tuned(
    folder: Path,
    base: Scorer,
    *,
    threads: int | None = None,
    host: EngineHost | None = None,
    hosted_name: str = "",
) -> TunedScorer:
    """Load a fine-tuned model, every file's SHA-256 checked.

    Parameters
    ----------
    folder : pathlib.Path
        Its artifact.
    base : Scorer
        The base model that it was trained on; it is shared, and stays open when the model closes.
    threads : int, optional
        Threads of a pass where an adapter is merged in; by default, every core.
    host : EngineHost, optional
        Makes its engine where an adapter is merged in; by default it runs in this process.
    hosted_name : str, optional
        What the host calls it: the model's identity, ``ft-ftj_…``.

    Raises
    ------
    steelyard.errors.EngineUnavailableError
        When it cannot be loaded. ``details`` has one entry, whose ``reason`` is ``files_missing``,
        ``files_altered``, ``base_mismatch`` (it was trained on another base model) or
        ``engine_changed`` (on another engine or precision of it).
    """
    manifest = check_artifact(folder)
    check_base(manifest, base)
    heads = _load_heads(folder)
    if not manifest.has_adapter:
        return TunedScorer(heads, base)
    merged = merged_scorer(
        getattr(base, "folder", None),
        folder,
        threads=threads or 0,
        engine=base.engine,
        host=host,
        hosted_name=hosted_name,
        hosted_sha256=hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest(),
    )
    return TunedScorer(heads, merged, owns_scorer=True)


def check_base(manifest: ArtifactManifest, base: Scorer) -> None:
    """Refuse a base model that an artifact was not trained on.

    Raises
    ------
    steelyard.errors.EngineUnavailableError
        With the reason ``base_mismatch`` or ``engine_changed``; see ``load_tuned``.
    """
    trained = manifest.base
    if trained.sha256 != identity_of(base):
        raise EngineUnavailableError(
            f"The fine-tuned model was trained on other weights than the base model {base.name} "
            f"has here; serve the {trained.name} that it was trained on, or fine-tune again.",
            details=[{"reason": "base_mismatch"}],
        )
    if trained.engine != base.engine:
        raise EngineUnavailableError(
            f"The fine-tuned model was trained on the engine {trained.engine}, and {base.name} runs "
            f"on {base.engine} here; set STEELYARD_ENGINE to {trained.engine}, or fine-tune again.",
            details=[{"reason": "engine_changed"}],
        )


def _load_heads(folder: Path) -> Heads:
    try:
        return Heads.load(folder)
    except EngineUnavailableError:
        raise
    except (OSError, ValueError, KeyError, msgspec.MsgspecError) as error:
        # The hashes are right, so that whoever wrote the files wrote what this cannot read.
        raise _unusable("has heads that this version cannot read", "files_altered") from error


def _answer(
    context: str,
    decision: RenderedDecision,
    head: Head | None,
    scored: ScoredDecision | None,
    vector: NDArray[np.float32] | None,
) -> ScoredDecision:
    if head is None:
        assert scored is not None  # noqa: S101  # what has no head was asked below
        return scored
    embedding = vector if head.needs_embedding else None
    logs = head.log_probabilities(context, decision, scored, embedding)
    empty = np.zeros((len(decision.outcomes), 0), np.float32)
    vectors = empty if scored is None else scored.marker_vectors
    return ScoredDecision(np.asarray(logs, np.float32), vectors, is_calibrated=True)


def _unusable(what: str, reason: str) -> EngineUnavailableError:
    details: list[dict[str, Any]] = [{"reason": reason}]
    return EngineUnavailableError(
        f"The fine-tuned model cannot be loaded: it {what}; {_REPAIR}.", details=details
    )
