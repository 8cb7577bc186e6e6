"""What can be asked about stored decisions: each function gives the call for one route."""

from __future__ import annotations

from steelyard.client.calls import Call, read, segment
from steelyard.decision_log.wire import DecisionLogPage, DecisionSummary, StoredAnswer

_LOG = "/v1/decisions/log"


def decision_log(
    *,
    since: float | None = None,
    until: float | None = None,
    model: str | None = None,
    decision: str | None = None,
    has_feedback: bool | None = None,
    abstained: bool | None = None,
    wrong: bool | None = None,
    p_from: float | None = None,
    p_to: float | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[DecisionLogPage]:
    """Return a page of stored answers, newest first: ``GET /v1/decisions/log``.

    What is said of feedback, abstaining and probabilities is about one and the same decision of an
    answer.

    Parameters
    ----------
    since, until : float, optional
        Answered at or after the one and before the other, in Unix seconds.
    model : str, optional
        Answered under this name, or by the model of this number.
    decision : str, optional
        Only answers that have a decision of this id.
    has_feedback, abstained, wrong : bool, optional
        Whether somebody told what came true, whether the decision abstained, and whether its top
        outcome did not come true.
    p_from, p_to : float, optional
        0 to 1: only those whose top probability is above the one and not above the other.
    cursor : str, optional
        The page before's ``next_cursor``. A page may be short, or empty, and still have one.
    """
    window = {"since": since, "until": until, "p_from": p_from, "p_to": p_to}
    flags = {"has_feedback": has_feedback, "abstained": abstained, "wrong": wrong}
    query = {"model": model, "decision": decision, "cursor": cursor, "limit": limit}
    return read(_LOG, DecisionLogPage, **window, **flags, **query)


def decision_summary(
    *,
    since: float | None = None,
    until: float | None = None,
    bucket_s: int | None = None,
    model: str | None = None,
    decision: str | None = None,
) -> Call[DecisionSummary]:
    """Sum up the stored answers of a window: ``GET /v1/decisions/summary``.

    Parameters
    ----------
    since, until : float, optional
        The window, in Unix seconds; the last hour when left out.
    bucket_s : int, optional
        Seconds of a bucket; 60 when left out, and at most 1,440 buckets.
    model, decision : str, optional
        As for ``decision_log``.
    """
    window = {"since": since, "until": until, "bucket_s": bucket_s}
    path = "/v1/decisions/summary"
    return read(path, DecisionSummary, **window, model=model, decision=decision)


def stored_decision(decision_id: str) -> Call[StoredAnswer]:
    """Return a stored answer, ``dec_…``, in full: ``GET /v1/decisions/log/{id}``."""
    return read(f"{_LOG}/{segment(decision_id)}", StoredAnswer)
