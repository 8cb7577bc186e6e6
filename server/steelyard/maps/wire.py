"""Wire forms of maps: a job that lays rows out, its points, and their values.

Times are Unix seconds. Columns of points are aligned: the values of one place are of one row.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from steelyard.datasets.wire import Version
from steelyard.decisions.wire import Name
from steelyard.maps.progress import MapProgress
from steelyard.wire.jobs import JobNoun, JobStep, JobSummary, summary_of
from steelyard.wire.queries import CursorPage, PageQuery
from steelyard.wire.schemas import doc
from steelyard.wire.shown import Shown

MapStatus = Literal["queued", "running", "cancelling", "succeeded", "failed", "cancelled"]

#: The most rows that are laid out; of more, as many are taken evenly. The shipped model takes some
#: minutes of one core for the vectors of so many, and a person sees no more in a figure of more.
MAX_POINTS = 20_000
#: Characters of a context that a point carries.
MAX_TEXT = 80
#: Outcomes that are named; the less frequent ones are one.
MAX_OUTCOMES = 50
#: What stands for a row that has no label, or was not scored; and for an outcome that is not named.
NONE, OTHER = -1, -2

_Id = Annotated[str, Meta(min_length=1, max_length=64)]
_Places = Annotated[
    list[int], doc("Place in `outcomes`; -1 where there is none, -2 for an outcome not among them.")
]


MAP = JobNoun(
    kind="map",
    prefix="map_",
    noun="map",
    plural="maps",
    title="Laying out",
    lost="Its progress is stored for a day. Started again within it, the job continues from there.",
)


class CreateMap(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which version to lay out, by which model's vectors."""

    dataset_id: Annotated[_Id, doc("Id of the dataset.")]
    version: Annotated[Version | None, doc("The newest when left out.")] = None
    model: Annotated[Name | None, doc("A base model; the default one when left out.")] = None


class MapsQuery(PageQuery, frozen=True, kw_only=True):
    """Which page of the account's maps."""

    dataset_id: Annotated[_Id | None, doc("Only those of this dataset.")] = None


class MapValuesQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The values of each point to return."""

    decision: Annotated[Name, doc("Id of a decision that rows ask.")]
    evaluation: Annotated[_Id | None, doc("An evaluation of the dataset that succeeded.")] = None


class DatasetMap(Shown, Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job that lays the rows of a version out as points; its result never changes."""

    id: str
    object: Literal["dataset.map"]
    status: MapStatus
    dataset_id: str
    dataset_version: int
    model: Annotated[str, doc("The model whose vectors are compared.")]
    rows: Annotated[int, doc("Rows of the version.")]
    points: Annotated[int, doc(f"Rows laid out: all, or {MAX_POINTS} taken evenly of more.")]
    progress: MapProgress | None
    created_at: float
    updated_at: float
    error: Annotated[str | None, doc("Why it failed; not there otherwise.")] = None
    error_code: str | None = None

    @property
    def summary(self) -> JobSummary:
        """The map as a list of jobs has it."""
        now = self.progress
        progress = None
        if now is not None:
            unit = "iterations" if now.phase == "laying_out" else "rows"
            progress = JobStep(
                phase=now.phase.replace("_", " "), step=now.step, steps=now.steps, unit=unit
            )
        return summary_of(
            MAP, self, "", models=[self.model], progress=progress, ended=None, why=self.error
        )


class MapPage(CursorPage[DatasetMap], frozen=True):
    """A page of maps, newest first."""


class MapPoints(Struct, frozen=True, kw_only=True):
    """The points of a map, as columns."""

    map: str
    index: Annotated[list[int], doc("The row's place in the dataset, from 0.")]
    x: Annotated[list[float], doc("-1 to 1.")]
    y: Annotated[list[float], doc("-1 to 1.")]
    is_evaluation: Annotated[list[bool], doc("Of the evaluation side.")]
    text: Annotated[list[str], doc("How the context begins.")]


class MapValues(Struct, frozen=True, kw_only=True):
    """The values of each point of a map, as columns in the order of its points."""

    map: str
    decision: str
    outcomes: Annotated[
        list[str], doc(f"The {MAX_OUTCOMES} most frequent, the most frequent first.")
    ]
    expected: _Places
    answered: Annotated[_Places | None, doc("Null without an evaluation.")]
    is_right: Annotated[
        list[bool | None] | None,
        doc("Null without an evaluation, and of rows that it did not score."),
    ]
    confidence: Annotated[
        list[float | None] | None, doc("The probability of what was answered; null as `is_right`.")
    ]
