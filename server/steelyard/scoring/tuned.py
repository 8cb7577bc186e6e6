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
from typing import Literal, NamedTuple, cast

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from steelyard.calibration.temperature import TemperatureTable
from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.errors import EngineUnavailableError
from steelyard.scoring.assets import MANIFEST
from steelyard.scoring.batching import SHORT_BATCH_CHARACTERS
from steelyard.scoring.entailment.reader import EvidenceReader, reader_in
from steelyard.scoring.heads import Head, Heads
from steelyard.scoring.ladder import READING_STEP, WORDS_STEP, Ladder
from steelyard.scoring.merging import merged_scorer
from steelyard.scoring.novelty import TrainingTexts, word_vectors
from steelyard.scoring.protocol import EngineStatus, RouteStepScore, ScoredDecision, Scorer
from steelyard.scoring.remote.engine_host import RemoteHost
from steelyard.scoring.shipped import READER
from steelyard.wire.decoding import decode
from steelyard.wire.methods import Method

FORMAT: Literal["steelyard-model-1"] = "steelyard-model-1"

#: How many times as long as another call one of words alone is.
_QUICK = 16
_CALIBRATED = TemperatureTable()
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


class DecisionHead(NamedTuple):
    """The head that answers a decision; the scorer below does where it is ``None``.

    ``logs`` are its log probabilities where they are known already; ``words_top`` is the top probability
    of the first step of a ladder where that was asked, and ``stands`` whether its answer stands.
    """

    head: Head | None
    logs: NDArray[np.float32] | None = None
    words_top: float | None = None
    stands: bool = False

    @property
    def needs_base(self) -> bool:
        """Whether the scorer below has to answer the decision."""
        return self.logs is None and (self.head is None or self.head.needs_base)

    @property
    def needs_embedding(self) -> bool:
        """Whether the vector of the context is read."""
        return self.logs is None and self.head is not None and self.head.needs_embedding


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
        ladder: Ladder | None = None,
    ) -> None:
        #: What it knows of the texts that it was trained on.
        self.training = training
        #: Heads by the decisions that they answer, and the answerer of decisions without one.
        self.heads, self.scorer = heads, scorer
        #: The reader whose evidence heads may read.
        self.reader = reader
        #: The step before its heads.
        self.ladder = ladder
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
        if heads and all(head.reads_words_alone for head in heads):
            return SHORT_BATCH_CHARACTERS * _QUICK
        share = 0.0 if self.ladder is None else self.ladder.share
        # As many characters as before go on to the base.
        return int(SHORT_BATCH_CHARACTERS / max(1 - share, 1 / _QUICK))

    def score(self, requests: Sequence[RenderedRequest]) -> list[list[ScoredDecision]]:
        """Score every decision of every request, in the order given."""
        self._check_open()
        chosen = self.choose(requests)
        base_requests = [self.request_below(*pair) for pair in zip(requests, chosen, strict=True)]
        needed = [request for request in base_requests if request is not None]
        below = iter(self.scorer.score(needed) if needed else ())
        vectors = self._embed_contexts(requests, chosen)
        return [
            self.answer(request, heads, () if base_request is None else next(below), vectors)
            for request, heads, base_request in zip(requests, chosen, base_requests, strict=True)
        ]

    def choose(self, requests: Sequence[RenderedRequest]) -> list[list[DecisionHead]]:
        """Return what answers each decision of each request."""
        heads = [[self.heads.find(decision) for decision in row.decisions] for row in requests]
        known = _answer_words(requests, heads) if len(requests) > 1 else {}
        chosen = [
            [
                DecisionHead(head, known.get(at, {}).get(place))
                for place, head in enumerate(request_heads)
            ]
            for at, request_heads in enumerate(heads)
        ]
        if self.ladder is not None:
            self._climb(self.ladder, requests, chosen)
        return chosen

    @staticmethod
    def request_below(
        request: RenderedRequest, chosen: Sequence[DecisionHead]
    ) -> RenderedRequest | None:
        """Return the part of a request that the lower scorer must answer; None where heads need none."""
        # Answers do not depend on the decisions beside them, so that leaving some out is the same.
        decisions = tuple(
            decision
            for decision, choice in zip(request.decisions, chosen, strict=True)
            if choice.needs_base
        )
        return replace(request, decisions=decisions) if decisions else None

    def answer(
        self,
        request: RenderedRequest,
        chosen: Sequence[DecisionHead],
        below: Sequence[ScoredDecision],
        vectors: Mapping[str, NDArray[np.float32]],
    ) -> list[ScoredDecision]:
        """Answer a request from the lower scorer's answers to ``request_below``."""
        self._check_open()
        answers, vector = iter(below), vectors.get(request.context)
        scored = [
            self._answer(
                request, decision, choice, next(answers) if choice.needs_base else None, vector
            )
            for decision, choice in zip(request.decisions, chosen, strict=True)
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

    def _climb(
        self, ladder: Ladder, requests: Sequence[RenderedRequest], chosen: list[list[DecisionHead]]
    ) -> None:
        """Put the answers of words in the place of heads, where words are sure of a text like theirs."""
        heads = [[ladder.find(decision) for decision in row.decisions] for row in requests]
        sure: list[tuple[int, int, NDArray[np.float32]]] = []
        for at, answers in _answer_words(requests, heads).items():
            steps = requests[at].n_steps
            for place, logs in answers.items():
                p_top = _p_top(logs)
                chosen[at][place] = chosen[at][place]._replace(words_top=p_top)
                if steps and steps[place]:  # an explanation asks who answered the whole text
                    if steps[place] == 1:
                        chosen[at][place] = DecisionHead(heads[at][place], logs, p_top, stands=True)
                elif ladder.is_sure(requests[at].decisions[place].kind, p_top):
                    sure.append((at, place, logs))
        # Of all contexts, which are hashed already.
        near = ladder.are_near([request.context for request in requests]) if sure else ()
        for at, place, logs in sure:
            if near[at]:
                words_top = chosen[at][place].words_top
                chosen[at][place] = DecisionHead(heads[at][place], logs, words_top, stands=True)

    def _embed_contexts(
        self, requests: Sequence[RenderedRequest], chosen: Sequence[Sequence[DecisionHead]]
    ) -> dict[str, NDArray[np.float32]]:
        contexts = list(
            dict.fromkeys(
                request.context
                for request, choices in zip(requests, chosen, strict=True)
                if (
                    self.training is not None
                    and not self.training.of_words
                    and request.false_alarms is not None
                )
                or any(choice.needs_embedding for choice in choices)
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
        chosen: DecisionHead,
        scored: ScoredDecision | None,
        vector: NDArray[np.float32] | None,
    ) -> ScoredDecision:
        head, logs = chosen.head, chosen.logs
        if head is None:
            assert scored is not None  # noqa: S101  # decisions without a head were asked below
            return replace(scored, is_untrained=True)
        if logs is None:
            embedding = vector if head.needs_embedding else None
            evidence = None
            if self.reader is not None and head.needs_evidence:
                [[evidence]] = self.reader.score([replace(request, decisions=(decision,))])
            logs = head.log_probabilities(request.context, decision, scored, embedding, evidence)
        empty = np.zeros((len(decision.outcomes), 0), np.float32)
        vectors = empty if scored is None else scored.marker_vectors
        return ScoredDecision(
            np.asarray(logs, np.float32), vectors, is_calibrated=True, route=_route(chosen, logs)
        )

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


def _route(chosen: DecisionHead, logs: NDArray[np.float32]) -> tuple[RouteStepScore, ...]:
    """Return the steps of a ladder that were asked; the last one decided."""
    if chosen.words_top is None:
        return ()
    by_words = RouteStepScore(WORDS_STEP, chosen.words_top)
    return (by_words,) if chosen.stands else (by_words, RouteStepScore(READING_STEP, _p_top(logs)))


def _p_top(logs: NDArray[np.float32]) -> float:
    """Return the top probability exactly as an answer has it."""
    return float(_CALIBRATED.probabilities(logs, "").max())


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
    heads, training, ladder = _load_heads(folder)
    evidence = _find_reader(manifest, reader)
    if not manifest.has_adapter:
        return TunedScorer(heads, base, training=training, reader=evidence, ladder=ladder)
    merged = merged_scorer(
        getattr(base, "folder", None),
        folder,
        threads=threads or 0,
        engine=base.engine,
        host=host,
        hosted_name=hosted_name,
        hosted_sha256=hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest(),
    )
    return TunedScorer(
        heads, merged, owns_scorer=True, training=training, reader=evidence, ladder=ladder
    )


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


def _load_heads(folder: Path) -> tuple[Heads, TrainingTexts | None, Ladder | None]:
    try:
        return Heads.load(folder), TrainingTexts.load(folder), Ladder.load(folder)
    except EngineUnavailableError:
        raise
    except (OSError, ValueError, KeyError, msgspec.MsgspecError) as error:
        # The hashes are right, so the files were written in a form that this cannot read.
        raise _unusable("has heads that this version cannot read", "files_altered") from error


def _unusable(what: str, reason: str) -> EngineUnavailableError:
    message = f"The fine-tuned model cannot be loaded: it {what}; {_REPAIR}."
    return EngineUnavailableError(message, details=[{"reason": reason}])
