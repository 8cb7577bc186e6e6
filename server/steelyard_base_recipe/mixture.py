"""The training mixture: labelled rows by source, sampled by weight.

A step's rows depend on the seed and the step alone, so a resumed run reads the same rows as an unbroken
one.
"""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from steelyard.wire.decoding import decoder_of

#: Where ``steelyard_base_recipe.taught`` puts questions on texts that it does not teach.
WRITTEN_QUESTIONS, EVERYDAY, OPPOSITES = "written_questions", "everyday", "everyday_opposites"
#: Sources whose tasks are never trained on: checkpoints are chosen and temperatures fitted there.
VALIDATION_SOURCES = (
    "answer_grading",
    "attack_tactic",
    "dstc11_finance",
    "docs_issues",
    "enterprise_pii",
    "harmful_category",
    "movie_reviews",
    "nlupp",
    "reading_level",
    "surge_toxicity",
    "text_genre",
    "trivia_topic",
    "wice",
    WRITTEN_QUESTIONS,
    EVERYDAY,
    OPPOSITES,
)

MODERATION = "moderation / safety"
INTENTS = "intent / routing / support"
#: How much of each category a step reads, on top of the multipliers of ``weights.json``. Tasks
#: that a service is asked (routing, topics, moderation) before those a small encoder cannot learn.
CATEGORY_WEIGHTS = {
    INTENTS: 2.0,
    "topic / type / relation": 1.6,
    MODERATION: 2.0,
    "ordinal (levels, rubric)": 2.0,
    "sentiment / emotion / stance": 1.2,
    "NLI / fact checking": 1.2,
    "tools": 1.5,
    "QA / common sense": 0.4,
    "policy / rules / logic": 0.3,
    "grammar / judging / persona": 0.4,
}
MAX_ROWS_PER_EPOCH = 8_000


class MixtureRow(msgspec.Struct):
    """One labelled row: a context, decisions, and soft targets for them."""

    context: str
    decisions: list[dict[str, Any]]
    targets: dict[str, dict[str, float]]
    source: str


@dataclass(slots=True)
class Mixture:
    """Rows by source, with each source's share of a step."""

    rows: dict[str, list[MixtureRow]]
    shares: dict[str, float]
    labels: dict[str, list[str]] = field(default_factory=dict)
    #: Sources whose yes/no questions are on what a text does to its reader.
    moderation: frozenset[str] = frozenset()
    #: Sources whose choices are on what a message is about.
    intents: frozenset[str] = frozenset()

    def sample(self, rng: np.random.Generator, n_rows: int) -> list[MixtureRow]:
        """Draw rows with replacement: a source by its share, then a row of it."""
        names = list(self.shares)
        drawn = rng.choice(len(names), size=n_rows, p=np.fromiter(self.shares.values(), float))
        sampled = []
        for index in drawn:
            rows = self.rows[names[index]]
            sampled.append(rows[int(rng.integers(len(rows)))])
        return sampled


def source_of(row: MixtureRow) -> str:
    """Return the source of a row, without its sub-task."""
    return row.source.split("/", 1)[0]


def read_rows(path: Path) -> list[MixtureRow]:
    """Read a gzip file of one JSON row a line."""
    decode = decoder_of(MixtureRow).decode
    with gzip.open(path, "rb") as lines:
        return [decode(line) for line in lines]


def load_mixture(
    data: Path, statuses: tuple[str, ...]
) -> tuple[Mixture, dict[str, list[MixtureRow]]]:
    """Load the training mixture and the validation rows."""
    weights = msgspec.json.decode((data / "weights.json").read_bytes())
    rows: dict[str, list[MixtureRow]] = {}
    validation: dict[str, list[MixtureRow]] = {}
    labels: dict[str, Counter[str]] = {}
    for row in read_rows(data / "train.jsonl.gz"):
        source = source_of(row)
        if source in VALIDATION_SOURCES:
            validation.setdefault(source, []).append(row)
        elif source in weights and weights[source]["status"] in statuses:
            rows.setdefault(source, []).append(row)
            for decision in row.decisions:
                if decision["kind"] == "single":
                    labels.setdefault(source, Counter()).update(
                        name for name in decision["outcomes"] if len(name) <= 60
                    )
    sizes = {
        source: min(len(rows[source]) * weights[source]["multiplier"], MAX_ROWS_PER_EPOCH)
        * CATEGORY_WEIGHTS[weights[source]["category"]]
        for source in sorted(rows)
    }
    total = sum(sizes.values())
    return (
        Mixture(
            rows=rows,
            shares={source: size / total for source, size in sizes.items()},
            labels={
                source: [name for name, n in counter.most_common(400) if n > 1]
                for source, counter in sorted(labels.items())
                if source in rows
            },
            moderation=_of_category(MODERATION, rows, weights),
            intents=_of_category(INTENTS, rows, weights),
        ),
        validation,
    )


def _of_category(category: str, sources: Iterable[str], weights: Any) -> frozenset[str]:
    return frozenset(source for source in sources if weights[source]["category"] == category)
