"""Rows of evaluations and of the parts of their predictions.

An evaluation that runs belongs to one opening of the state, its runner; only the runner writes
progress, and only while the generation is the one it claimed. Not here: the partitions of a large one
(``steelyard.evaluations.partitions``), the meaning of a status for the caller
(``steelyard.evaluations.service``).
"""

from __future__ import annotations

import logging
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, delete, func, insert, select, update

from steelyard.accounts.store_owner import sweep_owned
from steelyard.datasets.tables import datasets
from steelyard.evaluations import partitions
from steelyard.evaluations.queries_wire import EvaluationsQuery
from steelyard.evaluations.tables import evaluation_partitions, evaluation_parts, evaluations
from steelyard.evaluations.wire import EVALUATION
from steelyard.job_frame.store import JobStore
from steelyard.jobs import store as jobs
from steelyard.jobs.store import PendingJob
from steelyard.outbox.publishing import publish
from steelyard.storage import State
from steelyard.storage.frame_store import FrameStore
from steelyard.storage.pages import OrderedPage, newest_first

_log = logging.getLogger(__name__)

#: Statuses of work that need not be done again.
REUSABLE = ("queued", "running", "succeeded")
#: Statuses of work that may be taken up again.
RETRYABLE = ("failed", "cancelled")


#: The evaluations of every account.
EVALUATIONS = JobStore(
    EVALUATION,
    table=evaluations,
    advice="look at GET /v1/evaluations",
    is_priced=False,
    models=("model_id",),
    yields=True,
)


def find_scored(
    connection: Connection,
    account_id: str,
    dataset_id: str,
    evaluation_sha256: str,
    model_sha256: str,
) -> Row[Any] | None:
    """Return the newest evaluation of a pair that is scored, being scored or waits to be."""
    return connection.execute(
        select(evaluations)
        .where(
            evaluations.c.account_id == account_id,
            evaluations.c.dataset_id == dataset_id,
            evaluations.c.evaluation_sha256 == evaluation_sha256,
            evaluations.c.model_sha256 == model_sha256,
            evaluations.c.status.in_(REUSABLE),
        )
        .order_by(evaluations.c.created_at.desc(), evaluations.c.id.desc())
        .limit(1)
    ).first()


def set_named(connection: Connection, evaluation_id: str, named: str) -> Row[Any]:
    """Note how a request named the model of a reused evaluation; return the row."""
    is_it = evaluations.c.id == evaluation_id
    connection.execute(update(evaluations).where(is_it).values(named=named))
    return connection.execute(select(evaluations).where(is_it)).one()


def find_held_out(
    connection: Connection, account_id: str, dataset_id: str, job_id: str
) -> Row[Any] | None:
    """Return the evaluation that a fine-tune made of its own model; ``None`` when it made none."""
    return connection.execute(
        select(evaluations)
        .where(
            evaluations.c.account_id == account_id,
            evaluations.c.dataset_id == dataset_id,
            evaluations.c.training_job_id == job_id,
        )
        # Its model can be evaluated again, but not before.
        .order_by(evaluations.c.created_at, evaluations.c.id)
        .limit(1)
    ).first()


def newest_evaluated(
    connection: Connection, account_id: str, dataset_id: str
) -> tuple[int, str] | None:
    """Return number and evaluation rows of a dataset's newest version with figures."""
    row = connection.execute(
        select(evaluations.c.dataset_version, evaluations.c.evaluation_sha256)
        .where(*_succeeded(account_id, dataset_id))
        .order_by(evaluations.c.dataset_version.desc(), evaluations.c.created_at.desc())
        .limit(1)
    ).first()
    return None if row is None else (row.dataset_version, row.evaluation_sha256)


def latest_by_model(
    connection: Connection, account_id: str, dataset_id: str, evaluation_sha256: str
) -> list[Row[Any]]:
    """Return each model's newest evaluation that succeeded on these rows, the newest first."""
    place = func.row_number().over(
        partition_by=evaluations.c.model_id,
        order_by=(evaluations.c.created_at.desc(), evaluations.c.id.desc()),
    )
    ranked = (
        select(evaluations.c.id, place.label("place"))
        .where(
            *_succeeded(account_id, dataset_id),
            evaluations.c.evaluation_sha256 == evaluation_sha256,
        )
        .subquery()
    )
    rows = connection.execute(
        select(evaluations)
        .join(ranked, ranked.c.id == evaluations.c.id)
        .where(ranked.c.place == 1)
        .order_by(evaluations.c.created_at.desc(), evaluations.c.id.desc())
    )
    return list(rows)


def _succeeded(account_id: str, dataset_id: str) -> tuple[ColumnElement[bool], ...]:
    return (
        evaluations.c.account_id == account_id,
        evaluations.c.dataset_id == dataset_id,
        evaluations.c.status == "succeeded",
    )


def page_of_dataset(
    connection: Connection, account_id: str, query: EvaluationsQuery
) -> OrderedPage:
    """Return a page of a dataset's evaluations, the newest first."""
    of = evaluations.c
    return newest_first(
        connection,
        evaluations,
        owned=and_(of.account_id == account_id, of.dataset_id == query.dataset_id),
        where=[of.status.in_(query.status)] if query.status else (),
        limit=query.limit,
        cursor=query.cursor,
    )


