"""Families, fine-tunes and gates in a notebook and as frames; no name in them becomes markup."""

from __future__ import annotations

import msgspec
import pytest

from client.test_display import Page
from steelyard.client.display_families import SHOWN_MODELS
from steelyard.evaluations.gate_wire import Gate
from steelyard.families.fine_tune_wire import Job, JobEvents, JobPage
from steelyard.families.wire import Family, FamilyList
from support.families.family_data import (
    HOSTILE,
    LADDER,
    WORDS,
    change,
    deleted,
    family,
    gate,
    group,
    job,
    model,
)


def gate_answer(**fields: object) -> Gate:
    return msgspec.convert(gate(**fields), Gate)


def family_answer(**fields: object) -> Family:
    return msgspec.convert(family(**fields), Family)


def job_answer(**fields: object) -> Job:
    return msgspec.convert(job(**fields), Job)


def test_a_gate_draws_its_changes():
    figure = gate_answer().plot()
    assert "new rows" in figure._repr_html_()
    assert "new rows" in figure.y_range.factors
    few = {name: of for name, of in group().items() if name != "loss"}
    with pytest.raises(ValueError, match="too few decisions to draw"):
        gate_answer(groups={"new": few}, baseline=few).plot()


def test_a_gate_that_passed_shows_its_changes_on_a_number_line():
    page = Page(gate_answer()._repr_html_())
    assert "svg" in page.tags
    assert page.tags.count("circle") == 3
    for text in (
        "The gate passed it",
        "new rows",
        "-0.3000",
        "text baseline",
        "left of 0 is better",
    ):
        assert text in page.text
    assert "0.9000" in page.text
    assert "calibration error" in page.text


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (
            {"serves": True, "right": {"before": 0.7, "after": 0.7, "change": 0.0}},
            "Words alone answer",
        ),
        (
            {"serves": True},
            "as right as what reads the base model: 70.0% beside 71.0% right, in 0.3",
        ),
        ({}, "Words alone would be as right"),
        ({"as_right": False}, "Words alone are not shown to be as right"),
        (
            {"ladder": LADDER},
            (
                "words alone answer 90.0% of the decisions (single from 0.81 on) in 0.3 ms of one core, what "
                "reads the base model the rest in 6.7 more: 0.97 on average. At most 1.0% are wrong that would "
                "be right without it, with a confidence of 95%; 0.20% fewer of the held-out ones are right."
            ),
        ),
        (
            {"ladder": {**LADDER, "thresholds": {}, "missing_rows": {"single": 120}}},
            "No ladder: the held-out rows certify no threshold from which words alone may answer. 120 more",
        ),
    ],
)
def test_words_alone_stand_beside_it_with_their_cost(fields, text):
    words = {**WORDS, **fields}
    if "right" in fields:
        words["right"] = {**fields["right"], "low": 0.0, "high": 0.0}
    assert text in Page(gate_answer(words=words)._repr_html_()).text


def test_a_reader_whose_evidence_is_read_is_named():
    text = Page(gate_answer(reader="steelyard-reader-1")._repr_html_()).text
    assert "It reads the evidence of steelyard-reader-1, whose time and price" in text
    assert "evidence" not in Page(gate_answer()._repr_html_()).text


def test_a_worse_outcome_is_marked_and_names_are_text():
    page = Page(gate_answer()._repr_html_())
    assert f"team: {HOSTILE} (worse)" in page.text
    assert "img" not in page.tags


def test_a_rise_is_better_with_rewards():
    answer = gate_answer(
        groups={"new": group("scaled_reward", 0.4, 0.6)}, by_decision=[], by_outcome=[]
    )
    page = Page(answer._repr_html_())
    assert "scaled reward" in page.text
    assert "right of 0 is better" in page.text


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("too_few_evaluation_decisions", "120 new evaluation decisions"),
        ("new_rows_worse", "worse on new rows: the loss changes by -0.3000 [-0.3200, -0.2800]"),
        ("no_gain_on_new_rows", "no better on new rows"),
        ("earlier_rows_worse", "worse on earlier rows: the loss changes by +0.0100"),
        ("calibration_worse", "from 0.0900 to 0.0700"),
        ("below_text_baseline", "A plain text classifier does better"),
        ("inconclusive_on_new_rows", "Nothing is proven on new rows"),
        ("outcome_worse", "the loss changes by +0.5000"),
        ("decision_worse", "It is worse on some of them."),
        ("something_new", "Something new."),
    ],
)
def test_reasons_are_put_in_words(reason, told):
    answer = gate_answer(passed=False, reasons=[reason])
    (sentence,) = answer.sentences
    assert told in sentence
    page = Page(answer._repr_html_())
    assert "did not pass it" in page.text
    assert sentence in page.text


