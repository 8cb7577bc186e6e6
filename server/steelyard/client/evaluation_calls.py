"""Calls of the evaluation routes: one function a route."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, Unpack

from steelyard.client.calls import Call, encode_body, read, segment, write
from steelyard.client.routes import route
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

ActionCosts = Mapping[str, Mapping[str, float]]


def create(
    dataset_id: str, models: str | Sequence[str], *, idempotency_key: str | None = None
) -> Call[EvaluationSubmission]:
    """Score models on a dataset's evaluation rows: ``POST /v1/evaluations``."""
    names = [models] if isinstance(models, str) else list(models)
    fields = {"dataset_id": dataset_id, "models": names}
    return write("/v1/evaluations", EvaluationSubmission, fields, key=idempotency_key)


@route("GET /v1/evaluations", EvaluationPage)
def page(
    dataset_id: str,
    *,
    status: str | Sequence[str] | None = None,
    page_size: int = 200,
    cursor: str | None = None,
) -> Call[EvaluationPage]:
    """List a dataset's evaluations, newest first: ``GET /v1/evaluations``."""


@route("GET /v1/evaluations/{evaluation_id}", Evaluation)
def get(evaluation_id: str) -> Call[Evaluation]:
    """Return an evaluation: ``GET /v1/evaluations/{id}``."""


@route("POST /v1/evaluations/{evaluation_id}/cancel", Evaluation)
def cancel(evaluation_id: str, *, idempotency_key: str | None = None) -> Call[Evaluation]:
    """Stop an evaluation; its predictions are kept: ``POST /v1/evaluations/{id}/cancel``."""


@route("POST /v1/evaluations/{evaluation_id}/retry", Evaluation)
def retry(evaluation_id: str, *, idempotency_key: str | None = None) -> Call[Evaluation]:
    """Take up one that failed or was cancelled: ``POST /v1/evaluations/{id}/retry``."""


@route("GET /v1/evaluations/{evaluation_id}/detail", EvaluationDetail)
def detail(evaluation_id: str) -> Call[EvaluationDetail]:
    """Return everything measured, once it succeeded: ``GET /v1/evaluations/{id}/detail``."""


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
    return read(f"/v1/evaluations/{segment(evaluation_id)}/records", EvaluationRecordPage, **query)


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
    return read(f"/v1/evaluations/{segment(evaluation_id)}/export", bytes, format=format, **query)


def _query_of(filters: RecordFilters) -> dict[str, Any]:
    return {
        "context_sha256" if name == "contexts" else name: None if value is False else value
        for name, value in filters.items()
    }


@route("GET /v1/evaluations/compare", EvaluationComparison)
def compare(before: str, after: str) -> Call[EvaluationComparison]:
    """Compare two that succeeded, as after minus before: ``GET /v1/evaluations/compare``."""


def _as_json(action_costs: ActionCosts | None) -> str | None:
    return None if action_costs is None else encode_body(action_costs).decode()


@route("GET /v1/evaluations/frontier", Frontier, dataset_id="dataset", action_costs=_as_json)
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


@route("POST /v1/evaluations/{evaluation_id}/policy", PolicyReport, is_question=True)
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


@route("POST /v1/evaluations/{evaluation_id}/costs", CostCurve, is_question=True)
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


@route("POST /v1/evaluations/{evaluation_id}/threshold", OutcomeThreshold, is_question=True)
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
