"""A fine-tuned model: its artifact read from a folder, and the scorer made of it and its base.

An artifact is a folder whose ``manifest.json`` names the SHA-256 of every other file in it, and
which is itself named by the SHA-256 of that manifest. It holds heads for the decisions that the
model was trained on and, where LoRA was trained, its adapter, merged into the base model at load.

Here: checking and loading an artifact, and answering with it. Not here: where artifacts are kept
(``steelyard.storage.artifacts``), how they are made (``steelyard.trainer``).
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Literal, cast

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.errors import EngineUnavailableError
from steelyard.scoring.assets import MANIFEST
from steelyard.scoring.batching import SHORT_BATCH_CHARACTERS
from steelyard.scoring.entailment.reader import EvidenceReader, reader_in
from steelyard.scoring.heads import Head, Heads
from steelyard.scoring.merging import merged_scorer
from steelyard.scoring.novelty import TrainingTexts, word_vectors
from steelyard.scoring.protocol import EngineStatus, ScoredDecision, Scorer
from steelyard.scoring.remote.engine_host import RemoteHost
from steelyard.scoring.shipped import READER
from steelyard.wire.decoding import decode
from steelyard.wire.methods import Method

FORMAT: Literal["steelyard-model-1"] = "steelyard-model-1"

#: How many times as long as another call one of words alone is.
_QUICK = 16
_NO_ANSWERS: Mapping[int, NDArray[np.float32]] = {}
_REPAIR = "restore it from a backup, or continue its family to make another"


class ArtifactBase(Struct, frozen=True, kw_only=True):
    """The base model that an artifact was trained on."""

    name: str
    sha256: str
    engine: str


class ArtifactReader(Struct, frozen=True, kw_only=True):
    """The reader whose evidence an artifact's heads read."""

    name: str
    sha256: str


