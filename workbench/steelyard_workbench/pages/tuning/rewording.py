"""A dataset of the same rows with a decision in other words."""

from __future__ import annotations

from typing import Any

import msgspec

from steelyard.client import Client
from steelyard.datasets.wire import Dataset
from steelyard.prompt_tuning.wire import PromptTuningJob

#: The most rows that are read here and sent again.
MAX_ROWS = 20_000
_PAGE = 500


def reworded_dataset(client: Client, job: PromptTuningJob) -> Dataset:
    """Make a dataset of a job's rows in the tuned words; raise ``ValueError`` where there are none."""
    if job.result is None or job.result.tuned is None:
        raise ValueError("The job found no better wording, so there is none to use.")
    source = client.datasets.get(job.dataset_id)
    if source.rows > MAX_ROWS:
        raise ValueError(
            f"The dataset has {source.rows:,} rows, and up to {MAX_ROWS:,} are made anew here; "
            "download it, put the decision in, and upload it as a new one."
        )
    original, tuned = job.result.original, job.result.tuned
    sides: dict[str, list[dict[str, Any]]] = {"training": [], "evaluation": []}
    for side, rows in sides.items():
        has_more = True
        while has_more:
            page = client.datasets.rows(
                source.id,
                partition=side,  # type: ignore[arg-type]
                version=job.dataset_version,
                offset=len(rows),
                limit=_PAGE,
            )
            rows += [_reworded(msgspec.to_builtins(row), original, tuned) for row in page.data]
            has_more = page.has_more and bool(page.data)
    return client.datasets.create(
        f"{source.name}, tuned wording"[:128],
        training=sides["training"],
        evaluation=sides["evaluation"],
    )


def _reworded(
    row: dict[str, Any], original: dict[str, Any], tuned: dict[str, Any]
) -> dict[str, Any]:
    decisions = [
        {**decision, **tuned} if _words(decision) == _words(original) else decision
        for decision in row["decisions"]
    ]
    return {
        name: value for name, value in {**row, "decisions": decisions}.items() if value is not None
    }


def _words(decision: dict[str, Any]) -> Any:
    """Return the words that a model reads of a decision."""
    outcomes = decision.get("outcomes")
    if isinstance(outcomes, list):
        outcomes = dict.fromkeys(outcomes)
    return (decision["id"], decision.get("question"), outcomes, decision.get("rubric"))
