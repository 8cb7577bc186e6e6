"""What can be asked about evaluations: each function gives the call for one route."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, Unpack

from steelyard.client.calls import Call, encode_body, new_or_checked_key, segment
from steelyard.evaluations.queries_wire import RecordOrder
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

_PATH = "/v1/evaluations"
ActionCosts = Mapping[str, Mapping[str, float]]


def create(
    dataset_id: str, models: str | Sequence[str], *, idempotency_key: str | None = None
) -> Call[EvaluationSubmission]:
    """Score models on a dataset's evaluation rows: ``POST /v1/evaluations``.

    Parameters
    ----------
    dataset_id : str
        The dataset's id.
    models : str or sequence of str
        Names of models.
    idempotency_key : str, optional
        Under one key the evaluations are queued once; a new key for every call when left out.
    """
    names = [models] if isinstance(models, str) else list(models)
    body = encode_body({"dataset_id": dataset_id, "models": names})
    key = new_or_checked_key(idempotency_key)
    return Call("POST", _PATH, EvaluationSubmission, body, idempotency_key=key)


def page(
    dataset_id: str,
    *,
    status: str | Sequence[str] | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[EvaluationPage]:
    """Return a page of a dataset's evaluations, newest first: ``GET /v1/evaluations``.

    Parameters
    ----------
    dataset_id : str
        The dataset's id.
    status : str or sequence of str, optional
        Only those with one of these.
    limit : int, optional
        Evaluations of the page; 1 to 200.
    cursor : str, optional
        The page before's ``next_cursor``.
    """
    statuses = [status] if isinstance(status, str) else list(status or ())
    query = [("dataset_id", dataset_id), *(("status", name) for name in statuses)]
    if limit is not None:
        query.append(("limit", str(limit)))
    if cursor is not None:
        query.append(("cursor", cursor))
    return Call("GET", _PATH, EvaluationPage, query=tuple(query))


def get(evaluation_id: str) -> Call[Evaluation]:
    """Return an evaluation: ``GET /v1/evaluations/{id}``.

    Parameters
    ----------
    evaluation_id : str
        Its id.
    """
    return Call("GET", f"{_PATH}/{segment(evaluation_id)}", Evaluation)


def cancel(evaluation_id: str, *, idempotency_key: str | None = None) -> Call[Evaluation]:
    """Stop an evaluation; its predictions are kept: ``POST /v1/evaluations/{id}/cancel``.

    Parameters
    ----------
    evaluation_id : str
        Its id.
    idempotency_key : str, optional
        A new key for every call when left out.
    """
    return _act(evaluation_id, "cancel", idempotency_key)


def retry(evaluation_id: str, *, idempotency_key: str | None = None) -> Call[Evaluation]:
    """Take up one that failed or was cancelled: ``POST /v1/evaluations/{id}/retry``.

    Parameters
    ----------
    evaluation_id : str
        Its id.
    idempotency_key : str, optional
        A new key for every call when left out.
    """
    return _act(evaluation_id, "retry", idempotency_key)


def detail(evaluation_id: str) -> Call[EvaluationDetail]:
    """Return everything measured: ``GET /v1/evaluations/{id}/detail``.

    Parameters
    ----------
    evaluation_id : str
        Id of one that succeeded.
    """
    return Call("GET", f"{_PATH}/{segment(evaluation_id)}/detail", EvaluationDetail)


class RecordFilters(TypedDict, total=False):
    """Which scored decisions, and in what order; all of them, as the dataset has them, without any.

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
    """Return a page of scored decisions: ``GET /v1/evaluations/{id}/records``.

    Parameters
    ----------
    evaluation_id : str
        Id of one that succeeded.
    offset : int, default 0
        Records before the page.
    limit : int, optional
        Records of the page; 1 to 500.
    **filters
        Which of them, and in what order; see ``RecordFilters``.
    """
    query = [("offset", str(offset))]
    for name, value in filters.items():
        if name == "contexts":
            query += [("context_sha256", sha256) for sha256 in filters["contexts"]]
        elif isinstance(value, bool):
            query += [(name, "true")] if value else []
        elif value is not None:
            query.append((name, repr(value) if isinstance(value, float) else str(value)))
    if limit is not None:
        query.append(("limit", str(limit)))
    path = f"{_PATH}/{segment(evaluation_id)}/records"
    return Call("GET", path, EvaluationRecordPage, query=tuple(query))


def compare(before: str, after: str) -> Call[EvaluationComparison]:
    """Compare two evaluations, decision by decision: ``GET /v1/evaluations/compare``.

    Parameters
    ----------
    before, after : str
        Ids of two that succeeded; changes are after minus before.
    """
    query = (("before", before), ("after", after))
    return Call("GET", f"{_PATH}/compare", EvaluationComparison, query=query)


def try_policy(
    evaluation_id: str,
    decision_id: str,
    *,
    action_costs: ActionCosts | None = None,
    abstain_below: float | None = None,
) -> Call[PolicyReport]:
    """Return what a policy would have done: ``POST /v1/evaluations/{id}/policy``; nothing changes.

    Parameters
    ----------
    evaluation_id : str
        Id of one that succeeded.
    decision_id : str
        The decision that the policy is for.
    action_costs : mapping, optional
        Action to outcome to cost; without it the action is the top outcome.
    abstain_below : float, optional
        0 to 1: abstain when the largest probability is lower.
    """
    fields = {
        "decision_id": decision_id,
        "action_costs": action_costs,
        "abstain_below": abstain_below,
    }
    path = f"{_PATH}/{segment(evaluation_id)}/policy"
    return Call("POST", path, PolicyReport, encode_body(fields))


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
    evaluation_id : str
        Id of one that succeeded.
    decision_id : str
        The decision that the costs are of.
    false_positive, false_negative : float, optional
        Of a binary decision: what a wrong yes and a wrong no cost.
    action_costs : mapping, optional
        Of any decision: action to outcome to cost.
    abstain_cost : float, optional
        With ``action_costs``: what abstaining costs.
    """
    fields: dict[str, Any] = {
        "decision_id": decision_id,
        "false_positive": false_positive,
        "false_negative": false_negative,
        "action_costs": action_costs,
        "abstain_cost": abstain_cost,
    }
    path = f"{_PATH}/{segment(evaluation_id)}/costs"
    return Call("POST", path, CostCurve, encode_body(fields))


def _act(evaluation_id: str, verb: str, key: str | None) -> Call[Evaluation]:
    path = f"{_PATH}/{segment(evaluation_id)}/{verb}"
    return Call("POST", path, Evaluation, b"{}", idempotency_key=new_or_checked_key(key))
