"""How long a fine-tune is likely to take, by those that ended here."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from statistics import median

from steelyard.client import Client
from steelyard.errors import SteelyardError
from steelyard.families.fine_tune_wire import Job

#: Fine-tunes that are looked at, and the newest like it that count.
_LOOKED_AT, _COUNTED = 50, 5


def expected_seconds(jobs: Iterable[Job], steps: int, *, is_adapting: bool) -> float | None:
    """Return the seconds from the queue to the gate's verdict; ``None`` where none like it ended.

    Jobs come newest first. ``is_adapting``: whether the encoder is adapted too, which takes far
    longer a step than heads alone.
    """
    like = (
        job
        for job in islice(jobs, _LOOKED_AT)
        if job.status == "succeeded" and bool(job.hyperparameters.lora_rank) == is_adapting
    )
    rates = [
        (job.updated_at - job.created_at) / max(1, job.hyperparameters.steps)
        for job in islice(like, _COUNTED)
    ]
    return median(rates) * steps if rates else None


def fetch_expected(client: Client, steps: int, *, is_adapting: bool) -> float | None:
    """Return the expected seconds by the account's fine-tunes; ``None`` where they are unknown."""
    try:
        jobs = client.jobs.list(status="succeeded", page_size=_LOOKED_AT)
        return expected_seconds(jobs, steps, is_adapting=is_adapting)
    except SteelyardError:
        return None


def time_text(seconds: float | None) -> str:
    """Return an expected time in words.

    >>> time_text(40.0), time_text(700.0)
    ('less than a minute, by the last like it', 'about 12 min, by the last like it')
    """
    if seconds is None:
        return "not known yet: nothing like it has been trained here"
    if seconds < 60:
        duration = "less than a minute"
    elif seconds < 5400:
        duration = f"about {seconds / 60:.0f} min"
    else:
        duration = f"about {seconds / 3600:.1f} h"
    return f"{duration}, by the last like it"
