"""One family: what it serves, its line of models, the gate of each, and whatever changes it.

Every change is sent with what the page showed (``served``, ``latest``, the adapter behind a number),
so that nothing is done to a family that has become another: it is fetched again then, and what
changed is said.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable, Viewer

from steelyard.client.family_answers import (
    FamilyAnswer,
    JobAnswer,
    ModelVersionAnswer,
    describe_family,
)
from steelyard.errors import KeyScopeError, PriceChangedError, SteelyardError
from steelyard.errors.families import (
    FamilyChangedError,
    LiveLimitError,
    ModelChangedError,
    ModelDeletedError,
    ModelDiscardedError,
    NothingToRollBackError,
    RollbackChangedError,
    ServedChangedError,
    WarmLimitError,
)
from steelyard.wire.evaluations import Evaluation
from steelyard.wire.families import DeletedModelVersion
from steelyard_workbench.components import figures
from steelyard_workbench.components.confirmation import Confirmation
from steelyard_workbench.components.facts import facts, heading, table
from steelyard_workbench.components.numbers import ago
from steelyard_workbench.families.gate_card import RowsAsked, show_gate
from steelyard_workbench.families.held_out import HeldOutRows
from steelyard_workbench.families.line_picture import draw_line
from steelyard_workbench.families.places import PlaceChoice, holders_of
from steelyard_workbench.families.start_form import show_estimate
from steelyard_workbench.families.words import (
    ACTIVE,
    CANNOT_CONTINUE,
    LINE_COLUMNS,
    Choice,
    choices_of,
    continue_of,
    continue_text,
    differences,
    idle_text,
    is_same,
    line_rows,
    move_text,
    outcome_of,
    own_switch_text,
    parent_of,
    switch_text,
    warm_text,
)
from steelyard_workbench.later import later
from steelyard_workbench.loaded import Loaded
from steelyard_workbench.problems import Problem, problem_of
from steelyard_workbench.session import Session
from steelyard_workbench.states import empty, failed, loading, refused_button, verdict

#: What a server refuses with when the family is no longer as it was shown.
_CHANGED = (
    FamilyChangedError,
    ModelChangedError,
    ModelDeletedError,
    ModelDiscardedError,
    NothingToRollBackError,
    RollbackChangedError,
    ServedChangedError,
)


@dataclass(frozen=True, slots=True)
class Seen:
    """A family as it was fetched, with the fine-tune that is looked at.

    Parameters
    ----------
    family : FamilyAnswer
    job : JobAnswer or None
        ``None`` when there is none, or it could not be had.
    problem : Problem or None
        Why it could not be had.
    """

    family: FamilyAnswer
    job: JobAnswer | None
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class RollbackPlan:
    """What a server says that a rollback would do.

    Parameters
    ----------
    discard : tuple of str
        Numbers of the models that are gone for good then.
    cancel : tuple of str
        Ids of the fine-tunes and evaluations that are cancelled.
    """

    discard: tuple[str, ...]
    cancel: tuple[str, ...]


class OneFamily(Viewer):
    """A family and what can be done to it.

    Parameters
    ----------
    session : Session
        ``family`` names it, ``job`` the fine-tune that is looked at.

    Attributes
    ----------
    loaded : Loaded
        The part that fetches it.
    dialog : Confirmation or None
        The question that was asked last.
    forbidden : str
        Why nothing may be changed; empty while nothing says so.
    """

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._client = session.client
        self._name = session.family
        self.forbidden = ""
        self.dialog: Confirmation | None = None
        self.rows: HeldOutRows | None = None
        self.loaded: Loaded[Seen] = Loaded("The family", self._fetch, self._show, n_lines=8)
        self._notes = pn.Column(sizing_mode="stretch_width")
        self._dialog_place = pn.Column()
        self._rows_place = pn.Column(sizing_mode="stretch_width")
        self._box = pn.Column(
            self._notes,
            self.loaded,
            self._dialog_place,
            sizing_mode="stretch_width",
        )

    def __panel__(self) -> Viewable:
        return self._box

    @property
    def family(self) -> FamilyAnswer:
        """The family as it is shown.

        Raises
        ------
        LookupError
            Before it was fetched.
        """
        if self.loaded.data is None:
            raise LookupError(f"{self._name} was not fetched yet.")
        return self.loaded.data.family

    async def look(self) -> None:
        """See whether the family changed, and show it anew if so."""
        if self.loaded.data is None or self.loaded.state != "shown":
            return
        try:
            seen = await asyncio.to_thread(self._fetch)
        except SteelyardError:  # the connection's banner tells of it
            return
        shown = self.loaded.data
        if not is_same(shown.family, seen.family) or shown.job != seen.job:
            await self.loaded.refresh(quietly=True)

    def choose(self, choice: Choice) -> None:
        """Look at another of its fine-tunes."""
        if choice.job.id != self._session.job:
            self._session.job = choice.job.id
            self._rows_place[:] = []
            later(self._refresh)

    def close_dialog(self) -> None:
        """Leave what was asked."""
        if self.dialog is not None:
            self.dialog.close()

    async def switch(self, on: bool) -> None:
        """Switch the family on or off."""
        served = _adapter(self.family.served)
        await self._with_places(
            f"Switch {self._name} {'on' if on else 'off'}",
            f"{self._name} is {'on' if on else 'off'}.",
            lambda names: self._client.families.switch(
                self._name, on, switch_off=names or None, served=served
            ),
        )

    async def switch_model(self, model: ModelVersionAnswer, on: bool) -> None:
        """Switch a model's own switch."""
        await self._with_places(
            f"Switch {model.ref} {'on' if on else 'off'}",
            f"The switch of {model.ref} is {'on' if on else 'off'}.",
            lambda names: self._client.models.switch(
                model.ref, on, switch_off=names or None, adapter=model.adapter
            ),
        )

    async def keep_warm(self) -> None:
        """Keep the family's served model loaded; the price of an hour is asked about first."""
        served = _adapter(self.family.served)
        await self._keep_warm(
            self._name,
            lambda price, names: self._client.families.keep_warm(
                self._name, max_price_usd=price, switch_off=names or None, served=served
            ),
        )

    async def keep_model_warm(self, model: ModelVersionAnswer) -> None:
        """Keep a model loaded through its own switch; the price is asked about first."""
        await self._keep_warm(
            model.ref,
            lambda price, names: self._client.models.keep_warm(
                model.ref, max_price_usd=price, switch_off=names or None, adapter=model.adapter
            ),
        )

    async def stop_warm(self, model: ModelVersionAnswer | None = None) -> None:
        """Stop keeping the family, or a model of it, warm."""
        served = _adapter(self.family.served)
        name = self._name if model is None else model.ref
        if model is None:
            await self._directly(
                f"Stopping the keep warm of {name}",
                f"{name} is not kept warm.",
                lambda: self._client.families.keep_warm(name, False, served=served),
            )
        else:
            await self._directly(
                f"Stopping the keep warm of {name}",
                f"{name} is not kept warm.",
                lambda: self._client.models.keep_warm(name, False, adapter=model.adapter),
            )

    async def ask_roll_back(self, to: str) -> None:
        """Ask about going back to an older model, with what the server says it would do."""
        served = _adapter(self.family.served)
        try:
            plan = await asyncio.to_thread(self._plan_rollback, to, served)
        except _CHANGED as error:
            await self._tell_change(error)
            return
        except Exception as error:  # noqa: BLE001  whatever it is, the person is told
            await self._fail(error, f"Going back to {to}")
            return
        discard = list(plan.discard)
        content: list[Viewable] = [
            pmui.Markdown(
                f"**These models are discarded for good:** {', '.join(discard)}. Calls to their "
                "numbers are refused from then on (410 `model_discarded`)."
            ),
            pmui.Markdown(
                f"**This work is cancelled:** {', '.join(plan.cancel)}."
                if plan.cancel
                else "No fine-tune or evaluation is cancelled."
            ),
        ]
        if self.family.switched_on:
            content.append(pmui.Markdown(f"{self._name} serves {to} once it is loaded."))
        self._ask(
            Confirmation(
                f"Roll {self._name} back to {to}?",
                *content,
                action=f"Discard {len(discard)} and go back",
                act=lambda: self._confirmed(
                    f"{self._name} is back at {to}; {', '.join(discard)} discarded.",
                    lambda: self._client.families.roll_back(self._name, to, discard, served=served),
                ),
                typed=to,
                is_harmful=True,
            )
        )

    async def ask_continue(self) -> None:
        """Ask about the next fine-tune, with its fee."""
        latest = _adapter(self.family.latest)
        try:
            told = await asyncio.to_thread(
                self._client.families.estimate_continue, self._name, latest=latest
            )
        except _CHANGED as error:
            await self._tell_change(error)
            return
        except Exception as error:  # noqa: BLE001
            await self._fail(error, "The fee")
            return
        self._ask(
            Confirmation(
                f"Continue {self._name}?",
                show_estimate(told),
                action=f"Continue for {told.price_usd} USD",
                act=lambda: self._confirmed(
                    f"The next fine-tune of {self._name} is queued.",
                    lambda: self._continue(latest, told.seed, told.dataset_version, told.price_usd),
                ),
            )
        )

    async def ask_delete_model(self, model: ModelVersionAnswer) -> None:
        """Ask about deleting a model."""
        self._ask(
            Confirmation(
                f"Delete {model.ref}?",
                pmui.Markdown(f"{model.ref} is gone for good; its number is never given again."),
                action=f"Delete {model.ref}",
                act=lambda: self._confirmed(
                    f"{model.ref} is deleted.",
                    lambda: self._client.models.delete(model.ref, adapter=model.adapter),
                ),
                typed=model.ref,
                is_harmful=True,
            )
        )

    async def ask_delete(self) -> None:
        """Ask about deleting the family with its line."""
        family = self.family
        live = [model.ref for model in family.models if model.status == "ready"]
        gone = f"with {', '.join(live)}" if live else "It has no models, so its name is free again"
        said = f"It is gone for good {gone}. Its dataset and its fine-tunes stay."
        if not live and not family.models:
            said = f"{gone}. Its dataset and its fine-tunes stay."
        self._ask(
            Confirmation(
                f"Delete {family.id}?",
                pmui.Markdown(said),
                action=f"Delete {family.id}",
                act=self._delete,
                typed=family.id,
                is_harmful=True,
            )
        )

    async def ask_switch_off(self) -> None:
        """Ask about switching the family off."""
        warm = " Its keep warm stops." if self.family.keep_warm else ""
        self._ask(
            Confirmation(
                f"Switch {self._name} off?",
                pmui.Markdown(
                    f"Calls to {self._name} are refused (409 `family_off`) until it is on again."
                    f"{warm} Numbers whose own switch is on go on answering."
                ),
                action="Switch off",
                act=self._switch_off,
            )
        )

    async def show_rows(self, asked: RowsAsked) -> None:
        """Show the held-out rows behind something on the gate's card."""
        seen = self.loaded.data
        if seen is None or seen.job is None or seen.job.gate is None:
            return
        if seen.job.rows_deleted:
            self._rows_place[:] = [empty("Its rows went with its dataset, which was deleted.")]
            return
        earlier = _job_before(self.family, seen.job.id)
        self._rows_place[:] = [loading(4, "The held-out rows")]
        rows = HeldOutRows(self._client, seen.job, seen.job.gate.against, earlier, asked)
        # A table that is filled before the browser has drawn it fails there: it is filled first.
        await rows.start()
        self.rows = rows
        self._rows_place[:] = [rows]

    def _fetch(self) -> Seen:
        family = self._client.families.get(self._name)
        ids = [choice.job.id for choice in choices_of(family)]
        if not ids:
            return Seen(family, None)
        chosen = self._session.job if self._session.job in ids else ids[0]
        try:
            return Seen(family, self._client.jobs.get(chosen))
        except SteelyardError as error:
            return Seen(family, None, problem_of(error, "The fine-tune"))

    def _show(self, seen: Seen) -> Viewable:
        family = seen.family
        return pn.Column(
            *self._now(family),
            heading("The line"),
            *self._line(family, seen),
            *self._chosen(family, seen),
            sizing_mode="stretch_width",
        )

    def _now(self, family: FamilyAnswer) -> list[Viewable]:
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
            "Dataset": family.dataset_id,
            "Started from": family.origin,
            "Continue": self._continue_fact(family),
        }
        if family.moved is not None:
            came = family.moved.from_ or "no model"
            values["Moved by itself"] = f"from {came}, {ago(family.moved.at)}"
        return [*shown, facts(values), self._family_actions(family)]

    def _continue_fact(self, family: FamilyAnswer) -> str:
        told = continue_of(family)
        said = continue_text(told)
        if told is None:
            return said
        if told.rows is not None:
            said += (
                f": {told.rows.new:,} new and {told.rows.earlier:,} earlier rows for training, "
                f"{told.rows.evaluation:,} for the gate"
            )
        if told.evaluation_decisions is not None:
            said += (
                f"; {told.evaluation_decisions:,} new evaluation decisions of {told.needed:,} "
                "needed"
            )
        return said

    def _family_actions(self, family: FamilyAnswer) -> Viewable:
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
        told = continue_of(family)
        lacking = ["it has no dataset"] if told is None else []
        if told is not None and told.state in CANNOT_CONTINUE:
            lacking = [CANNOT_CONTINUE[told.state]]
        go_on = self._button("Continue…", self.ask_continue, lacking)
        delete = self._button(
            "Delete the family…", self.ask_delete, _why_not_delete(family), is_harmful=True
        )
        dataset = pmui.Button(label="Open its dataset", variant="text")
        dataset.on_click(lambda _: self._session.open("datasets", dataset=family.dataset_id))
        return pmui.FlexBox(switch, warm, go_on, delete, dataset)

    def _line(self, family: FamilyAnswer, seen: Seen) -> list[Viewable]:
        choices = choices_of(family)
        if not choices:
            return [empty("No fine-tune of it was ever started.")]
        shown: list[Viewable] = [figures.show(draw_line(family, self.choose))]
        if family.models:
            shown.append(table(LINE_COLUMNS, line_rows(family), label="Models of the line"))
        else:
            shown.append(empty("No model has joined yet: the first does once its gate passes it."))
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
        select.param.watch(lambda event: self.choose(by_id[event.new]), "value")
        return [*shown, select]

    def _chosen(self, family: FamilyAnswer, seen: Seen) -> list[Viewable]:
        if seen.problem is not None:
            return [failed(seen.problem, self.loaded.refresh)]
        if seen.job is None:
            return []
        job = seen.job
        choice = next(one for one in choices_of(family) if one.job.id == job.id)
        model = choice.model
        title = f"Fine-tune on version {job.dataset_version}" if model is None else model.ref
        shown: list[Viewable] = [heading(title), facts(self._facts(family, job, choice))]
        if isinstance(model, ModelVersionAnswer) and model.status == "ready":
            shown.append(self._model_actions(family, model))
        shown.append(self._links(job))
        shown.append(heading("Gate"))
        if job.gate is None:
            reason = "It has not been judged yet." if job.status in ACTIVE else "It was not judged."
            shown.append(empty(reason))
        else:
            told = continue_of(family)
            needed: dict[str, int] = {} if told is None else {"needed": told.needed}
            shown.append(
                show_gate(
                    job.gate,
                    lambda asked: later(lambda: self.show_rows(asked)),
                    place=self._rows_place,
                    **needed,
                )
            )
        return shown

    def _facts(self, family: FamilyAnswer, job: JobAnswer, choice: Choice) -> dict[str, str]:
        values = {
            "Fine-tune": f"{job.id}, {outcome_of(choice.job)[1]}, started {ago(job.created_at)}",
            "Dataset version": str(job.dataset_version),
            "Fee": f"{job.price_usd} USD, {job.charge}",
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
        held = job.dataset_evaluation
        if isinstance(held, Evaluation) and held.metrics is not None:
            values["Held-out decisions"] = f"{held.metrics.n:,}"
        return values

    def _model_actions(self, family: FamilyAnswer, model: ModelVersionAnswer) -> Viewable:
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
            ["it is the latest model already"] if is_latest else [],
            is_harmful=True,
        )
        delete = self._button(
            f"Delete {model.ref}…",
            lambda: self.ask_delete_model(model),
            _why_not_delete_model(family, model, is_latest=is_latest),
            is_harmful=True,
        )
        return pmui.FlexBox(switch, warm, back, delete)

    def _links(self, job: JobAnswer) -> Viewable:
        follow = pmui.Button(label="Follow its fine-tune", variant="text")
        follow.on_click(lambda _: self._session.open("jobs", job=job.id))
        links = [follow]
        held = job.dataset_evaluation
        if isinstance(held, Evaluation):
            opened = pmui.Button(label="Open its evaluation", variant="text")
            opened.on_click(lambda _: self._session.open("evaluations", evaluation=held.id))
            links.append(opened)
        return pmui.Row(*links)

    def _button(
        self,
        label: str,
        act: Callable[[], Awaitable[None]],
        reasons: Sequence[str] = (),
        *,
        is_first: bool = False,
        is_harmful: bool = False,
    ) -> Viewable:
        """Give a button, or the same disabled with why beside it."""
        lacking = [*([self.forbidden] if self.forbidden else []), *reasons]
        if lacking:
            return refused_button(label, lacking)
        button = pmui.Button(
            label=label,
            variant="contained" if is_first else "outlined",
            color="danger" if is_harmful else "primary",
        )

        async def go(_: Any) -> None:
            await act()

        button.on_click(go)
        return button

    def _ask(self, dialog: Confirmation) -> None:
        self.dialog = dialog
        self._dialog_place[:] = [dialog]

    async def _refresh(self) -> None:
        await self.loaded.refresh(quietly=True)

    async def _run(self, done: str, call: Callable[[], Any]) -> None:
        """Do something, and show the family as it is then; what refuses it is raised."""
        try:
            await asyncio.to_thread(call)
        except _CHANGED as error:
            await self._tell_change(error)
            return
        self._notes[:] = [verdict("good", "Done.", done)]
        await self._refresh()

    async def _directly(self, doing: str, done: str, call: Callable[[], Any]) -> None:
        try:
            await self._run(done, call)
        except Exception as error:  # noqa: BLE001  whatever it is, the person is told
            await self._fail(error, doing)

    async def _confirmed(self, done: str, call: Callable[[], Any]) -> bool:
        try:
            await self._run(done, call)
        except KeyScopeError as error:
            await self._forbid(error)
            raise
        return True

    async def _with_places(self, doing: str, done: str, call: Callable[[list[str]], Any]) -> None:
        """Do something that takes a place; where none is free, ask what to switch off."""
        try:
            await self._run(done, lambda: call([]))
        except (LiveLimitError, WarmLimitError) as error:
            self._ask_places(doing, done, error, call)
        except Exception as error:  # noqa: BLE001
            await self._fail(error, doing)

    def _ask_places(
        self, doing: str, done: str, error: SteelyardError, call: Callable[[list[str]], Any]
    ) -> None:
        choice = PlaceChoice(holders_of(error))

        async def go_on() -> bool:
            return await self._confirmed(done, lambda: call(choice.names))

        self._ask(
            Confirmation(
                f"{doing}?",
                pmui.Markdown(f"{error.message} Choose what gives its place up."),
                choice,
                action="Switch these off and go on",
                act=go_on,
            )
        )

    async def _keep_warm(self, name: str, call: Callable[[str, list[str]], Any]) -> None:
        """Keep something warm; with a bound of nothing the server tells what an hour costs."""
        doing, done = f"Keep {name} warm", f"{name} is kept warm."
        try:
            await self._run(done, lambda: call("0", []))
        except (LiveLimitError, WarmLimitError) as error:
            self._ask_places(doing, done, error, lambda names: call("0", names))
        except PriceChangedError as error:
            price = _price_of(error)
            if price is None:
                await self._fail(error, doing)
                return
            self._ask_price(doing, done, price, call)
        except Exception as error:  # noqa: BLE001
            await self._fail(error, doing)

    def _ask_price(
        self, doing: str, done: str, price: str, call: Callable[[str, list[str]], Any]
    ) -> None:
        async def go_on() -> bool:
            try:
                return await self._confirmed(done, lambda: call(price, []))
            except (LiveLimitError, WarmLimitError) as error:
                self._ask_places(doing, done, error, lambda names: call(price, names))
                return False

        self._ask(
            Confirmation(
                f"{doing}?",
                pmui.Markdown(
                    f"An hour costs **{price} USD**. It is held now and at the start of every hour "
                    "to come; the minutes used are charged."
                ),
                action=f"Keep warm for {price} USD an hour",
                act=go_on,
            )
        )

    async def _switch_off(self) -> bool:
        served = _adapter(self.family.served)
        return await self._confirmed(
            f"{self._name} is off.",
            lambda: self._client.families.switch(self._name, False, served=served),
        )

    def _plan_rollback(self, to: str, served: str | None) -> RollbackPlan:
        """Have the server say what a rollback would do: it refuses one that names no model."""
        try:
            self._client.families.roll_back(self._name, to, [], served=served)
        except RollbackChangedError as error:
            (told,) = error.details or ({},)
            return RollbackPlan(tuple(told.get("discard", ())), tuple(told.get("cancel", ())))
        return RollbackPlan((), ())

    def _continue(self, latest: str | None, seed: int, version: int, price: str) -> None:
        job = self._client.families.continue_(
            self._name,
            hyperparameters={"seed": seed},
            latest=latest,
            dataset_version=version,
            max_price_usd=price,
        )
        self._session.job = job.id

    async def _delete(self) -> bool:
        family = self.family
        try:
            await asyncio.to_thread(
                self._client.families.delete,
                family.id,
                dataset_id=family.dataset_id,
                latest=_adapter(family.latest),
            )
        except _CHANGED as error:
            await self._tell_change(error)
            return True
        except KeyScopeError as error:
            await self._forbid(error)
            raise
        self._session.param.update(family="", job="")
        return True

    async def _tell_change(self, error: SteelyardError) -> None:
        """Fetch the family anew, and say what became of it since it was shown."""
        before = self.family
        await self._refresh()
        changed = differences(before, self.family)
        told = "; ".join(changed) or error.message
        self._notes[:] = [
            verdict("unsure", f"{self._name} changed meanwhile; nothing was done.", f"{told}.")
        ]

    async def _forbid(self, error: KeyScopeError) -> None:
        self.forbidden = error.message
        await self._refresh()

    async def _fail(self, error: Exception, doing: str) -> None:
        problem = problem_of(error, doing)
        if isinstance(error, KeyScopeError):
            await self._forbid(error)
        self._notes[:] = [failed(problem)]


