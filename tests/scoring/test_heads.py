from __future__ import annotations

import json

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.decisions.rendering import RenderedDecision
from steelyard.scoring.head_specs import (
    BaseMember,
    Calibration,
    EvidenceMember,
    HeadSpec,
    Inputs,
    LinearMember,
    MarkerMember,
    ParentMember,
    calibrate,
    log_softmax,
)
from steelyard.scoring.heads import NUMBERS, SPECS, Head, Heads, canonical_order, fingerprint
from steelyard.scoring.ngrams import fit_table
from steelyard.scoring.protocol import ScoredDecision

TEAM = RenderedDecision("single", "Which team?", ("support", "billing", "sales"))
SORTED = ["billing", "sales", "support"]
CONTEXT = "the invoice is wrong"
WIDTH = 4


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def make_spec(members, **changed):
    fields = {
        "fingerprint": fingerprint(TEAM),
        "kind": "single",
        "question": TEAM.question,
        "outcomes": SORTED,
        "members": members,
        "weights": [1 / len(members)] * len(members),
        "prior": [0.0, 0.0, 0.0],
        "booster": None,
        "calibration": [Calibration(temperature=1.5)],
    }
    return HeadSpec(**fields | changed)


def linear_head(**changed):
    """A head that reads all of a context: its vector, landmarks and n-grams."""
    table = fit_table(["the invoice is late", "the invoice is wrong"], 1_000)
    members = [
        LinearMember(name="embedding", has_embedding=True, sharpness=0.5),
        LinearMember(name="ngrams", table=table.name),
    ]
    tensors = {
        "0.embedding": draw(WIDTH, 3),
        "0.landmarks": draw(5, WIDTH).astype(np.float16),
        "0.nearness": draw(5, 3),
        "0.bias": draw(3),
        "1.ngrams": draw(len(table), 3).astype(np.float16),
        "1.bias": draw(3, seed=1),
    }
    return Head(make_spec(members, **changed), tensors, {table.name: table})


def base_head():
    members = [
        BaseMember(name="base", temperature=2.0),
        MarkerMember(name="markers", sharpness=0.7),
    ]
    tensors = {
        "0.bias": draw(3),
        "1.bias": draw(3),
        "1.centre": draw(WIDTH),
        "1.shared": draw(WIDTH),
        "1.own": draw(3, WIDTH),
    }
    return Head(make_spec(members), tensors, {})


def evidence_head():
    tensors = {"0.weights": draw(4, 3), "0.bias": draw(3)}
    return Head(make_spec([EvidenceMember(name="evidence", scale=0.8)]), tensors, {})


def ask(head, decision=TEAM, scored=None):
    """Ask a head, whose base and reader answer alike."""
    embedding = draw(WIDTH, seed=9) if head.needs_embedding else None
    return head.log_probabilities(CONTEXT, decision, scored, embedding, scored)


@settings(deadline=None)
@given(st.permutations(range(3)))
def test_the_order_of_outcomes_matters_to_ordinal_decisions_alone(order):
    for kind in ("single", "binary"):
        one = RenderedDecision(kind, "q", ("a", "b", "c"))
        other = RenderedDecision(kind, "q", tuple(one.outcomes[at] for at in order))
        assert fingerprint(one) == fingerprint(other)
        assert [other.outcomes[at] for at in canonical_order(other)] == ["a", "b", "c"]
    one = RenderedDecision("ordinal", "q", ("a", "b", "c"))
    other = RenderedDecision("ordinal", "q", tuple(one.outcomes[at] for at in order))
    assert (fingerprint(one) == fingerprint(other)) == (one == other)


@pytest.mark.parametrize(
    "other",
    [
        RenderedDecision("binary", "Which team?", TEAM.outcomes),
        RenderedDecision("single", "Which team", TEAM.outcomes),
        RenderedDecision("single", "Which team?", ("support", "billing")),
        RenderedDecision("single", "Which team?", ("support", "billing", "sales: us")),
    ],
)
def test_other_words_are_another_decision(other):
    assert fingerprint(other) != fingerprint(TEAM)
    assert Heads([linear_head()]).find(other) is None


@settings(deadline=None)
@given(st.permutations(range(3)))
def test_answers_follow_the_order_that_was_asked(order):
    scored = ScoredDecision(draw(3), draw(3, WIDTH), unstated=0.3)
    for head in (linear_head(), base_head(), evidence_head()):
        asked = RenderedDecision("single", TEAM.question, tuple(TEAM.outcomes[i] for i in order))
        moved = ScoredDecision(scored.logits[order], scored.marker_vectors[order], unstated=0.3)
        np.testing.assert_allclose(
            ask(head, asked, moved), ask(head, TEAM, scored)[order], atol=1e-5
        )


def test_answers_are_log_probabilities():
    scored = ScoredDecision(draw(3), draw(3, WIDTH), unstated=0.3)
    for head in (linear_head(), base_head(), evidence_head()):
        logs = ask(head, TEAM, scored)
        assert logs.dtype == np.float32
        assert np.exp(logs.astype(float)).sum() == pytest.approx(1, abs=1e-6)


