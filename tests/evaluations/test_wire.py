"""The shapes of evaluations: allowed requests, and members left out until they are known."""

from __future__ import annotations

import msgspec
import pytest

from steelyard.evaluations.queries_wire import CreateEvaluation
from steelyard.evaluations.wire import (
    Evaluation,
    EvaluationMetrics,
    EvaluationPage,
    EvaluationSubmission,
    JobRecordPage,
)

#: Every member the contract requires of an evaluation; ``named`` may be left out.
REQUIRED = {
    "id",
    "dataset_id",
    "dataset_version",
    "model_id",
    "model_sha256",
    "model_label",
    "model_name",
    "version",
    "status",
    "created_at",
    "updated_at",
    "generation",
    "training_job_id",
    "dataset_sha256",
    "evaluation_sha256",
    "method",
    "evaluation_rows",
    "decisions",
    "completed_rows",
    "metrics",
    "error",
}


def make_evaluation(**changes):
    members = {
        "id": "evl_1",
        "dataset_id": "ds_1",
        "dataset_version": 1,
        "model_id": "steelyard-base-2",
        "model_sha256": "0" * 64,
        "model_label": "steelyard-base-2",
        "model_name": None,
        "version": None,
        "status": "queued",
        "created_at": 1.0,
        "updated_at": 1.0,
        "generation": 1,
        "training_job_id": None,
        "dataset_sha256": "1" * 64,
        "evaluation_sha256": "2" * 64,
        "method": "sft",
        "evaluation_rows": 3,
        "decisions": 5,
        "completed_rows": 0,
        "metrics": None,
        "error": None,
    }
    return Evaluation(**{**members, **changes})


def test_an_evaluation_has_every_required_member_and_named_only_when_named():
    assert msgspec.to_builtins(make_evaluation()).keys() == REQUIRED
    named = msgspec.to_builtins(make_evaluation(named="router"))
    assert named.keys() - REQUIRED == {"named"}


def test_metrics_leave_out_missing_measures():
    metrics = EvaluationMetrics(n=3, expected_reward=0.5)
    wire = msgspec.to_builtins(make_evaluation(status="succeeded", metrics=metrics))
    assert wire["metrics"] == {"n": 3, "expected_reward": 0.5}


def test_pages_and_submissions_have_the_contracts_members():
    page = EvaluationPage(data=[make_evaluation()], has_more=False, next_cursor=None)
    assert msgspec.to_builtins(page).keys() == {"data", "has_more", "next_cursor"}
    submission = EvaluationSubmission(dataset_id="ds_1", data=[], queued=0, reused=0)
    assert msgspec.to_builtins(submission).keys() == {"dataset_id", "data", "queued", "reused"}
    records = JobRecordPage(
        group="adapted",
        groups=["adapted", "base"],
        data=[],
        total=0,
        offset=0,
        limit=100,
        has_more=False,
    )
    assert msgspec.to_builtins(records).keys() == {
        "group",
        "groups",
        "data",
        "total",
        "offset",
        "limit",
        "has_more",
    }


@pytest.mark.parametrize(
    "body",
    [
        b'{"dataset_id": "ds_1"}',
        b'{"dataset_id": "ds_1", "models": []}',
        b'{"dataset_id": "", "models": ["a"]}',
        b'{"dataset_id": "ds_1", "models": [""]}',
        b'{"dataset_id": "ds_1", "models": ["a"], "version": 2}',
        b'{"dataset_id": "' + b"d" * 65 + b'", "models": ["a"]}',
    ],
)
def test_invalid_requests_are_refused(body):
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(body, type=CreateEvaluation)


def test_a_request_names_a_dataset_and_models():
    body = b'{"dataset_id": "ds_1", "models": ["router", "router@3"]}'
    found = msgspec.json.decode(body, type=CreateEvaluation)
    assert found == CreateEvaluation(dataset_id="ds_1", models=["router", "router@3"])
