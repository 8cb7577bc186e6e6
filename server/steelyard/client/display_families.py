"""How families and fine-tunes show themselves in a notebook, and turn into tables and frames."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from html import escape
from typing import Any

from msgspec import UNSET

from steelyard.client.display import table_html
from steelyard.client.drawings import DrawnModel, draw_curve, draw_line
from steelyard.families.fine_tune_wire import Job, JobEvents, JobMetrics, JobPage
from steelyard.families.wire import (
    DeletedModelVersion,
    Family,
    FamilyList,
    ModelVersion,
)
from steelyard.wire.shown import to_frame, to_html

#: The drawing of a line has this many models, the newest.
SHOWN_MODELS = 12
_SHOWN_EVENTS = 50
#: Held-out measures in the order in which a table has them.
_HELDOUT = ("accuracy", "loss", "brier", "ece", "expected_reward", "scaled_reward", "picked_best")


@to_html.register
def _(family: Family) -> str:
    parts = [f"<p><b>{escape(family.id)}</b> {escape(describe_family(family))}</p>"]
    if family.models:
        parts.append(draw_line(_stops(family)))
        parts.append(table_html("Models", MODEL_COLUMNS, model_rows(family)))
    if family.jobs is not UNSET and family.jobs:
        rows = [
            (
                job.id,
                job.status,
                job.outcome or "",
                str(job.dataset_version),
                job.price_usd,
                job.reason or "",
            )
            for job in family.jobs
        ]
        columns = ("id", "status", "outcome", "dataset version", "USD", "reason")
        parts.append(table_html("Fine-tunes", columns, rows))
    return f"<div>{''.join(parts)}</div>"


@to_html.register
def _(families: FamilyList) -> str:
    return table_html("Families", FAMILY_COLUMNS, family_rows(families.data))


@to_html.register
def _(metrics: JobMetrics) -> str | None:
    return to_html(metrics.gate)


@to_html.register
def _(job: Job) -> str:
    parts = [table_html("Fine-tune", ("field", "value"), job_facts(job))]
    if isinstance(job.curve, list) and job.curve:
        points = [(float(point.step), point.loss) for point in job.curve]
        parts.append(draw_curve(points, across="step", up="training loss"))
    if job.gate is not None:
        parts.append(to_html(job.gate) or "")
    return f"<div>{''.join(parts)}</div>"


@to_html.register
def _(page: JobPage) -> str:
    return table_html("Fine-tunes", JOB_COLUMNS, job_rows(page.data))


@to_html.register
def _(events: JobEvents) -> str:
    rows = [
        (str(event.seq), show_time(event.created_at), event.type, event.message)
        for event in events.data[-_SHOWN_EVENTS:]
    ]
    return table_html("Events", ("", "at", "type", "message"), rows)


@to_frame.register
def _(family: Family) -> Any:
    """Return a row for each model of the line: its number, state and figures."""
    import polars as pl  # noqa: PLC0415  a client without frames needs none

    return pl.DataFrame(
        [
            {
                "model": model.ref,
                "adapter": model.adapter,
                "status": model.status,
                "served": family.served is not None and model.adapter == family.served.adapter,
                "created_at": created_at_of(model),
                "parent": model.parent,
                **{name: heldout_of(model).get(name) for name in _HELDOUT},
            }
            for model in family.models
        ],
        schema={
            "model": pl.String,
            "adapter": pl.String,
            "status": pl.String,
            "served": pl.Boolean,
            "created_at": pl.Float64,
            "parent": pl.String,
            **dict.fromkeys(_HELDOUT, pl.Float64),
        },
    )


@to_frame.register
def _(job: Job) -> Any:
    """Return the training loss, a row a point; empty before the fine-tune succeeded."""
    import polars as pl  # noqa: PLC0415  a client without frames needs none

    points = job.curve if isinstance(job.curve, list) else []
    rows = [(point.step, point.loss, point.learning_rate) for point in points]
    schema = {"step": pl.Int64, "loss": pl.Float64, "learning_rate": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


FAMILY_COLUMNS = ("family", "switch", "serves", "latest", "models", "warm", "dataset", "next")
MODEL_COLUMNS = ("model", "status", "serving", "joined", "trained from", "held-out rows")
JOB_COLUMNS = ("id", "family", "status", "outcome", "progress", "queued", "USD")


def family_rows(families: Sequence[Family]) -> list[tuple[str, ...]]:
    """Return a table row a family."""
    return [
        (
            family.id,
            _switch_text(family),
            "-" if family.served is None else family.served.ref,
            "-" if family.latest is None else family.latest.ref,
            str(len(family.models)),
            "yes" if family.keep_warm else "no",
            family.dataset_id,
            _next_text(family),
        )
        for family in families
    ]


def model_rows(family: Family) -> list[tuple[str, ...]]:
    """Return a table row a model of a family's line, oldest first."""
    refs = {model.adapter: model.ref for model in family.models}
    return [
        (
            model.ref,
            model.status,
            _serving_text(family, model),
            "" if (made := created_at_of(model)) is None else show_time(made),
            family.origin if model.parent is None else refs.get(model.parent, model.parent),
            show_heldout(heldout_of(model)),
        )
        for model in family.models
    ]


