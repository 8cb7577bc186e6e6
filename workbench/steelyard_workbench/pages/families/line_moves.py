"""Changes to the line of one family: rolling back, continuing, and deleting."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import panel as pn
import panel_material_ui as pmui
import param

from steelyard.client import Client
from steelyard.errors import KeyScopeError, RollbackChangedError
from steelyard.families.fine_tune_wire import FineTuneEstimate, Job
from steelyard.families.wire import Family, ModelVersion
from steelyard.models.wire import Model
from steelyard_workbench.kit.basics import Boxed, small_text, stack
from steelyard_workbench.kit.problems import not_loaded
from steelyard_workbench.kit.tasks import Task
from steelyard_workbench.kit.views import loading
from steelyard_workbench.kit.words import is_free
from steelyard_workbench.pages.families.changes import CHANGED, FamilyChanges, adapter_of
from steelyard_workbench.pages.families.start_form import fetch_expected, show_estimate

Plan = tuple[FineTuneEstimate, float | None]


@dataclass(frozen=True, slots=True)
class RollbackPreview:
    """The server's preview of a rollback."""

    discard: tuple[str, ...]
    cancel: tuple[str, ...]


class LineMoves(FamilyChanges):
    """Rolling a family back, continuing it, and deleting it or a model of it."""

    next_fine_tune: NextFineTune | None = None

    async def ask_roll_back(self, to: str) -> None:
        """Ask about going back to an older model, with the server's preview."""
        served = adapter_of(self.family.served)
        plan = await self._answer(f"Going back to {to}", lambda: self._plan_rollback(to, served))
        if plan is None:
            return
        discard = list(plan.discard)
        content = [
            (
                f"**These models are discarded for good:** {', '.join(discard)}. Calls to their "
                "numbers are refused from then on."
            ),
            f"**This work is cancelled:** {', '.join(plan.cancel)}."
            if plan.cancel
            else "No fine-tune or evaluation is cancelled.",
        ]
        if self.family.switched_on:
            content.append(f"{self._name} serves {to} once it is loaded.")
        self._ask(
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

    async def ask_continue(self) -> None:
        """Ask about the next fine-tune, with its price and time."""
        models = await self._answer("Loading the models", lambda: self._client.models.list().data)
        if models is None:
            return
        job = None if self.loaded.data is None else self.loaded.data.job
        plan = NextFineTune(self._client, self.family, models, job)
        fetched = await self._answer("Estimating it", plan.fetch)
        if fetched is None:
            return
        plan.show(fetched)
        dialog = self._ask(
            f"Continue {self._name}?", plan, action=plan.action, act=lambda: self._continue(plan)
        )

        def fit(_: object) -> None:
            dialog.button.label, dialog.button.disabled = plan.action, plan.estimated is None

        pn.bind(fit, plan.param.estimated, watch=True)
        self.next_fine_tune = plan

    async def ask_delete_model(self, model: ModelVersion) -> None:
        """Ask about deleting a model."""
        self._ask(
            f"Delete {model.ref}?",
            f"{model.ref} is gone for good; its number is never given again.",
            action=f"Delete {model.ref}",
            act=lambda: self._confirmed(
                f"{model.ref} is deleted.",
                lambda: self._client.models.delete(model.ref, adapter=model.adapter),
            ),
            typed=model.ref,
            is_harmful=True,
        )

    async def ask_delete(self) -> None:
        """Ask about deleting the family with its line."""
        family = self.family
        live = [model.ref for model in family.models if model.status == "ready"]
        gone = f"with {', '.join(live)}" if live else "It has no models, so its name is free again"
        consequence = f"It is gone for good {gone}. Its dataset and its fine-tunes stay."
        if not live and not family.models:
            consequence = f"{gone}. Its dataset and its fine-tunes stay."
        self._ask(
            f"Delete {family.id}?",
            consequence,
            action=f"Delete {family.id}",
            act=lambda: self._delete(family),
            typed=family.id,
            is_harmful=True,
        )

    def _plan_rollback(self, to: str, served: str | None) -> RollbackPreview:
        """Return the effect of a rollback: the server's refusal of one without a model tells it."""
        try:
            self._client.families.roll_back(self._name, to, [], served=served)
        except RollbackChangedError as error:
            (detail,) = error.details or ({},)
            return RollbackPreview(
                tuple(detail.get("discard", ())), tuple(detail.get("cancel", ()))
            )
        return RollbackPreview((), ())

    async def _continue(self, plan: NextFineTune) -> bool:
        """Continue as it was shown, for no more than that; whether it was."""
        estimate = plan.estimated
        if estimate is None:  # another base model was chosen, and is being estimated
            return False
        chosen = plan.chosen

        def queue() -> None:
            job = self._client.families.continue_(
                self._name,
                hyperparameters={"seed": estimate.seed},
                dataset_version=estimate.dataset_version,
                max_price_usd=estimate.price_usd,
                **chosen,
            )
            if self._session.family == self._name:
                self._session.job = job.id

        return await self._confirmed(f"The next fine-tune of {self._name} is queued.", queue)

    async def _delete(self, family: Family) -> bool:
        try:
            await asyncio.to_thread(
                self._client.families.delete,
                family.id,
                dataset_id=family.dataset_id,
                latest=adapter_of(family.latest),
            )
        except CHANGED as error:
            await self._tell_change(error)
            return True
        except KeyScopeError as error:
            await self._forbid(error)
            raise
        if self._session.family == family.id:  # another may have been opened meanwhile
            self._session.param.update(family="", job="")
        return True


def bases_here(models: Sequence[Model]) -> list[str]:
    """Return the base models that a family can be moved to: none of other servers, and no routes."""
    return [
        model.id
        for model in models
        if model.lora is None
        and model.engine != "route"
        and not model.engine.startswith("connected-")
    ]


def base_of(family: Family, models: Sequence[Model]) -> str | None:
    """Return the base model that a family is on now; ``None`` where the models do not tell."""
    start = family.origin if family.latest is None else family.latest.ref
    return next((model.family for model in models if model.id == start), None)


class NextFineTune(Boxed):
    """The plan of the next fine-tune, on the family's base model or on another that is chosen."""

    estimated = param.Parameter(default=None)

    def __init__(
        self, client: Client, family: Family, models: Sequence[Model], job: Job | None
    ) -> None:
        self._client, self._name = client, family.id
        self._is_adapting = job is not None and bool(job.hyperparameters.lora_rank)
        self._present, bases = base_of(family, models), bases_here(models)
        has_choice = self._present in bases and len(bases) > 1
        self.latest = adapter_of(family.latest)
        self.base = pmui.Select(
            label="Base model",
            options=bases if has_choice else [],
            value=self._present if has_choice else None,
            visible=has_choice,
            width=340,
            margin=(10, 10, 5, 10),  # its label stands above its frame, and the dialog ends there
        )
        super().__init__()
        self.place = stack()
        self.estimate = Task(self._estimate, not_loaded("The plan"), self.place, can_retry=False)
        rival = "that base model" if family.latest is None else family.latest.ref
        self._box = stack(
            self.base,
            small_text(
                "On another base model its next model is trained on every row, from that base model "
                f"alone, and the check compares it with {rival}.",
                visible=has_choice,
                margin=(0, 10, 8, 10),
            ),
            self.place,
        )

    @property
    def action(self) -> str:
        """The label of the button that starts it."""
        is_paid = self.estimated is not None and not is_free(self.estimated.price_usd)
        return f"Continue for {self.estimated.price_usd} USD" if is_paid else "Continue"

    @property
    def chosen(self) -> dict[str, Any]:
        """The family as it was seen, and the base model where it is another."""
        is_move = self.base.value not in {None, self._present}
        return {"latest": self.latest, **({"base": self.base.value} if is_move else {})}

    def fetch(self) -> Plan:
        """Return the server's estimate for the selection, and the time of similar fine-tunes."""
        estimate = self._client.families.estimate_continue(self._name, **self.chosen)
        return estimate, fetch_expected(self._client, estimate.steps, is_adapting=self._is_adapting)

    def show(self, plan: Plan) -> None:
        """Show the server's estimate."""
        estimate, seconds = plan
        self.place[:] = [show_estimate(estimate, seconds)]
        self.estimated = estimate

    @param.depends("base.value", watch=True)
    def _ask_again(self) -> None:
        self.estimated = None
        self.estimate.start()

    async def _estimate(self) -> None:
        self.place[:] = [loading(3, "The plan")]
        self.show(await asyncio.to_thread(self.fetch))
