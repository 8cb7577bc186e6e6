"""Jobs of any kind on the wire: the kind's name for people, and a job as a list of all kinds has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Protocol

from msgspec import Meta, Struct

from steelyard.wire.queries import CursorPage, OneOf, PageQuery
from steelyard.wire.schemas import doc

#: Statuses of a job that has not ended.
UNFINISHED = ("queued", "running", "cancelling")
_Text = Annotated[str, Meta(min_length=1, max_length=64)]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobNoun:
    """The words for a kind of job."""

    #: What events and lists call it, such as ``map``.
    kind: str
    #: How ids of its jobs begin.
    prefix: str
    #: What sentences call one, and several.
    noun: str
    plural: str
    #: What a bar says while one runs.
    title: str
    #: The loss when one is cancelled, in a sentence.
    lost: str


class JobStep(Struct, frozen=True, kw_only=True):
    """Where a job is."""

    phase: str
    step: Annotated[int, doc("What is done of the phase.")]
    steps: int
    unit: Annotated[str, doc("What the steps are.")] = "rows"
    loss: Annotated[float | None, doc("Newest loss, of kinds that have one.")] = None


class JobSummary(Struct, frozen=True, kw_only=True):
    """A job of any kind."""

    id: str
    kind: str
    noun: Annotated[str, doc("What people call its kind.")]
    name: Annotated[str, doc("What it is of, beside its dataset; may be empty.")]
    status: str
    created_at: float
    dataset_id: str | None
    dataset: Annotated[str | None, doc("The dataset's name.")]
    dataset_version: int | None
    models: Annotated[list[str], doc("The models that it uses.")]
    progress: Annotated[JobStep | None, doc("Null before it runs.")]
    ended: Annotated[str | None, doc("How it ended; null while it has not.")]
    lost: Annotated[str, doc("What is lost by cancelling it.")]

    @property
    def is_active(self) -> bool:
        """Whether it has not ended."""
        return self.ended is None

    @property
    def of(self) -> str:
        """The subject of the job, in words."""
        return self.name or f"{self.dataset or self.dataset_id}, version {self.dataset_version}"


class JobSummaryPage(CursorPage[JobSummary], frozen=True):
    """A page of jobs of all kinds, newest first."""


class AllJobsQuery(PageQuery, frozen=True, kw_only=True):
    """Which page of the account's jobs of all kinds."""

    kind: Annotated[list[_Text], doc("Only these kinds; repeated, or separated by commas.")] = []
    status: OneOf[_Text] = []
    dataset_id: Annotated[_Text | None, doc("Only those on this dataset.")] = None


class AnyJob(Protocol):
    """A job of a kind, in that kind's own form."""

    @property
    def id(self) -> str:
        """Its id."""

    @property
    def status(self) -> str:
        """Where it is."""

    @property
    def created_at(self) -> float:
        """When it was queued."""

    @property
    def summary(self) -> JobSummary:
        """The job as a list of all kinds has it."""


def summary_of(
    noun: JobNoun,
    job: AnyJob,
    name: str,
    *,
    models: list[str],
    progress: JobStep | None,
    ended: str | None,
    why: str | None = None,
) -> JobSummary:
    """Return a job as a list of all kinds has it; ``ended`` says how, once it has, and ``why`` so."""
    outcome = None
    if job.status not in UNFINISHED:
        outcome = (ended or job.status).replace("_", " ") + (f": {why}" if why else "")
    return JobSummary(
        id=job.id,
        kind=noun.kind,
        noun=noun.noun,
        name=name,
        status=job.status,
        created_at=job.created_at,
        dataset_id=getattr(job, "dataset_id", None) or None,
        dataset=None,
        dataset_version=getattr(job, "dataset_version", None),
        models=models,
        progress=progress,
        ended=outcome,
        lost=noun.lost,
    )