def job_rows(jobs: Sequence[Job]) -> list[tuple[str, ...]]:
    """Return a table row a fine-tune."""
    return [
        (
            job.id,
            job.family or "",
            job.status,
            job.outcome or "",
            show_progress(job),
            show_time(job.created_at),
            job.price_usd,
        )
        for job in jobs
    ]


def job_facts(job: Job) -> list[tuple[str, str]]:
    """Return the facts of a fine-tune, as names and texts."""
    training = job.hyperparameters
    facts = [
        ("id", job.id),
        ("family", job.family or "-"),
        ("status", job.status),
        ("outcome", job.outcome or "-"),
        *([("progress", show_progress(job))] if job.progress is not None else []),
        ("dataset", f"{job.dataset_id}, version {job.dataset_version}"),
        ("from", job.parent or job.model),
        ("method", job.method),
        ("steps", f"{training.steps:,}, learning rate {training.learning_rate:g}"),
        ("LoRA rank", str(training.lora_rank) if training.lora_rank else "none: heads alone"),
        *([] if job.follows is UNSET else [("follows", job.follows)]),
        ("seed", str(training.seed)),
        ("rows", f"{job.split.train_rows:,} training, {job.split.validation_rows:,} held out"),
        ("fee", _fee_text(job)),
    ]
    if job.output_model is not None:
        facts.append(("made", job.output_model))
    if job.reason is not None:
        facts.append(("reason", job.reason))
    if job.error is not None:
        facts.append(("error", f"{job.error.code}: {job.error.message}"))
    return facts


def _fee_text(job: Job) -> str:
    if job.hyperparameters.first is not UNSET and job.status == "succeeded":
        return "that of the fine-tune that follows it"
    return f"{job.price_usd} USD, {job.charge}"


def describe_family(family: Family) -> str:
    """Return a family's state in one line."""
    words = [f"is {_switch_text(family)}"]
    if family.served is None:
        words.append("serves no model")
    else:
        words.append(f"serves {family.served.ref}")
    if family.keep_warm:
        words.append("is kept warm")
    if family.move is not None:
        why = WAITING_FOR[family.move.waiting_for]
        words.append(f"waits to move to {family.move.to}: {why}")
    if family.moved is not None:
        words.append(f"moved at {show_time(family.moved.at)}")
    return f"{', '.join(words)}."


#: What a move waits for, in words.
WAITING_FOR = {
    "engines": "it is loading",
    "place": "as many models answer as may",
    "warm_place": "as many models are kept warm as may",
    "warm_capacity": "there is no room to keep another model of its size loaded",
}


def show_progress(job: Job) -> str:
    """Write how far a fine-tune is, ``heads, 40 of 200, loss 0.3120``; empty where nothing is known."""
    if job.progress is None:
        return ""
    now = job.progress
    loss = "" if now.loss is None else f", loss {now.loss:.4f}"
    return f"{now.phase}, {now.step:,} of {now.steps:,}{loss}"


def show_heldout(heldout: dict[str, float]) -> str:
    """Write held-out measures on one line."""
    return ", ".join(f"{name} {heldout[name]:.4g}" for name in _HELDOUT if name in heldout)


def show_time(at: float) -> str:
    """Write a time in UTC."""
    return dt.datetime.fromtimestamp(at, dt.UTC).strftime("%Y-%m-%d %H:%M:%S")


def heldout_of(model: ModelVersion | DeletedModelVersion) -> dict[str, float]:
    """Return the held-out measures of a model; none of one that was deleted."""
    return {} if isinstance(model, DeletedModelVersion) else model.heldout


def created_at_of(model: ModelVersion | DeletedModelVersion) -> float | None:
    """Return when a model joined; ``None`` of one that was deleted."""
    return None if isinstance(model, DeletedModelVersion) else model.created_at


def _switch_text(family: Family) -> str:
    if family.switched_on:
        return "on"
    return "off" if family.off_reason is None else f"off ({family.off_reason})"


def _next_text(family: Family) -> str:
    continuation = family.continue_
    return (
        ""
        if continuation is UNSET or continuation is None
        else continuation.state.replace("_", " ")
    )


def _serving_text(family: Family, model: ModelVersion | DeletedModelVersion) -> str:
    words = []
    if family.served is not None and model.adapter == family.served.adapter:
        words.append("served")
    if family.latest is not None and model.adapter == family.latest.adapter:
        words.append("latest")
    if not isinstance(model, DeletedModelVersion) and model.status == "ready":
        words += [model.state, *(["own switch on"] if model.on_at is not None else [])]
    return ", ".join(words)


def _stops(family: Family) -> list[DrawnModel]:
    shown = family.models[-SHOWN_MODELS:]
    served = None if family.served is None else family.served.adapter
    latest = None if family.latest is None else family.latest.adapter
    return [
        DrawnModel(
            label=f"@{model.version}",
            note=_note(model, served, latest),
            is_served=model.adapter == served,
            is_gone=model.status != "ready",
        )
        for model in shown
    ]


def _note(model: ModelVersion | DeletedModelVersion, served: str | None, latest: str | None) -> str:
    if model.adapter == served:
        return "served"
    if model.adapter == latest:
        return "latest"
    return "" if model.status == "ready" else model.status
