"""The effect of continuing a family: the first refusal that holds, and the counts beside it."""

from __future__ import annotations

import pytest

from steelyard import errors
from steelyard.families.lineage.continuing import (
    Changes,
    check_continue,
    continue_state,
    continue_to_wire,
    trained_version,
)
from steelyard.families.lineage.deletion import delete_family
from steelyard.families.lineage.fine_tunes import (
    cancel_job,
    continue_family,
    finish_job,
    start_family,
    start_job,
)
from steelyard.families.lineage.lineage import Lineage
from steelyard.families.lineage.rollback import roll_back
from steelyard.families.lineage.switching import switch_family
from steelyard.families.wire import ContinueRows
from support.families.lineage_cases import (
    BASE,
    OTHER_BASE,
    adapter,
    at,
    grow,
    join,
    make_gate,
    make_growth,
    make_order,
    start,
)

NOTHING_NEW = ContinueRows(new=0, earlier=0, evaluation=8)


@pytest.fixture
def lineage() -> Lineage:
    """ant@1, trained on version 1."""
    return grow(Lineage(), "ant", 1)


def state(lineage, growth, **members) -> str:
    return continue_state(lineage, lineage.families["ant"], growth, at(**members))


def queue(lineage: Lineage, version: int) -> Lineage:
    order = make_order("ftj_ant_2", dataset_version=version)
    return continue_family(lineage, "ant", order, make_growth(version), at()).lineage


def test_the_first_reason_is_reported(lineage):
    """Each line lifts the first refusal of the line before it."""
    queued = queue(lineage, 2)
    running = start_job(queued, "ftj_ant_2", at()).lineage
    few = {"evaluation_decisions": 19}
    every = {"is_deleted": True, "is_archived": True, "rows": NOTHING_NEW, **few}
    cannot = {"base_models": frozenset()}
    for told, given, growth, members in [
        ("dataset_deleted", queued, make_growth(1, **every), cannot),
        ("dataset_archived", queued, make_growth(1, **every | {"is_deleted": False}), cannot),
        ("origin_gone", queued, make_growth(1, rows=NOTHING_NEW, **few), cannot),
        ("queued", queued, make_growth(1, rows=NOTHING_NEW, **few), {}),
        ("training", running, make_growth(1, rows=NOTHING_NEW, **few), {}),
        ("no_new_data", lineage, make_growth(1, **few), {}),
        ("no_new_data", lineage, make_growth(2, rows=NOTHING_NEW, **few), {}),
        ("not_enough_evaluation_data", lineage, make_growth(2, **few), {}),
        ("new_data", lineage, make_growth(2, evaluation_decisions=20), {}),
    ]:
        assert state(given, growth, **members) == told


def test_a_run_that_failed_on_the_newest_version_is_retried(lineage):
    lineage = cancel_job(queue(lineage, 2), "ftj_ant_2", at()).lineage
    assert state(lineage, make_growth(2)) == "retry"
    assert state(lineage, make_growth(3)) == "new_data"


@pytest.mark.parametrize("ending", ["refused", "discarded"])
def test_rows_of_a_fine_tune_without_a_model_are_untrained(lineage, ending):
    if ending == "refused":
        lineage = start_job(queue(lineage, 2), "ftj_ant_2", at()).lineage
        lineage = finish_job(lineage, "ftj_ant_2", make_gate(passed=False), {}, at()).lineage
    else:
        lineage = roll_back(grow(lineage, "ant", 2), "ant", "ant@1", ["ant@2"], at()).lineage
    assert trained_version(lineage, lineage.families["ant"]) == 1
    assert state(lineage, make_growth(2)) == "no_new_data"  # it would end as it did
    changes = Changes(earlier=40, new=40)
    told = continue_to_wire(lineage, lineage.families["ant"], make_growth(2, changes=changes), at())
    assert "count as untrained" in told.reasons[0]
    assert state(lineage, make_growth(3)) == "new_data"


def test_a_family_whose_first_fine_tune_was_refused_begins_again():
    lineage = start_job(start(Lineage(), "ant"), "ftj_ant_1", at()).lineage
    lineage = finish_job(lineage, "ftj_ant_1", make_gate(passed=False), {}, at()).lineage
    assert trained_version(lineage, lineage.families["ant"]) is None
    assert state(lineage, make_growth(2)) == "new_data"


def test_a_list_counts_nothing(lineage):
    growth = make_growth(2, rows=None, evaluation_decisions=None)
    told = continue_to_wire(lineage, lineage.families["ant"], growth, at())
    assert (told.state, told.version, told.rows) == ("new_data", 2, None)
    assert (told.evaluation_decisions, told.price_usd) == (None, None)


