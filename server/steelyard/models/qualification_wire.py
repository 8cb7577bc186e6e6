"""Wire forms of qualifications: how far a judge agrees with people, and its identity then."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct, field

from steelyard.wire.measures import Measure
from steelyard.wire.origins import LabelledBy
from steelyard.wire.schemas import doc

#: Labels by people without which nothing qualifies.
MIN_LABELS = 50


class QualifyJudge(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The rows whose labels a judge is held to: the held-out ones of a dataset."""

    dataset_id: Annotated[str, Meta(min_length=1, max_length=64)]
    rows: Annotated[
        Annotated[int, Meta(ge=MIN_LABELS, le=2_000)], doc("Held-out rows that are asked at most.")
    ] = 200
    labelled_by: Annotated[
        Annotated[list[LabelledBy], Meta(min_length=1, max_length=6)],
        doc(
            "Origins of the labels that count, `person` and `expert` by default. People are to have labelled without having "
            "seen what this judge says; `unknown` counts rows that do not say by whom."
        ),
    ] = field(default_factory=lambda: ["person", "expert"])


class JudgeIdentity(Struct, frozen=True, kw_only=True):
    """The source of a judge's answers; another value of any field is another judge."""

    wire: str
    url: str = ""
    model: Annotated[str, doc("Its name at the other server.")] = ""
    file: str = ""
    file_sha256: Annotated[
        str, doc("Of a file's length, its first and its last megabyte; empty without one.")
    ] = ""
    settings: Annotated[dict[str, Any], doc("Of how it is asked, and its temperatures.")] = {}
    provider_model: Annotated[
        str, doc("The name that its server gave itself; empty where it gave none yet.")
    ] = ""


class Qualification(Struct, frozen=True, kw_only=True):
    """How a judge agreed with people on some rows, for ever; another one gets the next number."""

    id: str
    judge: str
    number: Annotated[int, doc("1 for the judge's first.")]
    created_at: float
    dataset_id: str
    dataset_version: int
    identity: JudgeIdentity
    wordings: Annotated[
        list[str],
        doc("SHA-256 of each decision's wording: kind, question, outcomes, rubric, guideline."),
    ]
    labelled_by: list[LabelledBy]
    contexts: Annotated[int, doc("Rows that were asked.")]
    failures: Annotated[int, doc("Of these, rows without an answer; they count nowhere.")]
    agreement: Annotated[
        Measure,
        doc(
            "How often a person says the same; where several said something else, the "
            "share of them."
        ),
    ]
    accuracy: Annotated[Measure, doc("How often it says what most people say.")]
    log_loss: Annotated[Measure, doc("Nats.")]
    floor: Annotated[float, doc("Agreement that was needed.")]
    passed: Annotated[bool, doc("Whether the agreement reaches the floor.")]
    kin: Annotated[
        list[str], doc("Connected models of the same file or model: they err alike.")
    ] = []
    voided_by: Annotated[
        list[str], doc("What of the judge is otherwise by now: `file`, `model`, `settings` …")
    ] = []


class QualificationList(Struct, frozen=True, kw_only=True):
    """A judge's qualifications, the newest first, and whether one holds."""

    data: list[Qualification]
    is_qualified: Annotated[
        bool, doc("Whether the newest passed, and the judge is as it was then.")
    ]
