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
    """Score models on a dataset's evaluation rows: ``POST /v1/evaluations``.

    Parameters
    ----------
    models : str or sequence of str
        Names of models.
    """
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
    """List a dataset's evaluations, newest first: ``GET /v1/evaluations``.

    Parameters
    ----------
    status : str or sequence of str, optional
        Only those with one of these.
    """
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
    decision : str or None
        Id of the one decision.
    wrong : bool
        Only those answered wrong.
    target, top : str or None
        Only those whose right outcome, or whose top outcome, this is.
    p_from, p_to : float or None
        0 to 1: only those whose top probability is above the one and not above the other.
    slice_by, slice : str or None
        Only those of one slice: its property, such as ``kind``, and its value.
    contexts : sequence of str
        Only those of these contexts, by ``context_sha256``; at most 50.
    order : {"row", "loss", "surest", "least_sure"}
        The dataset's, the worst first, or by the top probability.
    context : bool
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
    """Return scored decisions of an evaluation that succeeded.

    Parameters
    ----------
    **filters
        Selection and order: ``decision``, ``wrong``, ``target``, ``top``, ``p_from``, ``p_to``,
        ``slice_by``, ``slice``, ``contexts``, ``order``, ``context``.
    """
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
    """Return scored decisions as a file, a row each: ``GET …/{id}/export``.

    Parameters
    ----------
    format : {"csv", "parquet", "hf"}, default "parquet"
        ``hf`` is a zip of a folder that Hugging Face ``datasets`` loads.
    **filters
        Selection and order; see ``RecordFilters``. Contexts are there in any case.
    """
    query = {**_query_of(filters), "context": None}
    return read(f"{_path(evaluation_id)}/export", bytes, format=format, **query)


def _query_of(filters: RecordFilters) -> dict[str, Any]:
    return {
        "context_sha256" if name == "contexts" else name: None if value is False else value
        for name, value in filters.items()
    }


def compare(before: str, after: str) -> Call[EvaluationComparison]:
    """Compare two evaluations, decision by decision: ``GET /v1/evaluations/compare``.

    Parameters
    ----------
    before, after : str
        Ids of two that succeeded; changes are after minus before.
    """
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

    Parameters
    ----------
    measure : {"accuracy", "log_loss", "expected_cost"}
    version : int, optional
        On whose evaluation rows; the newest that was evaluated by default.
    decision : str, optional
        With ``expected_cost``: the decision that the costs are for.
    false_positive, false_negative : float, optional
        Of a binary decision: the costs of a wrong yes and of a wrong no.
    action_costs : mapping, optional
        Of any decision, instead of those two: action to outcome to cost.
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
    """Return the actions of a policy on past answers: ``POST /v1/evaluations/{id}/policy``; nothing changes.

    Parameters
    ----------
    action_costs : mapping, optional
        Action to outcome to cost; without it the action is the top outcome.
    abstain_below : float, optional
        0 to 1: abstain when the largest probability is lower.
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
    """Return the mean cost by threshold: ``POST /v1/evaluations/{id}/costs``; nothing changes.

    Parameters
    ----------
    false_positive, false_negative : float, optional
        Of a binary decision: the costs of a wrong yes and of a wrong no.
    action_costs : mapping, optional
        Of any decision: action to outcome to cost.
    abstain_cost : float, optional
        With ``action_costs``: the cost of abstaining.
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

    Nothing changes. Without ``precision`` or costs the answer has the curve alone.

    Parameters
    ----------
    precision : float, optional
        Share of the decisions sent to the outcome that must be right; certified where the rows suffice.
    confidence : float, optional
        Of that precision, over draws of the rows; .95 when left out.
    wrong_cost, abstain_cost : float, optional
        The costs of a decision wrongly sent to the outcome, and of abstaining.
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
