"""Labeling on the wire: sources of queries, jobs of teachers, and the teachers' answers.

Money is exact decimal text, times are Unix seconds.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from steelyard.datasets.wire import DatasetName, Fraction, InputReceipt, RowDecisions
from steelyard.decisions.wire import ContextInput, MetadataValues, Name
from steelyard.labeling.judging import Targets, Weighting
from steelyard.wire.jobs import JobNoun, JobStep, JobSummary, summary_of
from steelyard.wire.limits import ROW_LIMITS
from steelyard.wire.measures import Measure
from steelyard.wire.queries import (
    MAX_NUMBER,
    CursorPage,
    OneOf,
    PageQuery,
)
from steelyard.wire.schemas import doc
from steelyard.wire.shown import Shown

LabelingStatus = Literal[
    "queued",
    "running",
    "cancelling",
    "cancelled",
    "review_ready",
    "failed",
    "finalized",
    "discarded",
    "deleted",
]
LabelingCharge = Literal["free", "reserved", "charged", "released"]

LABELING = JobNoun(
    kind="labeling",
    prefix="lab_",
    noun="labeling job",
    plural="labeling jobs",
    title="Labeling",
    lost="The labels are lost, and the price is refunded.",
)

#: The most rows of a source, and the most teachers of a job.
MAX_ROWS, MAX_TEACHERS = ROW_LIMITS["labeling_rows"], 8
#: The most rows of a page of results, and how many one has when nothing is said.
MAX_RESULTS, DEFAULT_RESULTS = 200, 100
#: What the teachers are asked with; another one is another method.
PROMPT_VERSION = "decide-1"

_Id = Annotated[str, Meta(min_length=1, max_length=64)]
_Indices = Annotated[list[Annotated[int, Meta(ge=0, le=MAX_NUMBER)]], Meta(max_length=MAX_ROWS)]


class Teacher(Struct, frozen=True, kw_only=True):
    """A model that may label rows."""

    id: str
    name: str
    reasoning: Annotated[
        str, doc("How much it writes before it answers; `none` of those here do.")
    ] = "none"
    doubt: Annotated[
        str | UnsetType, doc("Of a connected model that has not qualified, or does no longer: why.")
    ] = UNSET


class TeacherList(Shown, Struct, frozen=True, kw_only=True):
    """The teachers of an account."""

    available: bool
    reason: Annotated[
        str | UnsetType, doc("Why rows cannot be labelled here; without teachers.")
    ] = UNSET
    data: list[Teacher]
    defaults: Annotated[dict[str, list[str]], doc("`default`: who labels when a job names nobody.")]
    limits: dict[str, int]


class SourceRowInput(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One query of a source: a row without labels."""

    refused_fields: ClassVar[dict[str, str]] = {
        "targets": "Teachers find the targets; make a dataset of rows that have them",
        "rewards": "Teachers find targets; make a dataset of rows with rewards",
        "images": "Teachers read text alone",
    }

    context: ContextInput
    decisions: Annotated[
        RowDecisions | None, doc("Left out where the job gives decisions for all such rows.")
    ] = None
    metadata: MetadataValues | None = None


class UploadQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The name of an uploaded source."""

    name: Annotated[DatasetName, doc("Not blank; percent-encoded.")]


class LabelingSource(Shown, Struct, frozen=True, kw_only=True):
    """Queries that were uploaded to be labelled."""

    id: str
    name: str
    rows: int
    sha256: Annotated[str, doc("Names the queries, in order.")]
    input: InputReceipt
    created_at: float


class LabelingSourcePage(CursorPage[LabelingSource], Shown, frozen=True):
    """Sources, newest first."""


class SourceRow(Struct, frozen=True, kw_only=True):
    """One query of a source."""

    index: Annotated[int, doc("Place in the source, from 0.")]
    context: Any
    decisions: list[Any] | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET


class SourceRowPage(Shown, Struct, frozen=True, kw_only=True):
    """A page of a source's queries, in order."""

    data: list[SourceRow]
    total: int
    offset: int
    limit: int
    has_more: bool


class DeletedSource(Struct, frozen=True, kw_only=True):
    """A source that is gone for good, with the teachers' answers."""

    id: str
    deleted: Literal[True] = True


class LabelingQuery(PageQuery, frozen=True, kw_only=True):
    """Which jobs, and which page of them."""

    status: OneOf[LabelingStatus] = []


class ResultsQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which page of results."""

    offset: Annotated[int, Meta(ge=0, le=MAX_NUMBER, description="Rows before the page.")] = 0
    limit: Annotated[Annotated[int, Meta(ge=1, le=MAX_RESULTS)], doc("Rows of a page.")] = (
        DEFAULT_RESULTS
    )


class CreateLabelingJob(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Ask teachers to label a source."""

    source_id: Annotated[_Id, doc("Id of the source.")]
    teacher_models: Annotated[
        Annotated[list[Name], Meta(min_length=1, max_length=MAX_TEACHERS)] | None,
        doc("Ids of teachers; the defaults when left out."),
    ] = None
    decisions: Annotated[RowDecisions | None, doc("For the rows that carry none.")] = None
    name: Annotated[
        DatasetName | None, doc("Of the job and its dataset; the source's by default.")
    ] = None
    weighting: Annotated[
        Weighting,
        doc(
            "`votes`: targets are the mean of labels. `probabilities`: of calibrated "
            "probabilities, where a teacher has a calibration."
        ),
    ] = "votes"
    max_price_usd: Annotated[
        Annotated[str, Meta(max_length=32)] | None, doc("Refuse a higher price than this.")
    ] = None


