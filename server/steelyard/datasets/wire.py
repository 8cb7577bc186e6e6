"""Datasets on the wire: rows as callers send them, datasets and versions as the server tells them.

Here: the shapes, from which the OpenAPI document is made. Not here: rules that look at two fields
at once (``steelyard.datasets.rows``).

An optional field of a request may be left out or be ``null``; both mean the same.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from steelyard.decisions.policy_wire import AbstainInput
from steelyard.decisions.wire import (
    ContextInput,
    Guideline,
    Images,
    Kind,
    MetadataValues,
    Name,
    QuestionInput,
    Rubric,
    Temperature,
)
from steelyard.wire.limits import MAX_DECISIONS
from steelyard.wire.methods import Method
from steelyard.wire.queries import (
    MAX_NUMBER,
    CursorPage,
    ExportedAs,
    PageQuery,
)
from steelyard.wire.schemas import SINGLE_LINE, doc
from steelyard.wire.shown import Framed, Shown

#: The two sides of a dataset; a context is on one of them for ever.
Side = Literal["training", "evaluation"]
SIDES: tuple[Side, ...] = ("training", "evaluation")
Partition = Literal["all", "training", "evaluation"]
AddedVia = Literal["api", "jsonl", "csv", "labeling"]
InputFormat = Literal["json", "jsonl", "multipart"]
#: Why prompt tuning cannot tune a decision; the code that a job would be refused with.
ReadinessReason = Literal[
    "conflicting_decision",
    "structured_wording",
    "too_few_rows",
    "too_many_rows",
    "too_few_per_outcome",
    "unbalanced_split",
]

#: Bounds of the share of contexts put aside for evaluation, and what it is when left out.
MIN_FRACTION, MAX_FRACTION, DEFAULT_FRACTION = 0.1, 1.0, 0.2
#: Bounds of a page of rows, and its length when left out.
MAX_PAGE_ROWS, DEFAULT_PAGE_ROWS = 500, 100
MAX_DATASET_NAME = 128

DatasetName = Annotated[str, Meta(min_length=1, max_length=MAX_DATASET_NAME, pattern=SINGLE_LINE)]
Fraction = Annotated[float, Meta(ge=MIN_FRACTION, le=MAX_FRACTION)]


class RowDecisionInput(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One question of a row. How to act on its answer may be said, and nothing is learned from it."""

    refused_fields: ClassVar[dict[str, str]] = {
        "policy": "A policy belongs to a decide request, not to a row of a dataset",
        "targets": "Targets belong to the row, beside its decisions",
        "rewards": "Rewards belong to the row, beside its decisions",
    }

    id: Annotated[Name, doc("Unique in the row; not blank.")]
    question: QuestionInput
    kind: Kind | None = None
    outcomes: Annotated[Any, doc("In the forms that a decide request takes for the kind.")] = None
    rubric: Rubric = None
    guideline: Guideline = None
    weights: dict[str, Annotated[float, Meta(gt=0)]] | None = None
    costs: dict[str, float | dict[str, float]] | None = None
    abstain: AbstainInput | None = None


RowDecisions = Annotated[list[RowDecisionInput], Meta(min_length=1, max_length=MAX_DECISIONS)]


