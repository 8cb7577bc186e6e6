"""The benchmark of passes: its requests, and its table."""

from __future__ import annotations

from types import SimpleNamespace

from steelyard.scoring.hashing import WordCounter
from steelyard.serving.decide import DecideService


def test_a_context_is_asked_again_for_its_owner_and_is_new_in_every_round(script):
    passes = script("passes")
    service = DecideService(model_name="made", temperatures=None, tokenizer=WordCounter())
    size = passes.SIZES["1,800, asked again with 3 others"]
    [first], [again] = (passes.make_requests(service, size, 1, start) for start in (0, 3))
    assert first.context == again.context
    assert first.owner == again.owner != ""
    assert not {one.question for one in first.decisions} & {one.question for one in again.decisions}
    eight = passes.make_requests(service, passes.SIZES["80, 8 requests"], 1)
    assert len({one.context for one in eight}) == 8


def test_figures_come_by_turns_and_the_table_has_their_ratios(script, monkeypatch):
    passes = script("passes")
    asked = []

    def ask(worker, size):
        asked.append(worker)
        return {"python": 3.0, "other": 4.0}[worker] + len(asked) / 1_000

    class Worker(SimpleNamespace):
        def __enter__(self):
            return self.command[0]

        def __exit__(self, *error):
            pass

    monkeypatch.setattr(passes, "ask", ask)
    monkeypatch.setattr(
        passes.subprocess, "Popen", lambda command, **options: Worker(command=command)
    )
    figures = passes.measure({"this": ["python", "a"], "before": ["other", "b"]}, ["80"], 2)
    assert {side: len(values) for side, values in figures["80"].items()} == {"this": 2, "before": 2}
    assert asked[0] == asked[3] != asked[1] == asked[2]
    assert passes.table(figures).splitlines()[2].split()[-2:] == ["0.75", "0.75"]
