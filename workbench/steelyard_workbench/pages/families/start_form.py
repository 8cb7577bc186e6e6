"""Starting a family: its dataset and settings, the price, and then the start itself."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable
from itertools import islice
from statistics import median
from typing import Any

import panel_material_ui as pmui
import param
from msgspec import UNSET
from panel.viewable import Viewable

from steelyard.client import Client
from steelyard.datasets.wire import Dataset
from steelyard.errors import SteelyardError
from steelyard.families.fine_tune_wire import FineTuneEstimate, Job
from steelyard.families.wire import MAX_LORA_RANK
from steelyard_workbench.kit.basics import Boxed, action_button, stack
from steelyard_workbench.kit.problems import needed, not_loaded
from steelyard_workbench.kit.tasks import Scope, Task, Write
from steelyard_workbench.kit.views import Details, facts, loading
from steelyard_workbench.kit.words import is_free
from steelyard_workbench.parts.datasets.names import dataset_options

#: Characters of the longest name of a family.
_LONGEST_NAME = 48
_HEADS = {
    "whatever is most often right": "auto",
    "a reader's evidence too, where it helps": "evidence",
    "the cheapest that is as right": "cheapest",
    "words alone where they are sure": "ladder",
    "words alone": "words",
}
_RANKS = {"as the server chooses": 0, **{str(n): n for n in (1, 2, 4, 8, MAX_LORA_RANK)}}
#: Fine-tunes that are looked at, and the newest like it that count.
_LOOKED_AT, _COUNTED = 50, 5


def _family_name(dataset_name: str) -> str:
    """Return the name of a dataset as a family can have it; empty where nothing of it is left."""
    name = re.sub(r"[^a-z0-9]+", "-", dataset_name.lower()).strip("-")
    return name[:_LONGEST_NAME].rstrip("-") if name[:1].isalpha() else ""


def show_estimate(estimate: FineTuneEstimate, seconds: float | None) -> Viewable:
    """Show a fine-tune's time, and its price where there is one."""
    minimum = ", the minimum" if estimate.minimum_applied else ""
    fee = f"{estimate.price_usd} USD{minimum}: held now, charged only if it succeeds"
    tokens = "" if estimate.trained_tokens is None else f", {estimate.trained_tokens:,} tokens"
    earlier = f" and {estimate.rows.earlier:,} earlier" if estimate.rows.earlier else ""
    plan = {
        "Rows": (
            f"{estimate.rows.new:,} new or corrected{earlier} to train on, "
            f"{estimate.rows.evaluation:,} for the check"
        ),
        "Takes": time_text(seconds),
        **({} if is_free(estimate.price_usd) else {"Fee": fee}),
        **({} if estimate.warnings is UNSET else {"Mind": " ".join(estimate.warnings)}),
    }
    exact = {
        "Training": f"{estimate.steps:,} steps, {estimate.passes:.3g} passes{tokens}",
        "Dataset version": str(estimate.dataset_version),
        "Random start (seed)": str(estimate.seed),
    }
    hint = "steps, dataset version, random start"
    return stack(facts(plan), Details(lambda: [facts(exact)], hint).__panel__())


