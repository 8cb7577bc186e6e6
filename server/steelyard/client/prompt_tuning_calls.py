"""Calls of the prompt tuning routes: one function a route."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.client.calls import Call
from steelyard.client.routes import route
from steelyard.prompt_tuning.wire import Effort, PromptTuningJob, PromptTuningPage


@route("POST /v1/prompt-tuning/jobs", PromptTuningJob)
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


@route("GET /v1/prompt-tuning/jobs", PromptTuningPage)
def page(
    *,
    dataset_id: str | None = None,
    status: str | Sequence[str] | None = None,
    page_size: int = 200,
    cursor: str | None = None,
) -> Call[PromptTuningPage]:
    """List jobs, newest first: ``GET /v1/prompt-tuning/jobs``."""


@route("GET /v1/prompt-tuning/jobs/{job_id}", PromptTuningJob)
def get(job_id: str) -> Call[PromptTuningJob]:
    """Return a job: ``GET /v1/prompt-tuning/jobs/{job}``."""


@route("PATCH /v1/prompt-tuning/jobs/{job_id}", PromptTuningJob, dismissed="label_issues_dismissed")
def dismiss_label_issues(
    job_id: str, *, dismissed: bool = True, idempotency_key: str | None = None
) -> Call[PromptTuningJob]:
    """Dismiss the labels that a job doubts, or take that back: ``PATCH …/{job}``."""


@route("POST /v1/prompt-tuning/jobs/{job_id}/cancel", PromptTuningJob)
def cancel(job_id: str, *, idempotency_key: str | None = None) -> Call[PromptTuningJob]:
    """Stop a job; nothing is charged: ``POST …/{job}/cancel``."""
