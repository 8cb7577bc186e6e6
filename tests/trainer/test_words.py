"""Models that read words alone: trained, compared with models that read the base, and taken."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from steelyard.decisions.rendering import RenderedDecision, RenderedRequest, render_context
from steelyard.evaluations.gate_wire import GateWords
from steelyard.families.connected import HeadsQueue
from steelyard.scoring.batching import Batcher
from steelyard.scoring.hashing import HashingScorer
from steelyard.scoring.heads import Heads
from steelyard.scoring.ladder import WORDS_STEP
from steelyard.scoring.tuned import TunedScorer, load_tuned
from steelyard.trainer import cheapest
from steelyard.trainer.program import run
from steelyard.trainer.task import TaskRow
from support.families.trainer_folders import make_rows, records_of, result_of, write_task

URGENT = RenderedDecision("binary", "Is it urgent?", ("yes", "no"))
TEAM = RenderedDecision("single", "Which team?", ("billing", "sales", "support"))


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_task(tmp_path_factory.mktemp("words") / "job", heads="words")
    told = run(folder).gate.words
    assert isinstance(told, GateWords)
    assert told.cpu_ms is not msgspec.UNSET
    return folder


def words_of(folder: Path) -> GateWords:
    told = result_of(folder).gate.words
    assert isinstance(told, GateWords)
    return told


def served(folder: Path) -> TunedScorer:
    scorer = load_tuned(folder / "model", HashingScorer(), threads=1)
    assert all(head.reads_words_alone for head in scorer.heads)
    return scorer


def test_words_alone_are_trained_and_judged_without_a_vector(words: Path) -> None:
    assert not (words / "features").exists()
    assert result_of(words).gate.passed
    told = words_of(words)
    assert told.serves
    assert told.as_right
    assert told.right.change == told.right.low == told.right.high == 0
    assert "Every head reads words alone" in (words / "model" / "MODEL_CARD.md").read_text()


def test_their_answers_need_no_pass_and_know_a_strange_text(
    words: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer = served(words)
    monkeypatch.setattr(HashingScorer, "score", lambda *_: pytest.fail("the base was asked"))
    known = '{"subject": "please refund the invoice again", "number": 1}'
    for context, is_novel in ((known, False), ("Der Zug nach Ulm hat Verspätung.", True)):
        request = RenderedRequest(context, (TEAM,), false_alarms=0.1)
        [[answer]] = scorer.score([request])
        assert answer.novelty is not None
        assert answer.novelty[1] is is_novel
        assert answer.is_calibrated


def test_many_at_once_are_answered_to_the_bit_as_each_alone(words: Path) -> None:
    scorer = served(words)
    assert scorer.call_characters > TunedScorer(Heads([]), HashingScorer()).call_characters
    rows = make_rows(20, "evaluation", seed=4)
    turned = RenderedDecision(TEAM.kind, TEAM.question, TEAM.outcomes[::-1])
    requests = [RenderedRequest(render_context(row.context), (TEAM, turned)) for row in rows]
    for request, together in zip(requests, scorer.score(requests), strict=True):
        [alone] = scorer.score([request])
        for each, same in zip(together, alone, strict=True):
            assert each.logits.tobytes() == same.logits.tobytes()
        assert together[0].logits.tolist() == together[1].logits[::-1].tolist()


@pytest.mark.parametrize(("margin", "is_taken"), [(1.0, True), (-1.0, False)])
def test_the_cheapest_that_is_as_right_is_taken(
    margin: float, is_taken: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cheapest, "MARGIN", margin)
    rows = [*make_rows(60, "training"), *make_rows(30, "evaluation")]
    plain, chosen = (
        write_task(tmp_path / heads, rows, heads=heads) for heads in ("auto", "cheapest")
    )
    for folder in (plain, chosen):
        run(folder)
    assert words_of(chosen).as_right is is_taken
    # The base here has no vectors, so that words are all that texts are known by.
    names = {path.name for path in (chosen / "model").iterdir()}
    assert ("heads-novelty-words.safetensors" in names) is is_taken
    # What was scored is what serves.
    [first, *_] = records_of(chosen)["adapted"]
    scorer = load_tuned(chosen / "model", HashingScorer(), threads=1)
    [[answer]] = scorer.score([RenderedRequest(_context(rows), (TEAM,))])
    np.testing.assert_allclose(np.exp(answer.logits), first["probabilities"], atol=1e-6)
    if not is_taken:
        assert records_of(chosen) == records_of(plain)


def _context(rows: list[TaskRow]) -> str:
    held_out = next(row for row in rows if row.side == "evaluation")
    return render_context(held_out.context)


def test_a_ladder_answers_by_words_where_they_are_sure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [*make_rows(80, "training"), *make_rows(400, "evaluation")]
    plain, folder = (
        write_task(tmp_path / heads, rows, heads=heads) for heads in ("auto", "ladder")
    )
    for each in (plain, folder):
        run(each)
    told = words_of(folder).ladder
    assert told is not msgspec.UNSET
    assert set(told.thresholds) == {"single", "binary"}
    assert 0 < told.share < 1
    assert (
        str(told).split(" in ")[0].split("(")[0] in (folder / "model" / "MODEL_CARD.md").read_text()
    )
    # Nothing else of the model differs.
    for name in ("heads.json", "heads.safetensors"):
        assert (plain / "model" / name).read_bytes() == (folder / "model" / name).read_bytes()

    # What was scored is what serves, each alone and many at once, and says who answered.
    scorer = load_tuned(folder / "model", HashingScorer(), threads=1)
    held_out = [render_context(row.context) for row in rows if row.side == "evaluation"]
    requests = [RenderedRequest(context, (TEAM, URGENT)) for context in held_out]
    asked: list[RenderedRequest] = []
    score = HashingScorer.score
    monkeypatch.setattr(
        HashingScorer, "score", lambda self, batch: asked.extend(batch) or score(self, batch)
    )
    together = scorer.score(requests)
    answers = [answer for both in together for answer in both]
    by_words = [answer for answer in answers if len(answer.route) == 1]
    assert len(by_words) / len(answers) == pytest.approx(told.share)
    assert sum(len(request.decisions) for request in asked) <= len(answers) - len(by_words)
    for answer, record in zip(answers, records_of(folder)["adapted"], strict=True):
        np.testing.assert_allclose(np.exp(answer.logits), record["probabilities"], atol=1e-6)
        assert answer.route[0][0] == WORDS_STEP
        assert answer.route[-1][0] == record["decided_by"]
        assert answer.route[-1][1] == pytest.approx(max(record["probabilities"]))
    for request, both in zip(requests[:20], together[:20], strict=True):
        [alone] = scorer.score([request])
        assert [each.logits.tobytes() for each in alone] == [each.logits.tobytes() for each in both]
        assert [each.route for each in alone] == [each.route for each in both]

    # A connected base is asked for the rest alone.
    base = Batcher(HashingScorer())
    queue = HeadsQueue(scorer, base)
    for request, both in zip(requests[:20], together[:20], strict=True):
        asked.clear()
        answers = queue.submit(request).result(5)
        assert [each.logits.tobytes() for each in answers] == [
            each.logits.tobytes() for each in both
        ]
        assert bool(asked) <= any(len(each.route) == 2 for each in both)
    queue.close(1)
    base.close()

    # A strange text goes on, however sure words are; an explanation keeps to who answered the whole.
    strange = requests[0].context.replace(" ", " Ж") + "Поезд в Ульм опаздывает. " * 5
    for steps in (1, 2):
        [both] = scorer.score(
            [RenderedRequest(requests[0].context, (TEAM, URGENT), n_steps=(steps,) * 2)]
        )
        assert [len(answer.route) for answer in both] == [steps] * 2
    [both] = scorer.score([RenderedRequest(strange, (TEAM, URGENT))])
    assert [len(answer.route) for answer in both] == [2, 2]
