"""The speed benchmark: the requests it makes, the passes it replays, the tables it prints."""

from __future__ import annotations

import json

import numpy as np
import pytest

from steelyard.calibration.temperature import TemperatureTable
from steelyard.decisions.rendering import RenderedRequest
from steelyard.scoring.hashing import HashingScorer, WordCounter
from steelyard.serving.decide import DecideService


@pytest.mark.parametrize("n_questions", [1, 3, 64])
@pytest.mark.parametrize("n_outcomes", [2, 4, 77])
def test_payloads_are_valid_and_of_the_size_asked_for(script, n_questions, n_outcomes):
    workloads = script("workloads")
    service = DecideService(
        model_name="made", temperatures=TemperatureTable(), tokenizer=WordCounter()
    )
    sizes = {"n_questions": n_questions, "n_outcomes": n_outcomes}
    requests = [
        service.prepare(workloads.make_payload(context=context, **sizes)).rendered
        for context in (workloads.make_context(500, 0), workloads.make_context(500, 1))
    ]
    for request in requests:
        assert 480 <= len(request.context) <= 500
        assert [len(one.outcomes) for one in request.decisions] == [n_outcomes] * n_questions
        assert len({one.question for one in request.decisions}) == n_questions
    assert requests[0].context != requests[1].context
    assert requests[0].decisions == requests[1].decisions


class _Engine:
    """A graph of one pass that counts its runs."""

    n_runs = 0

    def run(self, inputs, outputs):
        self.n_runs += 1
        return dict.fromkeys(outputs, np.zeros(1))


class _Scorer:
    def __init__(self):
        self.pass_engine = _Engine()

    def score(self, requests):
        for _ in range(2):
            blocks = np.array([[[1, 0], [1, 0], [0, 0]]])
            self.pass_engine.run({"blocks": blocks}, ("logits",))


def test_the_bare_forward_is_every_pass_of_the_same_request(script):
    speed, scorer = script("speed"), _Scorer()
    engine = scorer.pass_engine
    with speed.recorded_passes(scorer) as passes:
        scorer.score([RenderedRequest("text", ())])
    assert scorer.pass_engine is engine
    assert engine.n_runs == 2
    assert [each.outputs for each in passes] == [("logits",), ("logits",)]
    with speed.recorded_passes(HashingScorer()) as passes:
        HashingScorer().score([RenderedRequest("text", ())])
    assert passes == []


def test_tables_and_figures_name_every_size(script, capsys, tmp_path):
    out = tmp_path / "speed.json"
    arguments = "--engine hashing --repeats 3 --questions 1 3 64 --outcomes 2 4 --contexts short"
    assert script("speed").main([*arguments.split(), "--json", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "GEMM peak" in printed
    assert "3 questions (at most 1.25)" in printed
    figures = json.loads(out.read_text())
    assert figures["gemm_gflops"] > 0
    sizes = {(cell["n_outcomes"], cell["n_questions"]) for cell in figures["cells"]}
    assert sizes == {(n, m) for n in (2, 4) for m in (1, 3, 64)}
    assert all(len(cell["decide_ms"]) == 3 for cell in figures["cells"])


def test_more_questions_than_the_target_allows_are_over(script):
    speed = script("speed")
    cells = []
    for n_questions, score_ms in ((1, 10.0), (3, 12.0), (64, 61.0)):
        cell = speed.Cell("engine", "short", 2, n_questions, n_tokens=n_questions)
        cell.score_ms, cell.decide_ms = [score_ms] * 3, [score_ms] * 3
        cells.append(cell)
    table = speed.ratio_table(cells)
    assert "1.20 kept" in table
    assert "6.10 over" in table
