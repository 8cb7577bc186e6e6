"""Families on the wire: a named line of models, its switch, its move and its fine-tunes.

In a request ``served`` and ``latest`` are guards with three meanings: left out, no guard; ``null``,
the caller saw no model; a text, the adapter id that the caller saw. Any other optional field may be
left out or be ``null``; both mean the same. Money is exact decimal text, times are Unix seconds.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from steelyard.evaluations.gate_wire import Gate, JudgedOn
from steelyard.wire.methods import Method
from steelyard.wire.origins import LabelledBy
from steelyard.wire.shown import Framed, Shown
from steelyard.wire.training import FirstKind, HeadsKind

OffReason = Literal["owner", "idle"]
#: Whether an engine holds a model's weights; one that failed cannot be loaded any more.
LoadState = Literal["loaded", "loading", "unloaded", "failed"]
WaitingFor = Literal["place", "warm_place", "warm_capacity", "engines"]
MoveReason = Literal["live_limit", "warm_limit", "warm_capacity"]
JobStatus = Literal["queued", "running", "cancelling", "succeeded", "failed", "cancelled"]
JobOutcome = Literal["joined", "gate_failed", "failed", "cancelled", "rolled_back"]
Charge = Literal["free", "reserved", "charged", "released"]
ContinueState = Literal[
    "fine_tuning_off",
    "dataset_deleted",
    "dataset_archived",
    "origin_gone",
    "queued",
    "training",
    "no_new_data",
    "not_enough_evaluation_data",
    "retry",
    "new_data",
]

#: A family's name; it may be no base model's.
FAMILY_NAME = r"^[a-z][a-z0-9-]{0,47}\Z"
MIN_STEPS, MAX_STEPS = 20, 2000
MAX_LORA_RANK = 16
#: The largest seed: it fits a signed 64-bit integer of any library.
MAX_SEED = 2**63 - 1
#: The most names one call may switch off or discard.
MAX_NAMES = 256

Reference = Annotated[str, Meta(min_length=1, max_length=128)]
Names = Annotated[list[Reference], Meta(max_length=MAX_NAMES)]
Guard = Annotated[
    str | None, Meta(description="Adapter id that the caller saw; `null` for none; left out, any.")
]
NextBase = Annotated[
    Reference | None,
    Meta(
        description="A base model that runs here, for the next model; the latest model's when left "
        "out. On another one it is trained on every row, and from that base model alone."
    ),
]
MaxPrice = Annotated[
    str | None, Meta(description="Refuse with `price_changed`, and hold nothing, when dearer.")
]


class Hyperparameters(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How to train; the server chooses fields left out, and the job reports them."""

    steps: Annotated[
        Annotated[int, Meta(ge=MIN_STEPS, le=MAX_STEPS)] | None,
        Meta(description="Two passes over the training rows when left out, within the bounds."),
    ] = None
    learning_rate: Annotated[float, Meta(gt=0, le=1)] | None = None
    lora_rank: Annotated[
        Annotated[int, Meta(ge=1, le=MAX_LORA_RANK)] | None,
        Meta(description="Adapts the encoder too; when left out, heads are trained alone."),
    ] = None
    heads: Annotated[
        HeadsKind | None,
        Meta(
            description="What heads read. `auto`, when left out: the base model's vectors and words, "
            "as is best. `words`: words alone, in a small part of the time. `cheapest`: both are "
            "trained, and words alone are taken where they are as right, as `words` of the gate says. "
            "`ladder`: words alone answer where they are sure and the text is like the training rows, "
            "from thresholds that held-out rows certify, and what `auto` trains answers the rest. "
            "`evidence`: as `auto`, and for yes/no of at most 2,000 rows also the evidence of the reader "
            "that ships, where cross-validation is better with it; `reader` of the gate then names it."
        ),
    ] = None
    first: Annotated[
        FirstKind | None,
        Meta(
            description="`words`: heads of words alone are trained first, and answer within seconds of the "
            "start. A further fine-tune, whose `follows` names this one, then trains what `heads` and "
            "`lora_rank` say on the same rows, for the one fee, and replaces them if the gate passes "
            "it. For a family's first model from a base model of this server."
        ),
    ] = None
    seed: Annotated[int, Meta(ge=0, le=MAX_SEED)] | None = None
    judged_by: Annotated[
        Annotated[list[LabelledBy], Meta(min_length=1, max_length=16)] | None,
        Meta(
            description="Origins of the held-out labels that the gate counts, as `by` of a row's "
            "metadata has them; all but `click` and `model` when left out."
        ),
    ] = None


