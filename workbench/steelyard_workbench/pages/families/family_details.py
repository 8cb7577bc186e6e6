"""Rarely needed facts of a family: its switches, keep warm, its check in figures, and its past."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import Any

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.client.display_families import describe_family
from steelyard.evaluations.wire import Evaluation
from steelyard.families.fine_tune_wire import Job
from steelyard.families.wire import DeletedModelVersion, DiscardedModelVersion, Family, ModelVersion
from steelyard.wire.jobs import UNFINISHED
from steelyard_workbench.kit.basics import action_button, small_text, stack
from steelyard_workbench.kit.tasks import Task, Write
from steelyard_workbench.kit.views import empty, facts, heading, refused_button, table
from steelyard_workbench.kit.words import ago, escape_markdown, everyday
from steelyard_workbench.pages.families.changes import Seen
from steelyard_workbench.pages.families.gate_card import show_gate
from steelyard_workbench.pages.families.line_moves import LineMoves
from steelyard_workbench.pages.families.serving import Serving
from steelyard_workbench.parts.families.labels import (
    LINE_COLUMNS,
    FineTuneChoice,
    choices_of,
    continue_of,
    continue_text,
    gate_mark,
    idle_text,
    line_rows,
    mark,
    outcome_of,
    own_switch_text,
    parent_of,
    right_of_gate,
    switch_text,
    warm_text,
)

#: Events that are shown, the newest.
SHOWN = 30
COLUMNS = ("when (UTC)", "what", "check", "by")
_OWNER, _ITSELF, _GATE = "its owner", "the model line itself", "the check"


class FamilyDetails(Serving, LineMoves):
    """The closed part of the page of a family."""

    show_rows: Task[..., None]

    def choose(self, choice: FineTuneChoice) -> None:
        """Look at another of its fine-tunes."""
        raise NotImplementedError

    def _detailed(self, family: Family, seen: Seen) -> list[Viewable]:
        """Return the details: the served model, switches, the check in figures, and the past."""
        parts = (
            self._now(family, seen.dataset),
            self._chosen(family, seen),
            self._past(family, seen),
        )
        return [_beside(stack(*chain.from_iterable(parts)), self._family_actions(family))]

    def _now(self, family: Family, dataset: str) -> list[Viewable]:
        values = {
            "Now": describe_family(family),
            "Switch": switch_text(family),
            "Used": f"{ago(family.used_at)}; {idle_text(family.switches_off_at)}",
            "Keep warm": warm_text(family),
            "Dataset": dataset,
            "Started from": family.origin,
            "Continue": self._continue_fact(family),
        }
        if family.moved is not None:
            came = family.moved.from_ or "no model"
            values["Moved by itself"] = f"from {came}, {ago(family.moved.at)}"
        return [facts(values)]

    def _continue_fact(self, family: Family) -> str:
        continuation = continue_of(family)
        text = continue_text(continuation)
        if continuation is None:
            return text
        if continuation.rows is not None:
            text += (
                f": {continuation.rows.new:,} new or corrected and {continuation.rows.earlier:,} earlier rows for "
                f"training, {continuation.rows.evaluation:,} for the check"
            )
        if continuation.evaluation_decisions is not None:
            text += (
                f"; {continuation.evaluation_decisions:,} decisions for the check, "
                f"{continuation.needed:,} needed"
            )
        return " ".join([f"{text}.", *map(everyday, continuation.reasons)])

    def _family_actions(self, family: Family) -> Viewable:
        if family.switched_on:
            switch = self._button("Switch off", self.ask_switch_off)
        else:
            switch = self._button("Switch on", lambda: self.switch(True), is_first=True)
        if family.keep_warm:
            warm = self._button("Stop keeping warm", self.stop_warm)
        else:
            lacking = [] if family.switched_on else ["it is off"]
            lacking += [] if family.served is not None else ["it serves no model"]
            warm = self._button("Keep warm…", self.keep_warm, lacking)
        delete = self._button(
            "Delete the model line…", self.ask_delete, _why_not_delete(family), is_harmful=True
        )
        name = escape_markdown(family.id)
        return stack(
            switch,
            _sentence(f"When off, requests to {name} are refused. Its models and data stay."),
            warm,
            _sentence("Kept warm, its model stays loaded: no call waits until it is."),
            delete,
        )

    def _past(self, family: Family, seen: Seen) -> list[Viewable]:
        """Return the models as a table, the events, and the way to any fine-tune."""
        choices = choices_of(family)
        if not choices:
            return []
        shown: list[Viewable] = []
        if family.models:
            shown.append(table(LINE_COLUMNS, line_rows(family), label="Models of the line"))
            shown.append(heading("What happened"))
            shown.append(table(COLUMNS, timeline_rows(family), label="What happened"))
        else:
            shown.append(empty("No models yet. The first joins when it passes its check."))
        chosen = next(
            (choice for choice in choices if seen.job and choice.job.id == seen.job.id), choices[0]
        )
        select = pmui.Select(
            label="Look at",
            options={choice.label: choice.job.id for choice in choices},
            value=chosen.job.id,
            sizing_mode="stretch_width",
            max_width=520,
        )
        by_id = {choice.job.id: choice for choice in choices}
        pn.bind(lambda id_: self.choose(by_id[id_]), select, watch=True)
        return [*shown, select]

    def _chosen(self, family: Family, seen: Seen) -> list[Viewable]:
        if seen.job is None:
            return []
        job = seen.job
        choice = self._choice_of(family, job)
        model = choice.model
        title = f"Fine-tune on version {job.dataset_version}" if model is None else model.ref
        shown: list[Viewable] = [heading(title), facts(self._facts(family, job, choice))]
        if isinstance(model, ModelVersion) and model.status == "ready":
            shown.append(self._model_actions(family, model))
        shown.append(self._links(job))
        shown.append(heading("The check in figures"))
        if job.gate is None:
            reason = (
                "It has not been judged yet." if job.status in UNFINISHED else "It was not judged."
            )
            shown.append(empty(reason))
        else:
            continuation = continue_of(family)
            needed: dict[str, int] = {} if continuation is None else {"needed": continuation.needed}
            shown.append(show_gate(job.gate, self.show_rows.start, **needed))
        return shown

    def _facts(self, family: Family, job: Job, choice: FineTuneChoice) -> dict[str, str]:
        values = {
            "Fine-tune": f"{job.id}, {outcome_of(choice.job)[1]}, started {ago(job.created_at)}",
            "Base model": job.model,
            "Dataset version": str(job.dataset_version),
            **({} if job.charge == "free" else {"Fee": f"{job.price_usd} USD, {job.charge}"}),
        }
        if job.reason and job.gate is None:
            values["Reason"] = job.reason
        if job.error is not None:
            values["Error"] = f"{job.error.message} ({job.error.code})"
        model = choice.model
        if model is None:
            return values
        values["Trained from"] = parent_of(family, model)
        if isinstance(model, DeletedModelVersion):
            values["Deleted"] = ago(model.deleted_at)
            return values
        values["Weights"] = model.state
        values["Own switch"] = own_switch_text(model)
        values["Own keep warm"] = warm_text(model)
        evaluation = job.dataset_evaluation
        if isinstance(evaluation, Evaluation) and evaluation.metrics is not None:
            values["Answers for the check"] = f"{evaluation.metrics.n:,}"
        return values

    def _model_actions(self, family: Family, model: ModelVersion) -> Viewable:
        is_on = model.on_at is not None
        if is_on:
            switch = self._button(
                f"Switch {model.ref} off", lambda: self.switch_model(model, on=False)
            )
        else:
            failed_to_load = ["its weights cannot be loaded"] if model.state == "failed" else []
            switch = self._button(
                f"Switch {model.ref} on", lambda: self.switch_model(model, on=True), failed_to_load
            )
        if model.keep_warm:
            warm = self._button(f"Stop keeping {model.ref} warm", lambda: self.stop_warm(model))
        else:
            warm = self._button(
                f"Keep {model.ref} warm…",
                lambda: self.keep_model_warm(model),
                [] if is_on else ["its own switch is off"],
            )
        is_latest = family.latest is not None and family.latest.adapter == model.adapter
        back = self._button(
            f"Roll back to {model.ref}…",
            lambda: self.ask_roll_back(model.ref),
            ["it is the latest model"] if is_latest else [],
            is_harmful=True,
        )
        delete = self._button(
            f"Delete {model.ref}…",
            lambda: self.ask_delete_model(model),
            _why_not_delete_model(family, model, is_latest=is_latest),
            is_harmful=True,
        )
        name = escape_markdown(model.ref)
        return stack(
            pmui.FlexBox(switch, warm, back, delete),
            _sentence(
                f"Its own switch answers calls to {name} by its number, whatever the model line answers by. "
                f"Its own keep warm keeps it loaded for them."
            ),
        )

    def _links(self, job: Job) -> Viewable:
        follow = action_button(
            "Follow its fine-tune", lambda _: self._session.open("jobs", job=job.id), variant="text"
        )
        evaluation = job.dataset_evaluation
        if not isinstance(evaluation, Evaluation):
            return pmui.Row(follow)
        opened = action_button(
            "Open its evaluation",
            lambda _: self._session.open("evaluations", evaluation=evaluation.id),
            variant="text",
        )
        return pmui.Row(follow, opened)

    def _button(
        self,
        label: str,
        act: Callable[[], Coroutine[Any, Any, None]],
        reasons: Sequence[str] = (),
        *,
        is_first: bool = False,
        is_harmful: bool = False,
    ) -> Viewable:
        """Return a button, or the same disabled with why beside it."""
        lacking = [*([self.forbidden] if self.forbidden else []), *reasons]
        if lacking:
            return refused_button(label, lacking)
        return action_button(
            label,
            Write(act).on_event,
            variant="contained" if is_first else "outlined",
            color="danger" if is_harmful else "primary",
        )


def _beside(shown: Viewable, controls: Viewable) -> Viewable:
    """Return a view with its controls beside it, which stay in sight; above it where narrow."""
    return pn.Row(
        stack(shown, styles={"flex": "1 1 460px", "min-width": "0", "width": "auto"}),
        stack(
            controls,
            # The lines are wrapped upwards, so that the end of each is its top.
            styles={
                "flex": "0 1 280px",
                "min-width": "240px",
                "width": "auto",
                "position": "sticky",
                "top": "56px",
                "align-self": "flex-end",
            },
        ),
        sizing_mode="stretch_width",
        styles={"flex-wrap": "wrap-reverse"},
    )


def _sentence(text: str) -> Viewable:
    return small_text(text, margin=(0, 10, 8, 10))


def _why_not_delete(family: Family) -> list[str]:
    reasons = []
    if family.switched_on and family.served is not None:
        reasons.append("it is on: switch it off first")
    own = [
        model.ref
        for model in family.models
        if isinstance(model, ModelVersion) and model.on_at is not None
    ]
    if own:
        reasons.append(f"the own switch of {', '.join(own)} is on")
    if any(choice.job.status in UNFINISHED for choice in choices_of(family)):
        reasons.append("a fine-tune of it has not ended")
    return reasons


def _why_not_delete_model(family: Family, model: ModelVersion, *, is_latest: bool) -> list[str]:
    if is_latest:
        return ["it is the latest model: roll the model line back instead"]
    reasons = []
    if model.on_at is not None:
        reasons.append("its own switch is on")
    is_served = family.served is not None and family.served.adapter == model.adapter
    if is_served and family.switched_on:
        reasons.append(f"{family.id} serves it")
    return reasons


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened."""

    at: float
    what: str
    by: str
    gate: str = ""


