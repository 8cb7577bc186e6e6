from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.decisions.kinds import Outcomes
from steelyard.decisions.validation import read_outcomes
from steelyard.wire.violations import Violations
from support.decisions.strategies import few, outcome_fields


def read(kind: Any, outcomes: Any = None, rubric: Any = None) -> Outcomes:
    found = Violations()
    read_as = read_outcomes(kind, outcomes, rubric, ("body",), found)
    assert not found
    assert read_as is not None
    return read_as


def refusals(kind: Any, outcomes: Any = None, rubric: Any = None) -> dict[tuple[Any, ...], str]:
    found = Violations()
    assert read_outcomes(kind, outcomes, rubric, ("body",), found) is None or found
    return {violation.path[1:]: violation.type for violation in found.listed}


@few
@given(st.data(), st.sampled_from(["single", "binary", "ordinal"]))
def test_every_form_names_the_same_outcomes(data: Any, kind: str) -> None:
    fields, listed = data.draw(outcome_fields(kind))
    outcomes = read(kind, fields.get("outcomes"), fields.get("rubric"))
    assert list(outcomes.names) == listed
    assert len(outcomes.descriptions) == len(listed)


@pytest.mark.parametrize(
    ("kind", "outcomes", "rubric", "names", "descriptions"),
    [
        ("single", ["a", "b"], None, ("a", "b"), (None, None)),
        ("single", {"a": "x", "b": None}, None, ("a", "b"), ("x", None)),
        (
            "single",
            [1, 1.5, True, None, ["x"], {"k": "v"}],
            None,
            ("1", "1.5", "true", "null", '["x"]', '{"k": "v"}'),
            (None,) * 6,
        ),
        ("binary", None, None, ("yes", "no"), (None, None)),
        ("binary", {}, None, ("yes", "no"), (None, None)),
        ("binary", {"no": "n"}, None, ("yes", "no"), (None, "n")),
        ("binary", {"no": "n", "yes": 1}, None, ("yes", "no"), (1, "n")),
        ("binary", ["no", "yes"], None, ("yes", "no"), (None, None)),
        ("ordinal", ["low", "high"], ["x", None], ("low", "high"), ("x", None)),
        ("ordinal", [1, 5], ["x", "y"], ("1", "5"), ("x", "y")),
        ("ordinal", None, ["x", "y", "z"], ("0", "1", "2"), ("x", "y", "z")),
    ],
)
def test_forms(
    kind: str, outcomes: Any, rubric: Any, names: tuple[str, ...], descriptions: tuple[Any, ...]
) -> None:
    assert read(kind, outcomes, rubric) == Outcomes(names, descriptions)


@pytest.mark.parametrize("count", [2, 255])
def test_counts_at_the_bounds_pass(count: int) -> None:
    listed = [str(index) for index in range(count)]
    assert len(read("single", listed).names) == count
    assert len(read("single", dict.fromkeys(listed)).names) == count
    assert len(read("ordinal", listed, listed).names) == count
    assert len(read("ordinal", None, listed).names) == count


@pytest.mark.parametrize("count", [0, 1, 256])
def test_counts_outside_the_bounds_are_refused(count: int) -> None:
    listed = [str(index) for index in range(count)]
    type_ = "too_short" if count < 2 else "too_long"
    assert refusals("single", listed) == {("outcomes",): type_}
    assert refusals("single", dict.fromkeys(listed)) == {("outcomes",): type_}
    assert refusals("ordinal", None, listed) == {("rubric",): type_}
    assert refusals("ordinal", listed, ["x", "y"])[("outcomes",)] == type_


@pytest.mark.parametrize(
    ("kind", "outcomes", "rubric", "expected"),
    [
        ("single", None, None, {("outcomes",): "missing"}),
        ("single", "ab", None, {("outcomes",): "wrong_type"}),
        ("single", 3, None, {("outcomes",): "wrong_type"}),
        ("single", ["a", "b"], ["x", "y"], {("rubric",): "refused"}),
        (
            "single",
            ["a", "a", " ", "abstain"],
            None,
            {("outcomes", 1): "duplicate", ("outcomes", 2): "blank", ("outcomes", 3): "reserved"},
        ),
        ("single", [1, "1"], None, {("outcomes", 1): "duplicate"}),
        ("single", ["a", "b\0"], None, {("outcomes", 1): "nul"}),
        (
            "single",
            {"a": 1, "": 2, "abstain": 3},
            None,
            {("outcomes", ""): "blank", ("outcomes", "abstain"): "reserved"},
        ),
        (
            "binary",
            {"yes": "y", "maybe": "m", "ja": 1},
            None,
            {("outcomes", "maybe"): "not_allowed", ("outcomes", "ja"): "not_allowed"},
        ),
        ("binary", ["yes"], None, {("outcomes",): "not_allowed"}),
        ("binary", ["yes", "yes"], None, {("outcomes",): "not_allowed"}),
        ("binary", "yes", None, {("outcomes",): "wrong_type"}),
        ("binary", None, ["a", "b"], {("rubric",): "refused"}),
        ("ordinal", ["1", "2"], None, {("rubric",): "missing"}),
        ("ordinal", None, None, {("rubric",): "missing"}),
        ("ordinal", ["1", "2"], ["x"], {("rubric",): "length_mismatch"}),
        ("ordinal", {"1": "x", "2": "y"}, ["x", "y"], {("outcomes",): "wrong_type"}),
        (
            "ordinal",
            ["1", "1", " "],
            ["x"] * 3,
            {("outcomes", 1): "duplicate", ("outcomes", 2): "blank"},
        ),
    ],
)
def test_what_does_not_fit_is_refused_at_its_place(
    kind: str, outcomes: Any, rubric: Any, expected: dict[tuple[Any, ...], str]
) -> None:
    assert refusals(kind, outcomes, rubric) == expected
