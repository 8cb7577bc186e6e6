"""One family: the result of its newest model, its line, and its settings behind *Details*."""

from __future__ import annotations

import asyncio
import time
from functools import partial

import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.errors import SteelyardError
from steelyard.evaluations.gate_wire import Gate
from steelyard.families.fine_tune_wire import Job
from steelyard.families.wire import Family
from steelyard.wire.jobs import UNFINISHED
from steelyard_workbench.kit.basics import bullets, stack
from steelyard_workbench.kit.components.choices import Choice as Steps
from steelyard_workbench.kit.components.choices import Choices
from steelyard_workbench.kit.components.side_by_side import side_by_side
from steelyard_workbench.kit.problems import leave_to_banner, not_loaded, problem_of
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.tasks import Task, Write
from steelyard_workbench.kit.theme import token
from steelyard_workbench.kit.views import (
    Details,
    as_sentence,
    card,
    empty,
    failed,
    loading,
    verdict,
)
from steelyard_workbench.kit.words import counted, escape_markdown
from steelyard_workbench.pages.families.changes import Seen
from steelyard_workbench.pages.families.family_details import FamilyDetails
from steelyard_workbench.pages.families.gate_card import HeldOutRequest
from steelyard_workbench.pages.families.held_out import HeldOutRows
from steelyard_workbench.pages.families.result import (
    HeldOutResult,
    fetch_result,
    show_changed,
    show_result,
)
from steelyard_workbench.pages.jobs.progress import ActiveRow, Track
from steelyard_workbench.parts.datasets.names import dataset_name
from steelyard_workbench.parts.families.labels import (
    ASK,
    CANNOT_CONTINUE,
    FineTuneChoice,
    choices_of,
    continue_of,
    is_same,
    is_same_job,
    line_text,
    move_text,
    outcome_of,
    version_name,
)
from steelyard_workbench.parts.families.verdicts import (
    GateVerdict,
    plain_reasons,
    verdict_of,
    why_of,
)
from steelyard_workbench.parts.named.naming import NAME_IT, name_family
from steelyard_workbench.parts.review.sending import RowReview

#: Versions of the line that stand on the page, the newest.
_SHOWN_VERSIONS = 6


