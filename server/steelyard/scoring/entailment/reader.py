"""A reader: the entailment encoder of a folder, which answers decisions."""

from __future__ import annotations

import functools
import hashlib
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.decisions.statements import read_decision
from steelyard.recent import Recent
from steelyard.scoring.entailment.evidence import weigh_outcome, weigh_yes_no
from steelyard.scoring.entailment.folder import read_folder, sha256_of
from steelyard.scoring.entailment.hypotheses import hypotheses_of
from steelyard.scoring.protocol import ScoredDecision

if TYPE_CHECKING:  # the runtime is slow to import
    from steelyard.scoring.entailment.encoder import Encoder, Logits

#: Pairs whose logits are cached, each for its account.
_CACHED_PAIRS = 16_384


class Reader:
    """Answers decisions by an encoder, which is loaded when it is first asked; thread-safe.

    ``load`` returns the encoder, and ``before_pass`` runs before each pass that the cache does not spare.
    """

    def __init__(self, load: Callable[[], Encoder], before_pass: Callable[[], None]) -> None:
        self._load, self._before_pass = load, before_pass
        self._loading = threading.Lock()
        self._encoder: Encoder | None = None
        self._cached: Recent[bytes, Logits] = Recent(_CACHED_PAIRS)
        #: Passes that were computed and not found in the cache.
        self.n_passes = 0

    def load(self) -> Encoder:
        """Return the encoder; errors of loading it go through."""
        with self._loading:
            if self._encoder is None:
                self._encoder = self._load()
            return self._encoder

    def score(self, requests: Sequence[RenderedRequest]) -> list[list[ScoredDecision]]:
        """Score every decision of every request, in the order given."""
        encoder = self.load()
        return [
            [self._decide(encoder, request, decision) for decision in request.decisions]
            for request in requests
        ]

    def _decide(
        self, encoder: Encoder, request: RenderedRequest, decision: RenderedDecision
    ) -> ScoredDecision:
        facts, manifest = encoder.facts, encoder.facts.manifest
        temperature = manifest.temperatures.get(decision.kind, manifest.temperature)
        hypotheses = tuple(
            map(encoder.fitting, hypotheses_of(decision, questions=manifest.questions))
        )
        parts = encoder.windows(request.context, hypotheses)
        rows = [
            [self._logits(encoder, request.owner, part, hypothesis) for part in parts]
            for hypothesis in hypotheses
        ]
        unstated = None
        if decision.kind == "binary":
            answer = weigh_yes_no(facts, rows[0], rows[1] if len(rows) > 1 else None, temperature)
            logits, unstated = np.array([answer.evidence, 0.0]), answer.unstated
        else:
            logits = np.array([weigh_outcome(facts, row, temperature) for row in rows])
        return ScoredDecision(
            logits - np.logaddexp.reduce(logits),
            np.zeros((len(logits), 0), dtype=np.float32),
            unstated=unstated,
            reading=read_decision(decision),
            doubt=_read_in_parts(len(parts), facts.max_tokens),
        )

    def _logits(self, encoder: Encoder, owner: str, part: str, hypothesis: str) -> Logits:
        """Return the logits of a pair; an account's own are cached for it alone."""
        if not owner:
            return self._pass(encoder, part, hypothesis)
        key = hashlib.sha256("\0".join((owner, hypothesis, part)).encode()).digest()
        logits = self._cached.find(key)
        if logits is None:
            logits = self._pass(encoder, part, hypothesis)
            self._cached.note(key, logits)
        return logits

    def _pass(self, encoder: Encoder, part: str, hypothesis: str) -> Logits:
        self._before_pass()
        self.n_passes += 1
        return encoder.logits(part, hypothesis)


class EvidenceReader(Reader):
    """The reader of a folder as heads read its evidence: named, and known by the hash of its files."""

    def __init__(self, folder: Path) -> None:
        super().__init__(lambda: _open(folder), lambda: None)
        self.name = folder.name
        self.sha256 = sha256_of(folder)


@functools.cache
def reader_in(folder: Path) -> EvidenceReader:
    """Return the reader of a folder, which all models of the process share."""
    return EvidenceReader(folder)


def _open(folder: Path) -> Encoder:
    from steelyard.scoring.entailment.encoder import Encoder  # noqa: PLC0415  slow

    return Encoder(read_folder(folder))


def _read_in_parts(n_parts: int, max_tokens: int) -> str:
    if n_parts == 1:
        return ""
    return (
        f"The context is longer than the {max_tokens} tokens that the model reads at once. It was read in "
        f"{n_parts} parts, and the strongest evidence on each side counted."
    )