def add_part(connection: Connection, job: PendingJob, *, sha256: str, rows: int, at: float) -> bool:
    """Record predictions that are durable, with the progress they make.

    Returns whether they count: not when another process took the evaluation over, or it was
    retried. Recorded twice, as when the answer of a commit was lost, they count once.
    """
    known = connection.execute(
        select(evaluation_parts.c.number).where(
            evaluation_parts.c.evaluation_id == job.id, evaluation_parts.c.sha256 == sha256
        )
    ).first()
    if known is not None:
        return True
    progress = {"completed_rows": evaluations.c.completed_rows + rows, "updated_at": at}
    statuses = ("running", "cancelling", "cancelled")
    if job.partition is None:
        is_ours = jobs.set_of_run(
            connection, evaluations, job, statuses=statuses, attempt=1, **progress
        )
    else:
        counted = connection.execute(
            update(evaluations)
            .where(
                evaluations.c.id == job.id,
                evaluations.c.generation == job.generation,
                evaluations.c.status.in_(statuses),
                partitions.is_claimed(job),
            )
            .values(**progress)
        )
        is_ours = counted.rowcount > 0
    if not is_ours:
        return False
    if job.partition is not None:
        partitions.note_progress(connection, job)
    last = connection.execute(
        select(func.max(evaluation_parts.c.number)).where(
            evaluation_parts.c.evaluation_id == job.id
        )
    ).scalar()
    connection.execute(
        insert(evaluation_parts),
        {
            "evaluation_id": job.id,
            "number": 0 if last is None else last + 1,
            "rows": rows,
            "sha256": sha256,
            "partition": job.partition,
        },
    )
    return True


def set_generation(connection: Connection, evaluation_id: str, generation: int) -> None:
    """Count a retry."""
    connection.execute(
        update(evaluations).where(evaluations.c.id == evaluation_id).values(generation=generation)
    )


def parts_of(connection: Connection, evaluation_id: str) -> list[str]:
    """Return the hashes of an evaluation's parts: those of partitions, then as they were written."""
    rows = connection.execute(
        select(evaluation_parts.c.sha256)
        .where(evaluation_parts.c.evaluation_id == evaluation_id)
        .order_by(evaluation_parts.c.number)
    )
    return [*partitions.finished(connection, evaluation_id), *(row.sha256 for row in rows)]


def finish_run(
    connection: Connection,
    job: PendingJob,
    *,
    at: float,
    metrics: bytes,
    decisions: int,
    predictions_sha256: str,
    detail_sha256: str,
) -> bool:
    """Record success: the parts give way to one file; returns whether the run still counted."""
    is_ours = EVALUATIONS.end(
        connection,
        job,
        at=at,
        metrics=metrics,
        decisions=decisions,
        error=None,
        predictions_sha256=predictions_sha256,
        detail_sha256=detail_sha256,
    )
    if is_ours:
        for table in (evaluation_parts, evaluation_partitions):
            connection.execute(delete(table).where(table.c.evaluation_id == job.id))
        publish_success(connection, job.id)
    return is_ours


def publish_success(connection: Connection, evaluation_id: str) -> None:
    """Publish that a model was evaluated, in the transaction that ends the evaluation."""
    row = EVALUATIONS.find(connection, evaluation_id)
    assert row is not None  # noqa: S101  it was just written
    data = {
        "id": row.id,
        "dataset_id": row.dataset_id,
        "dataset_version": row.dataset_version,
        "model": row.model_label,
        "decisions": row.decisions,
        "fine_tune_id": row.training_job_id,
    }
    publish(connection, row.account_id, "evaluation.succeeded", row.id, data)
    if row.training_job_id is None:  # else it is a part of the fine-tune
        jobs.publish_end(connection, "evaluation", row.id, row.account_id, "succeeded")


def sweep_predictions(state: State, store: FrameStore) -> None:
    """Remove the files of predictions that nothing refers to; it blocks.

    A server does it too, since the process that it starts for its jobs ends soon after them.
    """
    removed = sweep_owned(state, store, live_files)
    if removed:
        _log.info("Removed %d files of predictions that nothing refers to.", len(removed))


def live_files(connection: Connection) -> set[str]:
    """Return the hash of every file that an evaluation of a dataset that is there refers to."""
    gone = select(datasets.c.id).where(datasets.c.deleted_at.is_not(None))
    has_dataset = evaluations.c.dataset_id.not_in(gone)
    named = connection.execute(
        select(evaluations.c.predictions_sha256, evaluations.c.detail_sha256).where(
            evaluations.c.predictions_sha256.is_not(None), has_dataset
        )
    )
    live = {sha256 for row in named for sha256 in row}
    for table in (evaluation_parts, evaluation_partitions):
        parts = select(table.c.sha256).join(evaluations).where(has_dataset)
        live.update(connection.execute(parts.where(table.c.sha256.is_not(None))).scalars())
    return live