class DecisionAgreement(Struct, frozen=True, kw_only=True):
    """How far teachers agree on one decision."""

    decision_id: str
    alpha: Annotated[
        Measure | None,
        doc(
            "Krippendorff's alpha: 1 is agreement, 0 chance. Null where fewer than two "
            "teachers answered, or all votes are for one outcome."
        ),
    ]
    agreement: Annotated[Measure | None, doc("Share of rows on which all who answered agree.")]


class TeacherAgreement(Struct, frozen=True, kw_only=True):
    """One teacher beside the others."""

    model: str
    answered: Annotated[int, doc("Rows.")]
    errors: Annotated[int, doc("Rows that it did not answer.")]
    with_others: Annotated[
        Measure | None, doc("How often another teacher gave a decision the same label.")
    ]


class LabelingJob(Shown, Struct, frozen=True, kw_only=True):
    """Teachers that label a source."""

    id: str
    name: str
    source_id: str
    status: LabelingStatus
    teacher_models: list[str]
    weighting: Weighting
    rows: int
    completed_rows: Annotated[int, doc("Rows that every teacher was asked about.")]
    valid_rows: Annotated[int, doc("Rows that may become rows of a dataset.")]
    agreement_rows: Annotated[int, doc("Rows on which all teachers agree.")]
    error_rows: Annotated[int, doc("Rows that a teacher did not answer.")]
    price_usd: Annotated[str, doc("Held when queued, charged once labels are ready.")]
    charge: LabelingCharge
    created_at: float
    updated_at: float
    dataset_id: str | UnsetType = UNSET
    error: Annotated[str | UnsetType, doc("Why it failed.")] = UNSET
    error_code: str | UnsetType = UNSET
    warnings: Annotated[
        list[str] | UnsetType,
        doc("In the answer that queues it: teachers that have not qualified, and why."),
    ] = UNSET
    decisions: Annotated[list[DecisionAgreement] | UnsetType, doc("Once labels are ready.")] = UNSET
    teachers: Annotated[list[TeacherAgreement] | UnsetType, doc("Once labels are ready.")] = UNSET

    @property
    def summary(self) -> JobSummary:
        """The job as a list of all kinds has it."""
        return summary_of(
            LABELING,
            self,
            self.name,
            models=self.teacher_models,
            progress=JobStep(phase="labeling", step=self.completed_rows, steps=self.rows),
            ended=None,
            why=self.error or None,
        )


class LabelingJobPage(CursorPage[LabelingJob], Shown, frozen=True):
    """Jobs, newest first."""


class TeacherJudgment(Struct, frozen=True, kw_only=True):
    """One teacher's answer to a row."""

    model: str
    labels: Annotated[dict[str, str] | UnsetType, doc("Decision id to the outcome it chose.")] = (
        UNSET
    )
    probabilities: Targets | UnsetType = UNSET
    error: str | UnsetType = UNSET


class LabelingResult(Struct, frozen=True, kw_only=True):
    """A row with the teachers' answers."""

    index: Annotated[int, doc("Place in the source, from 0.")]
    context: Any
    decisions: list[Any]
    teachers: list[TeacherJudgment]
    valid: Annotated[bool, doc("Whether every decision got a label from a teacher.")]
    agreement: Annotated[bool, doc("Whether all teachers agree on all decisions.")]
    targets: Targets | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET
    error: Annotated[str | UnsetType, doc("Why the row is not valid.")] = UNSET


class LabelingResults(Shown, Struct, frozen=True, kw_only=True):
    """A page of rows in the order of the source."""

    data: list[LabelingResult]
    total: int
    offset: int
    limit: int
    has_more: bool


class ReviewedTeacher(Struct, frozen=True, kw_only=True):
    """One teacher beside people."""

    model: str
    agreement: Annotated[
        Measure | None, doc("Share of reviewed decisions on which it chose what people settled on.")
    ]


class ReviewedTeachers(Shown, Struct, frozen=True, kw_only=True):
    """Teachers beside people who accepted or relabelled rows of the job's dataset."""

    reviewed_rows: int
    data: list[ReviewedTeacher]


class FinalizeJob(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which rows become a dataset: ``row_indices``, whose sides are picked, or sides by name."""

    row_indices: _Indices | None = None
    evaluation_fraction: Annotated[
        Fraction | None, doc("Share of the contexts of `row_indices` put aside; 0.2 when left out.")
    ] = None
    training_indices: _Indices | None = None
    evaluation_indices: _Indices | None = None
    max_price_usd: Annotated[
        Annotated[str, Meta(max_length=32)] | None, doc("Datasets cost nothing here.")
    ] = None
