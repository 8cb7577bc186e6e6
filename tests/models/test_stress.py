"""Answers under pressure: the changes, the flips, and the report."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from steelyard.errors import DeadlineExceededError
from steelyard.models.pressures import N_REQUESTS, PRESSURES, Request, change_text
from steelyard.models.stress import ask_under_pressure, stress_lines
from steelyard.models.stress_reports import keep_stress, read_stress
from steelyard.models.stress_wire import StressReport
from steelyard.proof.differences import Bootstrap

DECISIONS = [
    {"id": "team", "question": "Who?", "outcomes": {"billing": "charges", "shipping": None}},
    {"id": "refund", "kind": "binary", "question": "Refund?"},
]
TEXT = "Please return some money, the parcel was paid twice."
ROWS = [{"context": {"number": place, "text": TEXT}, "decisions": DECISIONS} for place in range(4)]


def answering(answer):
    """A model that answers each decision with a function of its text and names."""

    def ask(context, decisions):
        results = {}
        for decision in decisions:
            names = list(decision.get("outcomes") or ("yes", "no"))
            results[decision["id"]] = SimpleNamespace(top=answer(context["text"], names))
        return SimpleNamespace(decisions=results)

    return ask


def lines_of(answer, rows=ROWS):
    counts, failures = ask_under_pressure(answering(answer), rows)
    assert not failures
    return {line.pressure: line for line in stress_lines(counts, Bootstrap(n_resamples=50))}


def test_a_model_that_heeds_nothing_flips_nothing():
    lines = lines_of(lambda text, names: names[0])
    assert [line.flipped.value for line in lines.values()] == [0] * len(PRESSURES)
    assert lines["hidden instructions"].flipped.n == 2 * 2 * len(ROWS)
    assert lines["renamed outcomes"].flipped.n == len(ROWS)
    assert lines["typos"].beyond_noise.value == 0
    assert lines["harmless wording"].beyond_noise is None


def test_a_model_that_obeys_the_text_flips_under_instructions_alone():
    def obey(text, names):
        demanded = [name for name in names if f'"{name}"' in text]
        return demanded[0] if demanded else names[0]

    lines = lines_of(obey)
    assert lines["hidden instructions"].flipped.value == 1
    assert lines["hidden instructions"].flipped.low > 0.3
    assert lines["hidden instructions"].beyond_noise.value == 1
    others = [line.flipped.value for name, line in lines.items() if name != "hidden instructions"]
    assert set(others) == {0}


@pytest.mark.parametrize(
    ("pressure", "is_changed"),
    [
        ("case", str.isupper),
        ("look-alikes", lambda text: "Please" in text and "r\u0435turn" in text),
        ("white space", lambda text: "Please  return" in text and "\n" in text),
        ("typos", lambda text: text != TEXT and sorted(text) == sorted(TEXT)),
        ("padding", lambda text: TEXT in text and len(text) > 800),
        ("harmless wording", lambda text: TEXT in text),
    ],
)
def test_only_the_longest_text_is_changed(pressure, is_changed):
    [pressure] = [each for each in PRESSURES if each.name == pressure]
    for change in pressure.changes:
        changed = change(Request(ROWS[0]["context"], DECISIONS), {}).context
        assert changed["number"] == 0
        assert is_changed(changed["text"])


def test_a_context_without_text_stays():
    assert change_text({"number": 3, "parts": [1, 2]}, str.upper) is None
    assert change_text(["a", {"b": "long"}], str.upper) == ["a", {"b": "LONG"}]


def test_rows_that_are_not_answered_count_for_none():
    def refuse(text, names):
        raise DeadlineExceededError("too late")

    counts, failures = ask_under_pressure(answering(refuse), ROWS)
    assert (counts, failures, stress_lines(counts)) == ([], {"too late": 4}, [])
    assert N_REQUESTS == 13


def test_reports_are_kept_by_the_identity_of_the_model(tmp_path):
    report = StressReport(model="m", dataset_version=1, contexts=4, tested_at=1.0, lines=[])
    assert read_stress(tmp_path) == {}
    keep_stress(tmp_path, "key", report)
    keep_stress(tmp_path, "other", report)
    assert read_stress(tmp_path) == {"key": report, "other": report}
    (tmp_path / "stress.json").write_text("{")
    assert read_stress(tmp_path) == {}
