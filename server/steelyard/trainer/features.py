"""The features of heads: contexts' vectors, and the base's answers to some of the rows.

Reading is the long part of a fine-tune of heads, so it is kept: each part is a file named by the hash
of its inputs, written whole, and a part that is there is not read again.

The base reads a bounded number of rows. On 10,000 rows of 77 outcomes it would read five million
tokens, thirty times the contexts themselves, to teach heads of decisions with much data little that
contexts alone do not; where there is little data, or outcomes are few, the bound lets it read as many as it takes to know.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, groupby
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from steelyard.decisions.rendering import RenderedRequest
from steelyard.durable import write_atomically
from steelyard.scoring.entailment.reader import EvidenceReader
from steelyard.scoring.head_specs import evidence_of
from steelyard.scoring.heads import fingerprint
from steelyard.scoring.protocol import ScoredDecision, Scorer
from steelyard.trainer.rows import TuningRow
from steelyard.trainer.static import StaticWords
from steelyard.trainer.vectors import Floats, in_half_precision

#: Characters that the base reads of a fine-tune's rows: at most, 150,000 tokens; at most where rows
#: are few; and of a row, where that is between the two.
BASE_CHARACTERS, FEW_CHARACTERS, CHARACTERS_A_ROW = 600_000, 120_000, 250
#: Characters that an outcome costs beside its own.
_OUTCOME_CHARACTERS = 8
#: Rows of a yes/no, at most, for a reader to read them: with more, heads know without it.
MOST_EVIDENCE_ROWS = 2_000
#: Decisions of up to this many outcomes keep the vectors at their outcomes' markers.
MOST_MARKERS = 16
#: Texts, and rows, of one part.
_TEXTS_A_PART, _ROWS_A_PART = 512, 64


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """The features of the rows."""

    width: int
    vectors: dict[str, Floats]  # by text: of every context and every outcome, in half precision
    base: dict[int, ScoredDecision]
    evidence: dict[int, Floats] = field(default_factory=dict)  # a reader's: see ``evidence_of``
    static: StaticWords | None = None

    def sparing(
        self, embed: Callable[[Sequence[str]], Floats]
    ) -> Callable[[Sequence[str]], Floats]:
        """Return ``embed`` for texts whose vectors are not here; those that it reads then are."""

        def vectors_of(texts: Sequence[str]) -> Floats:
            missing = [text for text in dict.fromkeys(texts) if text not in self.vectors]
            if missing:
                read = in_half_precision(embed(missing))
                self.vectors.update(zip(missing, read, strict=True))
            return np.stack([self.vectors[text] for text in texts])

        return vectors_of


def compute_features(
    rows: Sequence[TuningRow],
    scorer: Scorer,
    folder: Path,
    on_progress: Callable[[int, int], None],
    *,
    chosen: Sequence[int] | None = None,
    reader: EvidenceReader | None = None,
    stored: Mapping[str, Floats] = MappingProxyType({}),
) -> Features:
    """Read the rows with a scorer; parts that are in the folder are not read again.

    ``on_progress`` gets the characters read and their total; ``chosen`` are the places of the rows
    that the base reads, by default those of ``choose_base_rows``. A ``reader`` reads those of
    ``choose_evidence_rows``. Texts whose vectors are ``stored`` are not read.
    """
    embed: Any = getattr(scorer, "embed", None)
    texts = [text for text in _texts_of(rows) if text not in stored] if embed is not None else []
    chosen = choose_base_rows(rows) if chosen is None else chosen
    evidenced = [] if reader is None else choose_evidence_rows(rows)
    read_rows = [rows[i] for i in (*chosen, *evidenced)]
    n_total = sum(map(len, texts)) + sum(map(reading_cost, read_rows))
    n_done = 0
    identity = [scorer.name, scorer.engine, getattr(scorer, "sha256", "")]
    vectors = dict(stored) if embed is not None else {}
    for part in _parts(texts, _TEXTS_A_PART):
        arrays = _read_cached(folder, "texts", [*identity, *part], partial(_embed, embed, part))
        vectors.update(zip(part, arrays["vectors"], strict=True))
        n_done += sum(map(len, part))
        on_progress(n_done, n_total)
    base: dict[int, ScoredDecision] = {}
    for places in _parts(chosen, _ROWS_A_PART):
        members = [rows[i] for i in places]
        named: list[Any] = [[member.context, _words(member)] for member in members]
        arrays = _read_cached(folder, "rows", [*identity, *named], partial(_score, scorer, members))
        base.update((i, _scored(arrays, at)) for at, i in enumerate(places))
        n_done += sum(map(reading_cost, members))
        on_progress(n_done, n_total)
    evidence: dict[int, Floats] = {}
    for places in _parts(evidenced, _ROWS_A_PART):
        assert reader is not None  # noqa: S101  # it has rows to read
        members = [rows[i] for i in places]
        named = [reader.sha256, *([member.context, member.decision] for member in members)]
        arrays = _read_cached(folder, "evidence", named, partial(_read_evidence, reader, members))
        evidence.update((i, arrays[str(at)]) for at, i in enumerate(places))
        n_done += sum(map(reading_cost, members))
        on_progress(n_done, n_total)
    width = len(next(iter(vectors.values()))) if vectors else 0
    return Features(width, vectors, base, evidence, StaticWords.of(scorer))


def base_characters(n_rows: int) -> int:
    """Return how many characters the base reads of so many rows.

    Of few rows with many outcomes it would read for longer than everything else takes together, and
    heads of such decisions are made of contexts alone.
    """
    return min(max(CHARACTERS_A_ROW * n_rows, FEW_CHARACTERS), BASE_CHARACTERS)


def choose_base_rows(rows: Sequence[TuningRow], characters: int | None = None) -> list[int]:
    """Choose the rows that the base reads: as many of each decision, until the bound."""
    characters = base_characters(len(rows)) if characters is None else characters
    drawn = sorted(
        (hashlib.sha256(row.context_sha256.encode()).digest(), fingerprint(row.decision), i)
        for i, row in enumerate(rows)
    )
    ranks: Counter[str] = Counter()
    ranked = []
    for _, name, i in drawn:
        ranked.append((ranks[name], i))
        ranks[name] += 1
    chosen = []
    for _, i in sorted(ranked, key=lambda pair: pair[0]):
        characters -= reading_cost(rows[i])
        if characters < 0:
            break
        chosen.append(i)
    return sorted(chosen)


def choose_evidence_rows(rows: Sequence[TuningRow]) -> list[int]:
    """Choose the rows that a reader reads: all of each yes/no of few rows, until the bound."""
    places: dict[str, list[int]] = defaultdict(list)
    for i, row in enumerate(rows):
        if row.decision.kind == "binary":
            places[fingerprint(row.decision)].append(i)
    chosen: list[int] = []
    characters = BASE_CHARACTERS
    for _, members in sorted(places.items(), key=lambda pair: (len(pair[1]), pair[0])):
        cost = sum(reading_cost(rows[i]) for i in members)
        if len(members) <= MOST_EVIDENCE_ROWS and cost <= characters:
            characters -= cost
            chosen += members
    return sorted(chosen)


def reading_cost(row: TuningRow) -> int:
    """Return about how many characters the base reads of a row."""
    outcomes = row.decision.outcomes
    return (
        len(row.context)
        + len(row.decision.question)
        + sum(map(len, outcomes))
        + _OUTCOME_CHARACTERS * len(outcomes)
    )


def _embed(
    embed: Callable[[Sequence[str]], Floats], texts: Sequence[str]
) -> dict[str, NDArray[Any]]:
    return {"vectors": in_half_precision(embed(texts))}


def _score(scorer: Scorer, rows: Sequence[TuningRow]) -> dict[str, NDArray[Any]]:
    # A context is read once for all of its decisions.
    requests = [
        RenderedRequest(context, tuple(row.decision for row in members))
        for context, members in groupby(rows, key=lambda row: row.context)
    ]
    arrays: dict[str, NDArray[Any]] = {}
    for at, scored in enumerate(chain.from_iterable(scorer.score(requests))):
        arrays[f"{at}.logits"] = np.asarray(scored.logits, np.float32)
        few = len(scored.logits) <= MOST_MARKERS
        markers = scored.marker_vectors if few else scored.marker_vectors[:, :0]
        arrays[f"{at}.markers"] = np.ascontiguousarray(markers, np.float32)
    return arrays


def _read_evidence(reader: EvidenceReader, rows: Sequence[TuningRow]) -> dict[str, NDArray[Any]]:
    answers = reader.score([RenderedRequest(row.context, (row.decision,)) for row in rows])
    return {str(at): evidence_of(answer) for at, [answer] in enumerate(answers)}


def _scored(arrays: dict[str, NDArray[Any]], at: int) -> ScoredDecision:
    return ScoredDecision(arrays[f"{at}.logits"], arrays[f"{at}.markers"])


def _read_cached(
    folder: Path, sort: str, read_from: list[Any], read: Callable[[], dict[str, NDArray[Any]]]
) -> dict[str, NDArray[Any]]:
    """Return a part from the folder; a part that is not there is read and stored."""
    digest = hashlib.sha256(msgspec.json.encode(read_from)).hexdigest()
    path = folder / f"{sort}-{digest[:32]}.safetensors"
    try:
        return load(path.read_bytes())
    except (FileNotFoundError, SafetensorError):
        arrays = {name: np.ascontiguousarray(value) for name, value in read().items()}
        write_atomically(path, save(arrays))
        return arrays


def _texts_of(rows: Iterable[TuningRow]) -> list[str]:
    """Return every context and outcome once, those of like lengths together."""
    texts = {text for row in rows for text in (row.context, *row.decision.outcomes)}
    return sorted(texts, key=lambda text: (len(text), text))


def _words(row: TuningRow) -> list[Any]:
    return [row.decision.kind, row.decision.question, row.decision.outcomes]


def _parts(items: Sequence[Any], size: int) -> Iterable[list[Any]]:
    return (list(items[start : start + size]) for start in range(0, len(items), size))
