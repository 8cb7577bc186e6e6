"""The workbench's benchmark: one small run of the whole."""

from __future__ import annotations

import json

import pytest

from support.browser.browsing import find_chromium


@pytest.mark.slow
@pytest.mark.skipif(find_chromium() is None, reason="needs Chromium: apt-get install chromium")
def test_a_run_measures_every_figure(script, tmp_path, capsys):
    pytest.importorskip("panel", reason="needs the workbench extra")
    pytest.importorskip("playwright", reason="needs Playwright")
    workbench = script("workbench")
    figures = tmp_path / "figures.json"
    given = ["--rows", "400", "--rounds", "1", "--home", str(tmp_path), "--json", str(figures)]
    assert workbench.main(given) == 0
    measured = json.loads(figures.read_text())["by_name"]
    assert set(measured) == set(workbench.TARGETS)
    assert all(values and min(values) > 0 for values in measured.values())
    assert workbench.COLD_REVIEW in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(find_chromium() is None, reason="needs Chromium: apt-get install chromium")
def test_pages_open_cold_and_warm(script, tmp_path, capsys):
    pytest.importorskip("panel", reason="needs the workbench extra")
    pytest.importorskip("playwright", reason="needs Playwright")
    pages = script("pages")
    figures = tmp_path / "figures.json"
    assert pages.main(["--rounds", "1", "--pages", "models", "--json", str(figures)]) == 0
    measured = json.loads(figures.read_text())["pages"]["this"]
    assert set(measured) == {"models cold", "models warm"}
    for [[frame, complete, *cpu]] in measured.values():
        assert 0 < frame <= complete
        assert len(cpu) == 3
    assert "The slowest page" in capsys.readouterr().out
