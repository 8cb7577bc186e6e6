"""A family's next fine-tune before it starts: its base model, price and time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import panel_material_ui as pmui
import param

from steelyard.client import Client
from steelyard.families.fine_tune_wire import FineTuneEstimate, Job
from steelyard.families.wire import Family
from steelyard.models.wire import Model
from steelyard_workbench.kit.basics import Boxed, small_text, stack
from steelyard_workbench.kit.components.numbers import is_free
from steelyard_workbench.kit.problems import not_loaded
from steelyard_workbench.kit.states import loading
from steelyard_workbench.kit.tasks import Task
from steelyard_workbench.pages.families.changes import adapter_of
from steelyard_workbench.pages.families.start_form import show_estimate
from steelyard_workbench.pages.families.taking import fetch_expected

Plan = tuple[FineTuneEstimate, float | None]


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
