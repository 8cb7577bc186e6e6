"""What can be asked about stored decisions: each function gives the call for one route."""

from __future__ import annotations

from steelyard.client.calls import Call, segment
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
    limit : int, optional
        The most answers of the page; 1 to 200.
    cursor : str, optional
        The page before's ``next_cursor``. A page may be short, or empty, and still have one.
    """
    texts = [("model", model), ("decision", decision), ("cursor", cursor)]
    numbers = [("since", since), ("until", until), ("p_from", p_from), ("p_to", p_to)]
    flags = [("has_feedback", has_feedback), ("abstained", abstained), ("wrong", wrong)]
    query = [(name, text) for name, text in texts if text is not None]
    query += [(name, repr(float(number))) for name, number in numbers if number is not None]
    query += [(name, "true" if flag else "false") for name, flag in flags if flag is not None]
    if limit is not None:
        query.append(("limit", str(limit)))
    return Call("GET", _LOG, DecisionLogPage, query=tuple(query))


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
    numbers = [("since", since), ("until", until)]
    query = [(name, repr(float(number))) for name, number in numbers if number is not None]
    query += [
        (name, text)
        for name, text in (("model", model), ("decision", decision))
        if text is not None
    ]
    if bucket_s is not None:
        query.append(("bucket_s", str(bucket_s)))
    return Call("GET", "/v1/decisions/summary", DecisionSummary, query=tuple(query))


def stored_decision(decision_id: str) -> Call[StoredAnswer]:
    """Return a stored answer in full: ``GET /v1/decisions/log/{id}``.

    Parameters
    ----------
    decision_id : str
        The answer's ``id``, ``dec_…``.
    """
    return Call("GET", f"{_LOG}/{segment(decision_id)}", StoredAnswer)