class ArtifactManifest(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The manifest of an artifact."""

    format: Literal["steelyard-model-1"]
    base: ArtifactBase
    method: Method
    has_adapter: bool
    parent_sha256: str | None
    versions: dict[str, str]
    files: dict[str, str]
    reader: ArtifactReader | None = None


class TunedScorer:
    """Answers decisions that it has a head for through the head, any other through a scorer.

    A head that needs nothing of the scorer spares its pass. Keeps every promise of a ``Scorer``
    where the scorer below does. Thread-safe.
    """

    def __init__(
        self,
        heads: Heads,
        scorer: Scorer,
        *,
        owns_scorer: bool = False,
        training: TrainingTexts | None = None,
        reader: EvidenceReader | None = None,
    ) -> None:
        #: What it knows of the texts that it was trained on.
        self.training = training
        #: Heads by the decisions that they answer, and the answerer of decisions without one.
        self.heads, self.scorer = heads, scorer
        #: The reader whose evidence heads may read.
        self.reader = reader
        self._owns_scorer = owns_scorer
        self._is_open = True

    @property
    def name(self) -> str:
        """Name of the base model."""
        return self.scorer.name

    @property
    def engine(self) -> str:
        """Engine and precision."""
        return self.scorer.engine

    def give_back(self) -> None:
        """Return the memory of the base's passes to the system, where it can."""
        give_back: Callable[[], None] | None = getattr(self.scorer, "give_back", None)
        if give_back is not None:
            give_back()

    @property
    def call_characters(self) -> int:
        """The characters of short requests for one call: words alone take longer to begin than to read."""
        heads = list(self.heads)
        is_quick = bool(heads) and all(head.reads_words_alone for head in heads)
        return SHORT_BATCH_CHARACTERS * (_QUICK if is_quick else 1)

    def score(self, requests: Sequence[RenderedRequest]) -> list[list[ScoredDecision]]:
        """Score every decision of every request, in the order given."""
        self._check_open()
        heads = [self.heads_of(request) for request in requests]
        base_requests = [self.request_below(*pair) for pair in zip(requests, heads, strict=True)]
        needed = [request for request in base_requests if request is not None]
        below = iter(self.scorer.score(needed) if needed else ())
        vectors = self._embed_contexts(requests, heads)
        by_words = _answer_words(requests, heads) if len(requests) > 1 else {}
        return [
            self.answer(
                request,
                head,
                () if base_request is None else next(below),
                vectors,
                by_words.get(place, {}),
            )
            for place, (request, head, base_request) in enumerate(
                zip(requests, heads, base_requests, strict=True)
            )
        ]

    def heads_of(self, request: RenderedRequest) -> list[Head | None]:
        """Return the head of each decision; None where there is none."""
        return [self.heads.find(decision) for decision in request.decisions]

    @staticmethod
    def request_below(
        request: RenderedRequest, heads: Sequence[Head | None]
    ) -> RenderedRequest | None:
        """Return the part of a request that the lower scorer must answer; None where heads need none."""
        # Answers do not depend on the decisions beside them, so that leaving some out is the same.
        decisions = tuple(
            decision
            for decision, head in zip(request.decisions, heads, strict=True)
            if _needs_base(head)
        )
        return replace(request, decisions=decisions) if decisions else None

    def answer(
        self,
        request: RenderedRequest,
        heads: Sequence[Head | None],
        below: Sequence[ScoredDecision],
        vectors: Mapping[str, NDArray[np.float32]],
        by_words: Mapping[int, NDArray[np.float32]] = _NO_ANSWERS,
    ) -> list[ScoredDecision]:
        """Answer a request from the lower scorer's answers to ``request_below``.

        ``by_words`` has answers that are known, of heads of words alone, by the decision's place.
        """
        self._check_open()
        answers, vector = iter(below), vectors.get(request.context)
        scored = [
            self._answer(
                request, decision, head, next(answers) if _needs_base(head) else None, vector
            )
            if place not in by_words
            else _of_words(by_words[place])
            for place, (decision, head) in enumerate(zip(request.decisions, heads, strict=True))
        ]
        novelty = self._novelty(request, vector)
        return (
            scored if novelty is None else [replace(answer, novelty=novelty) for answer in scored]
        )

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a unit vector of each text, (n_texts, width), as the scorer below does."""
        self._check_open()
        embed = getattr(self.scorer, "embed", None)
        if embed is None:
            raise EngineUnavailableError(
                f"The model {self.name} has no vectors of texts; use a model of another engine."
            )
        return cast("NDArray[np.float32]", embed(texts))

    def engine_status(self) -> EngineStatus | None:
        """Return where passes go; ``None`` where they run in this process and nowhere else."""
        status: Callable[[], EngineStatus | None] = getattr(
            self.scorer, "engine_status", lambda: None
        )
        return status()

    def close(self) -> None:
        """Refuse every later ``score``; release unshared resources."""
        self._is_open = False
        if self._owns_scorer:
            self.scorer.close()

    def _embed_contexts(
        self, requests: Sequence[RenderedRequest], heads: Sequence[Sequence[Head | None]]
    ) -> dict[str, NDArray[np.float32]]:
        contexts = list(
            dict.fromkeys(
                request.context
                for request, request_heads in zip(requests, heads, strict=True)
                if (
                    self.training is not None
                    and not self.training.of_words
                    and request.false_alarms is not None
                )
                or any(head is not None and head.needs_embedding for head in request_heads)
            )
        )
        return dict(zip(contexts, self.embed(contexts), strict=True)) if contexts else {}

    def _novelty(
        self, request: RenderedRequest, vector: NDArray[np.float32] | None
    ) -> tuple[float, bool] | None:
        if request.false_alarms is None or self.training is None:
            return None
        if self.training.of_words:
            vector = word_vectors([request.context])[0]
        if vector is None:
            return None
        limit = self.training.limit(request.false_alarms)
        if limit is None:
            return None
        distance = float(self.training.distances_of(vector[None])[0])
        return self.training.share_further(distance), distance > limit

    def _answer(
        self,
        request: RenderedRequest,
        decision: RenderedDecision,
        head: Head | None,
        scored: ScoredDecision | None,
        vector: NDArray[np.float32] | None,
    ) -> ScoredDecision:
        if head is None:
            assert scored is not None  # noqa: S101  # decisions without a head were asked below
            return replace(scored, is_untrained=True)
        embedding = vector if head.needs_embedding else None
        evidence = None
        if self.reader is not None and head.needs_evidence:
            [[evidence]] = self.reader.score([replace(request, decisions=(decision,))])
        logs = head.log_probabilities(request.context, decision, scored, embedding, evidence)
        empty = np.zeros((len(decision.outcomes), 0), np.float32)
        vectors = empty if scored is None else scored.marker_vectors
        return ScoredDecision(np.asarray(logs, np.float32), vectors, is_calibrated=True)

    def _check_open(self) -> None:
        if not self._is_open:
            raise EngineUnavailableError(
                "The fine-tuned model was unloaded; try again.", retry_after_s=1.0
            )


def _answer_words(
    requests: Sequence[RenderedRequest], heads: Sequence[Sequence[Head | None]]
) -> dict[int, dict[int, NDArray[np.float32]]]:
    """Answers by heads of words alone, each head all of its contexts at once.

    Returns log probabilities by the places of the request and of its decision.
    """
    asking: dict[str, tuple[Head, list[tuple[int, int]]]] = {}
    for at, request_heads in enumerate(heads):
        for place, head in enumerate(request_heads):
            if head is not None and head.reads_words_alone:
                asking.setdefault(head.spec.fingerprint, (head, []))[1].append((at, place))
    answers: dict[int, dict[int, NDArray[np.float32]]] = defaultdict(dict)
    for head, places in asking.values():
        logs = head.answer_words(
            [(requests[at].context, requests[at].decisions[place]) for at, place in places]
        )
        for (at, place), each in zip(places, logs, strict=True):
            answers[at][place] = each
    return answers


def _of_words(logs: NDArray[np.float32]) -> ScoredDecision:
    return ScoredDecision(logs, np.zeros((len(logs), 0), np.float32), is_calibrated=True)


def _needs_base(head: Head | None) -> bool:
    return head is None or head.needs_base


def identity_of(scorer: Scorer) -> str:
    """Identify a scorer's weights, on any engine."""
    own = getattr(scorer, "sha256", "")
    return own or hashlib.sha256(scorer.name.encode()).hexdigest()


def read_artifact(folder: Path) -> ArtifactManifest:
    """Read an artifact's manifest; the other files are not looked at."""
    path = folder / MANIFEST
    try:
        manifest = decode(path.read_bytes(), ArtifactManifest)
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
    """Check every file of an artifact against its manifest."""
    manifest = read_artifact(folder)
    digest = hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()
    if sha256 is not None and digest != sha256:
        raise _unusable(f"has a {MANIFEST} of another model", "files_altered")
    for name, expected in manifest.files.items():
        try:
            with (folder / name).open("rb") as file:
                is_same = hashlib.file_digest(file, "sha256").hexdigest() == expected
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
    host: RemoteHost | None = None,
    hosted_name: str = "",
    reader: Path = READER,
) -> TunedScorer:
    """Load a fine-tuned model, every file's SHA-256 checked; ``reader`` is the folder of the reader here."""
    manifest = check_artifact(folder)
    check_base(manifest, base)
    heads, training = _load_heads(folder)
    evidence = _find_reader(manifest, reader)
    if not manifest.has_adapter:
        return TunedScorer(heads, base, training=training, reader=evidence)
    merged = merged_scorer(
        getattr(base, "folder", None),
        folder,
        threads=threads or 0,
        engine=base.engine,
        host=host,
        hosted_name=hosted_name,
        hosted_sha256=hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest(),
    )
    return TunedScorer(heads, merged, owns_scorer=True, training=training, reader=evidence)


