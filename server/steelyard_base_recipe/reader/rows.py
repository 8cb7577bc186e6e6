"""The rows that teach reading: pairs of a text and a line, labelled true, false or not said."""

from __future__ import annotations

import gzip
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from steelyard.decisions.statements import Reading, read_question, statement_of_outcome
from steelyard_base_recipe.reader.line_only import line_log_probabilities
from steelyard_base_recipe.reader.model import N_LABELS

#: Sources of public pairs whose owners state no licence; their rows are left out.
UNLICENSED = frozenset({"joci", "mpe", "rte"})
#: How often a source stands among its rows to learn from: labels that three people chose from teach
#: most, and of spam and advertising there are few rows.
TIMES = {"mnli": 2, "snli": 2, "written/unwanted": 4}
#: Sources of kinds of texts (hate, irony, complaints, topics, intents) whose owners allow any use.
KINDS = frozenset(
    [
        "bfcl_tools",
        "booking_slots",
        "causal_news",
        "clickbait",
        "davidson_hate",
        "docs_issues",
        "dstc11_finance",
        "edos_sexism",
        "enterprise_pii",
        "fool_me_twice",
        "goemotions",
        "hatemoji",
        "hwu64",
        "it_tickets",
        "jailbreak_detect",
        "medical_question_type",
        "metatool",
        "movie_reviews",
        "movie_sentences",
        "nlupp",
        "product_aspects",
        "pros_cons",
        "sarcasm",
        "snips",
        "strategyqa",
        "subjectivity",
        "surge_toxicity",
        "text_genre",
        "toxic_spans_seg",
    ]
)
#: Rows that a source of kinds gives at most, half of them true; a decision between outcomes gives fewer.
KINDS_OF_A_SOURCE, CHOICES_OF_A_SOURCE = 1_600, 800
_SURE, _LONGEST_KIND = 0.9, 1_500
#: Share of common words above which two public texts differ in a detail.
_MOST_WORDS = 0.5
#: Rows on invented texts of nineteen voices, written for this recipe.
WRITTEN = Path(__file__).parent / "written.jsonl.gz"


@dataclass(frozen=True, slots=True)
class ReaderRow:
    """A text, a line, and the label; ``expert`` is the guess from the line alone.

    ``label``: 0 true by the text, 1 false by it, 2 not said, 3 not true (1 or 2), 4 not false (0 or
    2). ``expert`` has the log-probabilities of the first three; None without such a model.
    ``reading`` is the line as a statement and as its negation; None where it is not written or not
    turned.
    """

    source: str
    group: str
    form: str
    text: str
    line: str
    label: int
    split: str
    expert: tuple[float, ...] | None = None
    reading: Reading | None = None

    def as_statement(self) -> ReaderRow:
        """Return the row with its line as a statement; itself where that is unknown."""
        return self if self.reading is None else replace(self, line=self.reading.statement)

    def as_negation(self) -> ReaderRow:
        """Return the row with its line negated: true and false change places; itself where unknown."""
        if self.reading is None or self.label > 2:
            return self
        label = (1, 0, 2)[self.label]
        expert = self.expert and (self.expert[1], self.expert[0], *self.expert[2:])
        return replace(self, line=self.reading.negation, label=label, expert=expert)


@dataclass(frozen=True, slots=True)
class Twin:
    """One line over two texts that differ in a detail: true by the first, false by the second."""

    true: ReaderRow
    false: ReaderRow


def read_public(path: Path, *, left_out: frozenset[str] = UNLICENSED) -> list[ReaderRow]:
    """Read public pairs but those of the sources that are left out."""
    return [
        ReaderRow(
            raw["source"], "", "statement", raw["premise"], raw["hypothesis"], raw["label"], "train"
        )
        for raw in _lines(path)
        if raw["source"] not in left_out
        for _ in range(TIMES.get(raw["source"], 1))
    ]


