"""Wire forms of judges and connected models, and of setting one up."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from steelyard.evaluations.wire import Change
from steelyard.wire.limits import MAX_THOUGHT_TOKENS, THOUGHT_TOKENS
from steelyard.wire.measures import Measure
from steelyard.wire.schemas import doc

TaskKind = Literal["download", "check", "calibrate", "fit", "qualify", "backup"]
TaskStatus = Literal["running", "succeeded", "failed"]


class SetupTask(Struct, frozen=True, kw_only=True):
    """The last thing that was started for a judge or a route, at any server of this state."""

    kind: TaskKind
    status: TaskStatus
    done: Annotated[
        int,
        doc(
            "Bytes of a download, files of a backup, rows of a calibration, a qualification or a "
            "fit."
        ),
    ] = 0
    total: Annotated[int, doc("Of these; 0 while that is not known.")] = 0
    error: Annotated[str | None, doc("Why it failed.")] = None


class JudgeCheck(Struct, frozen=True, kw_only=True):
    """How a model answered a fixed set of questions; shares are 0 to 1."""

    asked: int
    answered: int
    p50_ms: float | None
    flips_when_reordered: Annotated[float | None, doc("0 is right.")]
    flips_when_negated: Annotated[float | None, doc("1 is right.")]
    share_of_yes: Annotated[float | None, doc("0.5 is right.")]
    share_on_outcomes: Annotated[
        float | None,
        doc(
            "Mean probability of the next token on the labels of the outcomes, 1 is right; "
            "null where the model is not asked for tokens. Answers below 0.1 are refused."
        ),
    ] = None
    share_thought: Annotated[
        float | None, doc("How often it thought first; null of models that do not.")
    ] = None


class JudgeThinking(Struct, frozen=True, kw_only=True):
    """When a judge writes before it answers, and how much."""

    below: Annotated[float, doc("Top probability of its first answer below which it writes.")]
    tokens: Annotated[int, doc("Most tokens that it writes on a decision.")]


class ThinkingEffect(Struct, frozen=True, kw_only=True):
    """Held-out decisions as a judge answered them first, and after it thought where it was not sure."""

    thought: Annotated[Measure, doc("How often it thought.")]
    tokens: Annotated[float | None, doc("Mean tokens of a thought; null where there was none.")]
    right: Annotated[Change, doc("Share whose top outcome is right.")]
    log_loss: Annotated[
        Change, doc("In nats, each side under temperatures fitted on its own answers.")
    ]
    cpu_ms: Annotated[
        Change | None, doc("Processor time of a decision; null where the system does not say.")
    ]


class JudgeCalibration(Struct, frozen=True, kw_only=True):
    """The effect of a calibration on held-out rows, and whether it is in use."""

    dataset_id: str
    version: int
    fitted_on: Annotated[int, doc("Decisions of training rows.")]
    held_out: Annotated[int, doc("Decisions of evaluation rows, which judged it.")]
    log_loss_before: float
    log_loss_after: float
    in_use: Annotated[bool, doc("False where it did not lower the loss.")]
    thinking: Annotated[
        ThinkingEffect | None, doc("Of a judge that may think: gain and cost of it.")
    ] = None


class Judge(Struct, frozen=True, kw_only=True):
    """A reader or a language model of the catalogue, a file of this server, or a connected model."""

    name: str
    kind: Annotated[
        Literal["judge", "reader"], doc("A `reader` is an encoder that runs in the server itself.")
    ] = "judge"
    repository: Annotated[str | None, doc("On the hub; null outside the catalogue.")]
    licence: str | None
    bytes: Annotated[int | None, doc("Null where the hub says it at the download.")]
    context_tokens: int | None
    measured: Annotated[
        str | None, doc("How good we found it; null where it was not measured by us.")
    ]
    recommended: Annotated[
        str | None, doc("`small`, `good` or `best`: of judges the first to try; of readers `good`.")
    ] = None
    downloaded: bool
    connected: bool
    wire: Annotated[
        str | None,
        doc(
            "How a connected model is asked: `gguf`, `hub` and `entailment` in this server, "
            "others elsewhere."
        ),
    ] = None
    calibrated: bool
    think: Annotated[JudgeThinking | None, doc("Null where it answers at once.")] = None
    routes: Annotated[list[str], doc("Routes that ask it.")]
    problem: Annotated[
        str | None, doc("Why a downloaded file could not run here now, and what to do.")
    ] = None
    task: SetupTask | None = None
    check: JudgeCheck | None = None
    calibration: JudgeCalibration | None = None


class JudgeList(Struct, frozen=True, kw_only=True):
    """The readers and judges of the catalogue, and the models that are connected to this server."""

    data: list[Judge]
    runs_here: Annotated[bool, doc("Whether the extra `judge`, which runs them, is installed.")]
    folder: Annotated[
        str,
        doc(
            "Folder of this server: each GGUF file in it, and each reader's folder, is listed "
            "as `downloaded`, under its name."
        ),
    ] = ""


class CalibrateJudge(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The dataset that a connected model is calibrated on."""

    dataset_id: Annotated[str, Meta(min_length=1, max_length=64)]
    rows: Annotated[
        Annotated[int, Meta(ge=20, le=2_000)], doc("Rows of each side that are asked at most.")
    ] = 200


class ThinkJudge(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """When a judge is to think. Another value is another judge: its calibration ends."""

    below: Annotated[
        Annotated[float, Meta(gt=0, lt=1)] | None,
        doc(
            "Top probability of its first answer below which it writes before it answers again; "
            "null, or left out: it answers at once."
        ),
    ] = None
    tokens: Annotated[
        Annotated[int, Meta(ge=1, le=MAX_THOUGHT_TOKENS)],
        doc("Most tokens that it writes on a decision."),
    ] = THOUGHT_TOKENS


class RouteJudge(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The route in which the shipped model decides where it is sure, and another model the rest."""

    route: Annotated[
        Annotated[str, Meta(min_length=1, max_length=128)],
        doc("Its name; a route of that name is replaced."),
    ] = "auto"
