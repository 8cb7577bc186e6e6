"""The benchmark of maps: one small run of the whole."""

from __future__ import annotations

import json

import pytest

from support.browser.browsing import find_chromium


@pytest.mark.slow
@pytest.mark.skipif(find_chromium() is None, reason="needs Chromium: apt-get install chromium")
def test_a_run_measures_the_job_and_the_frames(script, tmp_path, capsys):
    pytest.importorskip("panel", reason="needs the workbench extra")
    pytest.importorskip("playwright", reason="needs Playwright")
    measured, figures = script("map"), tmp_path / "figures.json"
    given = ["--rows", "300", "--seconds", "1", "--home", str(tmp_path), "--json", str(figures)]
    assert measured.main(given) == 0
    told = json.loads(figures.read_text())
    assert told["job_s"] > 0
    assert set(told["frames"]) == {"pan", "zoom"}
    assert min(told["frames"].values()) > 0
    assert "frames/s" in capsys.readouterr().out