def test_a_head_names_its_inputs():
    linear, reading = linear_head(), base_head()
    assert (linear.needs_base, linear.needs_markers, linear.needs_embedding) == (False, False, True)
    assert (reading.needs_base, reading.needs_markers, reading.needs_embedding) == (
        True,
        True,
        False,
    )
    evidence = evidence_head()
    assert parent_head(evidence).needs_evidence
    assert not any((evidence.needs_base, evidence.needs_embedding, evidence.reads_words_alone))
    with pytest.raises(ValueError, match="a reader's evidence"):
        evidence.log_probabilities(CONTEXT, TEAM, None, None)
    nested = parent_head(reading)
    assert (nested.needs_base, nested.needs_markers, nested.needs_embedding) == (True, True, False)
    assert (reading.depth, nested.depth, parent_head(nested).depth) == (0, 1, 2)
    with pytest.raises(ValueError, match="needs the base"):
        linear.log_probabilities(CONTEXT, TEAM, None, None)
    with pytest.raises(ValueError, match="needs the base"):
        reading.log_probabilities(CONTEXT, TEAM, None, None)


def parent_head(parent):
    spec = make_spec([ParentMember(name="parent", head=parent.spec)])
    spec = msgspec.structs.replace(spec, calibration=[Calibration(temperature=1.0)])
    tensors = {f"0.parent.{name}": tensor for name, tensor in parent.tensors.items()}
    return Head(spec, tensors, parent.tables)


def test_a_parent_alone_has_its_own_logits():
    np.testing.assert_allclose(ask(parent_head(linear_head())), ask(linear_head()), atol=1e-6)


def test_many_contexts_are_answered_as_one_by_one():
    head = linear_head()
    vectors = draw(6, WIDTH)
    texts = [f"{CONTEXT} {number}" for number in range(6)]
    together = head.evaluate(Inputs(texts, vectors))
    for at, text in enumerate(texts):
        alone = head.evaluate(Inputs([text], vectors[at : at + 1]))
        np.testing.assert_allclose(alone[0], together[at], atol=1e-6)


def test_heads_are_kept_as_they_are(tmp_path):
    other = RenderedDecision("binary", "Is it late?", ("yes", "no"))
    second = Head(
        make_spec(
            [BaseMember(name="base", temperature=1.0)],
            fingerprint=fingerprint(other),
            outcomes=["no", "yes"],
            prior=[0.0, 0.0],
        ),
        {"0.bias": draw(2)},
        {},
    )
    heads = Heads([linear_head(), second, parent_head(linear_head())][:2])
    heads.save(tmp_path)
    read = Heads.load(tmp_path)
    assert len(read) == 2
    np.testing.assert_array_equal(ask(read.find(TEAM)), ask(linear_head()))
    found = read.find(RenderedDecision("binary", "Is it late?", ("no", "yes")))
    assert found.needs_base
    again = tmp_path / "again"
    again.mkdir()
    read.save(again)
    for name in (SPECS, NUMBERS):
        assert (again / name).read_bytes() == (tmp_path / name).read_bytes()


def test_a_nested_parent_is_kept_too(tmp_path):
    nested = parent_head(parent_head(linear_head()))
    Heads([nested]).save(tmp_path)
    np.testing.assert_array_equal(ask(Heads.load(tmp_path).find(TEAM)), ask(nested))


@pytest.mark.parametrize("name", [SPECS, NUMBERS])
def test_files_that_hold_something_else_are_refused(tmp_path, name):
    Heads([linear_head()]).save(tmp_path)
    (tmp_path / name).write_bytes(b"{}")
    with pytest.raises(ValueError, match="no heads"):
        Heads.load(tmp_path)


def test_missing_numbers_are_refused(tmp_path):
    Heads([linear_head()]).save(tmp_path)
    file = json.loads((tmp_path / SPECS).read_bytes())
    file["heads"][0]["outcomes"].append("other")
    file["heads"][0]["prior"].append(0.0)
    (tmp_path / SPECS).write_bytes(msgspec.json.encode(file))
    with pytest.raises(ValueError, match="lacks"):
        Heads.load(tmp_path)
    with pytest.raises(FileNotFoundError):
        Heads.load(tmp_path / "nothing")


CURVES = [
    Calibration(temperature=0.5),
    Calibration(temperature=1.2, curve="beta", a=0.8, b=1.3, c=-0.2),
    Calibration(temperature=1.0, curve="isotonic", x=[0.0, 0.3, 0.6, 1.0], y=[0.0, 0.2, 0.2, 0.9]),
]


@pytest.mark.parametrize("step", CURVES, ids=lambda step: step.curve)
@settings(deadline=None)
@given(st.lists(st.floats(-30, 30), min_size=2, max_size=9))
def test_calibration_gives_probabilities_and_keeps_their_order(step, logits):
    before = log_softmax(np.array([logits]))
    after = calibrate(before, [step])
    assert np.isfinite(after).all()
    assert np.exp(after).sum() == pytest.approx(1)
    ranked = np.argsort(before[0], kind="stable")
    assert (np.diff(after[0][ranked]) >= -1e-9).all()


def test_a_temperature_of_one_changes_nothing():
    before = log_softmax(draw(5, 3).astype(float))
    np.testing.assert_allclose(calibrate(before, [Calibration(temperature=1.0)]), before)
