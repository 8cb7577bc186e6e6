"""Calls of the prompt tuning routes: one function a route."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.client.calls import Call, read, segment, write
from steelyard.prompt_tuning.wire import Effort, PromptTuningJob, PromptTuningPage

_JOBS = "/v1/prompt-tuning/jobs"


def create(
    dataset_id: str,
    *,
    decision: str | None = None,
    model: str | None = None,
    effort: Effort = "standard",
    max_price_usd: str | None = None,
    idempotency_key: str | None = None,
) -> Call[PromptTuningJob]:
    """Tune a decision's wording: ``POST /v1/prompt-tuning/jobs``.

    ``decision`` may be left out when the dataset asks one. ``model`` is a base model, or a family
    that answers; the default base when left out. ``standard`` searches at most 4 rounds,
    ``thorough`` 12. The call is refused, and nothing held, when it is dearer than
    ``max_price_usd``.
    """
    fields = {
        "dataset_id": dataset_id,
        "decision": decision,
        "model": model,
        "effort": effort,
        "max_price_usd": max_price_usd,
    }
    return write(_JOBS, PromptTuningJob, fields, key=idempotency_key)


def page(
    *,
    dataset_id: str | None = None,
    status: str | Sequence[str] | None = None,
    page_size: int = 200,
    cursor: str | None = None,
) -> Call[PromptTuningPage]:
    """List jobs, newest first: ``GET /v1/prompt-tuning/jobs``."""
    return read(
        _JOBS,
        PromptTuningPage,
        dataset_id=dataset_id,
        status=status,
        limit=page_size,
        cursor=cursor,
    )


def get(job_id: str) -> Call[PromptTuningJob]:
    """Return a job: ``GET /v1/prompt-tuning/jobs/{job}``."""
    return read(_path(job_id), PromptTuningJob)


def dismiss_label_issues(
    job_id: str, *, dismissed: bool = True, idempotency_key: str | None = None
) -> Call[PromptTuningJob]:
    """Dismiss the labels that a job doubts, or take that back: ``PATCH …/{job}``."""
    fields = {"label_issues_dismissed": dismissed}
    return write(_path(job_id), PromptTuningJob, fields, key=idempotency_key, method="PATCH")


def cancel(job_id: str, *, idempotency_key: str | None = None) -> Call[PromptTuningJob]:
    """Stop a job; nothing is charged: ``POST …/{job}/cancel``."""
    return write(f"{_path(job_id)}/cancel", PromptTuningJob, {}, key=idempotency_key)


def _path(job_id: str) -> str:
    return f"{_JOBS}/{segment(job_id)}"
