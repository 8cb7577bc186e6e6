"""Soft labels from a language model on labelled text: ``python -m steelyard_base_recipe.soft_labels``.

Each text is read once, and then asked what its row asks, what other rows of its kind ask, the
opposites of yes/no questions (which the teacher writes, one for each wording), and now and then a
question that the teacher writes of it. A yes/no is asked both ways round. The teacher is calibrated
on labelled rows first; where it and a label disagree hard, neither is taught, else the target is
their mean. One line of JSON a text, in the form of the mixture's rows; a run that was ended goes on
after the last one.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import click
import msgspec
import numpy as np
from numpy.typing import NDArray

from steelyard.calibration.temperature import TemperatureTable, fit_temperature_table
from steelyard.decisions.kinds import BINARY_NAMES
from steelyard.decisions.rendering import RenderedRequest
from steelyard.durable import write_atomically
from steelyard.serving.connected.declared import ConnectedModel
from steelyard.serving.judge.engine import JudgeEngine
from steelyard.serving.judge.evidence import Evidence, judge
from steelyard.serving.judge.pool import JudgePool
from steelyard.serving.judge.prompts import OPPOSITE_TOKENS, ask_for_opposite, read_opposite
from steelyard.wire.decoding import decode
from steelyard_base_recipe.mixture import VALIDATION_SOURCES, Row, read_rows, source_of
from steelyard_base_recipe.options import PLACE, mixture_option
from steelyard_base_recipe.teacher_questions import (
    FEWEST,
    MAX_QUESTION,
    MOST,
    Question,
    QuestionPool,
    own_questions,
    thin,
)

FloatArray = NDArray[np.float64]
#: A question, and the target that is taught.
Label: TypeAlias = tuple[Question, FloatArray]

#: Labelled decisions of each kind that the teacher is calibrated on.
CALIBRATED_ON = 150
#: A label of at least this share to which the teacher gives at most the second is a hard disagreement.
SURE_LABEL, UNLIKELY = 0.8, 0.1
#: One text in so many gets a question that the teacher writes of it.
WRITES_EVERY = 8
#: Orders of the outcomes of a choice: more cost more than they teach.
ORDERS = 2
_CONTEXT_TOKENS = 2_048
#: Longest context in characters, and what is shown of it where a question is written.
_MAX_CONTEXT, _SHOWN = 2_000, 600
_PROGRESS_S = 60.0
_QUESTION_TOKENS = 40
_ASK_FOR_QUESTION = """\
Write one yes/no question that somebody who has to act on the text might ask about it. Write the \
question alone.

Text: {context}
Question:"""


class Teacher(Protocol):
    """A language model that answers decisions, and writes."""

    async def gather(self, request: RenderedRequest) -> list[Evidence]:
        """Return what it says of every decision."""

    async def write(self, messages: list[dict[str, str]], max_tokens: int) -> str:
        """Return what it writes after messages."""


class Score(msgspec.Struct):
    """The teacher's score on labelled decisions of one kind: the ceiling of its pupil."""

    n_decisions: int = 0
    n_right: int = 0
    log_loss: float = 0.0

    def add(self, probabilities: FloatArray, gold: FloatArray) -> None:
        """Count one decision."""
        self.n_decisions += 1
        self.n_right += int(probabilities.argmax() == gold.argmax())
        self.log_loss -= float(gold @ np.log(np.maximum(probabilities, 1e-9)))


class State(msgspec.Struct):
    """The state of a resumed run."""

    #: The teacher's ``TemperatureTable``; ``None`` before it was calibrated.
    temperatures: dict[str, Any] | None = None
    #: Kind, log probabilities and label of what it is calibrated on, and the texts that were asked.
    samples: list[tuple[str, list[float], list[float]]] = []
    n_calibrated_on: int = 0
    #: The opposite of each wording; empty where the teacher wrote none.
    opposites: dict[str, str] = {}
    #: By kind.
    scores: dict[str, Score] = {}
    n_texts: int = 0
    n_decisions: int = 0
    #: Decisions on which teacher and label disagreed hard.
    n_dropped: int = 0
    #: Bytes of the lines that belong to this state.
    n_bytes: int = 0


