"""Moves of production: compared on held-out rows and stored decisions, refused, overruled, undone."""

from __future__ import annotations

import re

import msgspec
import pytest

import steelyard
from steelyard import errors
from steelyard.cli.decision_compare import show_comparison
from steelyard.datasets.service import DatasetService
from steelyard.decisions.validation import read_request
from steelyard.decisions.wire import DecisionResult
from steelyard.evaluations.models import EvaluatedModels
from steelyard.ledger.money import from_usd
from steelyard.named.compare_run import ComparisonRuns
from steelyard.named.comparing import (
    Compared,
    VersionAnswer,
    compare_answers,
    compare_sides,
)
from steelyard.named.switching import switches_of
from support.decisions.wordings import SAID, TEAM, rows, tuned_server
from support.models.evaluated import claim

pytestmark = pytest.mark.usefixtures("every_response_is_checked")

VAGUE = {"model": "far", "decisions": [TEAM]}
CLEAR = {"model": "far", "decisions": [{**TEAM, "outcomes": {k: v[0] for k, v in SAID.items()}}]}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    with (
        tuned_server(home, price_in="1") as (services, http, _),
        steelyard.connect(str(http.base_url)) as client,
    ):
        yield services, client


def run(services, comparison):
    """Compare in this process, to the end; the run is closed in the midst once, as by a crash."""
    runs = ComparisonRuns(
        services.state, services.get(DatasetService), EvaluatedModels(services.models)
    )
    running = claim(services.state, runs, comparison.id)
    running.advance()
    running.close()
    while running.advance():
        pass


def test_production_moves_to_a_passing_version_only(served):
    services, client = served
    named = client.named_decisions
    dataset = client.datasets.create("tickets", training=rows(6), evaluation=rows(42, start=6))
    named.create("desk", **VAGUE, dataset_id=dataset.id)
    better = named.add_version("desk", **CLEAR)
    # And one that is a training row: what the models know of it says nothing.
    for row in (*rows(4, start=48), *rows(1)):
        answer = client.decision("desk").decide(row["context"])
        client.feedback(answer.id, {"team": next(iter(row["targets"]["team"]))})
    with pytest.raises(errors.ComparisonNeededError, match="compare them"):
        named.move("desk", "production", 2)
    comparison = named.compare("desk", better.version)
    assert (comparison.status, comparison.contexts, comparison.against) == ("queued", 47, 1)
    assert from_usd(comparison.price_usd) > 0
    run(services, comparison)
    comparison = named.wait(comparison, progress=False)
    assert comparison.charge == "charged", comparison.error
    result = comparison.result
    assert (result.verdict, result.reasons, result.left_out) == ("passed", [], 0)
    assert result.changes == ["decisions.team.outcomes"]
    [switch] = result.switches
    assert (switch.decision, switch.threshold, switch.agree.n) == ("team", None, 5)
    # The answers to all five are known.
    assert switch.to_label == []
    assert "No threshold keeps team within 2% of differing answers on 5" in switch.advice
    assert (result.rows.contexts, result.rows.labelled, result.stored.labelled) == (42, 42, 4)
    (team,) = result.rows.decisions
    assert team.right.low > 0
    assert team.changed.value > 0.3
    assert team.moves[0].before == "t1"
    assert float(result.price.usd_after) > float(result.price.usd_before) > 0
    named.move("desk", "production", 2, reason="reads the tickets")
    assert client.decision("desk").decide("x").decision.version == 2

    back = named.compare("desk", 1, traffic_s=1e-6)
    assert back.contexts == 42, "nothing is so new"
    run(services, back)
    with pytest.raises(
        errors.MoveRefusedError, match=r"refused\). On held-out rows it takes more wrong"
    ):
        named.move("desk", "production", 1)
    named.move("desk", "production", 1, overrule="the new texts are not approved yet")
    named.roll_back("desk")
    undone, overruled, passed, _ = named.history("desk")
    assert (undone.to_version, undone.overruled) == (2, None)
    assert (overruled.verdict, overruled.overruled) == (
        "refused",
        "the new texts are not approved yet",
    )
    assert (passed.comparison_id, passed.verdict) == (comparison.id, "passed")
    assert [listed.id for listed in named.comparisons("desk")] == [back.id, comparison.id]
    assert list(named.comparisons("other")) == []


