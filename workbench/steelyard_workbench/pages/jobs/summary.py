"""A fine-tune, an evaluation or a map as a line of a list, with how far it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from steelyard.evaluations.wire import ENDED, Evaluation
from steelyard.families.fine_tune_wire import Job
from steelyard.maps.wire import DatasetMap
from steelyard_workbench.pages.jobs.progress import Track
from steelyard_workbench.parts.families.labels import ACTIVE

Kind = Literal["fine-tune", "evaluation", "map"]
#: The phase of a map whose steps are no rows.
_LAYING_OUT = "laying out"


@dataclass(frozen=True, slots=True)
class JobSummary:
    """A fine-tune, an evaluation or a map, as the list shows it.

    Parameters
    ----------
    kind : {"fine-tune", "evaluation", "map"}
    dataset_version : int
        Of what opens at a version; 0 elsewhere.
    ended : str
        How it ended, in words; empty while it has not.
    """

    kind: Kind
    id: str
    name: str
    status: str
    dataset_id: str
    created_at: float
    dataset_version: int = 0
    ended: str = ""
    phase: str = ""
    step: int = 0
    steps: int = 0
    loss: float | None = None

    @property
    def is_active(self) -> bool:
        """Whether it has not ended."""
        return self.status in ACTIVE

    @property
    def unit(self) -> str:
        """What its steps are."""
        if self.kind == "map" and self.phase == _LAYING_OUT:
            return "iterations"
        return "steps" if self.kind == "fine-tune" else "rows"


def summary_of_job(job: Job) -> JobSummary:
    """Return a fine-tune as the list shows it."""
    now = job.progress
    ended = ""
    if job.status not in ACTIVE:
        ended = (job.outcome or job.status).replace("_", " ")
        ended += f": {job.reason}" if job.reason else ""
    return JobSummary(
        "fine-tune",
        job.id,
        job.family or "a deleted family",
        job.status,
        job.dataset_id,
        job.created_at,
        ended=ended,
        **({} if now is None else _progress(now.phase, now.step, now.steps, now.loss)),
    )


def summary_of_evaluation(evaluation: Evaluation) -> JobSummary:
    """Return an evaluation as the list shows it."""
    ended: str = evaluation.status if evaluation.status in ENDED else ""
    if evaluation.error is not None:
        ended = f"{ended}: {evaluation.error.message}"
    return JobSummary(
        "evaluation",
        evaluation.id,
        f"{evaluation.model_label} on version {evaluation.dataset_version}",
        evaluation.status,
        evaluation.dataset_id,
        evaluation.created_at,
        ended=ended,
        **_progress("scoring", evaluation.completed_rows, evaluation.evaluation_rows, None),
    )


def summary_of_map(map_: DatasetMap, dataset: str) -> JobSummary:
    """Return a map as the list shows it, by the name of its dataset."""
    now = map_.progress
    ended: str = "" if map_.status in ACTIVE else map_.status
    if map_.error is not None:
        ended = f"{ended}: {map_.error}"
    return JobSummary(
        "map",
        map_.id,
        f"{dataset}, version {map_.dataset_version}",
        map_.status,
        map_.dataset_id,
        map_.created_at,
        dataset_version=map_.dataset_version,
        ended=ended,
        **({} if now is None else _progress(_phase(now.phase), now.step, now.steps, None)),
    )


def progress_text(work: JobSummary, track: Track) -> str:
    """Return in words how far work is, how fast it goes and when it is done."""
    parts = [work.status]
    if work.steps:
        parts.append(f"{work.phase}: {work.step:,} of {work.steps:,} {work.unit}")
    if work.loss is not None:
        parts.append(f"loss {work.loss:.4f}")
    if work.status == "running" and work.steps:
        parts.append(track.text(work.unit) or "estimating how long it takes")
    return ", ".join(parts)


def _phase(name: str) -> str:
    return name.replace("_", " ")


def _progress(phase: str, step: int, steps: int, loss: float | None) -> dict[str, Any]:
    return {"phase": phase, "step": step, "steps": steps, "loss": loss}