class FamilyForm(Boxed):
    """The fields of a new family; ``chosen`` is the id of its first dataset."""

    def __init__(
        self,
        client: Client,
        datasets: list[Dataset],
        chosen: str,
        started: Callable[[Job], None],
        scope: Scope | None = None,
    ) -> None:
        self._client, self._started = client, started
        self._scope = scope or Scope()
        self._methods = {dataset.id: dataset.method for dataset in datasets}
        self._names = {dataset.id: _family_name(dataset.name) for dataset in datasets}
        first = chosen if chosen in self._names else datasets[0].id
        self.dataset = pmui.Select(
            label="Dataset", options=dataset_options(datasets), value=first, width=340
        )
        self.family = pmui.TextInput(
            label="Name (a to z, 0 to 9, hyphens)", value=self._names[first], width=300
        )
        self.heads = pmui.Select(label="What answers", options=_HEADS, value="auto", width=300)
        self.words_first = pmui.Checkbox(
            label="Until then words alone answer, within seconds", value=True
        )
        self.rank = pmui.Select(
            label="Learns deeper (LoRA rank)", options=_RANKS, value=0, width=220
        )
        self.seed = pmui.TextInput(label="Random start (seed, optional)", width=150)
        super().__init__()
        self.place = stack()
        self._by_name = {
            "dataset_id": self.dataset,
            "family": self.family,
            "heads": self.heads,
            "first": self.words_first,
            "lora_rank": self.rank,
            "seed": self.seed,
        }
        self.estimate = Task(
            self._estimate,
            not_loaded("The plan"),
            self.place,
            can_retry=False,
            refused="Start",
            scope=scope,
            fields=self._by_name,
        )
        self.estimate_button = action_button(
            "Show the plan", self.estimate.on_event, variant="contained"
        )
        #: The start at the price that was shown, with the fields as they were then.
        self._offer: Write[[], None] | None = None
        self._offered = Scope()
        self._box = stack(
            pmui.Row(self.dataset, self.family),
            Details(
                lambda: [pmui.Row(self.heads, self.rank, self.seed), self.words_first],
                "how it is trained",
            ).__panel__(),
            self.estimate_button,
            self.place,
        )

    async def _estimate(self) -> None:
        self._take_back()
        fields, training = self._fields(), self._training()
        self.place[:] = [loading(2, "The plan")]
        estimate = await asyncio.to_thread(
            self._client.families.estimate, **fields, hyperparameters=training
        )
        seconds = await asyncio.to_thread(
            fetch_expected, self._client, estimate.steps, is_adapting="lora_rank" in training
        )
        self._offered = Scope(self._scope)
        place = stack()
        self._offer = Write(
            lambda: self._create(fields, training, estimate),
            f"Not started: the model line {fields['family']}.",
            place,
            refused="Start",
            scope=self._offered,
            fields=self._by_name,
        )
        self.start_button = action_button(
            "Start" if is_free(estimate.price_usd) else f"Start for {estimate.price_usd} USD",
            self.start,
            variant="contained",
        )
        place[:] = [show_estimate(estimate, seconds), self.start_button]
        self.place[:] = [place]
        self.estimate_button.variant = "outlined"  # the start is next

    async def start(self, *_: Any) -> None:
        """Start the family as it was estimated, for no more than that."""
        if self._offer is not None:
            await self._offer()

    async def _create(
        self, fields: dict[str, Any], training: dict[str, Any], estimate: FineTuneEstimate
    ) -> None:
        self._offer = None
        self.start_button.disabled = True
        job = await asyncio.to_thread(
            self._client.families.create,
            **{**fields, "dataset_version": estimate.dataset_version},
            hyperparameters={**training, "seed": estimate.seed},
            max_price_usd=estimate.price_usd,
        )
        done = f"Started: the model line {job.family}. It is on the page Model lines."
        if not self._scope.say_if_ended(done):
            self._started(job)

    def _fields(self) -> dict[str, Any]:
        return {
            "family": needed(self.family, "Write a name for the model line."),
            "dataset_id": self.dataset.value,
            "method": self._methods[self.dataset.value],
        }

    def _training(self) -> dict[str, Any]:
        given: dict[str, Any] = {"lora_rank": self.rank.value} if self.rank.value else {}
        if self.heads.value != "auto":
            given["heads"] = self.heads.value
        if self.words_first.value and self.heads.value != "words":
            given["first"] = "words"
        seed = self.seed.value.strip()
        if seed:
            # What is no number is sent as it is: the server says what is wrong with it.
            given["seed"] = int(seed) if seed.isdecimal() else seed
        return given

    @param.depends("dataset.value", watch=True)
    def _propose_name(self) -> None:
        """Name the family after the dataset, until a person names it otherwise."""
        if self.family.value in {"", *self._names.values()}:
            self.family.value = self._names[self.dataset.value]

    @param.depends(
        "dataset.value",
        "family.value",
        "heads.value",
        "words_first.value",
        "rank.value",
        "seed.value",
        watch=True,
    )
    def _forget(self) -> None:
        """Take an estimate back that is of other fields, one that is still under way too."""
        self.estimate.drop()
        self._take_back()

    def _take_back(self) -> None:
        self.estimate_button.variant = "contained"
        self._offer = None
        self._offered.end()
        self.place[:] = []


def expected_seconds(jobs: Iterable[Job], steps: int, *, is_adapting: bool) -> float | None:
    """Return the seconds from the queue to the gate's verdict; ``None`` where none like it ended.

    Jobs come newest first. ``is_adapting``: whether the encoder is adapted too, which takes far
    longer a step than heads alone.
    """
    like = (
        job
        for job in islice(jobs, _LOOKED_AT)
        if job.status == "succeeded"
        and bool(job.hyperparameters.lora_rank) == is_adapting
        and job.hyperparameters.first is UNSET
    )
    rates = [
        (job.updated_at - job.created_at) / max(1, job.hyperparameters.steps)
        for job in islice(like, _COUNTED)
    ]
    return median(rates) * steps if rates else None


def fetch_expected(client: Client, steps: int, *, is_adapting: bool) -> float | None:
    """Return the expected seconds by the account's fine-tunes; ``None`` where they are unknown."""
    try:
        jobs = client.jobs.list(status="succeeded", page_size=_LOOKED_AT)
        return expected_seconds(jobs, steps, is_adapting=is_adapting)
    except SteelyardError:
        return None


def time_text(seconds: float | None) -> str:
    """Return an expected time in words.

    >>> time_text(40.0), time_text(700.0)
    ('less than a minute, by the last like it', 'about 12 min, by the last like it')
    """
    if seconds is None:
        return "not known yet: nothing like it has been trained here"
    if seconds < 60:
        duration = "less than a minute"
    elif seconds < 5400:
        duration = f"about {seconds / 60:.0f} min"
    else:
        duration = f"about {seconds / 3600:.1f} h"
    return f"{duration}, by the last like it"
