"""Families and fine-tunes that show themselves in a notebook; their fields are the wire's."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from msgspec import UNSET

from steelyard.client.display import table_html
from steelyard.client.drawings import Stop, draw_curve, draw_line
from steelyard.client.gate_answers import GateAnswer
from steelyard.wire.families import (
    DeletedModelVersion,
    Family,
    FamilyList,
    ModelVersion,
)
from steelyard.wire.fine_tuning import Job, JobEvents, JobMetrics, JobPage

if TYPE_CHECKING:
    import polars as pl

#: The drawing of a line has this many models, the newest.
SHOWN_MODELS = 12
_SHOWN_EVENTS = 50
#: Held-out measures in the order in which a table has them.
_HELDOUT = ("accuracy", "loss", "brier", "ece", "expected_reward", "scaled_reward", "picked_best")


class ModelVersionAnswer(ModelVersion, frozen=True, kw_only=True, tag="ready"):
    """A model of a family's line."""

    gate: GateAnswer | None


class DiscardedModelAnswer(ModelVersionAnswer, frozen=True, kw_only=True, tag="discarded"):
    """A model that a rollback discarded."""

    discarded_at: float


AnyModel = ModelVersionAnswer | DiscardedModelAnswer | DeletedModelVersion


class FamilyAnswer(Family, frozen=True, kw_only=True):
    """A family; in a notebook, its line of models and its fine-tunes."""

    served: ModelVersionAnswer | None
    latest: ModelVersionAnswer | None
    models: list[AnyModel]  # type: ignore[assignment]  # the wire's, which show themselves

    def to_polars(self) -> pl.DataFrame:
        """Give a row a model of the line: its number, what became of it and its figures."""
        import polars as pl  # noqa: PLC0415  a client without frames needs none

        return pl.DataFrame(
            [
                {
                    "model": model.ref,
                    "adapter": model.adapter,
                    "status": model.status,
                    "served": self.served is not None and model.adapter == self.served.adapter,
                    "created_at": created_at_of(model),
                    "parent": model.parent,
                    **{name: heldout_of(model).get(name) for name in _HELDOUT},
                }
                for model in self.models
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

    def _repr_html_(self) -> str:
        parts = [f"<p><b>{escape(self.id)}</b> {escape(describe_family(self))}</p>"]
        if self.models:
            parts.append(draw_line(_stops(self)))
            parts.append(table_html("Models", MODEL_COLUMNS, model_rows(self)))
        if self.jobs is not UNSET and self.jobs:
            rows = [
                (
                    job.id,
                    job.status,
                    job.outcome or "",
                    str(job.dataset_version),
                    job.price_usd,
                    job.reason or "",
                )
                for job in self.jobs
            ]
            columns = ("id", "status", "outcome", "dataset version", "USD", "reason")
            parts.append(table_html("Fine-tunes", columns, rows))
        return f"<div>{''.join(parts)}</div>"


class FamiliesAnswer(FamilyList, frozen=True, kw_only=True):
    """Every family of the account; in a notebook, a table."""

    data: list[FamilyAnswer]  # type: ignore[assignment]  # the wire's, which show themselves

    def _repr_html_(self) -> str:
        return table_html("Families", FAMILY_COLUMNS, family_rows(self.data))


class JobMetricsAnswer(JobMetrics, frozen=True, kw_only=True):
    """What was measured of a fine-tune; in a notebook, the gate's verdict."""

    gate: GateAnswer

    def _repr_html_(self) -> str:
        return self.gate._repr_html_()


class JobAnswer(Job, frozen=True, kw_only=True):
    """A fine-tune; in a notebook its status, its curve and the gate's verdict."""

    metrics: JobMetricsAnswer | None

    @property
    def gate(self) -> GateAnswer | None:
        """The gate's verdict; ``None`` until it was judged."""
        return None if self.metrics is None else self.metrics.gate

    @property
    def has_joined(self) -> bool:
        """Whether its model passed the gate and joined the family."""
        return self.outcome == "joined"

    def to_polars(self) -> pl.DataFrame:
        """Give the training loss, a row a point; empty before it succeeded."""
        import polars as pl  # noqa: PLC0415  a client without frames needs none

        points = self.curve if isinstance(self.curve, list) else []
        rows = [(point.step, point.loss, point.learning_rate) for point in points]
        schema = {"step": pl.Int64, "loss": pl.Float64, "learning_rate": pl.Float64}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def _repr_html_(self) -> str:
        rows = [(name, value) for name, value in job_facts(self)]
        parts = [table_html("Fine-tune", ("field", "value"), rows)]
        if isinstance(self.curve, list) and self.curve:
            points = [(float(point.step), point.loss) for point in self.curve]
            parts.append(draw_curve(points, across="step", up="training loss"))
        if self.gate is not None:
            parts.append(self.gate._repr_html_())
        return f"<div>{''.join(parts)}</div>"


class JobsAnswer(JobPage, frozen=True, kw_only=True):
    """A page of fine-tunes; in a notebook, a table."""

    data: list[JobAnswer]  # type: ignore[assignment]  # the wire's, which show themselves

    def _repr_html_(self) -> str:
        return table_html("Fine-tunes", JOB_COLUMNS, job_rows(self.data))


class EventsAnswer(JobEvents, frozen=True, kw_only=True):
    """What happened to a fine-tune; in a notebook, a table of the last of it."""

    def _repr_html_(self) -> str:
        rows = [
            (str(event.seq), show_time(event.created_at), event.type, event.message)
            for event in self.data[-_SHOWN_EVENTS:]
        ]
        return table_html("Events", ("", "at", "type", "message"), rows)


FAMILY_COLUMNS = ("family", "switch", "serves", "latest", "models", "warm", "dataset", "next")
MODEL_COLUMNS = ("model", "status", "serving", "joined", "trained from", "held-out rows")
JOB_COLUMNS = ("id", "family", "status", "outcome", "progress", "queued", "USD")


def family_rows(families: Sequence[Family]) -> list[tuple[str, ...]]:
    """Give a table row a family."""
    return [
        (
            one.id,
            _switch_text(one),
            "-" if one.served is None else one.served.ref,
            "-" if one.latest is None else one.latest.ref,
            str(len(one.models)),
            "yes" if one.keep_warm else "no",
            one.dataset_id,
            _next_text(one),
        )
        for one in families
    ]


def model_rows(family: Family) -> list[tuple[str, ...]]:
    """Give a table row a model of a family's line, oldest first."""
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
    """Give a table row a fine-tune."""
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
    """Give what is to be said of a fine-tune, as names and texts."""
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
        ("seed", str(training.seed)),
        ("rows", f"{job.split.train_rows:,} training, {job.split.validation_rows:,} held out"),
        ("fee", f"{job.price_usd} USD, {job.charge}"),
    ]
    if job.output_model is not None:
        facts.append(("made", job.output_model))
    if job.reason is not None:
        facts.append(("reason", job.reason))
    if job.error is not None:
        facts.append(("error", f"{job.error.code}: {job.error.message}"))
    return facts


def describe_family(family: Family) -> str:
    """Say in a line what a family does now."""
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
    """Write how far a fine-tune is.

    Returns
    -------
    str
        Such as ``heads, 40 of 200, loss 0.3120``; empty where nothing is known.
    """
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
    """Give the held-out measures of a model; none of one that was deleted."""
    return {} if isinstance(model, DeletedModelVersion) else model.heldout


def created_at_of(model: ModelVersion | DeletedModelVersion) -> float | None:
    """Give when a model joined; ``None`` of one that was deleted."""
    return None if isinstance(model, DeletedModelVersion) else model.created_at


def _switch_text(family: Family) -> str:
    if family.switched_on:
        return "on"
    return "off" if family.off_reason is None else f"off ({family.off_reason})"


def _next_text(family: Family) -> str:
    told = family.continue_
    return "" if told is UNSET or told is None else told.state.replace("_", " ")


def _serving_text(family: Family, model: ModelVersion | DeletedModelVersion) -> str:
    words = []
    if family.served is not None and model.adapter == family.served.adapter:
        words.append("served")
    if family.latest is not None and model.adapter == family.latest.adapter:
        words.append("latest")
    if not isinstance(model, DeletedModelVersion) and model.status == "ready":
        words += [model.state, *(["own switch on"] if model.on_at is not None else [])]
    return ", ".join(words)


def _stops(family: Family) -> list[Stop]:
    shown = family.models[-SHOWN_MODELS:]
    served = None if family.served is None else family.served.adapter
    latest = None if family.latest is None else family.latest.adapter
    return [
        Stop(
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
