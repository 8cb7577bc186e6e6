"""The benchmark of engines: which passes it runs, and how it compares their logits."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest


def test_logits_of_no_outcome_and_passes_without_any_do_not_count(script):
    engines = script("engines")
    wanted = [np.array([[1.0, 2.0, -np.inf]], np.float32), None]
    given = [np.array([[1.0, 2.25, 7.0]], np.float32), None]
    assert engines.largest_difference(wanted, given) == 0.25
    assert engines.largest_difference([None], [None]) == 0.0


def test_every_engine_runs_every_pass_in_every_round(script):
    engines = script("engines")
    asked = {"a": [], "b": []}

    def run_of(name, logit):
        def run(inputs, outputs):
            asked[name].append(inputs["n"])
            return dict.fromkeys(outputs, np.full((1, 2), logit, np.float32))

        return run

    passes = [({"n": 0}, ("logits",)), ({"n": 1}, ("pooled",))]
    first, second = engines.measure(
        "short", passes, {"a": run_of("a", 1.0), "b": run_of("b", 1.5)}, 2
    )
    assert asked == {"a": [0, 1] * 3, "b": [0, 1] * 3}
    assert (first.largest_difference, second.largest_difference) == (0.0, 0.5)
    assert [len(one.cpu) for one in (first, second)] == [2, 2]
    assert "b" in engines.table([first, second])


@pytest.mark.skipif(importlib.util.find_spec("openvino") is not None, reason="OpenVINO is here")
def test_it_names_missing_packages(script, capsys):
    assert script("engines").main([]) == 0
    assert capsys.readouterr().out.startswith("skipped: not installed: openvino")