class OneFamily(FamilyDetails):
    """A family and its actions."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.rows: HeldOutRows | None = None
        self._rows_job = ""
        #: What the fine-tune of that id came to: fetched once, and not at every look.
        self._result: HeldOutResult | None = None
        self._judged = ""
        self._is_detailed = False
        #: How far the fine-tune is that is shown, while it is under way.
        self.progress: ActiveRow | None = None
        self._track = Track()
        self.details: Details | None = None
        self.begin_continue = Write(self.ask_continue)
        self.begin_naming = Write(
            lambda: name_family(session, self.family), "Not opened:", self.notes
        )
        self.begin_switch_on = Write(lambda: self.switch(True))
        self.rows_place = stack()
        self.show_rows = Task(self._show_rows)
        self.look = Task(self._look, on_failure=leave_to_banner)
        self.arrive = Task(self._arrive)
        self._box = stack(self.notes, self.loaded, self._dialog_place)

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
        elif seen.running is not None and self.progress is not None:
            self._follow(seen.running)

    def _follow(self, job: Job) -> Viewable:
        """Show how far a fine-tune is, with the way to its job, where it can be cancelled."""
        if self.progress is None:
            self.progress = ActiveRow(
                job.summary, lambda work: self._session.open("jobs", job=work.id)
            )
        self._track.follow(time.monotonic(), job.summary)
        self.progress.update(job.summary, self._track)
        return self.progress.__panel__()

    def choose(self, choice: FineTuneChoice) -> None:
        """Look at another of its fine-tunes."""
        if choice.job.id != self._session.job:
            self._session.job = choice.job.id
            self._drop_rows()
            self.loaded.refresh.start(quietly=True)

    async def _show_rows(self, request: HeldOutRequest) -> None:
        seen = self.loaded.data
        if seen is None or seen.job is None or seen.job.gate is None:
            return
        self._clear_rows()
        self._rows_job = seen.job.id
        if seen.job.rows_deleted:
            self.rows_place[:] = [empty("Its dataset was deleted, and the rows with it.")]
            return
        earlier = _job_before(self.family, seen.job.id)
        self.rows_place[:] = [loading(4, "The rows for the check")]
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
        dataset = dataset_name(self._client, family.dataset_id)
        if not ids:
            return Seen(family, None, dataset=dataset)
        running = [c.job.id for c in choices_of(family) if c.job.status in UNFINISHED]
        ended = (job_id for job_id in ids if job_id not in running and job_id != _refused(family))
        chosen = self._session.job if self._session.job in ids else next(ended, ids[0])
        try:
            jobs = {each: self._client.jobs.get(each) for each in dict.fromkeys([*running, chosen])}
            job = jobs[chosen]
            if job.gate is not None and self._judged != job.id:
                self._result, self._judged = fetch_result(self._client, job), job.id
            result = self._result if job.gate is not None else None
            under_way = jobs[running[0]] if running else None
            return Seen(family, job, dataset=dataset, result=result, running=under_way)
        except SteelyardError as error:
            return Seen(family, None, problem_of(error, not_loaded("The fine-tune")), dataset)

    def _show(self, seen: Seen) -> Viewable:
        family, job = seen.family, seen.job
        if job is None or job.id != self._rows_job:
            self._drop_rows()  # they are of another model than the gate that is shown now
        choice = None if job is None else self._choice_of(family, job)
        self.progress = None
        shown: list[Viewable] = []
        if family.move is not None:
            shown.append(verdict("unsure", "Waits to move.", move_text(family.move)))
        if seen.problem is not None:
            shown.append(failed(seen.problem, self.loaded.refresh.on_event))
        elif job is None or choice is None:
            shown.append(empty("It has no fine-tunes yet."))
        else:
            shown.append(show_result(family, job, choice.model, seen.result))
            shown += self._reasons(family, job)
            shown += [] if seen.running is None else self._under_way(seen.running)
            if _refused(family) not in {None, job.id}:
                ended = outcome_of(choices_of(family)[0].job)[1]
                why = f"The fine-tune behind them made no model: {ended}."
                shown.append(verdict("off", "Words alone go on answering.", why))
        shown.append(self._first_steps(family, seen))
        self.details = Details(
            lambda: self._detailed(family, seen),
            "switch, keep warm, the check in figures, history, ids",
            is_open=self._is_detailed,
            on_open=self._note_open,
        )
        line = self._line(family, seen)
        if changes := self._changes(seen):
            line = side_by_side(stack(*changes, self.rows_place), line, least_width=600, share=1.7)
        return stack(card(*shown), line, self.details)

    def _under_way(self, job: Job) -> list[Viewable]:
        """Show how far a fine-tune is, and what answers until it has ended, where words alone do."""
        meanwhile = verdict(
            "running",
            "Words alone answer for now.",
            "What you asked for is being trained on the same rows. It answers once it passes the check.",
        )
        return [*([meanwhile] if job.is_behind_words else []), self._follow(job)]

    def _note_open(self, is_open: bool) -> None:
        self._is_detailed = is_open

    def _choice_of(self, family: Family, job: Job) -> FineTuneChoice:
        return next(other for other in choices_of(family) if other.job.id == job.id)

    def _first_steps(self, family: Family, seen: Seen) -> Viewable:
        """Return the most used steps; one that is not possible now has the reason under it."""
        lacking = [] if family.switched_on else ["it is off"]
        lacking += [] if family.served is not None else ["it serves no model"]
        go = partial(self._session.open, dataset=family.dataset_id, version=0)
        continuation = continue_of(family)
        n_new = 0 if continuation is None or continuation.rows is None else continuation.rows.new
        why_not = self._why_not_continue(family)
        go_on = Steps(
            "Continue…" if why_not or not n_new else f"Continue with {counted(n_new, 'new row')}",
            None if why_not else self.begin_continue.start,
            text=" ".join(map(as_sentence, why_not)),
            look="filled",
            hint="The next fine-tune takes the rows that were added or corrected, and must pass the check.",
        )
        ask = Steps(
            "Ask it",
            None if lacking else partial(go, "playground", view=ASK, model=family.id),
            text=" ".join(map(as_sentence, lacking)),
            look="filled" if why_not else "outlined",
            hint="The Playground opens with the wording of its dataset.",
        )
        name = Steps(
            NAME_IT,
            None if lacking else self.begin_naming.start,
            look="outlined",
            hint="Programs ask a named decision, whose wording and model change here.",
        )
        dataset = Steps("Open its dataset", partial(go, "datasets"), look="text")
        steps = [ask, name, dataset, go_on] if why_not else [go_on, ask, name, dataset]
        if not family.switched_on:
            steps.insert(0, Steps("Switch on", self.begin_switch_on.start, look="filled"))
        base = family.origin if seen.job is None else seen.job.model
        note = f"Asked in words that it was not trained on, it answers as {base} does."
        return stack(
            Choices(steps, layout="row"),
            pmui.Typography(note, variant="caption", margin=(0, 10), sx={"color": token("muted")}),
        )

    def _why_not_continue(self, family: Family) -> list[str]:
        continuation = continue_of(family)
        if self.forbidden:
            return [self.forbidden]
        if continuation is None:
            return ["it has no dataset"]
        why = CANNOT_CONTINUE.get(continuation.state)
        return [] if why is None else [why]

    def _reasons(self, family: Family, job: Job) -> list[Viewable]:
        """Return why the check did not pass, and the step that would settle it."""
        if job.gate is None:
            why = why_of(job)
            return [empty(escape_markdown(why))] if why else []
        if job.gate.passed:
            return []
        settles = self._verdict_of(family, job.gate).settles
        reasons = [*plain_reasons(job.gate.reasons, job.gate.sentences), settles]
        return [bullets(filter(None, reasons), margin=(0, 10))]

    def _verdict_of(self, family: Family, gate: Gate) -> GateVerdict:
        continuation = continue_of(family)
        return verdict_of(gate, **({} if continuation is None else {"needed": continuation.needed}))

    def _changes(self, seen: Seen) -> list[Viewable]:
        """Return some of the answers that changed, and the ways to all of them."""
        result = seen.result
        if result is None:
            return []
        steps = [
            Steps(
                f"All {count:,} {flip}",
                partial(self.show_rows.start, HeldOutRequest(flip=flip)),
                look="outlined",
            )
            for flip, count in (("fixed", result.fixed), ("broken", result.broken))
            if count
        ]
        steps.append(
            Steps("All rows", partial(self.show_rows.start, HeldOutRequest()), look="text")
        )
        table = [show_changed(result)] if result.changed else []
        return [*table, Choices(steps, layout="row", is_small=True)]

    def _line(self, family: Family, seen: Seen) -> Viewable:
        """Return the versions, the newest first, each with how often it is right."""
        chosen = None if seen.job is None else seen.job.id
        steps = [
            Steps(
                version_name(choice) + (" ←" if choice.job.id == chosen else ""),
                partial(self.choose, choice),
                text=line_text(family, choice),
            )
            for choice in choices_of(family)[:_SHOWN_VERSIONS]
        ]
        steps.append(Steps(text=f"began with {family.origin}"))
        return card(Choices(steps, title="The line", level=2))


def _refused(family: Family) -> str | None:
    """Return a family's newest fine-tune where that made no model, and words that answer first go on."""
    newest, *before = [choice.job for choice in choices_of(family)]
    has_words = any(job.id == newest.follows and job.output_model is not None for job in before)
    return (
        newest.id
        if has_words and newest.outcome in {"gate_failed", "failed", "cancelled"}
        else None
    )


def _job_before(family: Family, job_id: str) -> str | None:
    """Return the last fine-tune before one that was trained to its end."""
    jobs = [choice.job for choice in choices_of(family)]
    place = next(i for i, job in enumerate(jobs) if job.id == job_id)
    return next((job.id for job in jobs[place + 1 :] if job.status == "succeeded"), None)
