"""Names: their meaning in a call."""

from __future__ import annotations

import pytest

from steelyard import errors
from steelyard.families.lineage.deletion import delete_family
from steelyard.families.lineage.lineage import Lineage
from steelyard.families.lineage.references import (
    check_name,
    parse_reference,
    record_use,
    resolve_call,
)
from steelyard.families.lineage.switching import switch_family, switch_model
from support.families.lineage_cases import START, adapter, at, grow, start


@pytest.fixture
def lineage() -> Lineage:
    return grow(Lineage(), "ant", 2)


def test_a_family_means_its_served_model_and_a_number_one_model(lineage):
    assert resolve_call(lineage, "ant").ref == "ant@2"
    with pytest.raises(errors.ModelOffError):
        resolve_call(lineage, "ant@2")
    lineage = switch_model(lineage, "ant@1", at(), on=True).lineage
    assert resolve_call(lineage, "ant@1").adapter == adapter("ant", 1)


def test_calls_that_nothing_answers(lineage):
    off = switch_family(lineage, "ant", at(), on=False).lineage
    with pytest.raises(errors.FamilyOffError):
        resolve_call(off, "ant")
    with pytest.raises(errors.FamilyEmptyError):
        resolve_call(start(lineage, "bee"), "bee")
    with pytest.raises(errors.FamilyDeletedError):
        resolve_call(delete_family(off, "ant", at()).lineage, "ant")
    for name in ("fox", "ant@3", "fox@1"):
        with pytest.raises(errors.NotFoundError):
            resolve_call(lineage, name)


@pytest.mark.parametrize(
    "text",
    ["", "Ant", "ant@", "ant@0", "ant@01", "ant@-1", "ant@1.0", "ant@1 ", "ant@\u0661", "ft-ftj_1"],
)
def test_texts_that_name_nothing(text):
    with pytest.raises(errors.InvalidReferenceError):
        parse_reference(text)


def test_a_use_moves_the_clock_of_the_switch_that_was_named(lineage):
    lineage = switch_model(lineage, "ant@2", at(), on=True).lineage
    by_name = record_use(lineage, "ant", START + 5)
    assert by_name.families["ant"].switch.used_at == START + 5
    assert by_name.models == lineage.models
    by_number = record_use(lineage, "ant@2", START + 5)
    assert by_number.models[adapter("ant", 2)].switch.used_at == START + 5
    assert by_number.families == lineage.families


@pytest.mark.parametrize("name", ["jev", "jev-latest", "jevons", "base-1"])
def test_a_base_models_name_names_no_family(name):
    with pytest.raises(errors.InvalidNameError, match="another name"):
        check_name(name, frozenset({"base-1"}))
    check_name("je", frozenset({"base-1"}))
