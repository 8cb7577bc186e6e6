from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.decisions.rendering import NO_CONTEXT
from steelyard.training.examples import WordedDecision
from steelyard_base_recipe import augment as module
from steelyard_base_recipe.augment import (
    CATCH_ALLS,
    FIELDS,
    MAX_CONTEXT_CHARACTERS,
    MAX_DECISIONS,
    PREFIXES,
    QUESTIONS,
    augment,
    plain,
)
from steelyard_base_recipe.mixture import Mixture, MixtureRow

#: Shares of the wordings that add or turn round what is asked.
TAUGHT = (
    "PAIR_SHARE",
    "NEGATE_SHARE",
    "REWORD_SHARE",
    "RECORD_SHARE",
    "FACT_SHARE",
    "LEVELS_SHARE",
    "INTENT_SHARE",
    "SURROUND_SHARE",
    "UNANSWERED_SHARE",
    "MISLEAD_SHARE",
)
#: No name or description is part of another, of a question or of a wording.
DESCRIBED = {
    "red kite": "wind over hills",
    "blue whale": "salt and depth",
    "grey heron": "reeds by ponds",
    "brown bear": "honey in forests",
    "black ant": "soil below stones",
    "white swan": "lakes at dusk",
}
FOREIGN = [f"foreign {index}" for index in range(40)]
MIXTURE = Mixture(rows={}, shares={}, labels={"own": list(DESCRIBED), "other": FOREIGN})
QUESTION = "Which animal is it?"


def make_row(
    outcomes: Any = DESCRIBED, targets: dict[str, float] | None = None, **fields: Any
) -> MixtureRow:
    decision = {"id": "d", "kind": "single", "question": QUESTION, "outcomes": outcomes, **fields}
    return MixtureRow(
        context='Near "water" é',
        decisions=[decision],
        targets={"d": targets or {"grey heron": 1.0}},
        source="own/part",
    )


