"""Calls of the evaluation routes: one function a route."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, Unpack

from steelyard.client.calls import Call, encode_body, read, segment, write
from steelyard.client.walking import RecordWalk
from steelyard.evaluations.frontier_wire import Frontier, FrontierMeasure
from steelyard.evaluations.queries_wire import RecordOrder
from steelyard.evaluations.thresholds_wire import OutcomeThreshold
from steelyard.evaluations.wire import (
    CostCurve,
    Evaluation,
    EvaluationComparison,
    EvaluationDetail,
    EvaluationPage,
    EvaluationRecordPage,
    EvaluationSubmission,
    PolicyReport,
)
from steelyard.wire.queries import ExportFormat

_PATH = "/v1/evaluations"
ActionCosts = Mapping[str, Mapping[str, float]]


def create(
    dataset_id: str, models: str | Sequence[str], *, idempotency_key: str | None = None
) -> Call[EvaluationSubmission]:
    """Score models on a dataset's evaluation rows: ``POST /v1/evaluations``."""
    names = [models] if isinstance(models, str) else list(models)
    fields = {"dataset_id": dataset_id, "models": names}
    return write(_PATH, EvaluationSubmission, fields, key=idempotency_key)


def page(
    dataset_id: str,
    *,
    status: str | Sequence[str] | None = None,
    page_size: int = 200,
    cursor: str | None = None,
) -> Call[EvaluationPage]:
    """List a dataset's evaluations, newest first: ``GET /v1/evaluations``."""
    query = {"dataset_id": dataset_id, "status": status, "limit": page_size, "cursor": cursor}
    return read(_PATH, EvaluationPage, **query)


def get(evaluation_id: str) -> Call[Evaluation]:
    """Return an evaluation: ``GET /v1/evaluations/{id}``."""
    return read(_path(evaluation_id), Evaluation)


def cancel(evaluation_id: str, *, idempotency_key: str | None = None) -> Call[Evaluation]:
    """Stop an evaluation; its predictions are kept: ``POST /v1/evaluations/{id}/cancel``."""
    return write(f"{_path(evaluation_id)}/cancel", Evaluation, {}, key=idempotency_key)


def retry(evaluation_id: str, *, idempotency_key: str | None = None) -> Call[Evaluation]:
    """Take up one that failed or was cancelled: ``POST /v1/evaluations/{id}/retry``."""
    return write(f"{_path(evaluation_id)}/retry", Evaluation, {}, key=idempotency_key)


def detail(evaluation_id: str) -> Call[EvaluationDetail]:
    """Return everything measured, once it succeeded: ``GET /v1/evaluations/{id}/detail``."""
    return read(f"{_path(evaluation_id)}/detail", EvaluationDetail)


class RecordFilters(TypedDict, total=False):
    """Filters and order of scored decisions; all, in the dataset's order, without any.

    Parameters
    ----------
    decision
        Id of the one decision.
    wrong
        Only those answered wrong.
    target, top
        Only those whose right outcome, or whose top outcome, this is.
    p_from, p_to
        0 to 1: only those whose top probability is above the one and not above the other.
    slice_by, slice
        Only those of one slice: its property, such as ``kind``, and its value.
    contexts
        Only those of these contexts, by ``context_sha256``; at most 50.
    order : {"row", "loss", "surest", "least_sure"}
        The dataset's, the worst first, or by the top probability.
    context
        Whether they come with their contexts.
    """

    decision: str | None
    wrong: bool
    target: str | None
    top: str | None
    p_from: float | None
    p_to: float | None
    slice_by: str | None
    slice: str | None
    contexts: Sequence[str]
    order: RecordOrder
    context: bool


def records_page(
    evaluation_id: str,
    *,
    offset: int = 0,
    limit: int | None = None,
    **filters: Unpack[RecordFilters],
) -> Call[EvaluationRecordPage]:
    """Return at most 500 scored decisions, once it succeeded: ``GET …/{id}/records``.

    ``filters`` select and order them; see ``RecordFilters``.
    """
    query = {"offset": offset, "limit": limit, **_query_of(filters)}
    return read(f"{_path(evaluation_id)}/records", EvaluationRecordPage, **query)


def records(
    evaluation_id: str, *, limit: int | None = None, **filters: Unpack[RecordFilters]
) -> RecordWalk:
    """Return scored decisions of an evaluation that succeeded, by ``RecordFilters``."""
    return RecordWalk(
        lambda offset, size: records_page(evaluation_id, offset=offset, limit=size, **filters),
        limit,
    )


