"""Wire forms of judges and connected models, and of setting one up."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from steelyard.evaluations.wire import Change
from steelyard.wire.limits import MAX_THOUGHT_TOKENS, THOUGHT_TOKENS
from steelyard.wire.measures import Measure

TaskKind = Literal["download", "check", "calibrate", "fit", "qualify", "backup"]
TaskStatus = Literal["running", "succeeded", "failed"]


class SetupTask(Struct, frozen=True, kw_only=True):
    """The last thing that was started for a judge or a route, at any server of this state."""

    kind: TaskKind
    status: TaskStatus
    done: Annotated[
        int,
        Meta(
            description="Bytes of a download, files of a backup, rows of a calibration, a qualification or a "
            "fit."
        ),
    ] = 0
    total: Annotated[int, Meta(description="Of these; 0 while that is not known.")] = 0
    error: Annotated[str | None, Meta(description="Why it failed.")] = None


class JudgeCheck(Struct, frozen=True, kw_only=True):
    """How a model answered a fixed set of questions; shares are 0 to 1."""

    asked: int
    answered: int
    p50_ms: float | None
    flips_when_reordered: Annotated[float | None, Meta(description="0 is right.")]
    flips_when_negated: Annotated[float | None, Meta(description="1 is right.")]
    share_of_yes: Annotated[float | None, Meta(description="0.5 is right.")]
    share_on_outcomes: Annotated[
        float | None,
        Meta(
            description="Mean probability of the next token on the labels of the outcomes, 1 is right; "
            "null where the model is not asked for tokens. Answers below 0.1 are refused."
        ),
    ] = None
    share_thought: Annotated[
        float | None,
        Meta(description="How often it thought first; null of models that do not."),
    ] = None


class JudgeThinking(Struct, frozen=True, kw_only=True):
    """When a judge writes before it answers, and how much."""

    below: Annotated[
        float, Meta(description="Top probability of its first answer below which it writes.")
    ]
    tokens: Annotated[int, Meta(description="Most tokens that it writes on a decision.")]


class ThinkingEffect(Struct, frozen=True, kw_only=True):
    """Held-out decisions as a judge answered them first, and after it thought where it was not sure."""

    thought: Annotated[Measure, Meta(description="How often it thought.")]
    tokens: Annotated[
        float | None, Meta(description="Mean tokens of a thought; null where there was none.")
    ]
    right: Annotated[Change, Meta(description="Share whose top outcome is right.")]
    log_loss: Annotated[
        Change, Meta(description="In nats, each side under temperatures fitted on its own answers.")
    ]
    cpu_ms: Annotated[
        Change | None,
        Meta(description="Processor time of a decision; null where the system does not say."),
    ]


class JudgeCalibration(Struct, frozen=True, kw_only=True):
    """The effect of a calibration on held-out rows, and whether it is in use."""

    dataset_id: str
    version: int
    fitted_on: Annotated[int, Meta(description="Decisions of training rows.")]
    held_out: Annotated[int, Meta(description="Decisions of evaluation rows, which judged it.")]
    log_loss_before: float
    log_loss_after: float
    in_use: Annotated[bool, Meta(description="False where it did not lower the loss.")]
    thinking: Annotated[
        ThinkingEffect | None, Meta(description="Of a judge that may think: gain and cost of it.")
    ] = None


class Judge(Struct, frozen=True, kw_only=True):
    """A reader or a language model of the catalogue, a file of this server, or a connected model."""

    name: str
    kind: Annotated[
        Literal["judge", "reader"],
        Meta(description="A `reader` is an encoder that runs in the server itself."),
    ] = "judge"
    repository: Annotated[str | None, Meta(description="On the hub; null outside the catalogue.")]
    licence: str | None
    bytes: Annotated[int | None, Meta(description="Null where the hub says it at the download.")]
    context_tokens: int | None
    measured: Annotated[
        str | None, Meta(description="How good we found it; null where it was not measured by us.")
    ]
    recommended: Annotated[
        str | None,
        Meta(
            description="`small`, `good` or `best`: of judges the first to try; of readers `good`."
        ),
    ] = None
    downloaded: bool
    connected: bool
    wire: Annotated[
        str | None,
        Meta(
            description="How a connected model is asked: `gguf`, `hub` and `entailment` in this server, "
            "others elsewhere."
        ),
    ] = None
    calibrated: bool
    think: Annotated[JudgeThinking | None, Meta(description="Null where it answers at once.")] = (
        None
    )
    routes: Annotated[list[str], Meta(description="Routes that ask it.")]
    problem: Annotated[
        str | None,
        Meta(description="Why a downloaded file could not run here now, and what to do."),
    ] = None
    task: SetupTask | None = None
    check: JudgeCheck | None = None
    calibration: JudgeCalibration | None = None


class JudgeList(Struct, frozen=True, kw_only=True):
    """The readers and judges of the catalogue, and the models that are connected to this server."""

    data: list[Judge]
    runs_here: Annotated[
        bool, Meta(description="Whether the extra `judge`, which runs them, is installed.")
    ]
    folder: Annotated[
        str,
        Meta(
            description="Folder of this server: each GGUF file in it, and each reader's folder, is listed "
            "as `downloaded`, under its name."
        ),
    ] = ""


class CalibrateJudge(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The dataset that a connected model is calibrated on."""

    dataset_id: Annotated[str, Meta(min_length=1, max_length=64)]
    rows: Annotated[
        Annotated[int, Meta(ge=20, le=2_000)],
        Meta(description="Rows of each side that are asked at most."),
    ] = 200


class ThinkJudge(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """When a judge is to think. Another value is another judge: its calibration ends."""

    below: Annotated[
        Annotated[float, Meta(gt=0, lt=1)] | None,
        Meta(
            description="Top probability of its first answer below which it writes before it answers again; "
            "null, or left out: it answers at once."
        ),
    ] = None
    tokens: Annotated[
        Annotated[int, Meta(ge=1, le=MAX_THOUGHT_TOKENS)],
        Meta(description="Most tokens that it writes on a decision."),
    ] = THOUGHT_TOKENS


class RouteJudge(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The route in which the shipped model decides where it is sure, and another model the rest."""

    route: Annotated[
        Annotated[str, Meta(min_length=1, max_length=128)],
        Meta(description="Its name; a route of that name is replaced."),
    ] = "auto"