@pytest.fixture(autouse=True)
def plain_wording(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask a row's own decisions and no more: the rows that teach have tests of their own."""
    for share in TAUGHT:
        monkeypatch.setattr(module, share, 0.0)


def worded(row: MixtureRow, seed: int) -> tuple[str, list[WordedDecision]]:
    return augment(row, MIXTURE, np.random.default_rng(seed))


def meant_by(outcome: str) -> str | None:
    """Return the name that an outcome's text stands for, None for a foreign or an abstain one."""
    if is_abstain(outcome):
        return None
    text = outcome.replace("_", " ")
    found = [
        name
        for name, description in DESCRIBED.items()
        if name in text or (description is not None and description in text)
    ]
    assert len(found) <= 1, outcome
    return found[0] if found else None


def assert_well_formed(example: WordedDecision) -> None:
    decision, targets = example.decision, example.targets
    assert len(targets) == len(decision.outcomes) >= 2
    assert sum(targets) == pytest.approx(1, abs=1e-9)
    assert min(targets) >= 0
    assert len(set(decision.outcomes)) == len(decision.outcomes)
    assert decision.question


def is_abstain(outcome: str) -> bool:
    return outcome.partition(":")[0].replace("_", " ") in CATCH_ALLS


@given(st.integers(0, 2**32), st.sampled_from(list(DESCRIBED)), st.booleans())
def test_targets_agree_with_the_outcomes(seed: int, right: str, described: bool) -> None:
    outcomes = DESCRIBED if described else list(DESCRIBED)
    _, examples = worded(make_row(outcomes, {right: 1.0}), seed)
    assert examples
    for example in examples:
        assert_well_formed(example)
        if example.decision.kind == "binary":
            asked = [name for name in DESCRIBED if name in example.decision.question]
            assert len(asked) == 1
            assert example.decision.outcomes == ("yes", "no")
            assert example.targets == ((1, 0) if asked[0] == right else (0, 1))
            continue
        chosen = example.decision.outcomes[int(np.argmax(example.targets))]
        assert max(example.targets) == 1
        if right in map(meant_by, example.decision.outcomes):
            assert meant_by(chosen) == right
        else:
            assert is_abstain(chosen), "the true outcome was left out, and nothing took its place"


@given(st.integers(0, 2**32))
def test_soft_targets_keep_their_ratio(seed: int) -> None:
    wanted = {"grey heron": 0.5, "red kite": 0.3, "black ant": 0.2}
    _, examples = worded(make_row(targets=wanted), seed)
    for example in examples:
        assert_well_formed(example)
        if example.decision.kind == "binary":
            asked = next(name for name in DESCRIBED if name in example.decision.question)
            assert example.targets[0] == pytest.approx(wanted.get(asked, 0))
            continue
        found: dict[str, float] = {}
        for outcome, target in zip(example.decision.outcomes, example.targets, strict=True):
            if target > 0:
                found[str(meant_by(outcome))] = target
        assert found == pytest.approx(wanted)


@pytest.mark.parametrize("kind", ["binary", "ordinal"])
@given(seed=st.integers(0, 2**32))
def test_other_kinds_keep_their_outcomes_in_order(kind: str, seed: int) -> None:
    names = ["yes", "no"] if kind == "binary" else ["0", "1", "2"]
    targets = dict(zip(names, (0.7, 0.3, 0.0), strict=False))
    fields = {"rubric": ["low", "mid", "high"]} if kind == "ordinal" else {}
    _, (example,) = worded(make_row(names, targets, kind=kind, **fields), seed)
    assert_well_formed(example)
    assert example.decision.kind == kind
    assert example.targets == pytest.approx(tuple(targets.values()))
    expected = ("yes", "no") if kind == "binary" else ("0: low", "1: mid", "2: high")
    assert example.decision.outcomes == expected


@given(st.integers(0, 2**32))
def test_a_context_is_the_rows_or_json_with_it_inside(seed: int) -> None:
    row = make_row()
    context, _ = worded(row, seed)
    if context != row.context:
        body = json.loads(context)
        assert [value for name, value in body.items() if name in FIELDS] == [row.context]


def test_a_long_context_is_cut_before_it_is_made_json() -> None:
    row = make_row()
    row.context = "w" * (MAX_CONTEXT_CHARACTERS + 500)
    cut = row.context[:MAX_CONTEXT_CHARACTERS]
    seen = Counter()
    for seed in range(200):
        context, _ = worded(row, seed)
        is_json = context != cut
        seen[is_json] += 1
        if is_json:
            assert cut in json.loads(context).values()
    assert set(seen) == {True, False}


def test_an_empty_context_reads_as_in_serving() -> None:
    row = make_row()
    row.context = " "
    assert NO_CONTEXT in {worded(row, seed)[0] for seed in range(5)}


@given(st.integers(0, 2**32))
def test_the_same_seed_gives_the_same_wording(seed: int) -> None:
    assert worded(make_row(), seed) == worded(make_row(), seed)


def test_a_row_is_left_as_it_was() -> None:
    row = make_row()
    before = json.dumps([row.context, row.decisions, row.targets])
    for seed in range(100):
        worded(row, seed)
    assert json.dumps([row.context, row.decisions, row.targets]) == before


def rules_seen(example: WordedDecision) -> set[str]:
    """Return which rules made an example of ``make_row()``."""
    decision = example.decision
    question = decision.question
    if decision.kind == "binary":
        return {"check"}
    seen = set()
    own = [outcome for outcome in decision.outcomes if meant_by(outcome) is not None]
    named = [o for o in own if any(name in o.replace("_", " ") for name in DESCRIBED)]
    if not named:
        seen.add("opaque")
    if named and all(":" not in outcome for outcome in named):
        seen.add("undescribed")
    if any(outcome.replace("_", " ") in FOREIGN for outcome in decision.outcomes):
        seen.add("padded")
    if any(map(is_abstain, decision.outcomes)):
        seen.add("abstain")
        if max(example.targets) == 1 and is_abstain(
            decision.outcomes[int(np.argmax(example.targets))]
        ):
            seen.add("abstain is right")
    elif len(own) < len(DESCRIBED):
        seen.add("thinned")
    if any("_" in outcome for outcome in decision.outcomes):
        seen.add("underscored")
    if question in QUESTIONS:
        seen.add("general question")
    if question.startswith(PREFIXES):
        seen.add("prefixed")
    if question == QUESTION.rstrip("?"):
        seen.add("no question mark")
    return seen


def test_every_rule_is_used_and_none_always() -> None:
    counts: Counter[str] = Counter()
    n_examples = 0
    for seed in range(1_500):
        for example in worded(make_row(), seed)[1]:
            n_examples += 1
            counts.update(rules_seen(example))
    assert set(counts) == {
        "check",
        "opaque",
        "undescribed",
        "padded",
        "abstain",
        "abstain is right",
        "thinned",
        "underscored",
        "general question",
        "prefixed",
        "no question mark",
    }
    assert max(counts.values()) < 0.5 * n_examples


def test_opaque_names_keep_their_descriptions() -> None:
    seen = 0
    for seed in range(600):
        for example in worded(make_row(), seed)[1]:
            if "opaque" in rules_seen(example):
                seen += 1
                right = example.decision.outcomes[int(np.argmax(example.targets))]
                assert DESCRIBED["grey heron"] in right or is_abstain(right)
    assert seen


def test_a_row_of_many_decisions_gives_a_few() -> None:
    row = make_row(["yes", "no"], {"yes": 1.0}, kind="binary")
    row.decisions = [{**row.decisions[0], "id": str(index)} for index in range(9)]
    row.targets = {str(index): {"yes": 1.0} for index in range(8)}
    for seed in range(20):
        assert len(worded(row, seed)[1]) == MAX_DECISIONS


def test_decisions_without_targets_are_left_out() -> None:
    row = make_row(["yes", "no"], {"yes": 1.0}, kind="binary")
    row.decisions.append({**row.decisions[0], "id": "unlabelled"})
    assert all(len(worded(row, seed)[1]) == 1 for seed in range(10))


def test_plain_wording_is_as_an_application_sends_it() -> None:
    row = make_row()
    example = plain(row.decisions[0], {"grey heron": 3.0, "red kite": 1.0})
    assert example.decision.question == QUESTION
    assert example.decision.outcomes == tuple(f"{n}: {d}" for n, d in DESCRIBED.items())
    assert example.targets == (0.25, 0, 0.75, 0, 0, 0)


def test_a_check_is_asked_both_ways_with_opposite_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    row = make_row(["yes", "no"], {"yes": 3.0, "no": 1.0}, kind="binary")
    row.decisions[0]["question"] = "Is this post rude?"
    monkeypatch.setattr(module, "PAIR_SHARE", 1.0)
    for seed in range(20):
        asked, turned = worded(row, seed)[1]
        assert (asked.targets, turned.targets) == ((0.75, 0.25), (0.25, 0.75))
        assert asked.decision.question != turned.decision.question
    monkeypatch.setattr(module, "PAIR_SHARE", 0.0)
    monkeypatch.setattr(module, "REWORD_SHARE", 1.0)
    for seed in range(20):
        asked, other = worded(row, seed)[1]
        assert asked.targets == other.targets == (0.75, 0.25)
    described = make_row({"yes": "rude", "no": None}, {"yes": 1.0}, kind="binary")
    assert len(worded(described, 1)[1]) == 1


def test_questions_without_an_answer_are_no_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "UNANSWERED_SHARE", 1.0)
    stated = make_row(["yes", "no"], {"yes": 1.0}, kind="binary")
    narrow = make_row(["red kite", "black ant"], {"red kite": 1.0})
    rows = {"snli": [stated], "hwu64": [narrow]}
    mixture = Mixture(rows=rows, shares={}, labels=MIXTURE.labels)
    kinds = Counter()
    for seed in range(40):
        _, examples = augment(make_row(), mixture, np.random.default_rng(seed))
        added = examples[-1]
        kinds[added.decision.kind] += 1
        right = added.decision.outcomes[int(np.argmax(added.targets))]
        if added.decision.kind == "binary":
            assert right == "no"
        elif set(added.decision.outcomes) & {"red kite", "black ant"} and added is not examples[0]:
            assert is_abstain(right)
    assert kinds["binary"] > 5
    assert kinds["single"] > 5