def test_a_gate_without_figures_has_reasons():
    for reason in ("new_rows_worse", "calibration_worse", "below_text_baseline"):
        empty = {"before": None, "after": None}
        fields = gate(passed=False, reasons=[reason], groups={}, ece=empty)
        del fields["baseline"]
        answer = msgspec.convert(fields, Gate)
        assert len(answer.sentences) == 1
        assert "svg" not in Page(answer._repr_html_()).tags


def test_a_gate_is_a_frame():
    frame = gate_answer().to_polars()
    assert frame["slice"].to_list() == ["new", "earlier", "decision", "outcome", "baseline"]
    first = frame.row(0, named=True)
    assert first["measure"] == "loss"
    assert first["change"] == pytest.approx(-0.3)
    assert (first["fixed"], first["broken"], first["worse"]) == (14, 3, None)
    assert frame["worse"].to_list() == [None, None, False, True, None]
    assert gate_answer(groups={}, by_decision=[], by_outcome=[]).to_polars().height == 1


def test_intervals_of_no_width_are_drawn():
    still = change(0.5, 0.5, margin=0)
    answer = gate_answer(groups={"new": {**group(), "loss": still}})
    assert "+0.0000" in Page(answer._repr_html_()).text


def test_a_family_shows_its_line():
    page = Page(family_answer()._repr_html_())
    assert page.tags.count("circle") == 3
    for text in (
        "is on, serves router@2, waits to move to router@3",
        "deleted",
        "served",
        "latest",
    ):
        assert text in page.text
    assert HOSTILE in page.text
    assert "accuracy 0.87" in page.text


def test_a_long_line_is_drawn_from_its_newest():
    models = [deleted(number) for number in range(1, SHOWN_MODELS + 6)]
    page = Page(family_answer(models=models, served=None, latest=None)._repr_html_())
    assert page.tags.count("circle") == SHOWN_MODELS
    assert "serves no model" in page.text


def test_a_family_without_models():
    answer = family_answer(models=[], served=None, latest=None, move=None, switched_on=False)
    assert "svg" not in Page(answer._repr_html_()).tags
    assert answer.to_polars().height == 0


def test_the_state_of_a_family_is_put_in_words():
    window = {"started_at": 1.0, "ends_at": 2.0, "reserved_usd": "1"}
    answer = family_answer(
        keep_warm=True, keep_warm_window=window, moved={"at": 1.0, "from": None}, move=None
    )
    assert "is kept warm, moved at 1970-01-01" in Page(answer._repr_html_()).text
    off = family_answer(switched_on=False, off_reason="idle", off_at=2.0)
    listed = FamilyList(data=[off])
    assert "off (idle)" in Page(listed._repr_html_()).text


def test_a_family_is_a_frame():
    frame = family_answer(
        models=[deleted(1), model(2, status="discarded", discarded_at=5.0), model(3)]
    ).to_polars()
    assert frame["status"].to_list() == ["deleted", "discarded", "ready"]
    assert frame["served"].to_list() == [False, True, False]
    assert frame["accuracy"].to_list() == [None, 0.87, 0.87]


def test_gates_of_models_show_themselves():
    answer = family_answer()
    assert "The gate passed it" in answer.latest.gate._repr_html_()


def test_a_fine_tune_shows_its_curve_and_gate():
    answer = job_answer()
    page = Page(answer._repr_html_())
    assert {"polyline", "svg"} <= set(page.tags)
    for text in ("training loss by step", "The gate passed it", "none: heads alone", "joined"):
        assert text in page.text
    assert answer.has_joined
    assert answer.metrics._repr_html_() == answer.gate._repr_html_()
    assert answer.to_polars().rows() == [(10, 1.2, 0.001), (200, 0.3, 0.0001)]


def test_a_curve_of_one_point_is_drawn():
    curve = [{"step": 3, "loss": 1.0, "learning_rate": 0.1}]
    assert "polyline" in Page(job_answer(curve=curve)._repr_html_()).tags


def test_a_fine_tune_that_runs():
    progress = {"step": 40, "steps": 200, "loss": None, "phase": "heads"}
    answer = job_answer(
        status="running",
        progress=progress,
        metrics=None,
        curve=None,
        output_model=None,
        outcome=None,
    )
    assert "heads, 40 of 200" in Page(answer._repr_html_()).text
    assert answer.gate is None
    assert not answer.has_joined
    assert answer.to_polars().height == 0


def test_a_fine_tune_that_failed():
    answer = job_answer(
        status="failed",
        outcome="failed",
        reason=HOSTILE,
        error={"code": "internal_error", "message": HOSTILE},
        metrics=None,
    )
    page = Page(JobPage(data=[answer], has_more=False, next_cursor=None)._repr_html_())
    assert "failed" in page.text
    assert HOSTILE in Page(answer._repr_html_()).text


def test_events_are_a_table():
    event = {"seq": 1, "created_at": 1.0, "type": "queued", "message": HOSTILE}
    answer = msgspec.convert({"data": [event]}, JobEvents)
    page = Page(answer._repr_html_())
    assert HOSTILE in page.text
    assert "1970-01-01 00:00:01" in page.text
