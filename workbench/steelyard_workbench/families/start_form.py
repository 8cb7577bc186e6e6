"""Starting a family: what it grows on and how, what that costs, and then the start itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable, Viewer

from steelyard.client import Client
from steelyard.client.family_answers import JobAnswer
from steelyard.wire.datasets import Dataset
from steelyard.wire.families import MAX_LORA_RANK
from steelyard.wire.fine_tuning import FineTuneEstimate
from steelyard_workbench.components.facts import facts
from steelyard_workbench.problems import Problem, problem_of
from steelyard_workbench.states import failed, loading, refused_button

_RANKS = {"as the server chooses": 0, **{str(n): n for n in (1, 2, 4, 8, MAX_LORA_RANK)}}


def show_estimate(told: FineTuneEstimate) -> Viewable:
    """Show what a fine-tune would cost and take."""
    minimum = ", the minimum" if told.minimum_applied else ""
    tokens = "" if told.trained_tokens is None else f", {told.trained_tokens:,} trained tokens"
    return facts(
        {
            "Fee": f"{told.price_usd} USD{minimum}: held now, charged only if it succeeds",
            "Training": f"{told.steps:,} steps, {told.passes:.3g} passes{tokens}",
            "Rows": (
                f"{told.rows.new:,} new and {told.rows.earlier:,} earlier for training, "
                f"{told.rows.evaluation:,} for the gate"
            ),
            "Dataset version": str(told.dataset_version),
            "Seed": str(told.seed),
        }
    )


@dataclass(frozen=True, slots=True)
class _Offer:
    """A start at the price that was told: with the fields as they were then."""

    fields: dict[str, Any]
    training: dict[str, Any]
    told: FineTuneEstimate


class StartForm(Viewer):
    """The fields of a new family.

    Parameters
    ----------
    client : Client
    datasets : list of Dataset
        Those that it can grow on; at least one.
    chosen : str
        Id of the dataset chosen at first, if it is one of them.
    started : callable
        Called with the fine-tune once it is queued.
    on_failed : callable
        Called with what to say when it was not, and whether the form says it too.
    """

    def __init__(
        self,
        client: Client,
        datasets: list[Dataset],
        chosen: str,
        started: Callable[[JobAnswer], None],
        on_failed: Callable[[str, bool], None],
    ) -> None:
        super().__init__()
        self._client = client
        self._started, self._on_failed = started, on_failed
        self._methods = {one.id: one.method for one in datasets}
        ids = {f"{one.name} ({one.id})": one.id for one in datasets}
        self.dataset = pmui.Select(
            label="Dataset",
            options=ids,
            value=chosen if chosen in ids.values() else next(iter(ids.values())),
            width=380,
        )
        self.family = pmui.TextInput(
            label="Name (a to z, 0 to 9, hyphens)", placeholder="router", width=300
        )
        self.rank = pmui.Select(label="LoRA rank", options=_RANKS, value=0, width=220)
        self.seed = pmui.TextInput(label="Seed (optional)", width=150)
        for field in (self.dataset, self.family, self.rank, self.seed):
            field.param.watch(lambda _: self._forget(), "value")
        self.estimate_button = pmui.Button(label="Show the fee", variant="contained")
        self.estimate_button.on_click(self.estimate)
        self._asked = 0
        self._offer: _Offer | None = None
        self.place = pn.Column(sizing_mode="stretch_width")
        self._box = pn.Column(
            pmui.Row(self.dataset, self.family),
            pmui.Row(self.rank, self.seed),
            self.estimate_button,
            self.place,
            sizing_mode="stretch_width",
        )

    def __panel__(self) -> Viewable:
        return self._box

    async def estimate(self, *_: Any) -> None:
        """Show what it would cost; the start itself is offered then, at that price."""
        self._forget()
        asked, fields, training = self._asked, self._fields(), self._training()
        self.place[:] = [loading(2, "The fee")]
        try:
            told = await asyncio.to_thread(
                self._client.families.estimate, **fields, hyperparameters=training
            )
        except Exception as error:  # noqa: BLE001  whatever it is, the person is told
            if asked == self._asked:
                self._refuse(problem_of(error, "The fee"))
            return
        if asked != self._asked:
            return
        self._offer = _Offer(fields, training, told)
        self.start_button = pmui.Button(
            label=f"Start for {told.price_usd} USD", variant="contained"
        )
        self.start_button.on_click(self.start)
        self.place[:] = [show_estimate(told), self.start_button]

    async def start(self, *_: Any) -> None:
        """Start the family as it was estimated, for no more than that."""
        if self._offer is None:
            return
        asked, offer = self._asked, self._offer
        self._offer = None
        self.start_button.disabled = True
        try:
            job = await asyncio.to_thread(
                self._client.families.create,
                **{**offer.fields, "dataset_version": offer.told.dataset_version},
                hyperparameters={**offer.training, "seed": offer.told.seed},
                max_price_usd=offer.told.price_usd,
            )
        except Exception as error:  # noqa: BLE001  whatever it is, the person is told
            problem = problem_of(error, "The start")
            is_shown = asked == self._asked  # else the place is that of other fields
            self._on_failed(
                f"Not started: the family {offer.fields['family']}. {problem.message}", is_shown
            )
            if is_shown:
                self._refuse(problem)
            return
        self._started(job)

    def _refuse(self, problem: Problem) -> None:
        shown: list[Viewable] = [failed(problem)]
        if problem.is_forbidden:
            shown.append(refused_button("Start", ["the key may only read"]))
        self._forget()
        self.place[:] = shown

    def _fields(self) -> dict[str, Any]:
        return {
            "family": self.family.value.strip(),
            "dataset_id": self.dataset.value,
            "method": self._methods[self.dataset.value],
        }

    def _training(self) -> dict[str, Any]:
        given: dict[str, Any] = {"lora_rank": self.rank.value} if self.rank.value else {}
        seed = self.seed.value.strip()
        if seed:
            # What is no number is sent as it is: the server says what is wrong with it.
            given["seed"] = int(seed) if seed.isdecimal() else seed
        return given

    def _forget(self) -> None:
        """Take an estimate back that is of other fields, one that is still under way too."""
        self._asked += 1
        self._offer = None
        self.place[:] = []