def _adapter(model: ModelVersionAnswer | None) -> str | None:
    return None if model is None else model.adapter


def _price_of(error: SteelyardError) -> str | None:
    for detail in error.details or ():
        price = detail.get("price_usd")
        if isinstance(price, str):
            return price
    return None


def _job_before(family: FamilyAnswer, job_id: str) -> str | None:
    """Give the last fine-tune before one that was trained to its end."""
    jobs = [choice.job for choice in choices_of(family)]
    place = next(i for i, job in enumerate(jobs) if job.id == job_id)
    return next((job.id for job in jobs[place + 1 :] if job.status == "succeeded"), None)


def _why_not_delete(family: FamilyAnswer) -> list[str]:
    reasons = []
    if family.switched_on and family.served is not None:
        reasons.append("it is on: switch it off first")
    own = [
        model.ref
        for model in family.models
        if isinstance(model, ModelVersionAnswer) and model.on_at is not None
    ]
    if own:
        reasons.append(f"the own switch of {', '.join(own)} is on")
    if any(choice.job.status in ACTIVE for choice in choices_of(family)):
        reasons.append("a fine-tune of it has not ended")
    return reasons


def _why_not_delete_model(
    family: FamilyAnswer, model: ModelVersionAnswer, *, is_latest: bool
) -> list[str]:
    if is_latest:
        return ["it is the latest model: roll the family back instead"]
    reasons = []
    if model.on_at is not None:
        reasons.append("its own switch is on")
    is_served = family.served is not None and family.served.adapter == model.adapter
    if is_served and family.switched_on:
        reasons.append(f"{family.id} serves it")
    return reasons