class Labeler:
    """Asks a teacher about texts, and writes what it answers."""

    def __init__(self, teacher: Teacher, out: Path, pool: QuestionPool, seed: int = 0) -> None:
        self._teacher = teacher
        self._out = out
        self._state_file = out.with_suffix(".state.json")
        self._pool = pool
        self._seed = seed
        self.state = State()
        if self._state_file.exists():
            self.state = decode(self._state_file.read_bytes(), State)
        with out.open("ab") as lines:
            lines.truncate(self.state.n_bytes)  # what an ended run had begun
        self._temperatures = TemperatureTable()
        if self.state.temperatures is not None:
            self._temperatures = TemperatureTable.from_dict(self.state.temperatures)

    async def calibrate(self, rows: Iterable[Row], n_decisions: int = CALIBRATED_ON) -> None:
        """Fit the teacher's temperatures on labelled decisions of each kind, unless that was done."""
        if self.state.temperatures is not None:
            return
        for place, row in enumerate(rows):
            n_of = Counter(kind for kind, _, _ in self.state.samples)
            if all(n_of[kind] >= n_decisions for kind in ("binary", "single", "ordinal")):
                break
            rng = np.random.default_rng((self._seed, place))
            own = [thin(question, rng) for question in own_questions(row)]
            own = [question for question in own if n_of[question.kind] < n_decisions]
            if place < self.state.n_calibrated_on or not own:
                continue
            questions = [await self._with_opposite(question) for question in own]
            for question, logits in zip(
                questions, await self._ask(row.context, questions), strict=True
            ):
                sample = (question.kind, logits.tolist(), _gold(question).tolist())
                self.state.samples.append(sample)
            self.state.n_calibrated_on = place + 1
            self._keep()
        self._temperatures = fit_temperature_table(
            [kind for kind, _, _ in self.state.samples],
            [answer for _, answer, _ in self.state.samples],
            [target for _, _, target in self.state.samples],
        )
        self.state.temperatures = self._temperatures.to_dict()
        self.state.samples = []
        self._keep()

    async def label(self, rows: Sequence[Row], n_decisions: int) -> AsyncIterator[State]:
        """Label the texts that are left until there are so many decisions; give the state after each."""
        for row in rows[self.state.n_texts :]:
            if self.state.n_decisions >= n_decisions:
                return
            labels = await self._label(row, np.random.default_rng((self._seed, self.state.n_texts)))
            if labels:
                line = msgspec.json.encode(_as_row(row, labels)) + b"\n"
                with self._out.open("ab") as lines:
                    lines.write(line)
                self.state.n_bytes += len(line)
            self.state.n_texts += 1
            self.state.n_decisions += len(labels)
            self._keep()
            yield self.state

    async def _label(self, row: Row, rng: np.random.Generator) -> list[Label]:
        questions = self._pool.choose(row, rng, int(rng.integers(FEWEST, MOST + 1)))
        questions = [await self._with_opposite(question) for question in questions]
        if self.state.n_texts % WRITES_EVERY == 0:
            questions += await self._written(row.context)
        labels: list[Label] = []
        answers = await self._ask(row.context, questions)
        for question, logits in zip(questions, answers, strict=True):
            target = self._temperatures.probabilities(logits, question.kind)
            if question.gold:
                gold = _gold(question)
                self.state.scores.setdefault(question.kind, Score()).add(target, gold)
                if gold.max() >= SURE_LABEL and target[gold.argmax()] <= UNLIKELY:
                    self.state.n_dropped += 1
                    continue
                target = (target + gold) / 2
            labels.append((question, target))
            if question.opposite:
                other = replace(question, text=question.opposite, opposite="")
                labels.append((other, target[::-1]))
        return labels

    async def _with_opposite(self, question: Question) -> Question:
        """Return a yes/no of several rows with its opposite, which is written once."""
        if question.kind != "binary" or question.descriptions or not self._pool.has(question.text):
            return question
        opposite = self.state.opposites.get(question.text)
        if opposite is None:
            messages = ask_for_opposite(question.text)
            written = await self._teacher.write(messages, OPPOSITE_TOKENS)
            opposite = self.state.opposites[question.text] = read_opposite(written, question.text)
        return replace(question, opposite=opposite)

    async def _written(self, context: str) -> list[Question]:
        """Return the question that the teacher writes of a text, if it writes one."""
        prompt = _ASK_FOR_QUESTION.format(context=context[:_SHOWN])
        messages = [{"role": "user", "content": prompt}]
        lines = (await self._teacher.write(messages, _QUESTION_TOKENS)).strip().splitlines()
        if not lines or not lines[0].endswith("?") or len(lines[0]) > MAX_QUESTION:
            return []
        return [Question("binary", lines[0].strip(), BINARY_NAMES)]

    async def _ask(self, context: str, questions: Sequence[Question]) -> list[FloatArray]:
        """Return the log probabilities of every question's outcomes; the context is read once."""
        decisions = tuple(question.render() for question in questions)
        answers = await self._teacher.gather(RenderedRequest(context, decisions))
        return [np.log(judge(evidence).probabilities) for evidence in answers]

    def _keep(self) -> None:
        write_atomically(self._state_file, msgspec.json.encode(self.state))


