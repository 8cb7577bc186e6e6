"""Rows whose answers are a reader's, for a base to learn from: ``python -m steelyard_base_recipe.taught --help``."""

from __future__ import annotations

import gzip
import shutil
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import msgspec
import numpy as np

from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.durable import write_atomically
from steelyard.scoring.entailment.reader import EvidenceReader, reader_in
from steelyard.serving.reader.declaring import BUNDLED
from steelyard.wire.decoding import decoder_of
from steelyard_base_recipe.mixture import EVERYDAY, OPPOSITES, WRITTEN_QUESTIONS, MixtureRow
from steelyard_base_recipe.options import FOLDER, NEW_FOLDER, PLACE, mixture_option
from steelyard_base_recipe.reader.rows import WRITTEN

#: An answer is sure whose top probability is this, and whose share of *not said* is at most that.
SURE, MOST_UNSTATED = 0.85, 0.3
TAUGHT = "taught"


class _Everyday(msgspec.Struct):
    context: str
    question: str
    opposite: str
    answer: str


class _Written(msgspec.Struct):
    form: str
    premise: str
    hypothesis: str
    label: int
    split: str


@click.command(context_settings={"show_default": True})
@mixture_option
@click.option("--out", type=NEW_FOLDER, required=True, help="Folder to train on: --data of a run.")
@click.option("--reader", type=FOLDER, default=BUNDLED, help="Folder of the reader that answers.")
@click.option(
    "--questions", type=PLACE, help="tests/benchmarks/judge_questions.jsonl: to validate."
)
@click.option("--texts", default=7_000, help="Written texts, at most.")
@click.option("--others", default=0.0125, help="Factor on the rows of all other sources.")
@click.option("--seed", default=1)
def main(
    data: Path,
    out: Path,
    reader: Path,
    questions: Path | None,
    texts: int,
    others: float,
    seed: int,
) -> None:
    """Add a reader's sure answers to written questions to a folder of labelled text.

    Questions of the validation split, and everyday ones with their opposites, go with their labels to
    validation sources.
    """
    rng = np.random.default_rng(seed)
    decode = decoder_of(_Written).decode
    with gzip.open(WRITTEN, "rb") as lines:
        written = [row for row in map(decode, lines) if row.form == "question"]
    own = [row for row in written if row.split == "train"]
    taught = list(_answered(reader_in(reader), own, texts, rng))
    rows = taught + [
        _row(WRITTEN_QUESTIONS, row.premise, {row.hypothesis: float(row.label == 0)})
        for row in written
        if row.split == "validation" and row.label < 2
    ]
    if questions is not None:
        read = decoder_of(_Everyday).decode
        for each in map(read, questions.read_bytes().splitlines()):
            is_yes = each.answer == "yes"
            rows.append(_row(EVERYDAY, each.context, {each.question: float(is_yes)}))
            rows.append(_row(OPPOSITES, each.context, {each.opposite: float(not is_yes)}))
    out.mkdir(parents=True, exist_ok=True)
    with (out / "train.jsonl.gz").open("wb") as file:
        with (data / "train.jsonl.gz").open("rb") as there:
            shutil.copyfileobj(there, file)
        with gzip.open(file, "wb") as added:  # a gzip file may have several members
            added.writelines(msgspec.json.encode(row) + b"\n" for row in rows)
    weights = msgspec.json.decode((data / "weights.json").read_bytes())
    for weight in weights.values():
        weight["multiplier"] *= others
    weights[TAUGHT] = {"category": "NLI / fact checking", "multiplier": 1.0, "status": "clear"}
    write_atomically(out / "weights.json", msgspec.json.encode(weights))
    n_decisions = sum(len(row.decisions) for row in taught)
    click.echo(f"{len(taught):,} texts with {n_decisions:,} sure answers; see {out}.")


def _answered(
    reader: EvidenceReader, written: Sequence[_Written], n_texts: int, rng: np.random.Generator
) -> Iterator[MixtureRow]:
    """Ask a reader the questions on some texts; yield the texts that have a sure answer."""
    by_text: dict[str, list[str]] = defaultdict(list)
    for row in written:
        by_text[row.premise].append(row.hypothesis)
    texts = list(by_text)
    for i in rng.permutation(len(texts))[:n_texts]:
        text, questions = texts[i], by_text[texts[i]]
        decisions = tuple(RenderedDecision("binary", line, ("yes", "no")) for line in questions)
        [scores] = reader.score([RenderedRequest(text, decisions)])
        sure = {}
        for line, score in zip(questions, scores, strict=True):
            yes = float(np.exp(score.logits[0]))
            if max(yes, 1.0 - yes) >= SURE and (score.unstated or 0.0) <= MOST_UNSTATED:
                sure[line] = yes
        if sure:
            yield _row(TAUGHT, text, sure)


def _row(source: str, text: str, yes: dict[str, float]) -> MixtureRow:
    """Return a text with yes/no questions and the probabilities of yes."""
    return MixtureRow(
        context=text,
        decisions=[
            {"id": f"q{i}", "kind": "binary", "question": line, "outcomes": ["yes", "no"]}
            for i, line in enumerate(yes)
        ],
        targets={f"q{i}": {"yes": p, "no": 1.0 - p} for i, p in enumerate(yes.values())},
        source=source,
    )


if __name__ == "__main__":
    main()
