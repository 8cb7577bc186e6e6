"""The first step of a fine-tuned model with a ladder: heads of words alone, where they are sure.

Words answer a decision whose kind has a threshold where their top probability reaches it and the text
is like those that they learned from; the model's other heads answer the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from steelyard.decisions.rendering import RenderedDecision
from steelyard.durable import write_atomically
from steelyard.scoring.heads import Head, Heads
from steelyard.scoring.novelty import TrainingTexts, word_vectors
from steelyard.wire.decoding import decode

#: The folder of a ladder in an artifact, and the file of its thresholds there.
FOLDER, THRESHOLDS = "ladder", "ladder.json"
FORMAT: Literal["steelyard-ladder-1"] = "steelyard-ladder-1"
#: What an answer calls the steps; models have no spaces in their names.
WORDS_STEP, READING_STEP = "words alone", "words and base model"
#: How often a text like the held-out ones is taken for one unlike those that words learned from.
FALSE_ALARMS = 0.02


class LadderFile(Struct, frozen=True, kw_only=True):
    """The content of ``ladder.json``.

    ``thresholds`` are top probabilities from which words answer, by kind of decision; ``share`` is that
    of held-out decisions that they answered.
    """

    format: Literal["steelyard-ladder-1"]
    thresholds: dict[str, float]
    share: float


@dataclass(frozen=True)
class Ladder:
    """Heads of words alone, and where their answers stand; immutable and thread-safe."""

    heads: Heads
    texts: TrainingTexts
    thresholds: Mapping[str, float]
    share: float = 0.0

    @classmethod
    def load(cls, folder: Path) -> Ladder | None:
        """Read a model's ladder, ``None`` without one; ``ValueError`` for parts of another version."""
        try:
            file = decode((folder / FOLDER / THRESHOLDS).read_bytes(), LadderFile)
        except FileNotFoundError:
            return None
        except msgspec.DecodeError as error:
            raise ValueError(
                f"{THRESHOLDS} holds no thresholds that this version reads."
            ) from error
        texts = TrainingTexts.load(folder / FOLDER)
        if texts is None:
            raise ValueError("The ladder lacks the texts that its words learned from.")
        return cls(Heads.load(folder / FOLDER), texts, file.thresholds, file.share)

    def save(self, folder: Path) -> None:
        """Write it below a folder; equal ladders give equal bytes."""
        place = folder / FOLDER
        place.mkdir(exist_ok=True)
        self.heads.save(place)
        self.texts.save(place)
        file = LadderFile(format=FORMAT, thresholds=dict(self.thresholds), share=self.share)
        write_atomically(place / THRESHOLDS, msgspec.json.encode(file, order="deterministic"))

    @cached_property
    def _limit(self) -> float:
        limit = self.texts.limit(FALSE_ALARMS)
        return -np.inf if limit is None else limit

    def find(self, decision: RenderedDecision) -> Head | None:
        """Return the head that may answer a decision; ``None`` where its kind has no threshold."""
        return self.heads.find(decision) if decision.kind in self.thresholds else None

    def is_sure(self, kind: str, p_top: float) -> bool:
        """Return whether an answer of words stands, of a text like theirs."""
        return p_top >= self.thresholds[kind]

    def are_near(self, contexts: Sequence[str]) -> NDArray[np.bool_]:
        """Return which contexts are like those that words learned from; none where that is unknown."""
        if not contexts:
            return np.zeros(0, np.bool_)
        near: NDArray[np.bool_] = self.texts.distances_of(word_vectors(contexts)) <= self._limit
        return near
