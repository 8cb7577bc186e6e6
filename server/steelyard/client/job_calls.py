"""What can be asked about fine-tunes: each function gives the call for one route."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.client.calls import Call, new_or_checked_key, segment
from steelyard.evaluations.wire import JobRecordPage, RecordGroup
from steelyard.families.fine_tuning.wire import Job, JobEvents, JobPage

_PATH = "/v1/fine-tuning/jobs"


def page(
    *,
    status: str | Sequence[str] | None = None,
    dataset_id: str | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[JobPage]:
    """Return a page of fine-tunes, newest first: ``GET /v1/fine-tuning/jobs``.

    Parameters
    ----------
    status : str or sequence of str, optional
        Only those with one of these.
    dataset_id : str, optional
        Only those that train on this dataset.
    limit : int, optional
        Fine-tunes of the page; 1 to 200.
    cursor : str, optional
        The page before's ``next_cursor``.
    """
    statuses = [status] if isinstance(status, str) else list(status or ())
    query = [("status", name) for name in statuses]
    if dataset_id is not None:
        query.append(("dataset_id", dataset_id))
    if limit is not None:
        query.append(("limit", str(limit)))
    if cursor is not None:
        query.append(("cursor", cursor))
    return Call("GET", _PATH, JobPage, query=tuple(query))


def get(job_id: str) -> Call[Job]:
    """Return a fine-tune: its progress, then its outcome, gate and curve: ``GET …/jobs/{job}``.

    Parameters
    ----------
    job_id : str
        Its id.
    """
    return Call("GET", f"{_PATH}/{segment(job_id)}", Job)


def events(job_id: str) -> Call[JobEvents]:
    """Return what happened to a fine-tune, oldest first: ``GET …/jobs/{job}/events``.

    Parameters
    ----------
    job_id : str
        Its id.
    """
    return Call("GET", f"{_PATH}/{segment(job_id)}/events", JobEvents)


def records_page(
    job_id: str,
    *,
    group: RecordGroup = "adapted",
    offset: int = 0,
    limit: int | None = None,
) -> Call[JobRecordPage]:
    """Return a page of a fine-tune's held-out records: ``GET …/jobs/{job}/records``.

    Parameters
    ----------
    job_id : str
        Id of one that has ended.
    group : {"adapted", "base", "parent"}
        Whose answers: its model's, the base's, or the parent's.
    offset : int, default 0
        Records before the page.
    limit : int, optional
        Records of the page; 1 to 500.
    """
    query = [("group", group), ("offset", str(offset))]
    if limit is not None:
        query.append(("limit", str(limit)))
    path = f"{_PATH}/{segment(job_id)}/records"
    return Call("GET", path, JobRecordPage, query=tuple(query))


def cancel(job_id: str, *, idempotency_key: str | None = None) -> Call[Job]:
    """Ask a fine-tune to stop: ``POST /v1/fine-tuning/jobs/{job}/cancel``.

    Parameters
    ----------
    job_id : str
        Its id; one that has ended is given as it is.
    idempotency_key : str, optional
        A new key for every call when left out.
    """
    path = f"{_PATH}/{segment(job_id)}/cancel"
    key = new_or_checked_key(idempotency_key)
    return Call("POST", path, Job, b"{}", idempotency_key=key)
