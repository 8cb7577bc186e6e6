"""Heads that read the evidence of a reader: trained, taken where it is better, and served."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest

from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.errors import EngineUnavailableError
from steelyard.scoring.entailment.reader import EvidenceReader
from steelyard.scoring.hashing import HashingScorer
from steelyard.scoring.tuned import TunedScorer, load_tuned, read_artifact
from steelyard.trainer import features
from steelyard.trainer.program import run
from steelyard.trainer.task import TaskRow
from support.families.trainer_folders import records_of, result_of, write_task
from support.models.entailment_models import MOODS, write_encoder

HAPPY = {"id": "happy", "kind": "binary", "question": "Is the customer happy?"}
ASKED = RenderedDecision("binary", HAPPY["question"], ("yes", "no"))
N_TRAINING, N_HELD_OUT = 30, 24


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_encoder(tmp_path_factory.mktemp("readers") / "reader", questions=True)


@pytest.fixture(scope="module")
def reading(tmp_path_factory: pytest.TempPathFactory, reader: Path) -> Path:
    """A fine-tune whose rows a reader reads better than words do."""
    folder = tmp_path_factory.mktemp("evidence") / "job"
    write_task(folder, [*moods(N_TRAINING, "training"), *moods(N_HELD_OUT, "evaluation")])
    write_task(folder, read_rows(folder), heads="evidence", reader=str(reader))
    run(folder)
    return folder


def read_rows(folder: Path) -> list[TaskRow]:
    lines = (folder / "rows.jsonl").read_bytes().splitlines()
    return [msgspec.json.decode(line, type=TaskRow) for line in lines]


def moods(n_rows: int, side: str, *, by_day: bool = False, group: str = "new") -> Iterator[TaskRow]:
    """Make rows whose customer is of a mood among other words; it is the label unless a day is."""
    rng = random.Random(side + group)
    for row in range(n_rows):
        mood, is_monday = rng.choice(list(MOODS)), rng.random() < 0.5
        others = rng.sample([f"word{number}" for number in range(400)], 14)
        day = "on monday" if is_monday else "it was"
        context = f"{' '.join(others[:7])}. The customer is {mood}. {' '.join(others[7:])} {day}."
        yes = is_monday if by_day else MOODS[mood] > 0
        yield TaskRow(
            row=row,
            side=side,  # type: ignore[arg-type]
            group=group,  # type: ignore[arg-type]
            context=context,
            context_sha256=hashlib.sha256(context.encode()).hexdigest(),
            decisions=[HAPPY],
            targets={"happy": {"yes": float(yes), "no": float(not yes)}},
        )


def served(folder: Path, reader: Path) -> TunedScorer:
    return load_tuned(folder / "model", HashingScorer(), threads=1, reader=reader)


def test_evidence_is_taken_where_cross_validation_is_better(reading: Path, reader: Path) -> None:
    result = result_of(reading)
    assert result.gate.reader == "reader"
    assert result.heldout["accuracy"] == 1.0
    [decision] = result.report["decisions"]
    assert "evidence" in decision["weights"]
    manifest = read_artifact(reading / "model")
    assert manifest.reader is not None
    assert manifest.reader.sha256 == EvidenceReader(reader).sha256
    card = (reading / "model" / "MODEL_CARD.md").read_text()
    assert manifest.reader.sha256 in card


def test_the_scored_head_is_the_served_one(reading: Path, reader: Path) -> None:
    scorer = served(reading, reader)
    held_out = [row for row in read_rows(reading) if row.side == "evaluation"]
    requests = [RenderedRequest(row.context, (ASKED,)) for row in held_out]
    together = scorer.score(requests)
    for request, record, [answer] in zip(
        requests, records_of(reading)["adapted"], together, strict=True
    ):
        np.testing.assert_allclose(np.exp(answer.logits), record["probabilities"], atol=1e-6)
        [[alone]] = scorer.score([RenderedRequest(request.context, (ASKED,), owner="a")])
        assert alone.logits.tobytes() == answer.logits.tobytes()
        assert alone.is_calibrated
    assert scorer.reader is not None


def test_without_that_reader_it_is_refused_in_words(reading: Path, tmp_path: Path) -> None:
    with pytest.raises(EngineUnavailableError, match="reader, which is not here; install"):
        served(reading, tmp_path / "none")
    other = write_encoder(tmp_path / "reader", questions=True, temperature=3.0)
    with pytest.raises(EngineUnavailableError, match="reader, which has other weights here"):
        served(reading, other)


def test_evidence_that_tells_nothing_leaves_everything_as_it_is(
    tmp_path: Path, reader: Path
) -> None:
    rows = [*moods(40, "training", by_day=True), *moods(N_HELD_OUT, "evaluation", by_day=True)]
    plain = write_task(tmp_path / "plain", rows)
    asked = write_task(tmp_path / "asked", rows, heads="evidence", reader=str(reader))
    for folder in (plain, asked):
        run(folder)
    assert records_of(asked) == records_of(plain)
    assert result_of(asked).gate == result_of(plain).gate
    assert read_artifact(asked / "model").reader is None
    heads = [(folder / "model" / "heads.json").read_bytes() for folder in (plain, asked)]
    assert heads[0] == heads[1]


def test_rows_are_read_once_and_many_are_left_out(
    reading: Path, reader: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {path.name for path in (reading / "features").iterdir()}
    assert any(name.startswith("evidence-") for name in names)
    again = write_task(tmp_path / "again", read_rows(reading), heads="evidence", reader=str(reader))
    (again / "features").mkdir()
    for path in (reading / "features").iterdir():
        (again / "features" / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr(features, "_read_evidence", lambda *_: pytest.fail("rows are read again"))
    run(again)
    assert result_of(again).artifact_sha256 == result_of(reading).artifact_sha256
    monkeypatch.setattr(features, "MOST_EVIDENCE_ROWS", N_TRAINING - 1)
    many = write_task(tmp_path / "many", read_rows(reading), heads="evidence", reader=str(reader))
    run(many)
    assert result_of(many).gate.reader is msgspec.UNSET


def test_the_next_model_of_a_family_goes_on_with_it(
    reading: Path, reader: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        *moods(N_TRAINING, "training", group="earlier"),
        *moods(12, "evaluation", group="new"),
    ]
    monkeypatch.setattr("steelyard.trainer.program.READER", reader)
    folder = write_task(
        tmp_path / "next", rows, parent=str(reading / "model"), against="parent", needed=1
    )
    run(folder)
    assert result_of(folder).gate.reader == "reader"
    assert served(folder, reader).score([RenderedRequest("The customer is angry.", (ASKED,))])