def test_a_misleading_outcome_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MISLEAD_SHARE", 1.0)
    mixture = Mixture(rows={}, shares={}, labels={"hwu64": ["water bottle"], "other": FOREIGN})
    row = make_row()
    row.source = "hwu64"
    found = [
        (outcome, target)
        for seed in range(60)
        for example in augment(row, mixture, np.random.default_rng(seed))[1]
        for outcome, target in zip(example.decision.outcomes, example.targets, strict=True)
        if outcome.replace("_", " ") == "water bottle"
    ]
    assert len(found) > 20
    assert {target for _, target in found} == {0.0}


def test_made_up_rows_and_surroundings_come_in(monkeypatch: pytest.MonkeyPatch) -> None:
    plain_rows = {"dbpedia": [make_row()]}
    plain_rows["dbpedia"][0].context = "Unrelated it is. Truly so."
    mixture = Mixture(rows=plain_rows, shares={}, labels=MIXTURE.labels)
    monkeypatch.setattr(module, "SURROUND_SHARE", 1.0)
    for made in (1.0, 0.0):
        monkeypatch.setattr("steelyard_base_recipe.noise.MADE_SHARE", made)
        contexts = [augment(make_row(), mixture, np.random.default_rng(i))[0] for i in range(20)]
        assert all("water" in text and len(text.split()) >= 10 for text in contexts)
        assert all("Unrelated" in text for text in contexts) == (made == 0.0)
    whole = make_row()
    whole.source = "clickbait"
    assert "Unrelated" not in augment(whole, mixture, np.random.default_rng(0))[0]
    for share in ("RECORD_SHARE", "FACT_SHARE"):
        monkeypatch.setattr(module, share, 1.0)
        context, examples = augment(make_row(), mixture, np.random.default_rng(3))
        assert '"water"' not in context
        assert len(examples) >= 2
        for example in examples:
            assert sum(example.targets) == 1
        monkeypatch.setattr(module, share, 0.0)
    monkeypatch.setattr(module, "LEVELS_SHARE", 1.0)
    context, [example] = augment(make_row(), mixture, np.random.default_rng(3))
    assert '"water"' not in context
    assert (example.decision.kind, sum(example.targets)) == ("ordinal", 1)
    monkeypatch.setattr(module, "LEVELS_SHARE", 0.0)
    monkeypatch.setattr(module, "INTENT_SHARE", 1.0)
    context, examples = augment(make_row(), mixture, np.random.default_rng(3))
    assert '"water"' not in context
    assert {(one.decision.kind, sum(one.targets)) for one in examples} == {("single", 1)}


