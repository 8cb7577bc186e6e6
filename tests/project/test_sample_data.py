"""The sample data: rows that the product takes, labels that add up, and a card that is true."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from functools import cache
from itertools import combinations
from typing import Any

import pytest

from steelyard.decisions.lint.service import lint_request
from steelyard.decisions.validation import ValidRequest, read_request
from support.tree.repository import ROOT

FOLDER = ROOT / "datasets"
TRIAGE, REPLIES = "support_triage.jsonl", "reply_action.jsonl"
FILES = [TRIAGE, REPLIES]
#: What lint says of contexts: shoppers write in their languages, and one passes on what another wrote.
PURPOSELY_HARD = {TRIAGE: {"unread_language", "quoted_mail"}, REPLIES: set()}
#: The smallest share of words that makes two contexts the same one told twice.
NEARLY_EQUAL = 0.8


@cache
def rows_of(name: str) -> list[dict[str, Any]]:
    lines = (FOLDER / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@cache
def requests_of(name: str) -> list[ValidRequest]:
    """Read every row as a decide request, refusing as decide does."""
    return [
        read_request({"context": row["context"], "decisions": row["decisions"]})
        for row in rows_of(name)
    ]


@cache
def card() -> str:
    return (FOLDER / "README.md").read_text(encoding="utf-8")


def words_of(context: Any) -> frozenset[str]:
    text = context if isinstance(context, str) else json.dumps(context, ensure_ascii=False)
    return frozenset(re.findall(r"\w+", text.lower()))


def labels_of(decision: str) -> tuple[Counter[str], int]:
    """Sum the targets of a triage decision by outcome, and count the rows that ask it."""
    asked = [row["targets"][decision] for row in rows_of(TRIAGE) if decision in row["targets"]]
    totals: Counter[str] = Counter()
    for targets in asked:
        totals.update(targets)
    return totals, len(asked)


def shares_of(decision: str) -> dict[str, float]:
    totals, asked = labels_of(decision)
    return {outcome: total / asked for outcome, total in totals.items()}


def best_action(row: dict[str, Any]) -> str:
    rewards = row["rewards"]["action"]
    return max(rewards, key=rewards.__getitem__)


@pytest.mark.parametrize(
    ("name", "label", "minimum"), [(TRIAGE, "targets", 600), (REPLIES, "rewards", 200)]
)
def test_every_row_is_valid_and_there_are_enough(name, label, minimum):
    assert len(requests_of(name)) >= minimum
    assert all(set(row) == {"context", "decisions", label} for row in rows_of(name))


@pytest.mark.parametrize("name", FILES)
def test_a_decision_is_worded_alike_on_all_rows(name):
    wordings: dict[str, set[str]] = {}
    for row in rows_of(name):
        for decision in row["decisions"]:
            wordings.setdefault(decision["id"], set()).add(json.dumps(decision))
    expected = {TRIAGE: {"team", "refund", "urgency"}, REPLIES: {"action"}}[name]
    assert set(wordings) == expected
    assert all(len(wording) == 1 for wording in wordings.values())


@pytest.mark.parametrize("name", FILES)
def test_lint_has_nothing_to_say_but_of_contexts_that_are_so_on_purpose(name):
    findings = {
        warning.rule
        for row in rows_of(name)
        for warning in lint_request(
            {"context": row["context"], "decisions": row["decisions"]}
        ).warnings
    }
    assert findings == PURPOSELY_HARD[name]


def test_targets_are_distributions_over_the_outcomes_asked():
    for row, request in zip(rows_of(TRIAGE), requests_of(TRIAGE), strict=True):
        outcomes = {decision.id: decision.outcomes.names for decision in request.decisions}
        assert set(row["targets"]) == set(outcomes), row
        for decision, targets in row["targets"].items():
            assert set(targets) <= set(outcomes[decision]), row
            assert all(0 < probability <= 1 for probability in targets.values()), row
            assert math.isclose(sum(targets.values()), 1, abs_tol=1e-6), row


def test_rewards_are_finite_for_every_outcome_and_one_is_best():
    for row, request in zip(rows_of(REPLIES), requests_of(REPLIES), strict=True):
        (decision,) = request.decisions
        rewards = row["rewards"]["action"]
        assert tuple(rewards) == decision.outcomes.names, row
        assert all(math.isfinite(reward) and -1 <= reward <= 1 for reward in rewards.values()), row
        assert sum(reward == max(rewards.values()) for reward in rewards.values()) == 1, row


def test_every_label_is_frequent_enough():
    assert min(shares_of("team").values()) >= 0.06
    assert 0.20 <= shares_of("refund")["yes"] <= 0.35
    assert set(shares_of("urgency")) == {"0", "1", "2", "3"}
    assert min(shares_of("urgency").values()) >= 0.05
    best = Counter(map(best_action, rows_of(REPLIES)))
    assert min(best.values()) / len(rows_of(REPLIES)) >= 0.1
    assert len(best) == len(rows_of(REPLIES)[0]["decisions"][0]["outcomes"])


@pytest.mark.parametrize("name", FILES)
def test_no_context_is_there_twice_or_nearly(name):
    contexts = [row["context"] for row in rows_of(name)]
    assert len({json.dumps(context, sort_keys=True) for context in contexts}) == len(contexts)
    close = [
        (left, right)
        for (left, a), (right, b) in combinations(enumerate(map(words_of, contexts), 1), 2)
        if len(a & b) >= NEARLY_EQUAL * len(a | b)
    ]
    assert close == []


def test_forms_of_context_are_counted_in_the_card():
    forms = Counter(type(row["context"]) for row in rows_of(TRIAGE))
    assert f"Text in {forms[str]} rows; in {forms[dict]} an object" in card()
    assert f"in {forms[list]} a list of chat messages" in card()
    for row in rows_of(REPLIES):
        assert (
            {"ticket", "customer"} <= set(row["context"]) <= {"ticket", "customer", "order", "note"}
        )
        assert set(row["context"]["customer"]) == {"since", "orders", "plan", "refunds_last_year"}
    for field in ("order", "note"):
        count = sum(field in row["context"] for row in rows_of(REPLIES))
        assert f"`{field}`, in {count} rows" in card()


def test_the_card_counts_the_rows():
    for name, label in ((TRIAGE, "targets"), (REPLIES, "rewards")):
        assert f"| [{name}]({name}) | {len(rows_of(name))} | {label} |" in card()
    asked = Counter(tuple(row["targets"]) for row in rows_of(TRIAGE))
    flat = " ".join(card().split())
    assert (
        f"{asked['team', 'refund', 'urgency']} rows ask all three; {asked['team',]} ask only `team`, "
        f"{asked['team', 'urgency']} `team` and `urgency`, {asked['refund',]} only `refund`."
    ) in flat
    assert sum(asked.values()) == sum(
        asked[ids]
        for ids in [("team", "refund", "urgency"), ("team",), ("team", "urgency"), ("refund",)]
    )


@pytest.mark.parametrize("decision", ["team", "refund", "urgency"])
def test_the_card_counts_the_labels(decision):
    totals, asked = labels_of(decision)
    section = card().split(f"### {decision}: ")[1].split("\n### ")[0]
    assert f"Asked on {asked} rows." in section
    for outcome, total in totals.items():
        assert f"| `{outcome}` | {total:.1f} | {100 * total / asked:.1f} % |" in section
    soft = sum(len(row["targets"].get(decision, ())) > 1 for row in rows_of(TRIAGE))
    assert re.search(rf"\b{soft} (?:rows )?for\s+`{decision}`", card())


def test_the_card_counts_the_actions():
    rows = rows_of(REPLIES)
    best = Counter(map(best_action, rows))
    for action in rows[0]["rewards"]["action"]:
        share = 100 * best[action] / len(rows)
        mean = sum(row["rewards"]["action"][action] for row in rows) / len(rows)
        assert f"| `{action}` | {best[action]} | {share:.1f} % | {mean:+.2f} |" in card()
    highest = sum(max(row["rewards"]["action"].values()) for row in rows) / len(rows)
    asking = sum(row["rewards"]["action"]["ask_details"] for row in rows) / len(rows)
    assert f"earns {asking:.2f} a row, the best outcomes {highest:.2f}." in " ".join(card().split())


@pytest.mark.parametrize("name", FILES)
def test_the_card_words_outcomes_as_the_file_does(name):
    for decision in {
        each["id"]: each for row in rows_of(name) for each in row["decisions"]
    }.values():
        outcomes = decision["outcomes"]
        described = (
            outcomes
            if isinstance(outcomes, dict)
            else dict(zip(outcomes, decision["rubric"], strict=True))
        )
        assert f"### {decision['id']}: {decision['question']}" in card()
        for outcome, description in described.items():
            assert f"| `{outcome}` | {description} |" in card()


def test_wrong_labels_listed_in_the_card_are_in_the_file():
    section = card().split("### Wrong labels, on purpose")[1].split("\n## ")[0]
    listed = re.findall(r"^\| (\d+) \| `(\w+)` \| `(\w+)` \| `(\w+)` \| \w.* \|$", section, re.M)
    rows, requests = rows_of(TRIAGE), requests_of(TRIAGE)
    assert len({line for line, *_ in listed}) == len(listed) == section.count("\n| ") - 1
    assert 0.025 <= len(listed) / len(rows) <= 0.035
    share = f"{100 * len(listed) / len(rows):.1f}"
    assert f"{len(listed)} rows ({share} %) carry one wrong label each" in section
    for line, decision, given, believed in listed:
        index = int(line) - 1
        assert rows[index]["targets"][decision] == {given: 1.0}, line
        (asked,) = [each for each in requests[index].decisions if each.id == decision]
        assert believed in asked.outcomes.names, line
        assert believed != given, line


def test_the_data_has_its_own_licence():
    assert "[CC0 1.0](https://creativecommons.org/publicdomain/zero/1.0/)" in card()
