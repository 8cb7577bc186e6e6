"""The form that starts a job of prompt tuning: a dataset, one of its decisions, and the agreed price."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import panel as pn
import panel_material_ui as pmui
from msgspec import UNSET
from panel.viewable import Viewable, Viewer

from steelyard.client import Client
from steelyard.datasets.definitions import MIN_ROWS, MIN_ROWS_PER_OUTCOME
from steelyard.datasets.wire import Dataset, DecisionReadiness
from steelyard.prompt_tuning.wire import PromptTuningJob
from steelyard_workbench.kit.basics import stack
from steelyard_workbench.kit.components.facts import heading
from steelyard_workbench.kit.components.model_fields import offer_models
from steelyard_workbench.kit.problems import not_loaded
from steelyard_workbench.kit.states import verdict
from steelyard_workbench.kit.tasks import Scope, Task, Write
from steelyard_workbench.parts.agreed_price import AgreedPrice
from steelyard_workbench.parts.datasets.names import dataset_options


class TuningForm(Viewer):
    """The form; a price is shown first, and confirmed by the next press."""

    def __init__(
        self,
        client: Client,
        datasets: Sequence[Dataset],
        chosen: str,
        open_job: Callable[[PromptTuningJob], None],
        scope: Scope | None = None,
    ) -> None:
        self._client, self._open_job = client, open_job
        self._price = AgreedPrice()
        names = dataset_options(datasets, with_rows=True)
        first = chosen if chosen in names.values() else next(iter(names.values()))
        self.dataset = pmui.Select(label="Dataset", options=names, value=first, width=330)
        self.decision = pmui.Select(label="Decision", options=[], width=300)
        self.model = pmui.Select(label="Model", options=[], width=260)
        self.effort = pmui.RadioButtonGroup(
            label="Effort", options={"Standard": "standard", "Thorough": "thorough"}
        )
        self.start = pmui.Button(label="Tune the wording", variant="contained")
        self.said = stack()
        super().__init__()
        fields = {
            "dataset_id": self.dataset,
            "decision": self.decision,
            "model": self.model,
        }
        self.begin = Write(self._begin, "Not started:", self.said, scope=scope, fields=fields)
        self.start.on_click(self.begin.on_event)
        self.fill = Task(
            self._fill, not_loaded("Its decisions and the models"), self.said, scope=scope
        )
        pn.bind(self.fill.on_event, self.dataset, watch=True)
        self.fill.start()

    def __panel__(self) -> Viewable:
        return stack(
            heading("Tune a decision's wording"),
            pn.FlexBox(
                *(self.dataset, self.decision, self.model, self.effort, self.start),
                align_items="flex-end",
            ),
            self.said,
        )

    async def _fill(self) -> None:
        """Offer the dataset's decisions, those that cannot be tuned grey with why, and the models."""
        dataset, choices = await asyncio.gather(
            asyncio.to_thread(self._client.datasets.get, str(self.dataset.value)),
            asyncio.to_thread(self._client.models.choices),
        )
        decisions = [] if dataset.prompt_tuning is UNSET else dataset.prompt_tuning.decisions
        names = {_label(decision): str(decision.decision["id"]) for decision in decisions}
        able = [str(decision.decision["id"]) for decision in decisions if decision.reason is None]
        self.decision.param.update(
            options=names,
            # Panel refuses a field all of whose options are grey: it is grey itself then.
            disabled_options=[name for name in names.values() if name not in able] if able else [],
            disabled=not able,
            value=next(iter(able), None),
        )
        self.start.disabled = not able
        if not able:
            text = (
                f"That takes {MIN_ROWS} labelled rows to train on, {MIN_ROWS_PER_OUTCOME} of each answer. "
                "Choose another dataset, or label rows of this one."
            )
            self.said[:] = [verdict("unsure", "No decision here can be tuned.", text)]
        # A family's own models are tuned by rows, not by words.
        offer_models(
            self.model, [choice for choice in choices if choice.kind in {"base", "connected"}]
        )

    async def _begin(self) -> None:
        job = await asyncio.to_thread(
            self._price.start,
            lambda usd: self._client.prompt_tuning.create(
                self.dataset.value,
                decision=self.decision.value or None,
                model=self.model.value or None,
                effort=self.effort.value,
                max_price_usd=usd,
            ),
        )
        if job is not None:
            self._open_job(job)
            return
        sentence = f"It costs {self._price.usd} USD."
        self.said[:] = [
            verdict("unsure", sentence, "Press again to reserve that amount and start.")
        ]


def _label(readiness: DecisionReadiness) -> str:
    name = f"{readiness.decision['id']} ({readiness.rows:,} rows)"
    return name if readiness.reason is None else f"{name}, {readiness.reason.replace('_', ' ')}"