def events_of(family: Family) -> list[Event]:
    """Return a family's events, newest first."""
    return sorted(_events(family), key=lambda event: -event.at)[:SHOWN]


def timeline_rows(family: Family) -> list[tuple[str, str, str, str]]:
    """Return a table row an event."""
    return [
        (
            f"{datetime.fromtimestamp(event.at, UTC):%Y-%m-%d %H:%M}",
            event.what,
            event.gate or "—",
            event.by,
        )
        for event in events_of(family)
    ]


def _events(family: Family) -> Iterator[Event]:
    yield Event(family.created_at, f"started from {family.origin}", _OWNER)
    for choice in choices_of(family):
        job = choice.job
        started = f"fine-tune on version {job.dataset_version} started"
        status, word = outcome_of(job)
        if job.outcome in {"gate_failed", "failed", "cancelled"} and choice.model is None:
            is_judged = job.outcome == "gate_failed"
            # The reasons of a check have figures, which stand in the part of its fine-tune.
            why = f": {everyday(job.reason)}" if job.reason and not is_judged else ""
            yield Event(
                job.created_at,
                f"{started}; it made no model{why}",
                _OWNER,
                "✗ not passed" if is_judged else mark(status, word),
            )
        else:
            yield Event(job.created_at, started, _OWNER)
    for model in family.models:
        if isinstance(model, DeletedModelVersion):
            yield Event(model.deleted_at, f"{model.ref} deleted", _OWNER)
        else:
            yield from _model_events(model)
    if family.moved is not None:
        to = "its latest model" if family.served is None else family.served.ref
        came = family.moved.from_ or "no model"
        yield Event(family.moved.at, f"moved from {came} to {to}", _ITSELF)
    if family.off_at is not None and not family.switched_on:
        who = "the server, because it was not used" if family.off_reason == "idle" else _OWNER
        yield Event(family.off_at, "switched off", who)
    if family.keep_warm_stopped_at is not None:
        yield Event(family.keep_warm_stopped_at, "not kept warm any more", "the server")


def _model_events(model: ModelVersion) -> Iterator[Event]:
    if model.created_at is not None:
        gate = "" if model.gate is None else gate_mark(model.gate)
        right = None if model.gate is None else right_of_gate(model.gate)
        share = "" if right is None else f", right in {right} of the answers"
        yield Event(model.created_at, f"{model.ref} joined{share}", _GATE, gate)
    if model.on_at is not None:
        yield Event(model.on_at, f"own switch of {model.ref} on", _OWNER)
    if isinstance(model, DiscardedModelVersion):
        yield Event(model.discarded_at, f"{model.ref} discarded by a rollback", _OWNER)