class StartFamily(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A new family and its first fine-tune."""

    family: Annotated[
        str,
        Meta(description="A new name: a small letter, then small letters, digits and hyphens."),
    ]
    dataset_id: Annotated[str, Meta(min_length=1, max_length=64)]
    method: Annotated[
        Method | None,
        Meta(description="`sft` when left out; what the dataset's rows are labelled with."),
    ] = None
    hyperparameters: Hyperparameters | None = None
    from_: Annotated[
        Reference | None,
        Meta(description="A base model or `family@N`; the default base model when left out."),
    ] = field(default=None, name="from")
    dataset_version: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="The newest when left out.")
    ] = None
    max_price_usd: MaxPrice = None


class EstimateFamily(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A family that is not started: the price of its first fine-tune."""

    refused_fields: ClassVar[dict[str, str]] = {
        "max_price_usd": "An estimate holds no money; send the bound when starting"
    }

    family: str
    dataset_id: Annotated[str, Meta(min_length=1, max_length=64)]
    method: Method | None = None
    hyperparameters: Hyperparameters | None = None
    from_: Reference | None = field(default=None, name="from")
    dataset_version: Annotated[int, Meta(ge=1)] | None = None


class ContinueFamily(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The next fine-tune of a family, on the rows that its dataset gained."""

    hyperparameters: Hyperparameters | None = None
    latest: Guard | UnsetType = UNSET
    dataset_version: Annotated[int, Meta(ge=1)] | None = None
    base: NextBase = None
    max_price_usd: MaxPrice = None


class EstimateContinue(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A fine-tune that is not started: the price of continuing the family."""

    refused_fields: ClassVar[dict[str, str]] = {
        "max_price_usd": "An estimate holds no money; send the bound when continuing"
    }

    hyperparameters: Hyperparameters | None = None
    latest: Guard | UnsetType = UNSET
    dataset_version: Annotated[int, Meta(ge=1)] | None = None
    base: NextBase = None


class ContinueQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The query of a family's continuation."""

    draft: Annotated[
        str,
        Meta(
            max_length=64,
            description="A draft of the newest version: as if it were sealed as the next version.",
        ),
    ] = ""


class SwitchFamily(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Whether calls to a family's name are answered."""

    on: bool
    switch_off: Annotated[
        Names | None,
        Meta(description="Families and numbers to switch off in the same step, to free places."),
    ] = None
    served: Guard | UnsetType = UNSET


class KeepWarm(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Whether the model that a family serves stays loaded between calls."""

    enabled: bool
    max_price_usd: MaxPrice = None
    switch_off: Annotated[
        Names | None,
        Meta(description="Families and numbers whose keep warm stops in the same step."),
    ] = None
    served: Guard | UnsetType = UNSET


class Rollback(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Go back to an older model and discard the newer ones for good."""

    to: Annotated[Reference, Meta(description="An older model of the family, such as `router@2`.")]
    discard: Annotated[
        Names, Meta(description="Exactly the newer models that are not deleted or discarded.")
    ]
    served: Guard | UnsetType = UNSET


class BoundFamily(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The highest error rate of a family's answers, and its confidence; the rest abstain."""

    error: Annotated[float, Meta(gt=0, lt=1, description="Such as 0.02: two answers of a hundred.")]
    confidence: Annotated[
        float,
        Meta(ge=0.5, lt=1, description="How often a bound found on rows like these holds."),
    ] = 0.95
    served: Guard | UnsetType = UNSET


class FamilyNovelty(Struct, frozen=True, kw_only=True):
    """That a family abstains on texts unlike its training rows, whichever of its models answers."""

    false_alarms: float


class AbstainOnNovel(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How often a family may abstain on texts like the held-out ones, to do so on all others."""

    false_alarms: Annotated[
        float, Meta(gt=0, lt=1, description="Such as 0.05: five texts of a hundred.")
    ]
    served: Guard | UnsetType = UNSET


class DeleteFamily(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Guards of a deletion; may be empty."""

    dataset_id: Annotated[
        Annotated[str, Meta(min_length=1, max_length=64)] | None,
        Meta(description="The dataset that the caller saw the family grow on."),
    ] = None
    latest: Guard | UnsetType = UNSET


class SwitchModel(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Whether calls to a model's number are answered."""

    on: bool
    switch_off: Names | None = None
    adapter: Annotated[
        str | None, Meta(description="The adapter id that the caller saw behind the number.")
    ] = None


class KeepModelWarm(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Whether a model stays loaded between calls through its own switch."""

    enabled: bool
    max_price_usd: MaxPrice = None
    switch_off: Names | None = None
    adapter: str | None = None


class Window(Struct, frozen=True, kw_only=True):
    """The hour of keep warm that is held; the minutes used are charged when it ends."""

    started_at: float
    ends_at: float
    reserved_usd: str


class Move(Struct, frozen=True, kw_only=True):
    """The move to its latest model that a family waits to make."""

    to: Annotated[str, Meta(description="Such as `router@5`.")]
    waiting_for: WaitingFor
    reason: Annotated[
        MoveReason | None, Meta(description="The limit that holds it; null for `engines`.")
    ]


class Moved(Struct, frozen=True, kw_only=True):
    """When a family last moved by itself, and from which model."""

    at: float
    from_: Annotated[
        str | None, Meta(description="The model it served before; null when it served none.")
    ] = field(name="from")


class ModelVersion(Struct, frozen=True, kw_only=True, tag_field="status", tag="ready"):
    """A model of a family's line that is neither deleted nor discarded."""

    version: int
    ref: Annotated[str, Meta(description="Such as `router@3`.")]
    adapter: Annotated[str, Meta(description="Such as `ft-ftj_…`.")]
    state: LoadState
    on_at: Annotated[float | None, Meta(description="When its own switch went on.")]
    keep_warm: Annotated[bool, Meta(description="Kept warm on its own switch.")]
    keep_warm_window: Window | None
    keep_warm_stopped_at: Annotated[
        float | None, Meta(description="Stopped because the next hour could not be reserved.")
    ]
    used_at: float | None
    switches_off_at: float | None
    off_reason: OffReason | None
    off_at: float | None
    parent: Annotated[
        str | None,
        Meta(
            description="Adapter id of the model that it was trained from, or on another base model "
            "was compared with."
        ),
    ]
    created_at: float | None
    gate: Gate | None
    heldout: dict[str, float]

    @property
    def status(self) -> str:
        """Its state: ``ready``, ``discarded`` or ``deleted``."""
        return str(type(self).__struct_config__.tag)


class DiscardedModelVersion(ModelVersion, frozen=True, kw_only=True, tag="discarded"):
    """A model that a rollback discarded."""

    discarded_at: float


class DeletedModelVersion(Struct, frozen=True, kw_only=True, tag_field="status", tag="deleted"):
    """A model that was deleted: where it stood in the line."""

    version: int
    ref: str
    adapter: str
    parent: str | None
    deleted_at: float

    @property
    def status(self) -> str:
        """Its state: ``ready``, ``discarded`` or ``deleted``."""
        return str(type(self).__struct_config__.tag)


AnyModelVersion = ModelVersion | DiscardedModelVersion | DeletedModelVersion


class ContinueRows(Struct, frozen=True, kw_only=True):
    """The rows that the next fine-tune would take."""

    new: Annotated[int, Meta(description="Training rows added or corrected since it last trained.")]
    earlier: Annotated[int, Meta(description="Earlier training rows sampled to go with them.")]
    evaluation: Annotated[int, Meta(description="Evaluation rows that the gate would measure on.")]


class Continue(Struct, frozen=True, kw_only=True):
    """The effect of continuing a family now."""

    state: ContinueState
    version: Annotated[int, Meta(description="The newest version of the dataset.")]
    added_at: float | None
    added_from: str | None
    evaluation_decisions: Annotated[
        int | None,
        Meta(
            description="Decisions that the gate could judge by, new ones or all as `judged_on` "
            "says; null while a fine-tune is queued or trains, when refused whatever the data, and "
            "in lists."
        ),
    ]
    needed: Annotated[int, Meta(description="How many of those the gate needs.")]
    rows: ContinueRows | None
    judged_on: Annotated[
        JudgedOn | None,
        Meta(
            description="`new`: the gate asks for a gain on new and corrected decisions. `all`: more "
            "rows were corrected than added, with too few such decisions, so all decisions by their "
            "present labels must not become worse. Null where `evaluation_decisions` is."
        ),
    ] = None
    reasons: Annotated[
        list[str], Meta(description="Which way the gate takes, and what is missing, in sentences.")
    ] = []
    price_usd: Annotated[
        str | None, Meta(description="`0` when it can start and is free; otherwise estimate it.")
    ]


class FamilyBound(Struct, frozen=True, kw_only=True):
    """The top probability from which a family's answers are certified, and the rows behind it."""

    error: float
    confidence: float
    threshold: float
    measured_error: Annotated[float, Meta(description="Of the held-out answers from there on.")]
    answered: Annotated[float, Meta(description="Share of the held-out decisions from there on.")]
    decisions: Annotated[int, Meta(description="Held-out decisions it rests on.")]
    contexts: Annotated[int, Meta(description="Contexts of those that are answered.")]
    model: Annotated[
        str,
        Meta(description="The number it holds for; while the family serves another, all abstain."),
    ]
    dataset_id: str
    dataset_version: int
    found_at: float


Follows = Annotated[
    str | UnsetType,
    Meta(
        description="The fine-tune before it, started with `first`, whose model answers meanwhile; the "
        "fee of both is this one's."
    ),
]


class FamilyJob(Struct, frozen=True, kw_only=True):
    """A fine-tune of a family, and how it ended for the family."""

    id: str
    status: JobStatus
    outcome: JobOutcome | None
    reason: Annotated[str | None, Meta(description="Why it made no model, in one line.")]
    dataset_version: int
    output_model: str | None
    created_at: float
    price_usd: str
    charge: Charge
    follows: Follows = UNSET


class Family(Framed, Struct, frozen=True, kw_only=True):
    """A family: its switch, the model it serves, its line of models and its keep warm.

    ``jobs`` stands in the read of one family alone; ``continue`` is left out by switch, keep warm
    and rollback.
    """

    id: str
    object: Literal["family"] = "family"
    switched_on: bool
    used_at: float
    switches_off_at: float | None
    off_reason: OffReason | None
    off_at: float | None
    dataset_id: str
    origin: Annotated[str, Meta(description="Where it started: a base model or `family@N`.")]
    created_at: float
    served: ModelVersion | None
    latest: Annotated[
        ModelVersion | None, Meta(description="The newest model that is not deleted or discarded.")
    ]
    models: Annotated[list[AnyModelVersion], Meta(description="Oldest first.")]
    keep_warm: bool
    keep_warm_window: Window | None
    keep_warm_stopped_at: float | None
    move: Move | None
    moved: Moved | None
    bound: FamilyBound | UnsetType = UNSET
    novelty: FamilyNovelty | UnsetType = UNSET
    continue_: Continue | UnsetType | None = field(default=UNSET, name="continue")
    jobs: Annotated[list[FamilyJob] | UnsetType, Meta(description="Newest first.")] = UNSET


class FamilyList(Shown, Struct, frozen=True, kw_only=True):
    """Every family of the account, by name."""

    data: list[Family]


class DeletedFamily(Struct, frozen=True, kw_only=True):
    """A family that is gone for good."""

    id: str
    object: Literal["family"] = "family"
    deleted: Literal[True] = True


class DeletedModel(Struct, frozen=True, kw_only=True):
    """A model that is gone for good."""

    id: str
    deleted: Literal[True] = True


class Answering(Struct, frozen=True, kw_only=True):
    """A model that answers, as the details of ``live_limit`` list it."""

    model: str
    on: Annotated[bool, Meta(description="Through its own switch.")]
    serves: Annotated[list[str], Meta(description="Families that serve it.")]
    used_at: float | None


class KeptWarm(Struct, frozen=True, kw_only=True):
    """A model kept warm, as the details of ``warm_limit`` list it."""

    model: str
    keep_warm: Annotated[bool, Meta(description="Through its own switch.")]
    families: Annotated[list[str], Meta(description="Families that keep it warm.")]
    used_at: float | None