def _find_reader(manifest: ArtifactManifest, folder: Path) -> EvidenceReader | None:
    """Return the reader whose evidence an artifact's heads read; refuse another one."""
    if manifest.reader is None:
        return None
    reader = reader_in(folder)
    if reader.sha256 != manifest.reader.sha256:
        name = manifest.reader.name
        state = "has other weights here" if reader.sha256 else "is not here"
        raise EngineUnavailableError(
            f"The fine-tuned model reads the evidence of the reader {name}, which {state}; install the "
            f"Steelyard that {name} ships with, or roll the family back to a model without it.",
            details=[{"reason": "reader_missing"}],
        )
    return reader


def check_base(manifest: ArtifactManifest, base: Scorer) -> None:
    """Refuse a base model that an artifact was not trained on."""
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


def _load_heads(folder: Path) -> tuple[Heads, TrainingTexts | None]:
    try:
        return Heads.load(folder), TrainingTexts.load(folder)
    except EngineUnavailableError:
        raise
    except (OSError, ValueError, KeyError, msgspec.MsgspecError) as error:
        # The hashes are right, so the files were written in a form that this cannot read.
        raise _unusable("has heads that this version cannot read", "files_altered") from error


def _unusable(what: str, reason: str) -> EngineUnavailableError:
    message = f"The fine-tuned model cannot be loaded: it {what}; {_REPAIR}."
    return EngineUnavailableError(message, details=[{"reason": reason}])
