"""One family: what it serves, its line of models, the gate of each, and whatever changes it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.client.display_families import describe_family
from steelyard.errors import SteelyardError
from steelyard.evaluations.wire import Evaluation
from steelyard.families.fine_tune_wire import Job
from steelyard.families.wire import DeletedModelVersion, Family, ModelVersion
from steelyard_workbench.kit.components import figures
from steelyard_workbench.kit.components.facts import facts, heading, table
from steelyard_workbench.kit.components.numbers import ago
from steelyard_workbench.kit.escaping import escape_markdown
from steelyard_workbench.kit.problems import leave_to_banner, not_loaded, problem_of
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.states import empty, failed, loading, refused_button, verdict
from steelyard_workbench.kit.tasks import Task, Write
from steelyard_workbench.pages.families.changes import Seen
from steelyard_workbench.pages.families.gate_card import RowsRequest, show_gate
from steelyard_workbench.pages.families.held_out import HeldOutRows
from steelyard_workbench.pages.families.line_moves import LineMoves
from steelyard_workbench.pages.families.line_picture import draw_line
from steelyard_workbench.pages.families.serving import Serving
from steelyard_workbench.pages.families.timeline import COLUMNS, timeline_rows
from steelyard_workbench.parts.families.labels import (
    ACTIVE,
    ASK,
    CANNOT_CONTINUE,
    LINE_COLUMNS,
    Choice,
    choices_of,
    continue_of,
    continue_text,
    idle_text,
    is_same,
    is_same_job,
    line_rows,
    move_text,
    outcome_of,
    own_switch_text,
    parent_of,
    switch_text,
    warm_text,
)
from steelyard_workbench.parts.review.sending import RowReview


class OneFamily(Serving, LineMoves):
    """A family and what can be done to it."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.rows: HeldOutRows | None = None
        self._rows_job = ""
        self.rows_place = pn.Column(sizing_mode="stretch_width")
        self.show_rows = Task(self._show_rows)
        self.look = Task(self._look, on_failure=leave_to_banner)
        self.arrive = Task(self._arrive)
        self._box = pn.Column(
            self.notes,
            self.loaded,
            self._dialog_place,
            sizing_mode="stretch_width",
        )

    def __panel__(self) -> Viewable:
        return self._box

    async def _arrive(self) -> None:
        """Fetch the family, and ask whether to continue it if it can be."""
        await self.loaded.refresh()
        continuation = None if self.loaded.data is None else continue_of(self.family)
        if continuation is not None and continuation.state not in CANNOT_CONTINUE:
            await self.ask_continue()

    async def _look(self) -> None:
        if self.loaded.data is None or self.loaded.state != "shown":
            return
        seen = await asyncio.to_thread(self._fetch)
        shown = self.loaded.data
        if not is_same(shown.family, seen.family) or not is_same_job(shown.job, seen.job):
            await self.loaded.refresh(quietly=True)

    def choose(self, choice: Choice) -> None:
        """Look at another of its fine-tunes."""
        if choice.job.id != self._session.job:
            self._session.job = choice.job.id
            self._drop_rows()
            self.loaded.refresh.start(quietly=True)

    async def _show_rows(self, request: RowsRequest) -> None:
        seen = self.loaded.data
        if seen is None or seen.job is None or seen.job.gate is None:
            return
        self._clear_rows()
        self._rows_job = seen.job.id
        if seen.job.rows_deleted:
            self.rows_place[:] = [empty("Its dataset was deleted, and the rows with it.")]
            return
        earlier = _job_before(self.family, seen.job.id)
        self.rows_place[:] = [loading(4, "The held-out rows")]
        reviews = RowReview(self._session, self.loaded.refresh.scope)
        rows = HeldOutRows(self._client, seen.job, seen.job.gate.against, earlier, request, reviews)
        # A table that is filled before the browser has drawn it fails there: it is filled first.
        await rows.start()
        self.rows = rows
        self.rows_place[:] = [rows]

    def _drop_rows(self) -> None:
        """Show no held-out rows, those neither that are still under way."""
        self.show_rows.drop()
        self._clear_rows()

    def _clear_rows(self) -> None:
        self.rows, self._rows_job = None, ""
        self.rows_place[:] = []

    def _fetch(self) -> Seen:
        family = self._client.families.get(self._name)
        ids = [choice.job.id for choice in choices_of(family)]
        dataset = self._dataset_name(family)
        if not ids:
            return Seen(family, None, dataset=dataset)
        chosen = self._session.job if self._session.job in ids else ids[0]
        try:
            return Seen(family, self._client.jobs.get(chosen), dataset=dataset)
        except SteelyardError as error:
            problem = problem_of(error, not_loaded("The fine-tune"))
            return Seen(family, None, problem, dataset)

    def _dataset_name(self, family: Family) -> str:
        try:
            return self._client.datasets.get(family.dataset_id).name
        except SteelyardError:  # deleted
            return family.dataset_id

    def _show(self, seen: Seen) -> Viewable:
        family = seen.family
        if seen.job is None or seen.job.id != self._rows_job:
            self._drop_rows()  # they are of another model than the gate that is shown now
        return _beside(
            pn.Column(
                *self._now(family, seen.dataset),
                heading("The line"),
                *self._line(family, seen),
                *self._chosen(family, seen),
                sizing_mode="stretch_width",
            ),
            self._family_actions(family),
        )

    def _now(self, family: Family, dataset: str) -> list[Viewable]:
        shown: list[Viewable] = [
            verdict(
                "good" if family.switched_on and family.served else "off",
                family.id,
                describe_family(family),
            )
        ]
        if family.move is not None:
            shown.append(verdict("unsure", "Waits to move.", move_text(family.move)))
        values = {
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
        return [*shown, facts(values)]

    def _continue_fact(self, family: Family) -> str:
        continuation = continue_of(family)
        text = continue_text(continuation)
        if continuation is None:
            return text
        if continuation.rows is not None:
            text += (
                f": {continuation.rows.new:,} new or corrected and {continuation.rows.earlier:,} earlier rows for "
                f"training, {continuation.rows.evaluation:,} for the gate"
            )
        if continuation.evaluation_decisions is not None:
            text += (
                f"; {continuation.evaluation_decisions:,} evaluation decisions to judge by, "
                f"{continuation.needed:,} needed"
            )
        return " ".join([f"{text}.", *continuation.reasons])

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
        continuation = continue_of(family)
        lacking = ["it has no dataset"] if continuation is None else []
        if continuation is not None and continuation.state in CANNOT_CONTINUE:
            lacking = [CANNOT_CONTINUE[continuation.state]]
        go_on = self._button("Continue…", self.ask_continue, lacking)
        delete = self._button(
            "Delete the family…", self.ask_delete, _why_not_delete(family), is_harmful=True
        )
        lacking = [] if family.switched_on else ["it is off"]
        lacking += [] if family.served is not None else ["it serves no model"]
        if lacking:
            ask = refused_button("Ask it", lacking)
        else:
            ask = pmui.Button(label="Ask it", variant="contained")
            ask.on_click(
                lambda _: self._session.open(
                    "playground", view=ASK, model=family.id, dataset=family.dataset_id, version=0
                )
            )
        dataset = pmui.Button(label="Open its dataset", variant="text")
        dataset.on_click(
            lambda _: self._session.open("datasets", dataset=family.dataset_id, version=0)
        )
        name = escape_markdown(family.id)
        return pn.Column(
            switch,
            _sentence(f"When off, requests to {name} are refused. Its models and data stay."),
            warm,
            _sentence("Kept warm, its model stays loaded: no call waits until it is."),
            go_on,
            _sentence(
                "The next fine-tune takes the rows that were added or corrected, and must pass the gate."
            ),
            ask,
            _sentence("The Playground opens with the wording of its dataset."),
            dataset,
            delete,
            sizing_mode="stretch_width",
        )

    def _line(self, family: Family, seen: Seen) -> list[Viewable]:
        choices = choices_of(family)
        if not choices:
            return [empty("It has no fine-tunes yet.")]
        shown: list[Viewable] = [figures.show(draw_line(family, self.choose))]
        if family.models:
            shown.append(table(LINE_COLUMNS, line_rows(family), label="Models of the line"))
            shown.append(heading("What happened"))
            shown.append(table(COLUMNS, timeline_rows(family), label="What happened"))
        else:
            shown.append(empty("No models yet. The first joins when it passes its gate."))
        chosen = next(
            (choice for choice in choices if seen.job and choice.job.id == seen.job.id), choices[0]
        )
        select = pmui.Select(
            label="Look at",
            options={choice.label: choice.job.id for choice in choices},
            value=chosen.job.id,
            width=520,
        )
        by_id = {choice.job.id: choice for choice in choices}
        pn.bind(lambda id_: self.choose(by_id[id_]), select, watch=True)
        return [*shown, select]

    def _chosen(self, family: Family, seen: Seen) -> list[Viewable]:
        if seen.problem is not None:
            return [failed(seen.problem, self.loaded.refresh.on_event)]
        if seen.job is None:
            return []
        job = seen.job
        choice = next(other for other in choices_of(family) if other.job.id == job.id)
        model = choice.model
        title = f"Fine-tune on version {job.dataset_version}" if model is None else model.ref
        shown: list[Viewable] = [heading(title), facts(self._facts(family, job, choice))]
        if isinstance(model, ModelVersion) and model.status == "ready":
            shown.append(self._model_actions(family, model))
        shown.append(self._links(job))
        shown.append(heading("Gate"))
        if job.gate is None:
            reason = "It has not been judged yet." if job.status in ACTIVE else "It was not judged."
            shown.append(empty(reason))
        else:
            continuation = continue_of(family)
            needed: dict[str, int] = {} if continuation is None else {"needed": continuation.needed}
            shown.append(
                show_gate(
                    job.gate,
                    self.show_rows.start,
                    place=self.rows_place,
                    **needed,
                )
            )
        return shown

    def _facts(self, family: Family, job: Job, choice: Choice) -> dict[str, str]:
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
            values["Held-out decisions"] = f"{evaluation.metrics.n:,}"
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
                f"Switch {model.ref} on",
                lambda: self.switch_model(model, on=True),
                failed_to_load,
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
        return pn.Column(
            pmui.FlexBox(switch, warm, back, delete),
            _sentence(
                f"Its own switch answers calls to {name} by its number, whatever the family serves. "
                f"Its own keep warm keeps it loaded for them."
            ),
            sizing_mode="stretch_width",
        )

    def _links(self, job: Job) -> Viewable:
        follow = pmui.Button(label="Follow its fine-tune", variant="text")
        follow.on_click(lambda _: self._session.open("jobs", job=job.id))
        links = [follow]
        evaluation = job.dataset_evaluation
        if isinstance(evaluation, Evaluation):
            opened = pmui.Button(label="Open its evaluation", variant="text")
            opened.on_click(lambda _: self._session.open("evaluations", evaluation=evaluation.id))
            links.append(opened)
        return pmui.Row(*links)

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
        button = pmui.Button(
            label=label,
            variant="contained" if is_first else "outlined",
            color="danger" if is_harmful else "primary",
        )
        button.on_click(Write(act).on_event)
        return button


def _beside(shown: Viewable, controls: Viewable) -> Viewable:
    """Return what is shown with its controls beside it, which stay in sight; above it where narrow."""
    return pn.Row(
        pn.Column(
            shown,
            sizing_mode="stretch_width",
            styles={"flex": "1 1 460px", "min-width": "0", "width": "auto"},
        ),
        pn.Column(
            controls,
            sizing_mode="stretch_width",
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
    return pmui.Typography(text, variant="body2", margin=(0, 10, 8, 10))


def _job_before(family: Family, job_id: str) -> str | None:
    """Return the last fine-tune before one that was trained to its end."""
    jobs = [choice.job for choice in choices_of(family)]
    place = next(i for i, job in enumerate(jobs) if job.id == job_id)
    return next((job.id for job in jobs[place + 1 :] if job.status == "succeeded"), None)


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
    if any(choice.job.status in ACTIVE for choice in choices_of(family)):
        reasons.append("a fine-tune of it has not ended")
    return reasons


def _why_not_delete_model(family: Family, model: ModelVersion, *, is_latest: bool) -> list[str]:
    if is_latest:
        return ["it is the latest model: roll the family back instead"]
    reasons = []
    if model.on_at is not None:
        reasons.append("its own switch is on")
    is_served = family.served is not None and family.served.adapter == model.adapter
    if is_served and family.switched_on:
        reasons.append(f"{family.id} serves it")
    return reasons