def read_kinds(path: Path, *, seed: int = 0) -> list[ReaderRow]:
    """Read the kinds of labelled texts: their yes/no decisions, and outcomes of their choices as statements.

    A source gives as many true rows as false ones, so that its lines alone give nothing away.
    """
    rng = np.random.default_rng(seed)
    by_label: dict[tuple[str, str, int], list[ReaderRow]] = defaultdict(list)
    for raw in _lines(path):
        source = raw["source"].split("/")[0]
        if source not in KINDS:
            continue
        for decision in raw["decisions"]:
            targets = raw["targets"].get(decision["id"], {})
            row = _row_of_kind(source, raw["context"], decision, targets, rng)
            if row is not None:
                by_label[source, row.form, row.label].append(row)
    rows: list[ReaderRow] = []
    for source, form in sorted({key[:2] for key in by_label}):
        n = KINDS_OF_A_SOURCE if form == "question" else CHOICES_OF_A_SOURCE
        both = [by_label[source, form, label] for label in (0, 1)]
        n = min(n // 2, *map(len, both))
        rows += [some[i] for some in both for i in rng.permutation(len(some))[:n]]
    readings = {line: read_question(line) for line in {row.line for row in rows}}
    return [replace(row, reading=readings[row.line]) for row in rows]


def _row_of_kind(
    source: str,
    text: str,
    decision: dict[str, Any],
    targets: dict[str, float],
    rng: np.random.Generator,
) -> ReaderRow | None:
    """Return one decision of a labelled text as a row; None where its label is not sure."""
    question, outcomes = decision["question"], decision["outcomes"]
    right = max(targets, key=lambda name: targets[name], default="")
    if targets.get(right, 0.0) < _SURE or len(text) > _LONGEST_KIND:
        return None
    if decision["kind"] == "binary":
        form, label, line = "question", 0 if right == "yes" else 1, question
    elif decision["kind"] == "single":
        others = [name for name in outcomes if name != right]
        label = int(rng.random() < 0.5)
        name = others[int(rng.integers(len(others)))] if label else right
        description = outcomes[name] if isinstance(outcomes, dict) else None
        form, line = "statement", statement_of_outcome(question, name, description)
    else:
        return None
    return ReaderRow(source, "", form, text, line, label, "train")


def read_written(path: Path, cache: Path) -> list[ReaderRow]:
    """Read the written rows, with statements and line-only models, which a folder keeps for the next time."""
    raws = list(_lines(path))
    experts, readings = cache / "line_only.npy", cache / "statements.json"
    if not experts.exists():
        np.save(experts, _experts(raws))
    if not readings.exists():
        lines = {raw["hypothesis"] for raw in raws}
        turned = {line: reading for line in lines if (reading := read_question(line)) is not None}
        readings.write_bytes(msgspec.json.encode(turned))
    turned = msgspec.json.decode(readings.read_bytes(), type=dict[str, Reading])
    return [
        ReaderRow(
            raw["source"],
            _group(raw),
            raw["form"],
            raw["premise"],
            raw["hypothesis"],
            raw["label"],
            raw["split"],
            tuple(map(float, expert)),
            turned.get(raw["hypothesis"]),
        )
        for raw, expert in zip(raws, np.load(experts), strict=True)
        for _ in range(TIMES.get(raw["source"], 1) if raw["split"] == "train" else 1)
    ]


def _experts(raws: Sequence[dict[str, Any]]) -> NDArray[np.float32]:
    experts = np.zeros((len(raws), N_LABELS), dtype=np.float32)
    for form in sorted({raw["form"] for raw in raws}):
        places = [i for i, raw in enumerate(raws) if raw["form"] == form]
        shares = line_log_probabilities(
            [raws[i]["hypothesis"] for i in places],
            [raws[i]["label"] for i in places],
            [_group(raws[i]) for i in places],
        )
        experts[places] = shares
    return experts


def twins_of(rows: Sequence[ReaderRow]) -> list[Twin]:
    """Return the pairs of neighbouring groups that share a line, true by one and false by the other."""
    places: dict[tuple[str, str], list[ReaderRow]] = defaultdict(list)
    for row in rows:
        if row.label in (0, 1):
            places[row.source, row.line].append(row)
    return [
        Twin(true, false)
        for same in places.values()
        for true in same
        for false in same
        if true.label == 0 and false.label == 1 and _are_neighbours(true.group, false.group)
    ]


def public_twins(rows: Sequence[ReaderRow]) -> list[Twin]:
    """Return pairs of public rows that share a line, true by one and false by the other, and most words.

    VitaminC (Schuster and others, 2021) and revised inferences (Kaushik and others, 2020) have them: one
    fact of the text was changed.
    """
    places: dict[tuple[str, str], tuple[list[ReaderRow], list[ReaderRow]]] = {}
    for row in rows:
        if row.label in (0, 1):
            places.setdefault((row.source, row.line), ([], []))[row.label].append(row)
    twins = []
    for (_, line), (true, false) in places.items():
        pairs = list(product(true, false))
        if not pairs:
            continue
        first, second = max(pairs, key=_overlap)
        if _overlap((first, second)) > _MOST_WORDS:
            reading = read_question(line)
            twins.append(Twin(replace(first, reading=reading), replace(second, reading=reading)))
    return twins


def _overlap(pair: tuple[ReaderRow, ReaderRow]) -> float:
    """Return the share of the words of two texts that both have."""
    words, others = (set(row.text.lower().split()) for row in pair)
    return len(words & others) / len(words | others)


class Pool:
    """Rows in a seeded order without end, as batches of texts of like length.

    ``sizes`` are the tokens of each item, ``budget`` those of a batch, padding counted. ``window``
    batches' items are sorted together: more waste less padding and mix less.
    """

    def __init__(
        self, sizes: Sequence[int], budget: int, rng: np.random.Generator, window: int = 12
    ) -> None:
        self.sizes, self.budget, self.rng, self.window = np.array(sizes), budget, rng, window

    def __iter__(self) -> Iterator[list[int]]:
        mean = float(self.sizes.mean())
        while True:
            order = self.rng.permutation(len(self.sizes))
            step = max(1, int(self.window * self.budget / mean))
            for start in range(0, len(order), step):
                part = order[start : start + step]
                part = part[np.argsort(self.sizes[part], kind="stable")]
                batches = list(self._cut(part))
                for i in self.rng.permutation(len(batches)):
                    yield batches[i]

    def _cut(self, places: np.ndarray[Any, Any]) -> Iterator[list[int]]:
        batch: list[int] = []
        for place in places[::-1]:  # longest first: the first of a batch says how wide it is
            if batch and self.sizes[batch[0]] * (len(batch) + 1) > self.budget:
                yield batch
                batch = []
            batch.append(int(place))
        yield batch


def length_of(row: ReaderRow) -> int:
    """Return about how many tokens a row takes: to sort rows, not to count them."""
    return 3 + (len(row.line) + len(row.text)) // 4


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path) as file:
        for line in file:
            yield msgspec.json.decode(line)


def _group(raw: dict[str, Any]) -> str:
    return f"{raw['source']}/{raw['group']}"


def _are_neighbours(first: str, second: str) -> bool:
    (source, number), (other_source, other_number) = (
        name.rsplit("/", 1) for name in (first, second)
    )
    return source == other_source and abs(int(number) - int(other_number)) == 1