def export_records(
    evaluation_id: str,
    *,
    format: ExportFormat = "parquet",  # noqa: A002
    **filters: Unpack[RecordFilters],
) -> Call[bytes]:
    """Return scored decisions as a file, a row each, with contexts: ``GET …/{id}/export``.

    The format ``hf`` is a zip of a folder that Hugging Face ``datasets`` loads. ``filters`` are
    ``RecordFilters``.
    """
    query = {**_query_of(filters), "context": None}
    return read(f"{_path(evaluation_id)}/export", bytes, format=format, **query)


def _query_of(filters: RecordFilters) -> dict[str, Any]:
    return {
        "context_sha256" if name == "contexts" else name: None if value is False else value
        for name, value in filters.items()
    }


def compare(before: str, after: str) -> Call[EvaluationComparison]:
    """Compare two that succeeded, as after minus before: ``GET /v1/evaluations/compare``."""
    return read(f"{_PATH}/compare", EvaluationComparison, before=before, after=after)


def frontier(
    dataset_id: str,
    measure: FrontierMeasure = "accuracy",
    *,
    version: int | None = None,
    decision: str | None = None,
    false_positive: float | None = None,
    false_negative: float | None = None,
    action_costs: ActionCosts | None = None,
) -> Call[Frontier]:
    """Return a dataset's models by quality, price and latency: ``GET /v1/evaluations/frontier``.

    On the evaluation rows of ``version``, the newest that was evaluated when left out. With
    ``expected_cost``, ``decision`` names the decision of the costs: those of a wrong yes and of a
    wrong no of a binary one, or ``action_costs``, by action and outcome.
    """
    query: dict[str, Any] = {
        "dataset": dataset_id,
        "measure": measure,
        "version": version,
        "decision": decision,
        "false_positive": false_positive,
        "false_negative": false_negative,
        "action_costs": None if action_costs is None else encode_body(action_costs).decode(),
    }
    return read(f"{_PATH}/frontier", Frontier, **query)


def try_policy(
    evaluation_id: str,
    decision_id: str,
    *,
    action_costs: ActionCosts | None = None,
    abstain_below: float | None = None,
) -> Call[PolicyReport]:
    """Return a policy's actions on past answers: ``POST /v1/evaluations/{id}/policy``.

    ``action_costs`` are by action and outcome; without them the action is the top outcome. It
    abstains when the largest probability, 0 to 1, is lower than ``abstain_below``. Nothing changes.
    """
    fields = {"action_costs": action_costs, "abstain_below": abstain_below}
    body = encode_body({"decision_id": decision_id, **fields})
    return Call("POST", f"{_path(evaluation_id)}/policy", PolicyReport, body)


def cost_curve(
    evaluation_id: str,
    decision_id: str,
    *,
    false_positive: float | None = None,
    false_negative: float | None = None,
    action_costs: ActionCosts | None = None,
    abstain_cost: float | None = None,
) -> Call[CostCurve]:
    """Return the mean cost by threshold: ``POST /v1/evaluations/{id}/costs``.

    The costs are those of a wrong yes and of a wrong no of a binary decision, or ``action_costs``,
    by action and outcome, with ``abstain_cost``.
    """
    fields: dict[str, Any] = {
        "decision_id": decision_id,
        "false_positive": false_positive,
        "false_negative": false_negative,
        "action_costs": action_costs,
        "abstain_cost": abstain_cost,
    }
    return Call("POST", f"{_path(evaluation_id)}/costs", CostCurve, encode_body(fields))


def outcome_threshold(
    evaluation_id: str,
    decision_id: str,
    outcome: str,
    *,
    precision: float | None = None,
    confidence: float | None = None,
    wrong_cost: float | None = None,
    abstain_cost: float | None = None,
) -> Call[OutcomeThreshold]:
    """Find from which probability on to act on an outcome: ``POST …/{id}/threshold``.

    ``precision`` is the share of the decisions sent to the outcome that must be right, certified
    where the rows suffice, at a ``confidence`` of .95 when left out. The costs are those of a
    decision wrongly sent to the outcome, and of abstaining. With neither, the answer has the curve
    alone.
    """
    fields: dict[str, Any] = {
        "decision_id": decision_id,
        "outcome": outcome,
        "precision": precision,
        "wrong_cost": wrong_cost,
        "abstain_cost": abstain_cost,
    }
    if confidence is not None:
        fields["confidence"] = confidence
    return Call("POST", f"{_path(evaluation_id)}/threshold", OutcomeThreshold, encode_body(fields))


def _path(evaluation_id: str) -> str:
    return f"{_PATH}/{segment(evaluation_id)}"