def in_turns(rows: Iterable[Row], seed: int) -> list[Row]:
    """Return rows in an order that takes one of each source in turn, shuffled within it."""
    by_source: dict[str, list[Row]] = {}
    for row in rows:
        by_source.setdefault(source_of(row), []).append(row)
    rng = np.random.default_rng(seed)
    shuffled = [
        [by_source[source][place] for place in rng.permutation(len(by_source[source])).tolist()]
        for source in sorted(by_source)
    ]
    return [row for turn in zip_longest(*shuffled) for row in turn if row is not None]


def progress(state: State, per_hour: float) -> dict[str, Any]:
    """Return a line of progress; the teacher's own score is the ceiling of its pupil."""
    return {
        "texts": state.n_texts,
        "decisions": state.n_decisions,
        "dropped": state.n_dropped,
        "decisions an hour": round(per_hour),
        "teacher": {
            kind: {
                "labelled": score.n_decisions,
                "accuracy": round(score.n_right / score.n_decisions, 3),
                "log loss": round(score.log_loss / score.n_decisions, 3),
            }
            for kind, score in state.scores.items()
        },
    }


def _gold(question: Question) -> FloatArray:
    gold = np.array(question.gold)
    return gold / gold.sum()


def _as_row(row: Row, labels: Sequence[Label]) -> dict[str, Any]:
    decisions: list[dict[str, Any]] = []
    targets: dict[str, dict[str, float]] = {}
    for place, (question, target) in enumerate(labels, 1):
        decision = {"id": f"q{place}", "kind": question.kind, "question": question.text}
        decisions.append({**decision, **question.outcomes()})
        shares = np.round(target, 4).tolist()
        targets[f"q{place}"] = dict(zip(question.names, shares, strict=True))
    return {
        "context": row.context,
        "decisions": decisions,
        "targets": targets,
        "source": row.source,
    }


async def run(
    teacher: Teacher,
    rows: Sequence[Row],
    pool: QuestionPool,
    out: Path,
    n_decisions: int,
    seed: int,
) -> None:
    """Calibrate a teacher and let it label, with a line of progress a minute."""
    labeler = Labeler(teacher, out, pool, seed)
    await labeler.calibrate(in_turns(rows, seed + 1))
    began, before, shown_at = time.monotonic(), labeler.state.n_decisions, -math.inf
    async for state in labeler.label(rows, n_decisions):
        now = time.monotonic()
        if now - shown_at > _PROGRESS_S:
            per_hour = (state.n_decisions - before) / (now - began) * 3_600
            click.echo(msgspec.json.encode(progress(state, per_hour)).decode())
            shown_at = now


async def _with_judge(file: Path, threads: int, **rest: Any) -> None:
    model = ConnectedModel(
        wire="gguf",
        file=str(file),
        context_tokens=_CONTEXT_TOKENS,
        concurrency=1,
        threads=threads,
        permutations=ORDERS,
        warm=True,
    )
    engine = JudgeEngine(file.name, model, file, JudgePool())
    try:
        await run(engine, **rest)
    finally:
        await engine.close()


@click.command(context_settings={"show_default": True})
@mixture_option
@click.option("--file", type=PLACE, required=True, help="GGUF file of the teacher.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="File of JSON lines; a run that was ended goes on there.",
)
@click.option("--decisions", default=150_000, help="Decisions to label.")
@click.option("--threads", default=0, help="CPU threads of the teacher; 0 for all.")
@click.option("--seed", default=0, help="Of what is asked of which text.")
def main(data: Path, file: Path, out: Path, decisions: int, threads: int, seed: int) -> None:
    """Label texts of clear licences with a language model, by many questions each."""
    weights = msgspec.json.decode((data / "weights.json").read_bytes())
    rows = [
        row
        for row in read_rows(data / "train.jsonl.gz")
        if len(row.context) <= _MAX_CONTEXT
        and source_of(row) not in VALIDATION_SOURCES
        and weights.get(source_of(row), {}).get("status") == "clear"
    ]
    pool = QuestionPool(rows, {name: source["category"] for name, source in weights.items()})
    out.parent.mkdir(parents=True, exist_ok=True)
    asyncio.run(
        _with_judge(
            file.absolute(),
            threads,
            rows=in_turns(rows, seed),
            pool=pool,
            out=out,
            n_decisions=decisions,
            seed=seed,
        )
    )


if __name__ == "__main__":
    main()
