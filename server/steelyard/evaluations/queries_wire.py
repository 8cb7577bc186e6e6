"""Wire forms of requests and queries on evaluations."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from steelyard.datasets.wire import Version
from steelyard.decisions.wire import MAX_ACTIONS, Name
from steelyard.evaluations.frontier_wire import FrontierMeasure
from steelyard.evaluations.wire import DEFAULT_RECORDS, MAX_RECORDS, EvaluationStatus
from steelyard.wire.queries import ExportedAs, OneOf, PageQuery
from steelyard.wire.schemas import doc

RecordOrder = Literal["row", "loss", "surest", "least_sure"]

#: The most models one call may evaluate.
MAX_MODELS = 32
#: The most contexts whose scored decisions one call may ask for.
MAX_RECORD_CONTEXTS = 50


class CreateEvaluation(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which models to score on a dataset's evaluation rows."""

    dataset_id: Annotated[str, Meta(min_length=1, max_length=64, description="Id of the dataset.")]
    models: Annotated[
        list[Name],
        Meta(
            min_length=1,
            max_length=MAX_MODELS,
            description="Names as a call names them: a family, a model's number or a base model.",
        ),
    ]


class EvaluationsQuery(PageQuery, frozen=True, kw_only=True):
    """Which of a dataset's evaluations, and which page of them."""

    dataset_id: Annotated[str, Meta(min_length=1, max_length=64, description="Id of the dataset.")]
    status: OneOf[EvaluationStatus] = []


class RecordFilter(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The scored decisions of an evaluation to return, and their order."""

    decision: Annotated[str | None, doc("Id of the one decision; all by default.")] = None
    wrong: Annotated[
        bool, doc("Only those whose top outcome is not right, or with rewards not the best.")
    ] = False
    target: Annotated[
        str | None, doc("Only those whose largest target, or reward, this outcome has.")
    ] = None
    top: Annotated[str | None, doc("Only those whose top outcome this is.")] = None
    p_from: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        doc("Only those whose top probability is above this."),
    ] = None
    p_to: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        doc("Only those whose top probability is not above this."),
    ] = None
    slice_by: Annotated[str | None, doc("The property of a table of slices, such as `kind`.")] = (
        None
    )
    slice: Annotated[str | None, doc("With `slice_by`: only those of the slice of this value.")] = (
        None
    )
    context_sha256: Annotated[
        list[str], doc("Only those of these contexts, at most 50; repeated.")
    ] = []
    order: Annotated[
        RecordOrder,
        doc(
            "`row`: as the dataset has them. `loss`: the worst first; with rewards, by "
            "the scaled reward. `surest`, `least_sure`: by the top probability."
        ),
    ] = "row"


class RecordsQuery(RecordFilter, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which scored decisions of an evaluation, and which page of them."""

    context: Annotated[bool, doc("Whether records come with their contexts.")] = False
    offset: Annotated[int, Meta(ge=0, description="Records before the page.")] = 0
    limit: Annotated[Annotated[int, Meta(ge=1, le=MAX_RECORDS)], doc("Records of a page.")] = (
        DEFAULT_RECORDS
    )


class ExportRecordsQuery(RecordFilter, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The scored decisions of an evaluation to export, and the format."""

    format: ExportedAs = "parquet"


class ComparisonQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which two evaluations to compare."""

    before: Annotated[str, Meta(min_length=1, max_length=64, description="Id of an evaluation.")]
    after: Annotated[str, Meta(min_length=1, max_length=64, description="Id of another.")]


#: The most that an action may cost or save: sums over all records stay numbers.
MAX_COST = 1e100
_Cost = Annotated[float, Meta(ge=0, le=MAX_COST)]
_Costs = Annotated[dict[str, dict[str, float]], Meta(min_length=1, max_length=MAX_ACTIONS)]


class PolicyTrial(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A policy to try on the scored decisions of an evaluation."""

    decision_id: Annotated[Name, doc("The decision it is for.")]
    action_costs: Annotated[
        _Costs | None, doc("Action to outcome to cost; without it the action is the top outcome.")
    ] = None
    abstain_below: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        doc("Abstain when the largest probability is lower."),
    ] = None


class CostTrial(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Costs to draw a curve of: two for a binary decision, or a matrix for any."""

    decision_id: Annotated[Name, doc("The decision they are for.")]
    false_positive: Annotated[_Cost | None, doc("What a wrong `yes` costs.")] = None
    false_negative: Annotated[_Cost | None, doc("What a wrong `no` costs.")] = None
    action_costs: Annotated[_Costs | None, doc("Action to outcome to cost.")] = None
    abstain_cost: Annotated[
        Annotated[float, Meta(ge=-MAX_COST, le=MAX_COST)] | None,
        doc("With a matrix: what abstaining costs; 0 by default."),
    ] = None


class FrontierQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The models to compare, and the measure."""

    dataset: Annotated[str, Meta(min_length=1, max_length=64, description="Id of the dataset.")]
    measure: Annotated[FrontierMeasure, doc("`expected_cost` needs `decision` and costs.")] = (
        "accuracy"
    )
    version: Annotated[
        Version | None, doc("On whose evaluation rows; the newest that was evaluated by default.")
    ] = None
    decision: Annotated[
        Name | None, doc("With `expected_cost`: the decision that the costs are for.")
    ] = None
    false_positive: Annotated[
        _Cost | None, doc("Of a binary decision: what a wrong `yes` costs.")
    ] = None
    false_negative: Annotated[
        _Cost | None, doc("Of a binary decision: what a wrong `no` costs.")
    ] = None
    # No longer than the head of a request may be.
    action_costs: Annotated[
        str | None, doc("Instead of those two: JSON of action to outcome to cost.")
    ] = None
