"""The benchmark of passes in a server: the passes that it leaves out, and its report."""

from __future__ import annotations

import numpy as np


def test_heads_in_the_server_would_spare_the_vectors_alone(script):
    remote = script("remote")
    asked = []
    run = remote.without_vectors(lambda inputs, outputs: asked.append((inputs, outputs)) or {})
    run({"n": 1}, ("logits", "marker_vectors"))
    run({"n": 2}, ("pooled",))
    assert asked == [({"n": 1}, ["logits"]), ({"n": 2}, ["pooled"])]


def test_the_way_is_the_extra_time_of_a_pass_in_the_same_round(script):
    remote = script("remote")
    here = remote.Measured("short", remote.HERE, 2, cpu=[1.0, 1.0], wall=[1.0, 3.0])
    there = remote.Measured("short", remote.THERE, 2, cpu=[0.5, 0.5], wall=[2.0, 4.5])
    shown = remote.table([here, there])
    assert "+1.25 (+1.00 to +1.50)" in shown
    assert np.median(there.cpu) == 0.5


def test_it_says_why_it_cannot_run(script, capsys, tmp_path):
    remote = script("remote")
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert remote.main(["--environment", str(blocked / "below")]) == 0
    assert capsys.readouterr().out.startswith("skipped: Triton cannot run here:")
