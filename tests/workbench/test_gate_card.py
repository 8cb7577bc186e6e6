"""A gate on a card: its verdict, the rows that would settle it, its number line and its marks."""

from __future__ import annotations

import msgspec
import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

from steelyard.evaluations.gate_wire import Gate
from steelyard_workbench.pages.families.gate_card import (
    HeldOutRequest,
    Line,
    number_line,
    show_gate,
)
from steelyard_workbench.parts.families.verdicts import decisions_to_settle, verdict_of
from support.browser.shown_parts import texts_of
from support.families.family_data import gate, group
from support.families.told_families import record


def told(**fields: object) -> Gate:
    return msgspec.convert(gate(**fields), Gate)


def near_miss(**fields: object) -> dict[str, object]:
    """A gain of 0.03 whose interval reaches to 0.01 above none, with a margin to clear."""
    change = {"before": 0.6, "after": 0.57, "change": -0.03, "low": -0.07, "high": 0.01}
    return {**group(), "loss": change, "margin": 0.01, **fields}


def test_a_gate_that_passed_says_so():
    found = verdict_of(told())
    assert (found.status, found.word, found.settles) == ("good", "passed", "")


def test_a_gate_that_failed_says_why_in_sentences():
    shown = show_gate(told(passed=False, reasons=["new_rows_worse"]), lambda _: None)
    said = texts_of(shown)
    assert "Checked against the model it was trained from." in said
    assert "It is worse on new rows" in said


def test_an_inconclusive_gate_is_not_failed_and_names_the_settling_step():
    reasons = ["inconclusive_on_new_rows"]
    found = verdict_of(told(passed=False, reasons=reasons, groups={"new": near_miss()}))
    assert (found.status, found.word) == ("unsure", "inconclusive")
    assert "more new decisions for the check would settle it" in found.settles


def test_too_few_decisions_says_how_many_to_add():
    few = {"new": {**group(), "decisions": 12}}
    gate = told(passed=False, reasons=["too_few_evaluation_decisions"], groups=few)
    assert "needs 20 new decisions for the check and had 12: add 8" in verdict_of(gate).settles


def test_too_few_contexts_asks_for_other_contexts():
    few = {"new": near_miss(contexts=4)}
    found = verdict_of(told(passed=False, reasons=["inconclusive_on_new_rows"], groups=few))
    assert "different new texts and had 4" in found.settles


def test_a_gate_that_is_unsure_and_worse_has_failed():
    reasons = ["inconclusive_on_new_rows", "earlier_rows_worse"]
    assert verdict_of(told(passed=False, reasons=reasons)).word == "failed"


def test_the_decisions_that_settle_it_narrow_the_interval_to_the_gain():
    new = told(groups={"new": near_miss()}).groups["new"]
    more = decisions_to_settle(new)
    share = new.decisions / (new.decisions + more)
    assert 0.04 * share**0.5 + 0.01 * share == pytest.approx(0.03, rel=0.01)
    assert decisions_to_settle(told(groups={"new": group(after=1.2)}).groups["new"]) is None
    assert decisions_to_settle(told().groups["new"]) == 0


def test_marks_and_buttons_open_the_rows_behind_them():
    opened: list[HeldOutRequest] = []
    shown = show_gate(told(), opened.append)
    buttons = {one.label: one for one in shown.select(lambda p: hasattr(p, "clicks"))}
    buttons["3 broken of 120 new rows"].clicks += 1
    assert opened == [HeldOutRequest(group="new", flip="broken")]
    figures = [pane.object for pane in shown.select(lambda p: hasattr(p, "autodispatch"))]
    sources = [one.data_source for one in figures[0].renderers]
    source = next(one for one in sources if "marker" in one.data)
    source.selected.indices = [1]
    assert opened[1:] == [HeldOutRequest(group="earlier")]


def test_the_number_line_holds_zero_every_interval_and_every_limit():
    lines = [Line("new rows", 2.0, 1.5, 2.5, 40, limit=-0.2), Line("late", 1.0, 0.5, 3.0, 10)]
    made = number_line("t", lines, measure="loss", fall_is_good=True, open_=lambda _: None)
    assert made.x_range.start < -0.2
    assert made.x_range.end > 3.0
    assert "(n = 40)" in made.yaxis[0].major_label_overrides[2.0]


def test_records_are_paired_and_the_worst_come_first():
    from steelyard_workbench.pages.families.held_out import judged_as, pair_records

    before = [record("a", "billing", 0.9), record("b", "billing", 0.3)]
    after = [record("a", "billing", 0.2), record("b", "billing", 0.8)]
    frame = pair_records(before, after, {judged_as(before[1])})
    assert frame["flip"].to_list() == ["broken", "fixed"]
    assert frame["group"].to_list() == ["new", "earlier"]
    assert frame["change"].to_list() == pytest.approx([0.7, -0.5])
