"""The shapes of families and fine-tunes: guards with three meanings, and names that Python keeps."""

from __future__ import annotations

import msgspec
import pytest

from steelyard.families.fine_tune_wire import FineTuneEstimate, Job, JobEvents, JobPage
from steelyard.families.wire import (
    ContinueFamily,
    DeletedFamily,
    DeletedModel,
    DeletedModelVersion,
    DeleteFamily,
    EstimateContinue,
    EstimateFamily,
    Family,
    FamilyList,
    KeepModelWarm,
    KeepWarm,
    Move,
    Moved,
    Rollback,
    StartFamily,
    SwitchFamily,
    SwitchModel,
)
from steelyard.wire.payloads import check_shape
from steelyard.wire.violations import Violations

START = {"family": "router", "dataset_id": "ds_1"}


def wrong(struct: type[msgspec.Struct], body: object) -> list[tuple[str | int, ...]]:
    found = Violations()
    check_shape(body, struct, found, ("body",))
    return [violation.path for violation in found.listed]


@pytest.mark.parametrize(
    ("struct", "body"),
    [
        (StartFamily, START),
        (
            StartFamily,
            {
                **START,
                "method": "reward",
                "hyperparameters": {},
                "from": "router@2",
                "dataset_version": 3,
                "max_price_usd": "0.5",
            },
        ),
        (StartFamily, {**START, "from": None, "hyperparameters": {"steps": None}}),
        (EstimateFamily, {**START, "hyperparameters": {"steps": 20, "lora_rank": 16}}),
        (ContinueFamily, {}),
        (ContinueFamily, {"hyperparameters": {}, "latest": None}),
        (ContinueFamily, {"base": "double"}),
        (EstimateContinue, {"base": None}),
        (EstimateContinue, {"latest": "ft-ftj_1", "dataset_version": 2}),
        (SwitchFamily, {"on": True, "switch_off": ["bee", "bee@2"], "served": None}),
        (KeepWarm, {"enabled": False}),
        (Rollback, {"to": "router@1", "discard": ["router@2"], "served": "ft-ftj_2"}),
        (DeleteFamily, {}),
        (SwitchModel, {"on": False, "adapter": "ft-ftj_1"}),
        (KeepModelWarm, {"enabled": True, "max_price_usd": "1"}),
    ],
)
def test_bodies_that_clients_send(struct, body):
    assert wrong(struct, body) == []


@pytest.mark.parametrize(
    ("struct", "body", "paths"),
    [
        (StartFamily, {}, [("family",), ("dataset_id",)]),
        (StartFamily, {**START, "method": "dpo"}, [("method",)]),
        (StartFamily, {**START, "from_": "x"}, [("from_",)]),
        (
            StartFamily,
            {**START, "hyperparameters": {"steps": 19, "lora_rank": 17, "learning_rate": 0}},
            [
                ("hyperparameters", "steps"),
                ("hyperparameters", "lora_rank"),
                ("hyperparameters", "learning_rate"),
            ],
        ),
        (
            StartFamily,
            {**START, "hyperparameters": {"steps": 2001, "lora_rank": 0, "seed": -1, "epochs": 2}},
            [
                ("hyperparameters", "steps"),
                ("hyperparameters", "lora_rank"),
                ("hyperparameters", "seed"),
                ("hyperparameters", "epochs"),
            ],
        ),
        (EstimateFamily, {**START, "max_price_usd": "1"}, [("max_price_usd",)]),
        (EstimateContinue, {"max_price_usd": "1"}, [("max_price_usd",)]),
        (ContinueFamily, {"latest": 3, "dataset_version": 0}, [("latest",), ("dataset_version",)]),
        (SwitchFamily, {"switch_off": "bee"}, [("on",), ("switch_off",)]),
        (Rollback, {"to": "router@1"}, [("discard",)]),
        (KeepWarm, {"on": True}, [("enabled",), ("on",)]),
    ],
)
def test_everything_that_does_not_fit_is_found(struct, body, paths):
    assert sorted(wrong(struct, body)) == sorted(("body", *path) for path in paths)


def test_a_guard_is_left_out_null_or_a_text():
    read = [
        msgspec.convert({"on": True, **guard}, SwitchFamily).served
        for guard in ({}, {"served": None}, {"served": "ft-ftj_1"})
    ]
    assert read == [msgspec.UNSET, None, "ft-ftj_1"]


def test_from_and_continue_go_by_their_names():
    assert msgspec.convert({**START, "from": "router@2"}, StartFamily).from_ == "router@2"
    assert msgspec.to_builtins(Moved(at=1.0, from_=None)) == {"at": 1.0, "from": None}
    assert "continue" in msgspec.json.schema(Family)["$defs"]["Family"]["properties"]


def test_members_that_are_null_are_there():
    move = Move(to="router@2", waiting_for="engines", reason=None)
    assert msgspec.to_builtins(move) == {"to": "router@2", "waiting_for": "engines", "reason": None}
    assert msgspec.to_builtins(DeletedFamily(id="router")) == {
        "id": "router",
        "object": "family",
        "deleted": True,
    }
    assert msgspec.to_builtins(DeletedModel(id="router@1")) == {"id": "router@1", "deleted": True}


def test_a_deleted_model_has_its_own_status():
    gone = DeletedModelVersion(
        version=1, ref="router@1", adapter="ft-ftj_1", parent=None, deleted_at=1.0
    )
    told = msgspec.to_builtins(gone)
    assert told["status"] == "deleted"
    listed = msgspec.json.schema(FamilyList)["$defs"]["Family"]["properties"]["models"]
    assert listed["items"]["discriminator"]["propertyName"] == "status"


@pytest.mark.parametrize("struct", [Job, JobPage, JobEvents, FineTuneEstimate, FamilyList])
def test_answers_have_a_schema(struct):
    assert struct.__name__ in msgspec.json.schema(struct)["$defs"]
