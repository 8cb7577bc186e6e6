"""How lineage is shown: every member, null or left out exactly where it should be."""

from __future__ import annotations

import msgspec
import pytest

from steelyard.families.fine_tune_wire import JobProgress
from steelyard.families.lineage.deletion import delete_model
from steelyard.families.lineage.fine_tunes import finish_job, start_job
from steelyard.families.lineage.lineage import Lineage, latest_of
from steelyard.families.lineage.rollback import roll_back
from steelyard.families.lineage.switching import switch_family, switch_model
from steelyard.families.serializers import family_to_wire, fine_tune_to_wire
from steelyard.wire.training import CurvePoint
from support.families.lineage_cases import (
    BASE,
    DAY,
    START,
    adapter,
    at,
    grow,
    make_gate,
    make_growth,
    start,
)

FAMILY = {
    "id",
    "object",
    "switched_on",
    "used_at",
    "switches_off_at",
    "off_reason",
    "off_at",
    "dataset_id",
    "origin",
    "created_at",
    "served",
    "latest",
    "models",
    "keep_warm",
    "keep_warm_window",
    "keep_warm_stopped_at",
    "move",
    "moved",
}
MODEL = {
    "version",
    "ref",
    "adapter",
    "status",
    "state",
    "on_at",
    "keep_warm",
    "keep_warm_window",
    "keep_warm_stopped_at",
    "used_at",
    "switches_off_at",
    "off_reason",
    "off_at",
    "parent",
    "created_at",
    "gate",
    "heldout",
}
DELETED = {"version", "ref", "adapter", "parent", "status", "deleted_at"}
JOB = {
    "id",
    "dataset_id",
    "status",
    "created_at",
    "updated_at",
    "model",
    "method",
    "hyperparameters",
    "output_model",
    "metrics",
    "error",
    "limits",
    "split",
    "progress",
    "family",
    "parent",
    "family_deleted",
    "dataset_version",
    "outcome",
    "reason",
    "lineage",
    "price_usd",
    "charge",
    "rows_deleted",
}


@pytest.fixture
def lineage() -> Lineage:
    """ant@1 to ant@3: ready, deleted, discarded."""
    lineage = delete_model(grow(Lineage(), "ant", 3), "ant@2", at(START + 1)).lineage
    return roll_back(lineage, "ant", "ant@1", ["ant@3"], at(START + 2)).lineage


def tell(lineage: Lineage, **members) -> dict:
    return msgspec.to_builtins(family_to_wire(lineage, lineage.families["ant"], at(), **members))


def test_jobs_and_continue_stand_where_they_are_asked_for(lineage):
    assert tell(lineage).keys() == FAMILY
    listed = tell(lineage, growth=make_growth(4))
    assert listed.keys() == FAMILY | {"continue"}
    assert listed["continue"]["state"] == "new_data"
    alone = tell(lineage, growth=None, with_jobs=True)
    assert alone.keys() == FAMILY | {"continue", "jobs"}
    assert alone["continue"] is None
    assert [job["id"] for job in alone["jobs"]] == ["ftj_ant_3", "ftj_ant_2", "ftj_ant_1"]
    assert [job["outcome"] for job in alone["jobs"]] == ["rolled_back", "joined", "joined"]


def test_each_model_has_the_members_of_its_status(lineage):
    ready, deleted, discarded = tell(lineage)["models"]
    assert (ready.keys(), ready["status"]) == (MODEL, "ready")
    assert (deleted.keys(), deleted["status"]) == (DELETED, "deleted")
    assert (discarded.keys(), discarded["status"]) == (MODEL | {"discarded_at"}, "discarded")
    assert (deleted["deleted_at"], discarded["discarded_at"]) == (START + 1, START + 2)
    assert ready["gate"]["passed"]
    assert ready["heldout"] == {"accuracy": 0.9}


def test_a_family_on_a_model_that_moved():
    told = tell(grow(Lineage(), "ant", 2))
    assert told["moved"] == {"at": START, "from": "ant@1"}
    assert told["served"] == told["latest"] == told["models"][1]
    assert (told["off_reason"], told["off_at"], told["move"]) == (None, None, None)
    assert (told["used_at"], told["switches_off_at"]) == (START, START + 7 * DAY)
    assert told["models"][0]["on_at"] is None
    assert told["origin"] == BASE


def test_a_family_that_serves_nothing_yet():
    told = tell(start(Lineage(), "ant"))
    assert told["switched_on"] is True
    for member in ("served", "latest", "moved", "move", "switches_off_at", "keep_warm_window"):
        assert told[member] is None
    first = msgspec.to_builtins(tell(grow(Lineage(), "ant", 1)))
    assert first["moved"] == {"at": START, "from": None}


def test_off_says_by_whom(lineage):
    lineage = switch_family(lineage, "ant", at(START + 9), on=False).lineage
    lineage = switch_model(lineage, "ant@1", at(START + 9), on=True).lineage
    told = tell(lineage)
    assert (told["switched_on"], told["off_reason"], told["off_at"]) == (False, "owner", START + 9)
    assert told["switches_off_at"] is None
    assert told["models"][0]["on_at"] == START + 9
    assert told["models"][0]["switches_off_at"] == START + 9 + 7 * DAY


def test_a_fine_tune_from_queue_to_end():
    lineage = start(Lineage(), "ant")
    queued = msgspec.to_builtins(fine_tune_to_wire(lineage.jobs["ftj_ant_1"]))
    assert queued.keys() == JOB
    assert (queued["metrics"], queued["progress"], queued["price_usd"]) == (None, None, "0")
    lineage = start_job(lineage, "ftj_ant_1", at()).lineage
    progress = JobProgress(step=5, steps=20, loss=1.5, phase="heads")
    curve = [CurvePoint(step=5, loss=1.5, learning_rate=1e-4)]
    running = fine_tune_to_wire(lineage.jobs["ftj_ant_1"], progress=progress, curve=curve)
    assert (running.progress, running.curve) == (progress, msgspec.UNSET)
    lineage = finish_job(lineage, "ftj_ant_1", make_gate(), {}, at()).lineage
    done = fine_tune_to_wire(lineage.jobs["ftj_ant_1"], progress=progress, curve=curve)
    assert (done.progress, done.curve) == (None, curve)
    assert done.metrics is not None
    assert done.metrics.gate == make_gate()
    assert done.output_model == adapter("ant", 1)


def test_stored_records_come_back(lineage):
    assert msgspec.json.decode(msgspec.json.encode(lineage), type=Lineage) == lineage
    assert latest_of(lineage, lineage.families["ant"]).ref == "ant@1"