def test_counts_are_reported_where_the_data_decide(lineage):
    growth = make_growth(2, price_nano=0)
    told = continue_to_wire(lineage, lineage.families["ant"], growth, at())
    assert (told.evaluation_decisions, told.needed, told.price_usd) == (30, 20, "0")
    assert told.rows == growth.rows
    short = make_growth(2, evaluation_decisions=3, price_nano=0)
    told = continue_to_wire(lineage, lineage.families["ant"], short, at())
    assert (told.state, told.evaluation_decisions) == ("not_enough_evaluation_data", 3)
    assert told.price_usd is None
    queued = queue(lineage, 2)
    told = continue_to_wire(queued, queued.families["ant"], growth, at())
    assert (told.state, told.evaluation_decisions, told.rows) == ("queued", None, None)
    for price_nano, price_usd in ((None, None), (7_000, "0.000007")):
        grown = make_growth(2, price_nano=price_nano)
        assert (
            continue_to_wire(lineage, lineage.families["ant"], grown, at()).price_usd == price_usd
        )


@pytest.mark.parametrize(
    ("growth", "members", "error"),
    [
        (make_growth(2, is_deleted=True), {}, errors.DatasetDeletedError),
        (make_growth(2, is_archived=True), {}, errors.DatasetArchivedError),
        (make_growth(2), {"base_models": frozenset()}, errors.InvalidReferenceError),
        (make_growth(1), {}, errors.NoNewDataError),
        (make_growth(2, rows=NOTHING_NEW), {}, errors.NoNewDataError),
        (make_growth(2, evaluation_decisions=0), {}, errors.NotEnoughEvaluationDataError),
    ],
)
def test_each_refusal_has_its_error(lineage, growth, members, error):
    with pytest.raises(error):
        check_continue(lineage, lineage.families["ant"], growth, at(**members))


def test_a_version_may_be_named(lineage):
    family = lineage.families["ant"]
    check_continue(lineage, family, make_growth(3), at(), dataset_version=2)
    with pytest.raises(errors.NoNewDataError):
        check_continue(lineage, family, make_growth(3), at(), dataset_version=1)
    with pytest.raises(errors.NotFoundError):
        check_continue(lineage, family, make_growth(3), at(), dataset_version=4)
    queued = queue(lineage, 2)
    with pytest.raises(errors.FamilyTrainingError):
        check_continue(queued, queued.families["ant"], make_growth(3), at(), dataset_version=4)


def test_an_origin_that_is_gone_holds_only_a_family_without_models(lineage):
    lineage = start_family(lineage, "bee", "ant@1", make_order("ftj_b1"), at()).lineage
    joined = join(lineage, "ftj_b1")
    lineage = cancel_job(lineage, "ftj_b1", at()).lineage
    gone = switch_family(lineage, "ant", at(), on=False).lineage
    gone = delete_family(gone, "ant", at()).lineage
    bee = gone.families["bee"]
    assert continue_state(gone, bee, make_growth(1), at()) == "origin_gone"
    with pytest.raises(errors.ModelDeletedError):
        check_continue(gone, bee, make_growth(1), at())
    kept = switch_family(joined, "ant", at(), on=False).lineage
    kept = delete_family(kept, "ant", at()).lineage
    assert kept.models[adapter("ant", 1)].status == "deleted"
    assert continue_state(kept, kept.families["bee"], make_growth(2), at()) == "new_data"


def test_another_base_must_be_here_and_so_must_that_of_the_latest_model(lineage):
    family = lineage.families["ant"]
    both = {"base_models": frozenset({BASE, OTHER_BASE})}
    for base in (None, BASE, OTHER_BASE):
        check_continue(lineage, family, make_growth(2), at(**both), base=base)
    for asked in (OTHER_BASE, "ant@1", "x" * 100):
        with pytest.raises(errors.InvalidReferenceError) as refused:
            check_continue(lineage, family, make_growth(2, is_deleted=True), at(), base=asked)
        assert refused.value.details[0]["path"] == ["body", "base"]
    # The gate compares with ant@1, which answers on its own base.
    gone = at(base_models=frozenset({OTHER_BASE}))
    with pytest.raises(errors.InvalidReferenceError, match="base-1"):
        check_continue(lineage, family, make_growth(2), gone, base=OTHER_BASE)
    # Without a model there is nothing to compare with.
    empty = cancel_job(start(Lineage(), "ant"), "ftj_ant_1", at()).lineage
    check_continue(empty, empty.families["ant"], make_growth(1), gone, base=OTHER_BASE)
    assert continue_state(empty, empty.families["ant"], make_growth(1), gone) == "origin_gone"


def test_a_family_that_never_finished_has_everything_before_it():
    lineage = cancel_job(start(Lineage(), "ant"), "ftj_ant_1", at()).lineage
    assert trained_version(lineage, lineage.families["ant"]) is None
    assert state(lineage, make_growth(1)) == "retry"
    assert lineage.families["ant"].base == BASE
