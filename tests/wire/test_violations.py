from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.errors import MAX_DETAILS, InvalidRequestError
from steelyard.wire.violations import BODY, MAX_DETAILS_BYTES, Violations, label, show
from support.decisions.strategies import few, json_values


def test_long_names_are_listed_within_a_bound_of_bytes() -> None:
    found = Violations()
    names = tuple(letter * 256 for letter in "abcdefghijklmnopqrstuvwxyz")
    for index in range(MAX_DETAILS):
        found.add((*BODY, *names, index), "is not a number; give one.", "not_a_number")
    assert found.is_full
    assert 10 < len(found.listed) < 50
    assert len(found.listed) + found.n_unlisted == MAX_DETAILS
    sent = msgspec.json.encode([violation.body() for violation in found.listed])
    assert len(sent) < MAX_DETAILS_BYTES + 32 * 1024
    assert (*BODY, *names) in found.touched
    assert (*BODY, *names, MAX_DETAILS - 1) in found.paths


def test_the_first_violation_at_a_place_is_reported() -> None:
    found = Violations()
    found.add(("body", "a"), "is wrong.", "one")
    found.add(("body", "a"), "follows from it.", "two")
    assert [violation.type for violation in found.listed] == ["one"]


def test_a_place_is_touched_by_places_below_it() -> None:
    found = Violations()
    found.add(("body", "a", 0, "b"), "is wrong.", "one")
    assert ("body", "a") in found.touched
    assert ("body", "a") not in found.paths
    assert ("body", "a", 1) not in found.touched


def test_past_the_bound_violations_are_counted() -> None:
    found = Violations()
    for index in range(MAX_DETAILS + 7):
        found.add(("body", index), "is wrong.", "one")
    assert ("body", MAX_DETAILS + 6) in found.touched
    with pytest.raises(InvalidRequestError, match=f"{MAX_DETAILS + 6} more problems") as caught:
        found.raise_if_any()
    assert caught.value.details is not None
    assert len(caught.value.details) == MAX_DETAILS


def test_nothing_found_refuses_nothing() -> None:
    Violations().raise_if_any()


def test_places_are_put_in_words() -> None:
    assert label(("body", "decisions", 0, "costs", "a b")) == 'decisions[0].costs["a b"]'


@few
@given(st.text(alphabet=st.characters(), max_size=300) | st.just("\ud800") | st.just("x" * 999))
def test_any_key_gives_a_violation_that_can_be_sent(key: str) -> None:
    found = Violations()
    found.add(("body", key), "is wrong.", "one")
    sent = msgspec.json.encode(found.listed[0].body())
    assert msgspec.json.decode(sent)["path"][0] == "body"
    assert len(sent) < 2500


@few
@given(json_values)
def test_any_value_is_shown_short(value: object) -> None:
    assert 0 < len(show(value)) <= 61