class RowInput(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One row: a decide request and its right answers.

    Exactly one of ``targets`` and ``rewards`` is given. From ``model`` on, fields are kept for the
    download and otherwise ignored.
    """

    context: ContextInput
    decisions: RowDecisions
    images: Images | None = None
    targets: Annotated[
        dict[str, Any] | None,
        doc(
            "Decision id to the right outcome's name, or to an object from outcome to "
            "probability; probabilities sum to 1."
        ),
    ] = None
    rewards: Annotated[
        dict[str, Any] | None,
        doc("Decision id to an object from every outcome to a finite number."),
    ] = None
    model: Name | None = None
    fallback: Literal["auto", "none"] | None = None
    temperature: Temperature | None = None
    independent: bool | None = None
    store: bool | None = None
    metadata: MetadataValues | None = None


class CreateDataset(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A new dataset: ``examples``, whose sides the server picks, or the sides by name."""

    name: Annotated[DatasetName, doc("Not blank.")]
    examples: Annotated[
        list[RowInput] | None, doc("Rows whose sides are picked; not with a side.")
    ] = None
    training: Annotated[list[RowInput] | None, doc("Rows for training.")] = None
    evaluation: Annotated[list[RowInput] | None, doc("Rows for evaluation.")] = None
    evaluation_fraction: Annotated[
        Fraction | None, doc("Share of the contexts of `examples` put aside; 0.2 when left out.")
    ] = None
    max_price_usd: Annotated[
        str | None, doc("Refuse with `price_changed` when a day of storage is dearer.")
    ] = None


class AddRows(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Rows for the next version of a dataset."""

    refused_fields: ClassVar[dict[str, str]] = {
        "name": "Adding rows does not rename a dataset; send PATCH for that"
    }

    examples: list[RowInput] | None = None
    training: list[RowInput] | None = None
    evaluation: list[RowInput] | None = None
    evaluation_fraction: Annotated[
        Fraction | None,
        doc("Share of the new contexts of `examples` put aside; 0.2 when left out."),
    ] = None
    max_price_usd: str | None = None
    family: Annotated[
        Annotated[str, Meta(min_length=1, max_length=64)] | None,
        doc("The family from whose page the rows come; it grows on this dataset."),
    ] = None


class RenameDataset(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A dataset's new name; nothing else changes."""

    name: DatasetName


class ArchiveDataset(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Put a dataset into the archive; the body is empty."""


class RestoreDataset(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Take a dataset out of the archive."""

    max_price_usd: str | None = None


class DeletedDataset(Struct, frozen=True, kw_only=True):
    """A dataset that is gone for good."""

    id: str
    deleted: Literal[True] = True


class Split(Struct, frozen=True, kw_only=True):
    """How many rows and contexts each side has."""

    training: int = 0
    evaluation: int = 0
    training_contexts: int = 0
    evaluation_contexts: int = 0


class InputReceipt(Struct, frozen=True, kw_only=True):
    """A receipt of an upload: its form, the SHA-256 of its bytes, and their number."""

    format: InputFormat
    sha256: str
    bytes: int


class StorageWindow(Struct, frozen=True, kw_only=True):
    """The day of storage that is held; times are Unix seconds."""

    started_at: float
    ends_at: float
    reserved_usd: str


class LabelingLineage(Struct, frozen=True, kw_only=True):
    """The labeling job that made a dataset, and the answers it chose."""

    job_id: str
    source_id: str
    source_sha256: str
    source_input_sha256: str
    spec_sha256: str
    prompt_version: str
    teacher_models: list[str]
    row_indices: list[int]
    selection_sha256: str
    target_method: Literal["mean_one_hot_teacher_votes", "mean_teacher_probabilities"]


class DecisionReadiness(Struct, frozen=True, kw_only=True):
    """Whether prompt tuning can tune a decision of the training rows."""

    decision: Annotated[Any, doc("As the rows word it most often.")]
    outcomes: Annotated[list[str], doc("Names in order.")]
    rows: Annotated[int, doc("Training rows that ask it.")]
    labels: Annotated[dict[str, int], doc("Outcome to the training rows that expect it.")]
    reason: Annotated[ReadinessReason | None, doc("Null when it can be tuned.")]


class PromptTuningReadiness(Struct, frozen=True, kw_only=True):
    """The decisions that prompt tuning can tune: tunable ones first, then the most frequent."""

    decisions: list[DecisionReadiness]
    unlisted: Annotated[int, doc("Decisions that did not fit in the list.")]


class DatasetWarning(Struct, frozen=True, kw_only=True):
    """A warning about the rows of a version, which are stored all the same."""

    code: Annotated[str, doc("`several_labels` or `near_copies`.")]
    message: Annotated[str, doc("What was found, and what to do.")]


class Dataset(Shown, Struct, frozen=True, kw_only=True):
    """A dataset; counts and split are those of its latest version."""

    id: str
    name: str
    created_at: float
    sha256: str
    version: int
    rows: int
    contexts: int
    duplicates_removed: int
    method: Method
    evaluation_only: bool
    evaluation_fraction: float
    archived_at: float | None
    used_at: float | None
    split: Split
    prompt_tuning: PromptTuningReadiness | UnsetType = UNSET
    input: InputReceipt | UnsetType = UNSET
    labeling: LabelingLineage | UnsetType = UNSET
    storage_window: StorageWindow | UnsetType | None = UNSET
    labels_to_check: int | UnsetType = UNSET
    warnings: Annotated[
        list[DatasetWarning] | UnsetType,
        doc("About the rows of the latest version; left out when there are none."),
    ] = UNSET


class DatasetCheck(Struct, frozen=True, kw_only=True):
    """The rows a request would make, and their problems; nothing is stored."""

    rows: Annotated[int, doc("Rows without anything wrong.")]
    lines: Annotated[int, doc("Rows looked at.")]
    method: Annotated[Method | None, doc("Null when no row was valid.")]
    problems: Annotated[int, doc("How many problems were found.")]
    code: Annotated[str | None, doc("What an upload would be refused with; null when nothing.")]
    message: str | None
    details: Annotated[list[dict[str, Any]], doc("The first hundred problems, as in an error.")]


class DatasetPage(CursorPage[Dataset], Shown, frozen=True):
    """Datasets, most recently used first."""


class DatasetVersion(Struct, frozen=True, kw_only=True):
    """A dataset as it stood after one addition; it never changes."""

    version: int
    created_at: float
    sha256: str
    rows: int
    added: int
    contexts: int
    split: Split
    added_via: AddedVia
    added_from: str | None


class DatasetVersions(Struct, frozen=True, kw_only=True):
    """Every version, newest first."""

    data: list[DatasetVersion]


class Example(Struct, frozen=True, kw_only=True):
    """A stored row, exactly as training reads it, with the fields sent beside it."""

    context: Any
    decisions: list[Any]
    images: list[Any] | UnsetType = UNSET
    targets: dict[str, dict[str, float]] | UnsetType = UNSET
    rewards: dict[str, dict[str, float]] | UnsetType = UNSET
    model: str | UnsetType | None = UNSET
    fallback: str | UnsetType | None = UNSET
    temperature: float | UnsetType | None = UNSET
    independent: bool | UnsetType | None = UNSET
    store: bool | UnsetType | None = UNSET
    metadata: dict[str, Any] | UnsetType | None = UNSET


class RowPage(Framed, Struct, frozen=True, kw_only=True):
    """A page of rows; ``total`` counts the partition at the version."""

    data: list[Example]
    total: int
    offset: int
    limit: int
    has_more: bool
    version: int


class LabelToCheck(Struct, frozen=True, kw_only=True):
    """A label that prompt tuning doubted."""

    row: Annotated[str, doc("`r65` is the row of index 65, from 0.")]
    line: Annotated[int, doc("Its line in the training download, from 1.")]
    decision: str
    reason: str
    jobs: list[str]
    flagged_at: float
    context: Any
    targets: dict[str, float] | None


class LabelsToCheck(Struct, frozen=True, kw_only=True):
    """Every doubted label that was not dismissed."""

    data: list[LabelToCheck]


Version = Annotated[int, Meta(ge=1, le=MAX_NUMBER)]
Offset = Annotated[int, Meta(ge=0, le=MAX_NUMBER)]
RowsLimit = Annotated[int, Meta(ge=1, le=MAX_PAGE_ROWS)]
_OF_VERSION = doc("A version; the latest by default.")
_OF_PARTITION = doc("One side, or all rows.")


class CreateQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The fields of a new dataset whose body is rows alone."""

    name: str | None = None
    evaluation_fraction: Fraction | None = None
    max_price_usd: str | None = None


class AddRowsQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The fields of added rows whose body is rows alone."""

    evaluation_fraction: Fraction | None = None
    max_price_usd: str | None = None
    family: str | None = None


class DatasetsQuery(PageQuery, frozen=True, kw_only=True):
    """Which page of the account's datasets."""

    archived: Annotated[bool, doc("Archived datasets instead of the others.")] = False


class VersionQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which rows of a dataset."""

    partition: Annotated[Partition, _OF_PARTITION] = "all"
    version: Annotated[Version | None, _OF_VERSION] = None


class RowsQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which page of a dataset's rows."""

    offset: Annotated[Offset, doc("Rows before the page.")] = 0
    limit: Annotated[RowsLimit, doc("Rows of the page.")] = DEFAULT_PAGE_ROWS
    partition: Annotated[Partition, _OF_PARTITION] = "all"
    version: Annotated[Version | None, _OF_VERSION] = None


class ExportQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The rows of a dataset to export, and the format."""

    format: ExportedAs = "parquet"
    partition: Annotated[Partition, _OF_PARTITION] = "all"
    version: Annotated[Version | None, _OF_VERSION] = None


class DiffQuery(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename={"from_": "from"}
):
    """Which two versions."""

    from_: Annotated[Version | None, doc("The older one; the one before `to` by default.")] = None
    to: Annotated[Version | None, doc("The newer one; the latest by default.")] = None