def test_a_teacher_has_a_part_in_plain_choices_and_answers_those_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "ELSEWHERE_SHARE", 1.0)
    other = make_row(["red kite", "black ant"], {"red kite": 1.0})
    mixture = Mixture(rows={"other": [other]}, shares={}, labels={"other": []})
    kept: dict[bool, set[float]] = {True: set(), False: set()}
    for seed in range(80):
        _, examples = augment(make_row(), mixture, np.random.default_rng(seed), has_teacher=True)
        for example in examples:
            names = example.decision.outcomes
            if set(names) == {"red kite", "black ant"} and example.teacher_share == 1.0:
                assert example.targets == (0.5, 0.5), "nobody says which is right"
            elif example.decision.kind == "single":
                kept[any(map(is_abstain, names))].add(example.teacher_share)
    assert kept == {False: {module.TEACHER_SHARE}, True: {0.0}}
    monkeypatch.setattr(module, "SURROUND_SHARE", 1.0)
    mixture.rows["dbpedia"] = [make_row()]
    for seed in range(20):
        _, examples = augment(make_row(), mixture, np.random.default_rng(seed), has_teacher=True)
        assert {one.teacher_share for one in examples} == {0.0}, (
            "a teacher is misled by what is around"
        )
        _, examples = augment(make_row(), mixture, np.random.default_rng(seed))
        assert 1.0 not in {one.teacher_share for one in examples}, (
            "without a teacher nobody answers"
        )
