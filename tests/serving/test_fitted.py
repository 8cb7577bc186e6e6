"""The engine that suits the processor: the measurement, its time, and its use."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from steelyard.serving import fitted as rules
from steelyard.serving.fitted import FILE, FLOAT32, INT8, choose, fitted, measure, stored
from steelyard.settings import read_settings

FAST = choose(gain=2.2, difference=0.03, speedup=1.9, share=1.0)


@pytest.mark.parametrize(
    ("measured", "engine", "threads"),
    [
        ({"gain": 1.21, "difference": 0.2, "speedup": 1.9, "share": 1.0}, INT8, 0),
        ({"gain": 1.19, "difference": 0.0, "speedup": 1.9, "share": 1.0}, FLOAT32, 0),
        ({"gain": 2.0, "difference": 0.3, "speedup": 1.9, "share": 1.0}, FLOAT32, 0),
        ({"gain": 2.0, "difference": 0.0, "speedup": 1.0, "share": 1.0}, INT8, 1),
        ({"gain": 2.0, "difference": 0.0, "speedup": 0.9, "share": 0.5}, INT8, 0),
    ],
)
def test_int8_is_for_processors_that_gain_and_one_thread_for_those_where_more_do_not(
    measured, engine, threads
):
    choice = choose(**measured)
    assert (choice.engine, choice.threads) == (engine, threads)


def test_a_home_is_measured_once_on_each_processor(tmp_path, monkeypatch):
    settings = read_settings({"home": tmp_path}, environ={})
    slow = choose(gain=1.0, difference=0.0, speedup=1.0, share=1.0)
    assert fitted(settings) == settings
    changed = replace(settings, engine=FLOAT32, threads=1)
    assert fitted(settings, lambda: slow) == changed
    assert fitted(settings, lambda: pytest.fail("measured again")) == fitted(settings) == changed
    assert fitted(replace(settings, threads=3)).threads == 3

    monkeypatch.setattr(rules, "describe_machine", lambda: "another processor")
    assert stored(tmp_path / FILE) is None
    assert fitted(settings, lambda: None) == settings
    faster = msgspec.structs.replace(FAST, machine="another processor")
    assert fitted(settings, lambda: faster) == settings
    assert stored(tmp_path / FILE) == faster


def test_an_engine_of_the_settings_is_not_measured(tmp_path):
    for overrides in ({"engine": "hashing"}, {"scorer": "triton://localhost:8001"}):
        settings = read_settings({"home": tmp_path, **overrides}, environ={})
        assert fitted(settings, lambda: pytest.fail("measured")) == settings


def test_a_file_that_cannot_be_read_or_written_is_as_none(tmp_path):
    (tmp_path / FILE).write_text("[]")
    assert stored(tmp_path / FILE) is None
    settings = read_settings({"home": tmp_path / "none"}, environ={})
    assert fitted(settings, lambda: FAST) == settings


def test_both_precisions_of_the_shipped_model_are_measured(monkeypatch):
    monkeypatch.setattr(rules, "MEASURE_S", 0.0)
    choice = measure()
    assert choice.machine == rules.describe_machine()
    assert choice.gain > 0
    assert 0 < choice.difference < 1
    assert choice.engine in choice.summary