def test_the_rules_of_two_versions_are_compared_on_rows_and_stored_fields(served, capsys):
    services, client = served
    named = client.named_decisions
    sure = {**TEAM, "outcomes": {name: " ".join(texts) for name, texts in SAID.items()}}
    clear = {"model": "far", "decisions": [sure]}
    ruled = {
        "fields": {"amount": {"type": "decimal"}},
        "rules": [
            {"when": 'top == "t1"', "action": "first"},
            {"when": "amount < 50", "action": "refund"},
        ],
        "otherwise": "person",
    }
    labelled = rows(20)
    for place, row in enumerate(labelled):
        row["metadata"] = {"amount": "60.00"} if place else {}
    dataset = client.datasets.create("amounts", evaluation=labelled)
    named.create("ruled", **clear, **ruled, dataset_id=dataset.id)
    named.add_version("ruled", **clear, **(ruled | {"otherwise": "desk"}))
    needs_more = {"fields": {"amount": {"type": "decimal"}, "since": {"type": "date"}}}
    named.add_version("ruled", **clear, **(ruled | needs_more))
    named.add_version("ruled", **VAGUE, **ruled)
    for place, row in enumerate(rows(4)):
        client.decision("ruled").decide(row["context"], fields={"amount": 20 * place})

    def compare(version):
        comparison = named.compare("ruled", version)
        run(services, comparison)
        return named.wait(comparison, progress=False)

    comparison = compare(2)
    result = comparison.result
    assert (result.verdict, result.changes) == ("passed", ["otherwise"])
    # One row has no amount; of the others a third is t1, by the labels too.
    on_rows, on_stored = result.rows.rules, result.stored.rules
    assert (on_rows.n, on_stored.n, on_stored.right) == (19, 4, None)
    moves = [(move.before, move.after, move.n) for move in on_rows.moves]
    assert moves == [("person", "desk", 13)]
    assert on_rows.changed.value == pytest.approx(13 / 19)
    assert on_rows.changed.low < 13 / 19 < on_rows.changed.high
    assert (on_rows.right.before, on_rows.right.after) == (1, 1)
    show_comparison(comparison)
    printed = capsys.readouterr().out
    assert "The rules act otherwise on held-out rows: person > desk (13)." in printed
    assert re.search(r"held-out rows +\(rules\) +19 +68.4% \[.*\] +- +100.0% > 100.0%", printed)

    result = compare(3).result
    assert result.changes == ["fields"]
    assert result.rows.rules is result.stored.rules is None, "nothing has the new field"

    result = compare(4).result
    assert result.verdict == "refused"
    assert "fewer_right_rule_actions" in result.reasons
    assert any("On held-out rows its rules take fewer" in each for each in result.sentences)


@pytest.mark.parametrize(("budget", "threshold", "alone"), [(0.02, 0.9, 0.75), (0.001, None, 0.0)])
def test_a_switch_is_judged_without_labels(budget, threshold, alone):
    """Of 800 texts both agree on the surer three quarters; of the others they differ in half."""
    compared = []
    for place in range(800):
        is_sure, differs = place % 4 > 0, place % 8 == 0
        compared.append(
            Compared(
                context=f"{place}",
                decision="paid",
                kind="binary",
                outcomes=["yes", "no"],
                probabilities=(
                    [0.1, 0.9] if differs else [0.8, 0.2],
                    [0.9 if is_sure else 0.6, 0.1],
                ),
                actions=("", ""),
                source=f"dec_{place}",
            )
        )
    [switch] = switches_of(compared, budget)
    assert (switch.threshold, switch.alone) == (threshold, alone)
    assert [(band.low, band.high, band.agree.value) for band in switch.bands] == [
        (0.5, 0.6, 0.5),
        (0.8, 0.9, 1.0),
    ]
    assert (switch.agree.value, len(switch.to_label)) == (0.875, 20)
    expected = ["75% of 800 answers"] if threshold else ["within 0.1% of", "more would"]
    assert all(words in switch.advice for words in expected)


def test_a_comparison_can_be_stopped_and_refuses_unknown_ids(served):
    _, client = served
    named = client.named_decisions
    named.create("short", **VAGUE)
    named.add_version("short", **CLEAR)
    for version, problem in ((1, "Both are version 1"), (9, "no version 9"), ("nope", "no alias")):
        with pytest.raises((errors.InvalidReferenceError, errors.NotFoundError), match=problem):
            named.compare("short", version)
    named.move("short", "staging", 2)
    comparison = named.compare("short", "staging")
    assert named.cancel_comparison(comparison.id).status == "cancelled"


def asked(**fields):
    return read_request({"context": "", "decisions": [{"id": "d", "question": "?"} | fields]})


def answer(p_a, action):
    return DecisionResult(
        kind="single", probabilities={"a": p_a, "b": 1 - p_a}, top="a", p_top=p_a, action=action
    )


def verdict_of(compared, before, after):
    contents = ({"decisions": [{"id": "d"}]},) * 2
    return compare_sides(before, after, compared, [], price=None, left_out=0, contents=contents)


def test_a_lower_threshold_is_refused_where_more_actions_are_wrong():
    before = after = asked(outcomes=["a", "b"])
    decision = before.decisions[0]
    compared = [
        compare_answers(
            f"{number:03}",
            VersionAnswer(decision, answer(0.7, "abstain" if number % 4 else "a")),
            VersionAnswer(decision, answer(0.7, "a")),
            {"a" if number % 10 < 7 else "b": 1.0},
        )
        for number in range(100)
    ]
    result = verdict_of(compared, before, after)
    assert (result.verdict, result.reasons) == ("refused", ["more_wrong_actions"])
    assert verdict_of([*map(turned, compared)], before, after).reasons == ["fewer_right_actions"]
    unlabelled = [msgspec.structs.replace(each, target=None) for each in compared]
    assert verdict_of(unlabelled, before, after).reasons == ["nothing_labelled"]
    other = asked(id="e", outcomes=["a", "b"])
    assert verdict_of(compared, before, other).reasons[0] == "decision_removed"


def turned(compared):
    return msgspec.structs.replace(compared, actions=compared.actions[::-1])
