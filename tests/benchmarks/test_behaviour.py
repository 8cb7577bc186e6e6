"""The behaviour suite: its rows are many, balanced and distinct, and its figures hold."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest

import steelyard
from steelyard_base_recipe.behaviour.figures import answer_all, figures
from steelyard_base_recipe.behaviour.rows import NAMINGS, PLACES, make_rows, read_domains
from support.servers.live_server import live_server

WANTED_DOMAINS, WANTED_PAIRS = 15, 300


@pytest.fixture
def rows():
    return make_rows()


def test_rows_are_many_balanced_and_distinct(rows):
    domains = read_domains()
    assert len(domains) >= WANTED_DOMAINS
    assert 3 <= sum(one.is_reserved for one in domains) <= len(domains) // 2
    groups = Counter(row.group.split(":")[0] for row in rows)
    assert groups["negated"] >= WANTED_PAIRS
    for group in ("asked", "negated", "claims"):
        right = Counter(row.right for row in rows if row.group.split(":")[0] == group)
        assert right[0] == right[1] == groups[group] / 2
    assert groups["stated"] == groups["not stated"] >= WANTED_DOMAINS * 5
    levels = Counter(row.right for row in rows if row.group == "ordinal")
    assert set(levels.values()) == {len(domains)}
    asked = [(row.context, row.kind, row.question, row.outcomes) for row in rows]
    assert len(set(asked)) == len(asked)
    for row in rows:
        assert len(set(row.outcomes)) == len(row.outcomes)
        assert row.context.strip() == row.context != ""
        assert 0 <= row.right < len(row.outcomes)


def test_what_is_right_is_right_in_every_wording(rows):
    by_group: dict[str, list] = {}
    for row in rows:
        by_group.setdefault(row.group, []).append(row)
    truth = {row.key: row.outcomes[row.right] for row in by_group["choice"]}
    for row in (*by_group["none offered"], *by_group["paraphrased"]):
        assert row.outcomes[row.right] == truth[row.key]
    for row in by_group["none right"]:
        assert truth[row.key] not in row.outcomes
        assert row.outcomes[row.right] == "none of these"
    for style in NAMINGS:
        for row in by_group[f"named: {style}"]:
            letters = "".join(c for c in row.outcomes[row.right].casefold() if c.isalpha())
            assert letters.endswith("".join(c for c in truth[row.key] if c.isalpha()))
    for place in PLACES:
        for row in by_group[f"distracted: {place}"]:
            before, _, after = row.context.partition(row.key[1])
            assert len((before + after).split()) >= 200
            assert (bool(before), bool(after)) == (place != "after", place != "before")
    for group, traps in by_group.items():
        for row in traps if group.startswith("trap: ") else ():
            alike = group.removeprefix("trap: ")
            assert alike in row.outcomes
            assert alike != row.outcomes[row.right]


class Oracle:
    """Answers with the right outcome, with a probability."""

    def __init__(self, rows, p: float) -> None:
        self.right = {(row.context, row.question, row.outcomes): row.right for row in rows}
        self.p = p

    def __call__(self, request):
        answers = []
        for one in request.decisions:
            n = len(one.outcomes)
            answer = np.full(n, (1 - self.p) / (n - 1))
            answer[self.right[request.context, one.question, one.outcomes]] = self.p
            answers.append(answer)
        return answers


def test_a_model_that_is_right_has_every_behaviour(rows):
    found = {one.name: one.value for one in figures(rows, answer_all(rows, Oracle(rows, 0.85)))}
    for name, value in found.items():
        if name.startswith("negated question") and "flip" in name:
            assert value == 1
        elif "correlation" in name:
            assert value == pytest.approx(-1)
        elif "change" in name or "it is chosen" in name or "mean error" in name:
            assert value == 0
        elif "accuracy" in name or "AUC" in name or "above its" in name:
            assert value == 1
    assert found["yes/no questions: share of yes, of .50 that are"] == 0.5
    assert found["not stated: answered yes"] == 0
    assert found["choices: right where the top probability is .8 to .9"] == 1
    assert found["yes/no: calibration error"] == pytest.approx(0.15)


def test_a_model_that_says_yes_to_all_is_seen(rows):
    def first(request):
        return [np.eye(len(one.outcomes))[0] for one in request.decisions]

    found = {one.name: one.value for one in figures(rows, answer_all(rows, first))}
    assert found["negated question, all wordings: answers that flip"] == 0
    assert found["negated question, all wordings: correlation of p(yes) with its negation's"] == 0
    assert found["yes/no questions: share of yes, of .50 that are"] == 1
    assert found["stated or not: AUC of p(yes)"] == 0.5
    assert found["ordinal: mean error in levels"] == 2


def test_the_script_prints_a_table_and_writes_json(script, tmp_path, capsys, monkeypatch):
    behaviour = script("behaviour")
    domains = read_domains()
    few = [domains[0], next(one for one in domains if one.is_reserved)]
    monkeypatch.setattr(behaviour, "make_rows", lambda: make_rows(few))
    assert behaviour.main(["--engine", "hashing", "--json", str(tmp_path / "found.json")]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].split(" | ")[-2:] == [
        "shipped hashing",
        "shipped hashing, reserved domains |",
    ]
    found = json.loads((tmp_path / "found.json").read_text())["shipped hashing"]
    assert len(found["all"]) == len(printed) - 2
    n_pairs = found["all"]["true question above its opposite"]["n"]
    assert n_pairs == 2 * found["reserved"]["true question above its opposite"]["n"]


def test_a_server_is_asked_as_a_model_is(script, rows):
    behaviour, models = script("behaviour"), script("models")
    some = [row for row in rows if row.key[0] == rows[0].key[0]]
    assert {row.kind for row in some} == {"binary", "single", "ordinal"}
    with live_server() as server, steelyard.connect(server.url) as client:
        answered = answer_all(some, behaviour.server_answerer(client, "hashing"))
    expected = answer_all(some, behaviour.model_answerer(models.load_model("hashing")))
    for row, one, other in zip(some, answered, expected, strict=True):
        assert len(one) == len(other)
        assert one.sum() == pytest.approx(1)
        if row.kind != "ordinal":  # levels are sent with numbers, which the model reads too
            assert one == pytest.approx(other)
