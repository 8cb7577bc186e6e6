"""The input and output of a fine-tune: the files of its folder, and their shapes.

================= ==============================================================================
file              holds
================= ==============================================================================
task.json         ``FineTuneTask``: the training task, given
rows.jsonl        ``TaskRow``, one a line: training and held-out rows, given
vectors           vectors of contexts by the base: those that are stored, and then those read too
progress.jsonl    ``Progress``, one a line, appended as it happens
features/, …      the durable result of each phase; a program started again goes on from it
model/            the artifact, named by the SHA-256 of its manifest once it is stored
base.jsonl        ``BaseAnswer``, one a line: answers of a base model of another server, given
records.parquet   every labelled held-out decision as every group of models scored it
result.json       ``FineTuneResult``: written last, and whole or not at all
error.json        ``FineTuneFailure``: why it failed instead; the exit status is then 3
================= ==============================================================================

A parent process need not load the training: these are names and shapes alone.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from steelyard.evaluations.gate_wire import Gate, JudgedOn
from steelyard.wire.methods import Method
from steelyard.wire.origins import UNKNOWN
from steelyard.wire.training import CurvePoint, HeadsKind, Phase

#: Runs as ``python -m MODULE FOLDER``.
MODULE = "steelyard.trainer"
TASK, ROWS, PROGRESS = "task.json", "rows.jsonl", "progress.jsonl"
ANSWERS = "base.jsonl"
VECTORS = "vectors.safetensors"
RECORDS, RESULT, ERROR = "records.parquet", "result.json", "error.json"
#: The folder of the artifact.
MODEL = "model"
#: Exit status of a program that wrote ``error.json``.
FAILED = 3
#: Exit status of a program that was told to stop, or whose starter is gone.
STOPPED = 4
#: What the program's environment must have before it starts: OpenMP's threads must not spin where
#: several processes share the cores. See also ``environment_of``.
ENVIRONMENT = {"OMP_WAIT_POLICY": "PASSIVE"}

Side = Literal["training", "evaluation"]
Group = Literal["new", "earlier"]
#: Where the program is: the phases of a job, and the gate at the end of the scoring.
ProgramPhase = Phase | Literal["gate"]


class TaskBase(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The base model to tune, which the program loads itself."""

    name: str
    engine: str  # such as onnxruntime-int8; what is trained serves on it
    folder: str | None = None  # the shipped model when left out
    double: Literal["hashing"] | None = None
    key: str = ""  # of the double; names what the logits of a connected model come from
    is_connected: bool = False  # it was asked before: its answers are in the folder
    temperatures: dict[str, dict[str, float]] = {}  # of a connected model


class BaseAnswer(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A connected base model's answer to one decision."""

    key: str = field(name="asked")  # ``answers.key_of``
    logits: list[float] | None  # in outcome order; null where it gave no answer


class CardFacts(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The facts of the model card that the training does not need."""

    family: str | None
    dataset_id: str
    dataset_version: int
    base_licence: str = "Apache-2.0"  # in words


class FineTuneTask(
    Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True
):
    """The input of a fine-tune.

    Defaults are left out of the file, so that versions without a field read it where they can.

    Parameters
    ----------
    method
        Whether rows have targets (``sft``) or rewards.
    seed
        Of every draw. Equal tasks, rows and versions give equal artifacts.
    steps, learning_rate, lora_rank
        Of LoRA; without a rank heads train alone.
    heads
        Their features: all where that is best, words alone, words alone where that is as right
        (``cheapest``) or where they are sure (``ladder``), or a reader's evidence too where that is best.
    reader, parent
        Folders of the reader, for its evidence, and of the artifact to train from.
    parent_base
        Base model of a parent that is compared with and no more: of another base than ``base``, since its
        heads and its adapter read other vectors, or a first model of words alone.
    against
        The other side of the gate; ``parent`` needs one.
    needed
        Evaluation decisions without which the gate has too little to judge.
    judged_on
        Whether the gate asks for a gain on the new ones, or for no harm on all.
    judged_by
        Origins of held-out labels that the gate counts; all but clicks and models when left out.
    threads
        Threads of the scorer and of the fits; 0 takes every core.
    """

    job_id: str
    method: Method
    seed: Annotated[int, Meta(ge=0)]
    steps: Annotated[int, Meta(ge=1)]
    learning_rate: Annotated[float, Meta(gt=0)]
    lora_rank: Annotated[int, Meta(ge=0, le=16)] = 0
    heads: HeadsKind = "auto"
    reader: str | None = None
    base: TaskBase
    parent: str | None = None
    parent_base: TaskBase | None = None
    against: Literal["parent", "base"] = "base"
    needed: Annotated[int, Meta(ge=1)] = 20
    judged_on: JudgedOn = "new"
    judged_by: list[str] | None = None
    threads: Annotated[int, Meta(ge=0)] = 0
    card: CardFacts


def environment_of(threads: int) -> dict[str, str]:
    """Return the environment variables of a program for a number of threads.

    A parent process sets it; otherwise the program starts itself again with it.
    """
    return {**ENVIRONMENT, **({"OMP_NUM_THREADS": str(threads)} if threads else {})}


class TaskRow(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A row of the dataset, on one side.

    The rows of a side come in their order there. Decisions without a label are not trained or
    judged on.
    """

    row: Annotated[int, Meta(ge=0)]
    side: Side
    group: Group  # whether it came since the family last trained
    context: Any
    context_sha256: str  # names a context, which is on one side
    decisions: list[dict[str, Any]]  # as a decide request has them
    targets: dict[str, dict[str, float]] | None = None  # by decision and outcome
    rewards: dict[str, dict[str, float]] | None = None
    earlier_decisions: list[str] = []  # of a new evaluation row: ids of those that did not change
    is_seen: bool = False  # whether the parent was trained on its context
    by: list[str] = field(default_factory=lambda: [UNKNOWN])  # where its labels came from


class Progress(Struct, frozen=True, kw_only=True):
    """Where the program is."""

    phase: ProgramPhase
    step: int
    steps: int  # of the phase
    loss: float | None = None  # newest training loss
    learning_rate: float | None = None  # of the newest step of LoRA
    message: str = ""  # one line for a person


class RowCounts(Struct, frozen=True, kw_only=True):
    """Rows by side and group, and the labelled decisions of each side."""

    new_training: int
    earlier_training: int
    new_evaluation: int
    earlier_evaluation: int
    training_decisions: int
    evaluation_decisions: int


class FineTuneResult(Struct, frozen=True, kw_only=True):
    """The measures of a fine-tune that ended; the gate decides whether the model joins."""

    artifact_sha256: str  # of model/manifest.json
    gate: Gate
    sentences: list[str]  # the gate's reasons, for a person
    heldout: dict[str, float]  # n, and accuracy, loss, brier and ece, or expected_reward
    curve: list[CurvePoint]  # of LoRA's steps where there are some, else of the heads'
    groups: list[Literal["adapted", "base", "parent"]]  # in records.parquet
    rows: RowCounts
    report: dict[str, Any]  # what was tried for each decision, and what was chosen


class FineTuneFailure(Struct, frozen=True, kw_only=True):
    """Why a fine-tune failed: the code as on the wire, the problem and the remedy."""

    code: str
    message: str
